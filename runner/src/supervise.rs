//! One worker process from its start to its end, under a watchdog.
//!
//! The worker has its own process group and an environment without the daemon's token. Whatever happens to it (result, crash, wall clock,
//! too much output, a stop from outside), the whole group is dead before [`supervise`] returns, and the group is killed before its
//! leader is reaped, so that its number cannot belong to anyone else.

mod pipes;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ringlab_labs::job::{EventBody, JobSpec};
use ringlab_labs::wire::{Failure, FailureKind};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::line::{Line, MAX_LINE, Outcome};
use pipes::{Pipes, ReadError};

/// Longest a worker may take to end after its last line, or after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Longest the kernel may take to end a killed group.
const KILL: Duration = Duration::from_secs(5);
/// The wall clock is checked at least this often, also when no signal and no line arrives.
const TICK: Duration = Duration::from_millis(100);
/// What a worker may write beyond its output limit: progress, task results, its result.
const OUTPUT_MARGIN: u64 = 16 << 20;

/// Variables a worker keeps: where to find programs, libraries and GPUs. Everything else, the token first of all, stays with the daemon.
const KEPT: [&str; 11] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    // Where NVLink multicast must stay off, it stays off for workers too.
    "NCCL_NVLS_ENABLE",
    "NVSHMEM_DISABLE_NVLS",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST",
    "RUST_BACKTRACE",
    "TZ",
];

/// Whether a job may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Work,
    Stop,
}

#[derive(Debug, Clone, PartialEq)]
pub enum End {
    Done(Outcome),
    Failed(Failure),
    /// Stopped by [`Order::Stop`].
    Stopped,
}

/// Runs `spec` in a worker process in `folder` until it ends. `event` is called for each event, in order, with milliseconds since the
/// worker's start.
///
/// Must run on the thread that lives as long as the daemon: the kernel ends a worker with the thread that started it.
pub async fn supervise(
    spec: &JobSpec,
    folder: &Path,
    mut orders: watch::Receiver<Order>,
    event: &mut (dyn FnMut(u64, EventBody) + Send),
) -> End {
    let mut children = match signal(SignalKind::child()) {
        Ok(children) => children,
        Err(e) => return runner_failure(format!("the runner cannot watch its workers: {e}")),
    };
    let mut child = match start(folder) {
        Ok(child) => child,
        Err(e) => return runner_failure(format!("the runner cannot start a worker process: {e}")),
    };
    let started = Instant::now();
    let wall = Duration::from_millis(spec.limits.wall_ms);
    let pid = Pid::from_child(&child);
    let mut pipes = match Pipes::open(&mut child, spec) {
        Ok(pipes) => pipes,
        Err(e) => {
            kill_and_reap(&mut child, pid).await;
            return runner_failure(format!("the runner cannot talk to its worker process: {e}"));
        }
    };

    let mut end: Option<End> = None;
    let mut leave_by = started + wall;
    let mut output = 0u64;
    let mut tick = tokio::time::interval(TICK);
    while !has_exited(pid) {
        tokio::select! {
            line = pipes.lines.recv(), if !pipes.closed => match line {
                None => pipes.closed = true,
                // After the last line nothing counts any more.
                Some(_) if end.is_some() => {}
                Some(line) => {
                    end = take_line(line, spec, &mut output, event);
                    if end.is_some() {
                        leave_by = leave_by.min(Instant::now() + GRACE);
                    }
                }
            },
            _ = children.recv() => {}
            _ = tick.tick() => {}
            changed = orders.changed() => {
                // The sender lives as long as the job is wanted.
                if changed.is_err() || *orders.borrow() == Order::Stop {
                    end = Some(End::Stopped);
                    break;
                }
            }
        }
        if Instant::now() >= leave_by {
            if end.is_none() {
                end = Some(End::Failed(wall_failure(wall, pid)));
            }
            break;
        }
    }
    let status = kill_and_reap(&mut child, pid).await;

    // What the worker wrote before it ended is still in the pipe; nobody is left to write more.
    let drain_by = tokio::time::Instant::now() + GRACE;
    while end.is_none() && !pipes.closed {
        match tokio::time::timeout_at(drain_by, pipes.lines.recv()).await {
            Ok(Some(line)) => end = take_line(line, spec, &mut output, event),
            Ok(None) => pipes.closed = true,
            Err(_) => break,
        }
    }
    let stderr = pipes.last_words(drain_by).await;
    if !stderr.is_empty() {
        tracing::debug!(job = %spec.job, %stderr, "worker's standard error");
    }
    end.unwrap_or_else(|| End::Failed(exit_failure(status, &stderr)))
}

fn start(folder: &Path) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    // The running program itself, also when its file has been replaced meanwhile.
    command.arg0("ringlab-runner").arg("worker").arg("--parent").arg(std::process::id().to_string());
    command.current_dir(folder).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Kernels compiled for one job serve the next: their cache is beside the jobs' folders, not in one of them.
    let cache = std::env::var_os("RINGLAB_CACHE").unwrap_or_else(|| folder.with_file_name("cache").into());
    command
        .env_clear()
        .env("RINGLAB_CACHE", cache)
        .env("HOME", folder)
        .env("TMPDIR", folder)
        .env("LANG", "C.UTF-8");
    command.envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.spawn()
}

