//! The part of NCCL's C interface that needs no communicator. See README.md.
//!
//! Declarations follow `nccl.h` of v2.22.3-1, so that programs built against it load this library in its place.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};

/// `ncclResult_t`: an `int` to callers, so a value outside the known ones is possible and harmless.
pub type NcclResult = c_int;

pub const NCCL_SUCCESS: NcclResult = 0;
pub const NCCL_INVALID_ARGUMENT: NcclResult = 4;

/// `NCCL_VERSION(2, 22, 3)`: the interface this library follows.
pub const NCCL_VERSION_CODE: c_int = 2 * 10_000 + 22 * 100 + 3;

const NO_ERROR: &CStr = c"";
const NULL_VERSION: &CStr =
    c"ncclGetVersion: the argument `version` is a null pointer; pass the address of an int";

thread_local! {
    static LAST_ERROR: Cell<&'static CStr> = const { Cell::new(NO_ERROR) };
}

/// Stores the version code of the interface in `*version`.
///
/// # Safety
/// `version` is null or points to an `int` that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> NcclResult {
    if version.is_null() {
        LAST_ERROR.set(NULL_VERSION);
        return NCCL_INVALID_ARGUMENT;
    }
    // SAFETY: not null, and the caller promises that it may be written.
    unsafe { version.write(NCCL_VERSION_CODE) };
    NCCL_SUCCESS
}

/// What a result means. The string is static and never null.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(result: NcclResult) -> *const c_char {
    let text: &CStr = match result {
        NCCL_SUCCESS => c"no error",
        1 => c"a CUDA call failed; ncclGetLastError says which",
        2 => c"a call to the operating system failed; ncclGetLastError says which",
        3 => c"internal error of the library",
        NCCL_INVALID_ARGUMENT => c"invalid argument; ncclGetLastError says which",
        5 => c"invalid use of the interface; ncclGetLastError says which",
        6 => c"another process failed, or the connection to it was lost",
        7 => c"the operation is still in progress",
        _ => c"unknown result code",
    };
    text.as_ptr()
}

/// The last error of the calling thread, or an empty string. The string is static and never null. There are no communicators yet, so
/// `comm` is not looked at.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_comm: *mut c_void) -> *const c_char {
    LAST_ERROR.get().as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: *const c_char) -> &'static str {
        // SAFETY: the functions return static, terminated strings.
        unsafe { CStr::from_ptr(of) }.to_str().unwrap()
    }

    #[test]
    fn the_version_is_the_interface_it_follows() {
        let mut version = 0;
        // SAFETY: points to a live int.
        assert_eq!(unsafe { ncclGetVersion(&mut version) }, NCCL_SUCCESS);
        assert_eq!(version, 22203);
    }

    #[test]
    fn a_null_pointer_is_an_error_with_words() {
        assert_eq!(text(ncclGetLastError(std::ptr::null_mut())), "");
        // SAFETY: null is allowed.
        assert_eq!(unsafe { ncclGetVersion(std::ptr::null_mut()) }, NCCL_INVALID_ARGUMENT);
        assert!(text(ncclGetLastError(std::ptr::null_mut())).contains("null pointer"));
    }

    #[test]
    fn every_result_has_its_own_text() {
        let texts: std::collections::BTreeSet<_> = (0..9).map(|r| text(ncclGetErrorString(r))).collect();
        assert_eq!(texts.len(), 9);
    }
}
