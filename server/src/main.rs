//! `ringlab-server`. See README.md.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Context as _;
use clap::Parser as _;
use ringlab_server::config::{Command, Config, LogFormat};
use ringlab_server::{interview, judge, manage, remark, serve};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let config = Config::parse();
    log_to_stderr(config.log_format);
    if let Some(Command::Account { what }) = &config.command {
        let input = std::io::stdin().lock();
        return manage::run(&config, what.clone(), input, std::io::stdout()).await;
    }
    let shutdown = CancellationToken::new();
    stop_on_signals(shutdown.clone())?;
    let Some(command) = config.command.clone() else {
        let listener = serve::bind(&config).await?;
        let app = serve::open(config, shutdown).await?;
        return serve::run(app, listener, |address| {
            // A reader of the first line may have gone: no reason to end.
            let _ = writeln!(std::io::stdout(), "listening on http://{address}");
        })
        .await;
    };
    let app = serve::open(config, shutdown).await?;
    match command {
        // Needs no course: done above.
        Command::Account { .. } => {}
        Command::Remark { apply } => remark::run(&app, apply, std::io::stdout()).await.map(drop)?,
        Command::Regrade { apply } => {
            interview::regrade::run(&app, apply, std::io::stdout()).await.map(drop)?
        }
        Command::Judge { question } => {
            judge::once::run(&app, question, std::io::stdin(), std::io::stdout()).await.map(drop)?
        }
    }
    app.store.close().await;
    Ok(())
}

fn log_to_stderr(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
}

/// The first signal asks for an orderly end, the second ends at once.
fn stop_on_signals(shutdown: CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    tokio::spawn(async move {
        loop {
            let code = tokio::select! {
                _ = terminate.recv() => 143,
                _ = interrupt.recv() => 130,
            };
            if shutdown.is_cancelled() {
                tracing::warn!("second signal: ending at once");
                std::process::exit(code);
            }
            shutdown.cancel();
        }
    });
    Ok(())
}
