//! What this machine has.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use ringlab_labs::job::{Backend, Gpu, HardwareInfo};

/// Longest the driver may take to list its GPUs: a wedged one hangs for ever.
const LISTING: Duration = Duration::from_secs(30);

/// Backends this build has.
pub fn built_backends() -> Vec<Backend> {
    if cfg!(feature = "cuda") { vec![Backend::Cpu, Backend::Cuda] } else { vec![Backend::Cpu] }
}

/// Everything but the backends, which a self-test has to prove.
pub async fn discover() -> HardwareInfo {
    let gpus = match list_gpus_apart().await {
        Ok(gpus) => gpus,
        Err(e) => {
            tracing::info!("no GPU: {e:#}");
            Vec::new()
        }
    };
    HardwareInfo {
        cpu: cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_bytes: memory(),
        os: os(),
        gpus,
        backends: Vec::new(),
    }
}

/// Lists the GPUs in a process of its own: the driver is never loaded into the daemon, and one that hangs is left behind.
async fn list_gpus_apart() -> anyhow::Result<Vec<Gpu>> {
    let child = tokio::process::Command::new("/proc/self/exe")
        .arg("gpus")
        .env_remove("RINGLAB_RUNNER_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("starting a process to list the GPUs")?;
    let Ok(output) = tokio::time::timeout(LISTING, child.wait_with_output()).await else {
        bail!("the driver did not list its GPUs within {} s", LISTING.as_secs());
    };
    let output = output?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("{}", words.trim().trim_start_matches("ringlab-runner: "));
    }
    serde_json::from_slice(&output.stdout).context("reading the list of GPUs")
}

/// The GPUs, through the driver, in this process.
#[cfg(feature = "cuda")]
pub fn gpus() -> anyhow::Result<Vec<Gpu>> {
    let devices = ringlab_engine::exec::cuda::devices()?;
    let gpu = |device: ringlab_engine::exec::cuda::DeviceInfo| Gpu {
        name: device.name,
        memory_bytes: device.memory,
        driver: device.driver,
        compute_capability: format!("{}.{}", device.capability.0, device.capability.1),
        multiprocessors: device.multiprocessors,
    };
    Ok(devices.into_iter().map(gpu).collect())
}

#[cfg(not(feature = "cuda"))]
pub fn gpus() -> anyhow::Result<Vec<Gpu>> {
    bail!("this runner was built without the feature `cuda`")
}

fn cpu_model(cpuinfo: &str) -> String {
    let value = |key: &str| {
        cpuinfo
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(k, _)| k.trim() == key)
            .map(|(_, v)| v.trim().to_owned())
    };
    // x86 names its model; Arm gives numbers of the implementer and the part.
    value("model name").unwrap_or_else(|| match (value("CPU implementer"), value("CPU part")) {
        (Some(implementer), Some(part)) => {
            format!("{} implementer {implementer} part {part}", std::env::consts::ARCH)
        }
        _ => std::env::consts::ARCH.to_owned(),
    })
}

/// Memory this process may use: the machine's, or its control group's when that is less.
fn memory() -> u64 {
    let machine =
        fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of_meminfo(&text)).unwrap_or(0);
    let group =
        fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    group.map_or(machine, |group: u64| group.min(machine))
}

fn total_of_meminfo(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

fn os() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map_or_else(|| std::env::consts::OS.to_owned(), |name| name.trim_matches('"').to_owned());
    let kernel = rustix::system::uname();
    format!("{name}, {} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_read_as_the_kernel_writes_them() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: AMD EPYC 9454 48-Core Processor\n"),
            "AMD EPYC 9454 48-Core Processor"
        );
        assert!(
            cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n")
                .ends_with("implementer 0x41 part 0xd4f")
        );
        assert_eq!(total_of_meminfo("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        assert_eq!(total_of_meminfo("MemFree: 1 kB\n"), None);
    }
}
