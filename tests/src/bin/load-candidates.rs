//! `load-candidates CANDIDATES SECONDS [OUT.json]`: candidates who each save every two seconds, a server killed and started again in
//! the middle, and how many acknowledged saves were lost. `RINGLAB_BIN` names the folder of the server's program: use a release build.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ringlab_tests::sittings::{Load, quantile, run};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args.get(at).and_then(|a| a.parse::<u64>().ok());
    let (candidates, seconds) =
        number(0).zip(number(1)).context("usage: load-candidates CANDIDATES SECONDS [OUT.json]")?;
    let every = Duration::from_secs(2);
    let load = Load { candidates: candidates as usize, every, lasts: Duration::from_secs(seconds) };
    let busy_before = load_average();
    let outcome = run(load).await?;
    let latency = |sorted: &[f64]| {
        json!({
            "saves": sorted.len(),
            "p50_ms": round(quantile(sorted, 0.5)),
            "p99_ms": round(quantile(sorted, 0.99)),
            "max_ms": round(quantile(sorted, 1.0)),
        })
    };
    let record = json!({
        "what": "candidates saving drafts against one server process, killed with SIGKILL and started again in the middle",
        "date": outside("date", &["-u", "+%Y-%m-%d"]),
        "commit": outside("git", &["rev-parse", "HEAD"]),
        "command": format!("load-candidates {}", args.join(" ")),
        "hardware": outside("sh", &["-c", "sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1"]),
        "driver": null,
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "load_average_before": busy_before,
        "load_average_after": load_average(),
        "candidates": candidates,
        "every_ms": every.as_millis() as u64,
        "seconds": seconds,
        "saves": outcome.saves,
        "lost": outcome.lost,
        "restart_ms": round(outcome.restart_ms),
        "answered_at_once": latency(&outcome.answered_ms),
        "repeated": latency(&outcome.repeated_ms),
        "all": latency(&outcome.all_ms()),
    });
    let text = serde_json::to_string_pretty(&record)?;
    println!("{text}");
    if let Some(path) = args.get(2) {
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {path}"))?;
    }
    ensure!(outcome.lost == 0, "{} acknowledged saves were lost", outcome.lost);
    Ok(())
}

fn round(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}

/// Of the last minute: what else runs on this machine.
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

fn outside(program: &str, args: &[&str]) -> Option<String> {
    let out = std::process::Command::new(program).args(args).output().ok()?;
    Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
