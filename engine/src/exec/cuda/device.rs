//! What GPUs there are.

use cudarc::driver::sys::CUdevice_attribute as Attribute;

use super::driver::{self, Ordinal};
use crate::exec::ExecError;

/// A GPU, as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// As [`crate::exec::SessionSpec::devices`] counts.
    pub ordinal: u32,
    pub name: String,
    /// Bytes.
    pub memory: u64,
    /// Compute capability.
    pub capability: (u32, u32),
    pub multiprocessors: u32,
    /// Bytes.
    pub l2: u64,
    /// As `nvidia-smi` prints it; "unknown" where the kernel module does not say.
    pub driver: String,
    /// CUDA version the driver supports.
    pub cuda: (u32, u32),
}

/// Every GPU that the driver shows this process.
///
/// # Errors
/// Refused when there is no CUDA driver or it does not start.
pub fn devices() -> Result<Vec<DeviceInfo>, ExecError> {
    driver::start()?;
    (0..driver::device_count()?).map(|number| describe(Ordinal::get(number)?)).collect()
}

pub fn describe(ordinal: Ordinal) -> Result<DeviceInfo, ExecError> {
    let attribute = |which| ordinal.attribute(which).map(|value| value as u32);
    let cuda = driver::cuda_version()?;
    Ok(DeviceInfo {
        ordinal: ordinal.number,
        name: ordinal.name()?,
        memory: ordinal.memory()?,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2: u64::from(attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        driver: driver_release().unwrap_or_else(|| "unknown".into()),
        cuda: (cuda.0 as u32, cuda.1 as u32),
    })
}

/// Release of NVIDIA's kernel module, which CUDA's own interface does not tell.
fn driver_release() -> Option<String> {
    if let Ok(release) = std::fs::read_to_string("/sys/module/nvidia/version") {
        return Some(release.trim().to_owned());
    }
    release_in(&std::fs::read_to_string("/proc/driver/nvidia/version").ok()?)
}

/// The first word of digits and dots in the module's own line.
fn release_in(text: &str) -> Option<String> {
    let is_release =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.lines().next()?.split_whitespace().find(is_release).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_found_in_both_kinds_of_module() {
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: 12.2.0";
        assert_eq!(release_in(closed).as_deref(), Some("550.54.15"));
        assert_eq!(release_in(open).as_deref(), Some("580.159.04"));
        assert_eq!(release_in("none"), None);
    }
}
