//! From a kernel's name to machine code.

use sha2::{Digest, Sha256};

use crate::cache::{Cache, CacheOutcome};
use crate::kernel::{Arch, HEADERS, Kernel};
use crate::nvrtc;

#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    #[error(
        "the CUDA run-time compiler is missing: {0}; install libnvrtc of CUDA 13 (Python package nvidia-cuda-nvrtc, or `cargo xtask`, \
         which fetches it) and name its folder in LD_LIBRARY_PATH"
    )]
    NoCompiler(String),
    #[error("{kernel} does not compile for {arch} (NVRTC {}.{}):\n{log}", version.0, version.1)]
    Rejected { kernel: Kernel, arch: Arch, version: (i32, i32), log: String },
    #[error("NVRTC failed in {call}: {code}")]
    Compiler { call: &'static str, code: String },
    #[error("{arch} is older than {}, the oldest these kernels support", Arch::OLDEST)]
    TooOld { arch: Arch },
}

/// Machine code for one architecture, as the driver loads it.
#[derive(Debug, Clone)]
pub struct Image {
    pub cubin: Vec<u8>,
    pub cache: CacheOutcome,
}

/// Options every kernel is compiled with. Fused multiply-add stays off: a plan fixes the rounding of every step.
const OPTIONS: &[&str] = &["--std=c++17", "--fmad=false", "--device-as-default-execution-space", "-lineinfo"];

fn options(kernel: Kernel, arch: Arch) -> Vec<String> {
    let mut options: Vec<String> = OPTIONS.iter().map(ToString::to_string).collect();
    options.push(format!("--gpu-architecture={arch}"));
    options.extend(kernel.definitions());
    options
}

/// Compiles a kernel now, without the cache.
///
/// # Errors
/// NVRTC is missing, the architecture is too old, or the compiler rejects the source; its log is in the error.
pub fn compile(kernel: Kernel, arch: Arch) -> Result<Vec<u8>, KernelError> {
    if arch.major < Arch::OLDEST.major {
        return Err(KernelError::TooOld { arch });
    }
    let (file, text) = kernel.source();
    nvrtc::compile(file, text, HEADERS, &options(kernel, arch)).map_err(|failure| match failure {
        nvrtc::Failure::Missing(why) => KernelError::NoCompiler(why),
        nvrtc::Failure::Rejected { log, version } => KernelError::Rejected { kernel, arch, version, log },
        nvrtc::Failure::Call { call, code } => KernelError::Compiler { call, code },
    })
}

/// Takes a kernel's image from the cache, or compiles it and leaves it there.
///
/// # Errors
/// As [`compile`]. A cache that cannot be read or written is not an error: [`Image::cache`] says what happened.
pub fn load(kernel: Kernel, arch: Arch, cache: &Cache) -> Result<Image, KernelError> {
    let version = nvrtc::version().map_err(KernelError::NoCompiler)?;
    let key = key(kernel, arch, version);
    let found = cache.get(&key);
    if let (Some(cubin), outcome) = found {
        return Ok(Image { cubin, cache: outcome });
    }
    let cubin = compile(kernel, arch)?;
    let outcome = match (cache.put(&key, &cubin), found.1) {
        (CacheOutcome::Stored, CacheOutcome::Damaged) => CacheOutcome::Damaged,
        (stored, _) => stored,
    };
    Ok(Image { cubin, cache: outcome })
}

/// Changes with every byte that could change the image.
fn key(kernel: Kernel, arch: Arch, version: (i32, i32)) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        // The length keeps two neighbouring parts from running into each other.
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let (file, text) = kernel.source();
    part(file.as_bytes());
    part(text.as_bytes());
    for (name, text) in HEADERS {
        part(name.as_bytes());
        part(text.as_bytes());
    }
    for option in options(kernel, arch) {
        part(option.as_bytes());
    }
    part(format!("{}.{}", version.0, version.1).as_bytes());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Element, Protocol, Reduction, Scope};

    #[test]
    fn every_specialisation_has_its_own_key() {
        let archs = [Arch { major: 8, minor: 0 }, Arch { major: 9, minor: 0 }];
        let mut keys: Vec<String> =
            Kernel::all().iter().flat_map(|&k| archs.map(|arch| key(k, arch, (13, 0)))).collect();
        keys.push(key(Kernel::Clock, archs[0], (13, 1)));
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn an_old_device_is_refused_by_name() {
        let kernel = Kernel::Plan {
            element: Element::F32,
            reduction: Reduction::Sum,
            protocol: Protocol::Simple,
            scope: Scope::Device,
            traced: false,
        };
        let error = compile(kernel, Arch { major: 7, minor: 5 }).unwrap_err();
        assert_eq!(error.to_string(), "sm_75 is older than sm_80, the oldest these kernels support");
    }
}
