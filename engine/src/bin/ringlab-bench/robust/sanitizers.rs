//! compute-sanitizer over small runs of every kernel and protocol.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::{Args, Found};
use crate::child::{Ended, Line};
use crate::words;

const TOOLS: [&str; 2] = ["memcheck", "racecheck"];

/// Every kernel: the interpreter with each protocol and with signals, the fused programs, the specialised kernel.
const RUNS: [&str; 9] = [
    "--algo ring",
    "--algo ring --proto LL",
    "--algo ring --proto LL128",
    "--algo tree",
    "--algo halving_doubling --proto LL",
    "--algo exchange",
    "--algo two_shot --kernel interpreter",
    "--algo two_shot --kernel fused",
    "--algo two_shot --kernel specialised",
];

/// A count that no cut divides, and one of many tiles. A sanitizer slows kernels down by hundreds of times: hence -T.
const SMALL: &str = "-g 3 --channels 2 -b 60 -e 20K -f 300 -n 2 -w 1 --rounds 1 -T 300";

pub fn run(args: &Args, ours: &Path) -> Found {
    let mut runs = Vec::new();
    let mut held = true;
    for tool in TOOLS {
        for flags in RUNS {
            let line = Line::new(&args.sanitizer)
                .args(["--tool", tool, "--error-exitcode", "9"])
                .arg(ours)
                .args(["--backend", "cuda", "--devices", "0"])
                .args(SMALL.split(' '))
                .args(flags.split(' '));
            let ended = line.ended(Duration::from_secs(args.deadline)).map_err(|why| {
                format!("{why}; compute-sanitizer comes with the CUDA toolkit: give it with --sanitizer")
            })?;
            let summary = summary(&ended);
            // A program that stopped early was not looked at to its end.
            let clean = ended.well() && summary.as_deref().is_some_and(is_clean);
            held &= clean;
            let why = (!clean).then(|| ended.why());
            eprintln!("{tool} {flags}: {}", if clean { "clean" } else { "NOT CLEAN" });
            let command = words::line(&line.shown());
            runs.push(
                json!({"tool": tool, "command": command, "summary": summary, "clean": clean, "why": why}),
            );
        }
    }
    let clean = runs.iter().filter(|run| run["clean"] == true).count();
    Ok((json!({"runs": runs.len(), "clean": clean, "tools": TOOLS, "each": runs}), held))
}

/// The tool's last word.
fn summary(ended: &Ended) -> Option<String> {
    let mut lines = ended.out.lines().chain(ended.err.lines()).rev();
    let last = lines.find(|line| line.contains("SUMMARY:"))?;
    Some(last.trim_start_matches(['=', ' ']).into())
}

fn is_clean(summary: &str) -> bool {
    ["ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards"].iter().any(|clean| summary.starts_with(clean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_clean_when_it_counts_nothing() {
        let ended = |out: &str| Ended { out: out.into(), err: String::new(), status: None };
        let found =
            summary(&ended("x\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"))
                .unwrap();
        assert!(is_clean(&found), "{found}");
        assert!(is_clean(&summary(&ended("========= ERROR SUMMARY: 0 errors")).unwrap()));
        assert!(!is_clean(&summary(&ended("========= ERROR SUMMARY: 10 errors")).unwrap()));
        assert_eq!(summary(&ended("killed")), None);
    }
}
