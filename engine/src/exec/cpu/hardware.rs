//! What the CPU back end runs on, for reports, and how much memory is left.

use crate::exec::Hardware;

pub fn describe() -> Hardware {
    let model = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|info| {
        let line = info.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = rustix::system::uname();
    let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
    Hardware {
        backend: "cpu",
        device: format!("{} ({cores} cores)", model.unwrap_or_else(|| text(kernel.machine()))),
        driver: format!("{} {}", text(kernel.sysname()), text(kernel.release())),
        devices: 1,
        kernel: "interpreter",
    }
}

/// Bytes that can be allocated without swapping, where the system tells.
pub fn available_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Cores this process may use.
pub fn cores() -> Vec<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect()
}

/// Keeps the calling thread on a core. Only makes it faster, so a system that refuses changes nothing.
pub fn stay_on(core: usize) {
    let mut only = rustix::thread::CpuSet::new();
    only.set(core);
    let _ = rustix::thread::sched_setaffinity(None, &only);
}
