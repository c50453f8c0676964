//! Child processes that never outlive their test, and the signals a test sends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

/// Folder of the programs under test: `RINGLAB_BIN`, or this workspace's debug build.
pub fn program(name: &str) -> Result<PathBuf> {
    let dir = match std::env::var_os("RINGLAB_BIN") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/debug"),
    };
    let path = dir.join(name);
    if !path.is_file() {
        bail!("{} is not built; run `cargo build --workspace --bins`, or `cargo xtask test`", path.display());
    }
    Ok(path)
}

#[derive(Debug)]
pub struct Process {
    pub child: Child,
    pub log: PathBuf,
}

impl Process {
    /// Starts with standard error and output in a file, which a failing test shows.
    pub fn start(mut command: Command, log: PathBuf) -> Result<Process> {
        let file = fs::File::options().create(true).append(true).open(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        Ok(Process { child, log })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        send(self.pid(), signal)
    }

    /// SIGKILL, as a power cut would be, and the end of the process awaited.
    pub fn kill(&mut self) -> Result<()> {
        let _ = self.child.kill();
        self.child.wait().map(|_| ()).context("cannot wait for a killed process")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits for a normal end within a deadline.
    pub fn ended_within(&mut self, limit: Duration) -> Result<std::process::ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("still running after {limit:?}; its log:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

pub fn send(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("not a process id")?;
    kill_process(pid, signal).with_context(|| format!("cannot signal {pid:?}"))
}

/// Children of a process, with their command lines.
pub fn children(parent: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for pid in list.split_whitespace().filter_map(|word| word.parse().ok()) {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
        }
    }
    found
}

/// A process's resource limits, as the kernel prints them.
pub fn limits(pid: u32) -> Result<String> {
    fs::read_to_string(format!("/proc/{pid}/limits"))
        .with_context(|| format!("cannot read the limits of {pid}"))
}

pub fn alive(pid: u32) -> bool {
    // A zombie has ended; it only waits for its parent to look.
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}
