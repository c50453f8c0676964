//! Ranks killed at random moments, by the engine's own test program: several families of processes at a time.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Args, Found};
use crate::child::{Ended, Line, ended_together};
use crate::words;

const TEST: &str = "a_killed_rank_is_known_within_two_seconds_and_the_others_go_on";

pub fn run(args: &Args, comm_gpu: &Path) -> Found {
    let families = args.families.min(args.kills);
    let each = args.kills.div_ceil(families);
    let line = |nth: u32| {
        let mut line = Line::new(comm_gpu).args(["--exact", TEST, "--nocapture"]);
        let seed = args.seed.wrapping_add(u64::from(nth));
        let pairs = [
            ("RINGLAB_REQUIRE_CUDA", "1".to_owned()),
            ("RINGLAB_KILLS", each.to_string()),
            ("RINGLAB_SEED", seed.to_string()),
        ];
        line.env = pairs.map(|(name, value)| (name.to_owned(), value)).to_vec();
        line
    };
    let lines: Vec<Line> = (0..families).map(line).collect();
    let began = Instant::now();
    let ended = ended_together(&lines, Duration::from_secs(args.deadline))?;
    let (mut kills, mut times, mut failed) = (0, Vec::<u64>::new(), Vec::new());
    for (line, ended) in lines.iter().zip(ended) {
        let seen = seen(&ended);
        kills += seen.len();
        times.extend(seen.iter().flatten());
        if !ended.well() || seen.len() < each as usize {
            let shown = words::line(&line.shown());
            failed.push(format!("{shown}: {} of {each} kills; {}", seen.len(), ended.why()));
        }
    }
    times.sort_unstable();
    let held = failed.is_empty();
    let summary = json!({
        "kills": kills,
        "families": families,
        "errors_of_survivors": times.len(),
        "median_ms": times.get(times.len() / 2),
        "longest_ms": times.last(),
        "seconds": began.elapsed().as_secs(),
        "command": words::line(&lines[0].shown()),
        "failed": failed,
    });
    Ok((summary, held))
}

/// For every kill, the milliseconds after which each survivor had its error.
fn seen(ended: &Ended) -> Vec<Vec<u64>> {
    let lines = ended.out.lines().chain(ended.err.lines());
    lines.filter(|line| line.starts_with("kill ")).map(times).collect()
}

fn times(line: &str) -> Vec<u64> {
    let parts = line.split(" knew after ").skip(1);
    parts.filter_map(|part| part.split_whitespace().next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_every_survivor_are_read() {
        let err = "rank 0: \nkill 10 at 19.477 s: rank 0; rank 1 knew after 0 ms rank 2 knew after 31 ms\nrank 1: \n\
                   kill 11 at 21.364 s: rank 0; rank 1 knew after 27 ms rank 2 knew after 27 ms\n12 kills, 24 errors of survivors\n";
        let ended = Ended { out: String::new(), err: err.into(), status: None };
        assert_eq!(seen(&ended), [[0, 31], [27, 27]]);
    }
}
