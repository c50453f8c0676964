//! What a worker does to itself before it looks at a job: it ties its life to the daemon's and lowers its own limits.
//!
//! This is not a sandbox: the worker still sees the file system and the network of its user.

use anyhow::{Context, bail};
use ringlab_labs::job::Limits;
use rustix::process::{Resource, Rlimit, Signal};

use crate::line::MAX_ARTIFACT;

/// Writable memory that the CUDA driver and NVRTC take on the host beside the job's own.
const CUDA_HOST_BYTES: u64 = 8 << 30;

/// Files and sockets a worker may have open; the CUDA driver takes some tens per device.
const OPEN_FILES: u64 = 1024;

/// Makes the kernel kill this process when its parent is gone.
pub fn die_with_parent(parent: u32) -> anyhow::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("asking the kernel to end this worker with its daemon")?;
    // The daemon may have died before the line above took effect; then this process has another parent already.
    let now = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    if now != parent {
        bail!("the daemon (process {parent}) that started this worker is gone");
    }
    Ok(())
}

/// Lowers this process's limits, soft and hard.
///
/// Memory is limited by `RLIMIT_DATA`, not `RLIMIT_AS`: the first counts private writable memory (heap, stacks, anonymous maps), the
/// second every reserved address, and a CUDA context reserves more addresses than the machine has memory.
pub fn apply(limits: &Limits, cuda: bool) -> anyhow::Result<()> {
    let data = limits.memory_bytes.saturating_add(if cuda { CUDA_HOST_BYTES } else { 0 });
    lower(Resource::Data, data, 0, "memory")?;
    // A backstop behind the daemon's wall clock: what all cores could burn in that time.
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let seconds = limits.wall_ms.div_ceil(1000).saturating_mul(cores).saturating_add(5);
    // A later hard limit, so that SIGXCPU comes before SIGKILL and the daemon can tell the reason.
    lower(Resource::Cpu, seconds, 2, "CPU seconds")?;
    lower(Resource::Fsize, MAX_ARTIFACT, 0, "file size")?;
    lower(Resource::Nofile, OPEN_FILES, 0, "open files")?;
    lower(Resource::Core, 0, 0, "core file size")
}

fn lower(resource: Resource, value: u64, hard_margin: u64, what: &str) -> anyhow::Result<()> {
    let present = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit {
        current: Some(value.min(present)),
        maximum: Some(value.saturating_add(hard_margin).min(present)),
    };
    rustix::process::setrlimit(resource, limit)
        .with_context(|| format!("lowering the limit of {what} to {value}"))
}
