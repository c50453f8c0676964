//! What the server is told at start: flags, or the same by environment.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Ringlab's server: pages, job API, dispatch to runners, storage.
#[derive(Debug, Clone, Parser)]
#[command(version, args_override_self = true)]
pub struct Config {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, env = "RINGLAB_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Folder for the database and the artifacts; made when missing.
    #[arg(long, env = "RINGLAB_DATA", default_value = ".ringlab/data")]
    pub data: PathBuf,
    /// Folder that holds content/, labs/catalogue/ and labs/measurements/.
    #[arg(long, env = "RINGLAB_ROOT", default_value = ".")]
    pub root: PathBuf,
    /// Folder of the WASM build (ringlab.js, ringlab_bg.wasm); without it pages work as plain HTML.
    #[arg(long, env = "RINGLAB_PKG")]
    pub pkg: Option<PathBuf>,
    /// Token that runners present; stored hashed. Without it only runners with an earlier, unrevoked token may connect.
    #[arg(long, env = "RINGLAB_RUNNER_TOKEN", hide_env_values = true)]
    pub runner_token: Option<String>,
    /// URL under which browsers reach this server when a proxy stands before it. With https, cookies are marked Secure.
    #[arg(long, env = "RINGLAB_PUBLIC_URL")]
    pub public_url: Option<String>,
    #[arg(long, env = "RINGLAB_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// How often a runner at work says that it lives.
    #[arg(long, env = "RINGLAB_HEARTBEAT_MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(10..))]
    pub heartbeat_ms: u64,
    /// Without a heartbeat for this long a lease ends and the job is retried.
    #[arg(long, env = "RINGLAB_LEASE_MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(50..))]
    pub lease_ms: u64,
    /// Attempts of a job before the runners' faults become its failure.
    #[arg(long, env = "RINGLAB_MAX_ATTEMPTS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_attempts: u32,
    /// Queued and running jobs one user may have at a time.
    #[arg(long, env = "RINGLAB_MAX_ACTIVE_JOBS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_active_jobs: u32,
    /// Largest artifact a runner may store.
    #[arg(long, env = "RINGLAB_MAX_ARTIFACT_BYTES", default_value_t = 256 << 20)]
    pub max_artifact_bytes: u64,
    /// How long a connection may take to send the head of its next request; an idle one is closed after this. Longer than a proxy before
    /// this server keeps its own idle connections, so that it never sends a request into a closing one.
    #[arg(long, env = "RINGLAB_IDLE_MS", default_value_t = 75_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub idle_ms: u64,
    /// On SIGTERM or SIGINT: how long requests in flight may take to finish.
    #[arg(long, env = "RINGLAB_SHUTDOWN_MS", default_value_t = 10_000)]
    pub shutdown_ms: u64,
    /// Base address of an OpenAI-compatible endpoint that gives a second opinion on answers, such as http://127.0.0.1:8000/v1. It is sent
    /// answers, never names. Its key is taken from RINGLAB_JUDGE_KEY. Off without this.
    #[arg(long, env = "RINGLAB_JUDGE_URL", requires = "judge_model")]
    pub judge_url: Option<String>,
    /// Model to ask for there.
    #[arg(long, env = "RINGLAB_JUDGE_MODEL", requires = "judge_url")]
    pub judge_model: Option<String>,
    /// How long one reply of the judge may take.
    #[arg(long, env = "RINGLAB_JUDGE_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub judge_seconds: u64,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do instead of serving.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Compute all marks again from stored results and answers, and show what changes.
    Remark {
        /// Store the new marks; the older ones stay beside them.
        #[arg(long)]
        apply: bool,
    },
    /// Grade one answer from standard input and ask the judge about it: shows whether the endpoint can be used.
    Judge {
        /// Number of the question.
        #[arg(long)]
        question: u32,
    },
    /// Make, list and change accounts, also while the server runs.
    Account {
        #[command(subcommand)]
        what: crate::manage::Account,
    },
    /// Grade all stored interview answers again by the rubrics as they are now, and list what changes.
    Regrade {
        /// Store the new grades; the older ones stay beside them.
        #[arg(long)]
        apply: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

impl Config {
    pub fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.heartbeat_ms)
    }

    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    pub fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms)
    }

    pub fn secure_cookies(&self) -> bool {
        self.public_url.as_deref().is_some_and(|u| u.starts_with("https://"))
    }
}
