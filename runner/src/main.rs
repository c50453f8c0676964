use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use ringlab_labs::wire::LeaseRef;
use ringlab_runner::config::{Cli, Command, default_work_folder};
use ringlab_runner::folder::Slot;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(Command::Worker { parent }) = cli.command {
        return ringlab_runner::worker::main(parent);
    }
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("RINGLAB_LOG").unwrap_or_else(|_| "info".into()),
        )
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ringlab-runner: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    #[cfg(feature = "tls")]
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        anyhow::bail!("another TLS provider is installed already");
    }
    // One thread: it lives as long as the process, and workers end with the thread that started them.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match cli.command {
        Some(Command::Hardware { backends }) => {
            let slot = Slot::take(&default_work_folder())?;
            let folder = slot.job(&LeaseRef { job: "self-test".into(), attempt: 0 })?;
            let hardware =
                runtime.block_on(ringlab_runner::selftest::tested_hardware(&backends, folder.path()))?;
            println!("{}", serde_json::to_string_pretty(&hardware)?);
            Ok(())
        }
        Some(Command::Gpus) => {
            println!("{}", serde_json::to_string_pretty(&ringlab_runner::hardware::gpus()?)?);
            Ok(())
        }
        Some(Command::Worker { .. }) => unreachable!("handled before the runtime was made"),
        None => runtime.block_on(ringlab_runner::daemon::run(cli.daemon.check()?)),
    }
}
