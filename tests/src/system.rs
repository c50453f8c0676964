//! One server, its folder, and any number of runners.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::PATIENCE;
use crate::client::Client;
use crate::process::{self, Process};

pub const TOKEN: &str = "a-token-for-tests-0123456789abcdef";

#[derive(Debug)]
pub struct System {
    pub url: String,
    pub server: Process,
    pub runners: Vec<Process>,
    folder: TempDir,
}

impl System {
    /// A server with an empty database on a free port, and no runner.
    pub async fn start() -> Result<System> {
        let folder = tempfile::Builder::new().prefix("ringlab-test-").tempdir()?;
        let (server, url) = start_server(folder.path(), "127.0.0.1:0").await?;
        Ok(System { url, server, runners: Vec::new(), folder })
    }

    pub async fn with_runner() -> Result<System> {
        let mut system = System::start().await?;
        system.add_runner("one")?;
        system.runner_ready("one").await?;
        Ok(system)
    }

    /// Starts the server again on the same address and folder, after it was killed or stopped.
    pub async fn restart_server(&mut self) -> Result<()> {
        let address = self.url.strip_prefix("http://").context("the URL is not http")?.to_owned();
        let (server, _) = start_server(self.folder.path(), &address).await?;
        self.server = server;
        Ok(())
    }

    pub fn add_runner(&mut self, name: &str) -> Result<()> {
        self.add_runner_with(name, "cpu")
    }

    /// `backends` as the runner's flag takes them: each must pass its self-test.
    pub fn add_runner_with(&mut self, name: &str, backends: &str) -> Result<()> {
        let mut command = Command::new(process::program("ringlab-runner")?);
        command.args(["--server", &self.url, "--name", name, "--backends", backends, "--work"]);
        command.arg(self.folder.path().join(format!("runner-{name}"))).env("RINGLAB_RUNNER_TOKEN", TOKEN);
        let log = self.folder.path().join(format!("runner-{name}.log"));
        self.runners.push(Process::start(command, log)?);
        Ok(())
    }

    pub async fn runner_ready(&self, name: &str) -> Result<()> {
        let client = self.client()?;
        wait_for(&format!("runner {name} to join"), || async {
            let runners = client.get("/api/v1/runners").await?.json()?;
            let joined = runners.as_array().is_some_and(|list| list.iter().any(|r| r["name"] == name));
            Ok(joined.then_some(()))
        })
        .await
        .with_context(|| self.logs())
    }

    /// A new visitor.
    pub fn client(&self) -> Result<Client> {
        Client::new(&self.url)
    }

    /// The worker process of the `index`-th runner, as soon as it has begun its job.
    ///
    /// A worker stopped before it tied its life to its runner's would outlive it. It lowers its own limits right after that, so one
    /// whose limits still are its runner's is not ready to be signalled.
    pub async fn worker(&self, index: usize) -> Result<u32> {
        let runner = self.runners[index].pid();
        let inherited = process::limits(runner)?;
        wait_for("a worker process", || async {
            Ok(process::children(runner)
                .into_iter()
                .filter(|(_, line)| line.contains(" worker"))
                .find(|&(pid, _)| process::limits(pid).is_ok_and(|own| own != inherited))
                .map(|(pid, _)| pid))
        })
        .await
        .with_context(|| self.logs())
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn logs(&self) -> String {
        let mut text = format!("server log:\n{}", self.server.log());
        for runner in &self.runners {
            text.push_str(&format!("\nrunner log:\n{}", runner.log()));
        }
        text
    }
}

/// The checkout with content and labs: `RINGLAB_ROOT` where the programs were carried to another machine.
fn root() -> PathBuf {
    match std::env::var_os("RINGLAB_ROOT") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
    }
}

async fn start_server(folder: &Path, listen: &str) -> Result<(Process, String)> {
    let root = root();
    let mut command = Command::new(process::program("ringlab-server")?);
    command.args(["--listen", listen, "--data"]).arg(folder.join("data"));
    command.arg("--root").arg(&root).env("RINGLAB_RUNNER_TOKEN", TOKEN);
    match std::env::var_os("RINGLAB_PKG") {
        Some(pkg) => command.arg("--pkg").arg(pkg),
        // What needs no browser runs without the WASM build too.
        None => match root.join(".ringlab/pkg") {
            pkg if pkg.is_dir() => command.arg("--pkg").arg(pkg),
            _ => &mut command,
        },
    };
    // A log per start: the line with the address must be this start's.
    let number = std::fs::read_dir(folder)?.count();
    let mut server = Process::start(command, folder.join(format!("server-{number}.log")))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let log = server.log();
        if let Some(url) = log.lines().find_map(|line| line.strip_prefix("listening on ")) {
            return Ok((server, url.trim().to_owned()));
        }
        if let Some(status) = server.child.try_wait()? {
            bail!("the server ended with {status}:\n{log}");
        }
        if Instant::now() > deadline {
            bail!("the server does not listen:\n{log}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Asks again and again until there is something, within [`PATIENCE`].
pub async fn wait_for<T, F: Future<Output = Result<Option<T>>>>(
    what: &str,
    ask: impl FnMut() -> F,
) -> Result<T> {
    wait_within(PATIENCE, what, ask).await
}

pub async fn wait_within<T, F: Future<Output = Result<Option<T>>>>(
    limit: Duration,
    what: &str,
    mut ask: impl FnMut() -> F,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    let mut last = None;
    while Instant::now() < deadline {
        match ask().await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => {}
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    match last {
        Some(error) => Err(error.context(format!("waited {limit:?} for {what}"))),
        None => bail!("waited {limit:?} for {what}"),
    }
}