fn take_line(
    line: Result<Vec<u8>, ReadError>,
    spec: &JobSpec,
    output: &mut u64,
    event: &mut (dyn FnMut(u64, EventBody) + Send),
) -> Option<End> {
    let line = match line {
        Ok(line) => line,
        Err(ReadError::TooLong) => {
            return Some(runner_failure(format!("the worker wrote a line of more than {MAX_LINE} bytes")));
        }
        Err(ReadError::Io(e)) => return Some(runner_failure(format!("reading the worker's output: {e}"))),
    };
    *output += line.len() as u64;
    if *output > spec.limits.output_bytes.saturating_add(OUTPUT_MARGIN) {
        return Some(End::Failed(Failure {
            kind: FailureKind::Limit,
            message: format!(
                "The job wrote more than {} bytes of events ({} allowed for its log) and was stopped. Let it print less.",
                spec.limits.output_bytes + OUTPUT_MARGIN,
                spec.limits.output_bytes
            ),
        }));
    }
    match serde_json::from_slice(&line) {
        Ok(Line::Event(e)) => {
            event(e.at_ms, e.body);
            None
        }
        Ok(Line::Result(outcome)) => Some(End::Done(outcome)),
        Ok(Line::Failure(failure)) => Some(End::Failed(failure)),
        Err(e) => {
            let start: String = String::from_utf8_lossy(&line).chars().take(120).collect();
            Some(runner_failure(format!(
                "the worker wrote a line that is not of its language ({e}): {start}"
            )))
        }
    }
}

/// Whether the process has ended; it stays a zombie, so its number and its group's stay taken.
fn has_exited(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that there is no such child: nothing left to wait for.
    !matches!(rustix::process::waitid(WaitId::Pid(pid), options), Ok(None))
}

async fn exited_within(pid: Pid, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    while !has_exited(pid) {
        if Instant::now() >= until {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    true
}

/// Ends the whole group: SIGTERM to a leader that still runs, then SIGKILL to all. `None` when the kernel could not end it in time.
async fn kill_and_reap(child: &mut Child, pid: Pid) -> Option<ExitStatus> {
    // ESRCH below means that nobody is left, which is what is wanted.
    if !has_exited(pid) {
        let _ = rustix::process::kill_process_group(pid, Signal::TERM);
        exited_within(pid, GRACE).await;
    }
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    if !exited_within(pid, KILL).await {
        tracing::error!(
            pid = pid.as_raw_nonzero(),
            "a killed worker does not end: it hangs inside the kernel or a driver"
        );
        return None;
    }
    child.wait().ok()
}

fn runner_failure(message: String) -> End {
    tracing::error!(message);
    End::Failed(Failure { kind: FailureKind::Runner, message })
}

fn wall_failure(wall: Duration, pid: Pid) -> Failure {
    let asleep = match process_state(pid) {
        Some('T' | 't') => " Its process was suspended (state T), not computing.",
        Some('D') => " Its process hung inside the kernel or a driver (state D).",
        _ => "",
    };
    Failure {
        kind: FailureKind::Limit,
        message: format!(
            "The job did not finish within its wall-clock limit of {} s and was stopped.{asleep} Choose a smaller size or fewer \
             iterations, or run it again.",
            wall.as_secs_f64()
        ),
    }
}

/// State letter of `/proc/PID/stat`, the first field after the command's name.
fn process_state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Why a worker that said nothing at its end is gone.
fn exit_failure(status: Option<ExitStatus>, stderr: &str) -> Failure {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.and_then(|s| s.signal());
    let limit = |message: &str| Failure { kind: FailureKind::Limit, message: message.to_owned() };
    // Rust aborts with this text when an allocation is refused, which is what the memory limit does.
    if signal == Some(Signal::ABORT.as_raw()) && stderr.contains("memory allocation of") {
        return limit(
            "The job needs more memory than its limit allows and was stopped. Choose a smaller size or fewer ranks.",
        );
    }
    if signal == Some(Signal::XCPU.as_raw()) {
        return limit(
            "The job used more CPU time than all cores have within its wall-clock limit and was stopped.",
        );
    }
    if signal == Some(Signal::XFSZ.as_raw()) {
        return limit("The job wrote a file larger than its limit allows and was stopped.");
    }
    let how = match (status, signal) {
        (Some(_), Some(9)) => {
            "was killed (signal 9): by someone on that machine, or by the kernel when memory ran out"
                .to_owned()
        }
        (Some(_), Some(signal)) => format!("crashed (signal {signal})"),
        (Some(status), None) if status.success() => "ended without a result".to_owned(),
        (Some(status), None) => format!("ended with {status}"),
        (None, _) => "could not be ended".to_owned(),
    };
    let words = if stderr.is_empty() {
        "It left no message.".to_owned()
    } else {
        format!("Its last words:\n{stderr}")
    };
    Failure { kind: FailureKind::Runner, message: format!("The worker process {how}. {words}") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn kind_of(raw_status: i32, stderr: &str) -> (FailureKind, String) {
        let failure = exit_failure(Some(ExitStatus::from_raw(raw_status)), stderr);
        (failure.kind, failure.message)
    }

    #[test]
    fn a_limit_that_the_kernel_enforced_is_told_from_a_crash() {
        let refused = "memory allocation of 4294967296 bytes failed";
        assert_eq!(kind_of(Signal::ABORT.as_raw(), refused).0, FailureKind::Limit);
        assert_eq!(kind_of(Signal::XCPU.as_raw(), "").0, FailureKind::Limit);
        assert_eq!(kind_of(Signal::XFSZ.as_raw(), "").0, FailureKind::Limit);
        let (kind, message) = kind_of(Signal::ABORT.as_raw(), "double free");
        assert_eq!(kind, FailureKind::Runner);
        assert!(message.contains("signal 6") && message.contains("double free"), "{message}");
        let (kind, message) = kind_of(101 << 8, "thread panicked");
        assert_eq!(kind, FailureKind::Runner);
        assert!(message.contains("101") && message.contains("thread panicked"), "{message}");
    }
}
