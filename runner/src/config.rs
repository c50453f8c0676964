//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use ringlab_labs::job::Backend;

#[derive(Debug, Parser)]
#[command(name = "ringlab-runner", version, about = "Runs Ringlab's lab jobs on this machine.")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print what this machine has, and which backends pass the self-test, as JSON.
    Hardware {
        /// Backends to test, comma-separated (cpu, cuda); all of this build when left out.
        #[arg(long, value_delimiter = ',')]
        backends: Vec<Backend>,
    },
    /// Print this machine's GPUs as JSON.
    Gpus,
    /// Run one job: its specification (JSON) on standard input, events and result (JSON lines) on standard output, files in the working
    /// directory. The daemon starts this by itself.
    Worker {
        /// The daemon's process id: the worker ends with it.
        #[arg(long)]
        parent: Option<u32>,
    },
}

#[derive(Debug, Clone, Args)]
pub struct DaemonArgs {
    /// The server, as in `https://ringlab.example.org`.
    #[arg(long, env = "RINGLAB_SERVER")]
    pub server: Option<String>,
    /// What the server's `--runner-token` says. Other users of this machine can read command lines: prefer the variable.
    #[arg(long, env = "RINGLAB_RUNNER_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Name shown to people; the host's name when left out.
    #[arg(long, env = "RINGLAB_RUNNER_NAME")]
    pub name: Option<String>,
    /// Folder for the jobs' working directories; inside the system's temporary folder when left out.
    #[arg(long, env = "RINGLAB_WORK")]
    pub work: Option<PathBuf>,
    /// Backends to offer, comma-separated (cpu, cuda). Each must pass the self-test. When left out: all that pass.
    #[arg(long, env = "RINGLAB_BACKENDS", value_delimiter = ',')]
    pub backends: Vec<Backend>,
    /// Seconds a running job may still take after SIGTERM before it is given up (and retried elsewhere).
    #[arg(long, env = "RINGLAB_GRACE", default_value_t = 20)]
    pub grace: u64,
}

/// A folder of this user in the system's temporary folder.
pub fn default_work_folder() -> PathBuf {
    std::env::temp_dir().join(format!("ringlab-runner-{}", rustix::process::getuid().as_raw()))
}

/// A checked command line of the daemon.
#[derive(Clone)]
pub struct Config {
    pub server: ServerUrl,
    pub token: String,
    pub name: String,
    pub work: PathBuf,
    pub backends: Vec<Backend>,
    pub grace: Duration,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Config { server, token: _, name, work, backends, grace } = self;
        write!(
            f,
            "Config {{ server: {server:?}, name: {name}, work: {work:?}, backends: {backends:?}, grace: {grace:?} }}"
        )
    }
}

impl DaemonArgs {
    pub fn check(self) -> anyhow::Result<Config> {
        let server = self.server.context("which server? Say `--server URL` or set RINGLAB_SERVER")?;
        let token = self.token.context("a token is needed: set RINGLAB_RUNNER_TOKEN or say `--token T`")?;
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            bail!("the token must be printable ASCII without blanks, and not empty");
        }
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Config {
            server: ServerUrl::parse(&server)?,
            token,
            name: self.name.unwrap_or(host),
            work: self.work.unwrap_or_else(default_work_folder),
            backends: self.backends,
            grace: Duration::from_secs(self.grace),
        })
    }
}

/// Where the server is, without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl(String);

impl ServerUrl {
    pub fn parse(text: &str) -> anyhow::Result<ServerUrl> {
        let url = reqwest::Url::parse(text)
            .with_context(|| format!("`{text}` is not a URL; expected one like http://127.0.0.1:8080"))?;
        match url.scheme() {
            "http" => {}
            "https" if cfg!(feature = "tls") => {}
            "https" => bail!(
                "`{text}`: this runner was built without the feature `tls`; build it with `--features tls`"
            ),
            other => bail!("`{text}` has the scheme {other}; use http or https"),
        }
        if url.host_str().is_none()
            || url.query().is_some()
            || url.fragment().is_some()
            || !url.username().is_empty()
        {
            bail!("`{text}` must be scheme, host, port and path only");
        }
        Ok(ServerUrl(url.as_str().trim_end_matches('/').to_owned()))
    }

    pub fn socket(&self) -> String {
        // http becomes ws, https becomes wss.
        format!("ws{}/api/v1/runner", self.0.trim_start_matches("http"))
    }

    pub fn artifact(&self, sha256: &str) -> String {
        format!("{}/api/v1/runner/artifacts/{sha256}", self.0)
    }

    /// Whether the token crosses a network unencrypted.
    pub fn is_in_clear(&self) -> bool {
        let local = ["http://127.", "http://localhost", "http://[::1]"];
        self.0.starts_with("http://") && !local.iter().any(|start| self.0.starts_with(start))
    }
}

impl std::fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_behind_a_path_keeps_it() {
        let url = ServerUrl::parse("http://lab.example.org:81/ring/").unwrap();
        assert_eq!(url.socket(), "ws://lab.example.org:81/ring/api/v1/runner");
        assert_eq!(url.artifact("ab"), "http://lab.example.org:81/ring/api/v1/runner/artifacts/ab");
        assert!(url.is_in_clear());
        assert!(!ServerUrl::parse("http://127.0.0.1:80").unwrap().is_in_clear());
        for bad in ["lab.example.org", "ftp://x", "http://x/?a=1"] {
            assert!(ServerUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_token_is_never_printed() {
        let args = DaemonArgs {
            server: Some("http://127.0.0.1:1".into()),
            token: Some("s3cret".into()),
            name: None,
            work: None,
            backends: vec![],
            grace: 1,
        };
        assert!(!format!("{:?}", args.check().unwrap()).contains("s3cret"));
    }
}
