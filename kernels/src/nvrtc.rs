//! NVIDIA's run-time compiler through cudarc's bindings, which load it when first called.

use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::sync::OnceLock;

use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};

pub(crate) enum Failure {
    Missing(String),
    Rejected { log: String, version: (i32, i32) },
    Call { call: &'static str, code: String },
}

/// Why the compiler cannot be used; `None` when it can.
pub fn why_missing() -> Option<String> {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    let present = *PRESENT.get_or_init(|| {
        // SAFETY: opens the library by name and closes it again. cudarc's bindings panic when it is absent, so every call here comes
        // after this one.
        unsafe { sys::is_culib_present() }
    });
    (!present).then(|| "no libnvrtc can be opened".into())
}

/// Version of the compiler.
///
/// # Errors
/// Why it cannot be used.
pub fn version() -> Result<(i32, i32), String> {
    if let Some(why) = why_missing() {
        return Err(why);
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both pointers are to live integers.
    let result = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    if result != nvrtcResult::NVRTC_SUCCESS {
        return Err(format!("nvrtcVersion failed: {result:?}"));
    }
    if major < 12 {
        return Err(format!("libnvrtc {major}.{minor} is too old; 13 is needed"));
    }
    Ok((major, minor))
}

fn done(call: &'static str, result: nvrtcResult) -> Result<(), Failure> {
    if result == nvrtcResult::NVRTC_SUCCESS {
        return Ok(());
    }
    Err(Failure::Call { call, code: format!("{result:?}") })
}

fn c_string(text: &str) -> CString {
    CString::new(text).expect("sources, names and options are our own and hold no NUL")
}

struct Program(nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created by nvrtcCreateProgram and destroyed only here.
        unsafe { sys::nvrtcDestroyProgram(&mut self.0) };
    }
}

/// Compiles one source to a CUBIN.
pub(crate) fn compile(
    file: &str,
    text: &str,
    headers: &[(&str, &str)],
    options: &[String],
) -> Result<Vec<u8>, Failure> {
    let version = version().map_err(Failure::Missing)?;
    let (file, text) = (c_string(file), c_string(text));
    let names: Vec<CString> = headers.iter().map(|(name, _)| c_string(name)).collect();
    let texts: Vec<CString> = headers.iter().map(|(_, text)| c_string(text)).collect();
    let options: Vec<CString> = options.iter().map(|option| c_string(option)).collect();
    let (name_ptrs, text_ptrs, option_ptrs) = (pointers(&names), pointers(&texts), pointers(&options));

    let mut program = Program(ptr::null_mut());
    // SAFETY: every pointer is to a NUL-terminated string that outlives `program`; the arrays have `headers.len()` entries.
    let created = unsafe {
        sys::nvrtcCreateProgram(
            &mut program.0,
            text.as_ptr(),
            file.as_ptr(),
            headers.len() as i32,
            text_ptrs.as_ptr(),
            name_ptrs.as_ptr(),
        )
    };
    done("nvrtcCreateProgram", created)?;
    // SAFETY: the program is live and the array has `option_ptrs.len()` entries.
    let compiled =
        unsafe { sys::nvrtcCompileProgram(program.0, option_ptrs.len() as i32, option_ptrs.as_ptr()) };
    if compiled != nvrtcResult::NVRTC_SUCCESS {
        let log = log(&program)?;
        return Err(Failure::Rejected { log, version });
    }
    let mut size = 0;
    // SAFETY: the program is compiled; `size` is live.
    done("nvrtcGetCUBINSize", unsafe { sys::nvrtcGetCUBINSize(program.0, &mut size) })?;
    let mut cubin = vec![0u8; size];
    // SAFETY: the buffer has the size just asked for.
    done("nvrtcGetCUBIN", unsafe { sys::nvrtcGetCUBIN(program.0, cubin.as_mut_ptr().cast()) })?;
    Ok(cubin)
}

/// Valid as long as the strings.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).collect()
}

fn log(program: &Program) -> Result<String, Failure> {
    let mut size = 0;
    // SAFETY: the program is live; `size` is live.
    done("nvrtcGetProgramLogSize", unsafe { sys::nvrtcGetProgramLogSize(program.0, &mut size) })?;
    let mut log = vec![0u8; size.max(1)];
    // SAFETY: the buffer has the size just asked for, its NUL included.
    done("nvrtcGetProgramLog", unsafe { sys::nvrtcGetProgramLog(program.0, log.as_mut_ptr().cast()) })?;
    let text = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy);
    Ok(text.map_or_else(|_| String::from_utf8_lossy(&log).into_owned(), |text| text.into_owned()))
}
