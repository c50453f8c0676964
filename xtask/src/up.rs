//! `cargo xtask up`: from a clone to a URL.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};

use crate::sh::{self, Sh, say};
use crate::{nvrtc, wasm};

/// A server that is not listening after this long is ill (content is checked at start, which takes a second or two).
const START: Duration = Duration::from_secs(60);
/// What a stopping process gets to finish what it holds.
const STOP: Duration = Duration::from_secs(15);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: String,
    /// Folder of the database and the artifacts.
    #[arg(long, default_value = ".ringlab/data")]
    data: PathBuf,
    /// Build with optimisations: slower to build, faster pages.
    #[arg(long)]
    release: bool,
    /// Start the server alone; runners join with `ringlab-runner --server URL --token T`.
    #[arg(long)]
    no_runner: bool,
}

pub fn run(sh: &Sh, args: &Args) -> Result<()> {
    let started = Instant::now();
    let building = wasm::start(sh)?;
    let mut build = sh.cargo();
    build.args(["build", "--locked", "--workspace", "--bins"]);
    if args.release {
        build.arg("--release");
    }
    sh::timed("building the server and the runner", || sh::run(&mut build))?;
    let pkg = building.finish()?;
    let bin = sh.root.join("target").join(if args.release { "release" } else { "debug" });
    let token = runner_token(sh)?;

    let (interrupt, interrupted) = mpsc::channel();
    ctrlc::set_handler(move || {
        let _ = interrupt.send(());
    })
    .context("cannot catch Ctrl-C")?;

    say("starting the server");
    let mut server = sh.command(bin.join("ringlab-server"));
    server
        .args(["--listen", &args.listen, "--data"])
        .arg(&args.data)
        .arg("--root")
        .arg(&sh.root)
        .arg("--pkg")
        .arg(&pkg);
    server.env("RINGLAB_RUNNER_TOKEN", &token).stdout(Stdio::piped());
    let mut server = Process::start("server", server)?;
    let url = server.url()?;

    let runner_command = || -> Result<Command> {
        let mut runner = sh.command(bin.join("ringlab-runner"));
        runner.args(["--server", &url, "--name", "local", "--work"]).arg(sh.home.join("runner"));
        runner.env("RINGLAB_RUNNER_TOKEN", &token);
        if Path::new("/dev/nvidiactl").exists() {
            let lib = nvrtc::ensure(sh)?;
            runner.env("LD_LIBRARY_PATH", joined(&lib, "LD_LIBRARY_PATH")?);
        }
        Ok(runner)
    };
    let mut runner = None;
    if !args.no_runner {
        say("starting a runner beside it");
        let mut process = Process::start("runner", runner_command()?)?;
        wait_for_runner(&url, &mut process)?;
        runner = Some(process);
    }
    println!(
        "\n  Ringlab is up: {url}/   (ready after {:.0} s; Ctrl-C stops it)",
        started.elapsed().as_secs_f64()
    );
    if args.no_runner {
        println!("  a runner joins with: ringlab-runner --server {url} --token {token}");
    }
    std::io::stdout().flush()?;
    let outcome = watch(&interrupted, &mut server, runner.as_mut(), runner_command);
    say("stopping");
    if let Some(runner) = runner {
        runner.stop();
    }
    server.stop();
    outcome
}

/// Until Ctrl-C. A runner that dies is started again (its job is retried); a server that dies ends it all.
fn watch(
    interrupted: &Receiver<()>,
    server: &mut Process,
    mut runner: Option<&mut Process>,
    runner_command: impl Fn() -> Result<Command>,
) -> Result<()> {
    let mut next_start = Instant::now();
    loop {
        if interrupted.recv_timeout(Duration::from_millis(300)).is_ok() {
            return Ok(());
        }
        if let Some(status) = server.child.try_wait()? {
            bail!("the server ended with {status}; its last lines are above");
        }
        if let Some(process) = runner.as_deref_mut()
            && let Some(status) = process.child.try_wait()?
            && Instant::now() >= next_start
        {
            say(format!("the runner ended with {status}; starting it again"));
            next_start = Instant::now() + Duration::from_secs(5);
            *process = Process::start("runner", runner_command()?)?;
        }
    }
}

/// A child that does not outlive us, not even when we are killed.
#[derive(Debug)]
struct Process {
    name: &'static str,
    child: Child,
}

impl Process {
    fn start(name: &'static str, mut command: Command) -> Result<Process> {
        // SAFETY: between fork and exec only async-signal-safe system calls may run; prctl is one, and nothing is allocated.
        unsafe {
            command.pre_exec(|| {
                rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
                Ok(())
            });
        }
        // Its own group, so that Ctrl-C reaches us alone and we stop things in order.
        command.process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start the {name}"))?;
        Ok(Process { name, child })
    }

    /// Reads the server's `listening on URL` line; what follows it is passed on.
    fn url(&mut self) -> Result<String> {
        let stdout = self.child.stdout.take().context("the server's output is not piped")?;
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                match line.strip_prefix("listening on ") {
                    Some(url) => drop(tell.send(url.trim().to_owned())),
                    None => println!("{line}"),
                }
            }
        });
        match told.recv_timeout(START) {
            Ok(url) => Ok(url),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = self.child.wait()?;
                bail!(
                    "the server ended with {status} before it listened; the reason is above (another address: --listen 127.0.0.1:PORT)"
                )
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                bail!("the server does not listen after {} s", START.as_secs())
            }
        }
    }

    /// SIGTERM, then after a while SIGKILL.
    fn stop(mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + STOP;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        say(format!("the {} does not stop; killing it", self.name));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Made once per clone, readable by its owner alone.
fn runner_token(sh: &Sh) -> Result<String> {
    let path = sh.home.join("runner-token");
    if let Ok(token) = fs::read_to_string(&path) {
        return Ok(token.trim().to_owned());
    }
    let mut bytes = [0u8; 32];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read random bytes")?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(token.as_bytes())?;
    Ok(token)
}

/// The runner tests its back ends before it says hello, which takes some seconds.
fn wait_for_runner(url: &str, runner: &mut Process) -> Result<()> {
    let deadline = Instant::now() + START;
    while Instant::now() < deadline {
        if get(url, "/api/v1/runners").is_ok_and(|body| body.contains("\"name\":\"local\"")) {
            return Ok(());
        }
        if let Some(status) = runner.child.try_wait()? {
            bail!("the runner ended with {status}; the reason is above");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    bail!("the runner did not reach the server within {} s", START.as_secs())
}

/// One plain HTTP request to our own server.
fn get(url: &str, path: &str) -> Result<String> {
    let address = url.strip_prefix("http://").context("the server's URL is not http")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// `dir` in front of a search path from the environment.
pub fn joined(dir: &Path, variable: &str) -> Result<std::ffi::OsString> {
    let rest = std::env::var_os(variable).unwrap_or_default();
    let dirs = std::iter::once(dir.to_owned())
        .chain(std::env::split_paths(&rest).filter(|path| !path.as_os_str().is_empty()));
    std::env::join_paths(dirs).with_context(|| format!("{variable} cannot hold {}", dir.display()))
}
