//! Random operations: many processes of `ringlab-perf --random`, each with seeds of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Args, Found};
use crate::child::{Line, Scratch, ended_together, read_json};
use crate::words;

fn line(args: &Args, ours: &Path, operations: u64, seed: u64) -> Line {
    let (operations, seed) = (operations.to_string(), seed.to_string());
    let line = Line::new(ours).args(["--backend", &args.backend, "--random", &operations, "--seed", &seed]);
    if args.backend == "cuda" { line.args(["--devices", "0"]) } else { line }
}

pub fn run(args: &Args, ours: &Path) -> Found {
    let processes = u64::from(args.processes);
    let each = args.operations.div_ceil(processes);
    let lines: Vec<Line> =
        (0..processes).map(|nth| line(args, ours, each, args.seed.wrapping_add(nth * each))).collect();
    let began = Instant::now();
    let ended = ended_together(&lines, Duration::from_secs(args.deadline))?;
    let (mut operations, mut elements, mut failed) = (0, 0, Vec::new());
    for (line, ended) in lines.iter().zip(ended) {
        match concluded(&ended.out).filter(|_| ended.well()) {
            Some((done, compared)) => {
                operations += done;
                elements += compared;
            }
            None => failed.push(format!("{}: {}", words::line(&line.shown()), ended.why())),
        }
    }
    let held = failed.is_empty() && operations >= args.operations;
    let summary = json!({
        "operations": operations,
        "elements": elements,
        "processes": processes,
        "first_seed": args.seed,
        "seconds": began.elapsed().as_secs(),
        "command": words::line(&lines[0].shown()),
        "failed": failed,
    });
    Ok((summary, held))
}

/// Operations and elements of a process that found nothing wrong.
fn concluded(out: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = out.lines().last()?.split_whitespace().collect();
    match words.as_slice() {
        ["#", operations, "operations", "concluded:", elements, "elements,", "0", "wrong"] => {
            Some((operations.parse().ok()?, elements.parse().ok()?))
        }
        _ => None,
    }
}

/// What `ringlab-perf` says the CPU is.
pub fn cpu(ours: &Path) -> Result<Value, String> {
    let scratch = Scratch::named("cpu")?;
    let json = scratch.path("cpu.json");
    let line =
        Line::new(ours).args(["--backend", "cpu", "-g", "2", "-b", "8", "-e", "8", "--json"]).arg(&json);
    line.run(Duration::from_secs(60))?;
    Ok(read_json(&json)?["hardware"].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_without_a_wrong_element_has_concluded() {
        let out = "# ringlab-perf 0.1.0 backend cuda: 8 random operations from seed 1\n# 8 operations concluded: 75 elements, 0 wrong\n";
        assert_eq!(concluded(out), Some((8, 75)));
        assert_eq!(concluded("# 8 operations concluded: 75 elements, 1 wrong\n"), None);
        assert_eq!(concluded("# 1000 operations, 75 elements right\n"), None);
        assert_eq!(concluded(""), None);
    }
}
