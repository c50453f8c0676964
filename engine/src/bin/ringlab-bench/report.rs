//! The JSON file and the Markdown table of a run.

use serde_json::{Value, json};

use crate::args::{Args, Forced, PeerKind};
use crate::band::Band;
use crate::child::Line;
use crate::samples::{Pair, Placement, Samples, median, spread};
use crate::{target, words};

/// Version of the file's structure.
const VERSION: u32 = 1;

/// What a reader has to know to judge the figures.
const CPU_NOTE: &str =
    "ranks of the peer are processes, ranks of ringlab-perf share one process and a thread for each core";
const SHARED_NOTE: &str = "all ranks share one GPU: no link between GPUs is crossed; nccl-tests' ranks are processes under one MPS service, \
                           ringlab-perf's are blocks of one kernel";
const ONE_PROCESS_NOTE: &str =
    "all ranks share one GPU and, on both sides, one process: no link between GPUs is crossed";
const OWN_NOTE: &str = "each rank has its GPU; both sides are one process";

#[derive(Debug)]
pub struct Report {
    peer: &'static str,
    note: &'static str,
    rows: Vec<Row>,
    commands: Vec<Value>,
    /// `ringlab-perf`'s own record of where it ran.
    hardware: Value,
    commit: Value,
    library: Option<String>,
    /// What the GPU's memory can do, as `copy` found it.
    copy: Value,
}

#[derive(Debug)]
struct Row {
    ranks: u32,
    size: u64,
    placement: Placement,
    flags: String,
    pair: Pair,
    target: Option<f64>,
    met: Option<bool>,
}

impl Row {
    fn ratio(&self) -> f64 {
        median(&self.pair.theirs) / median(&self.pair.ours)
    }

    fn json(&self) -> Value {
        let side = |rounds: &[f64], wrong: u64| {
            let fold = |pick: fn(f64, f64) -> f64| rounds.iter().copied().reduce(pick);
            json!({
                "median_us": median(rounds), "spread": spread(rounds), "min_us": fold(f64::min), "max_us": fold(f64::max),
                "rounds_us": rounds, "wrong": wrong,
            })
        };
        json!({
            "ranks": self.ranks,
            "size": self.size,
            "placement": self.placement.name(),
            "ours_flags": self.flags,
            "ours": side(&self.pair.ours, self.pair.wrong_ours),
            "theirs": side(&self.pair.theirs, self.pair.wrong_theirs),
            "times_as_fast": self.ratio(),
            "target": self.target,
            "target_met": self.met,
        })
    }

    fn markdown(&self) -> String {
        let met = match (self.target, self.met) {
            (Some(target), Some(met)) => format!("{} ({target:.1})", if met { "yes" } else { "**no**" }),
            _ => "-".into(),
        };
        let side = |rounds: &[f64], wrong: u64| {
            let wrong = if wrong > 0 { format!(" ({wrong} wrong)") } else { String::new() };
            format!("{} ± {:.0} %{wrong}", micros(median(rounds)), spread(rounds) * 100.0)
        };
        let in_place = if self.placement == Placement::InPlace { ", in place" } else { "" };
        format!(
            "| {} | {}{in_place} | {} | {} | {} | {:.2} | {met} |\n",
            self.ranks,
            size(self.size),
            self.flags,
            side(&self.pair.ours, self.pair.wrong_ours),
            side(&self.pair.theirs, self.pair.wrong_theirs),
            self.ratio(),
        )
    }
}

impl Report {
    pub fn new(args: &Args) -> Report {
        let note = match (args.peer, args.gpus) {
            (PeerKind::Nccl, crate::args::Gpus::Shared) => SHARED_NOTE,
            (PeerKind::Nccl, crate::args::Gpus::OneProcess) => ONE_PROCESS_NOTE,
            (PeerKind::Nccl, crate::args::Gpus::Own) => OWN_NOTE,
            _ => CPU_NOTE,
        };
        Report {
            peer: args.peer_name(),
            note,
            rows: vec![],
            commands: vec![],
            hardware: Value::Null,
            commit: Value::Null,
            library: None,
            copy: Value::Null,
        }
    }

    pub fn copy(&mut self, measured: Value) {
        self.copy = measured;
    }

    pub fn commands(&mut self, ranks: u32, band: &Band, ours: &Line, theirs: &Line) {
        self.commands.push(json!({
            "ranks": ranks, "first": band.first, "last": band.last, "ours": words::line(&ours.shown()),
            "theirs": words::line(&theirs.shown()),
        }));
    }

    pub fn met_hardware(&mut self, file: &Value, library: Option<String>) {
        self.hardware = file["hardware"].clone();
        self.commit = file["commit"].clone();
        self.library = library.or(self.library.take());
    }

    pub fn add(&mut self, args: &Args, ranks: u32, band: &Band, samples: &Samples) {
        for (&(size, placement), pair) in &samples.pairs {
            let target = match args.forced {
                Some(_) => Some(1.0),
                None => target::times_as_fast(args.peer, args.collective, ranks, size),
            };
            let flags = band.ours.chunks(2).map(|pair| pair[1..].join(" ")).collect::<Vec<_>>().join(" ");
            let mut row = Row { ranks, size, placement, flags, pair: pair.clone(), target, met: None };
            row.met = target.map(|target| target::met(args.peer, target, row.ratio()));
            self.rows.push(row);
        }
    }

    pub fn all_met(&self) -> bool {
        self.rows.iter().all(|row| row.met != Some(false))
    }

    pub fn json(&self, args: &Args) -> Value {
        let finished = now();
        json!({
            "version": VERSION,
            "program": "ringlab-bench",
            "engine_version": env!("CARGO_PKG_VERSION"),
            "commit": self.commit,
            "command": args.words.iter().map(|word| words::bare(word)).collect::<Vec<_>>(),
            "environment": words::environment(),
            "finished_unix": finished,
            "date": date(finished),
            "hardware": self.hardware,
            "peer": {"name": self.peer, "library": self.library},
            "collective": args.collective.name(),
            "forced": args.forced.map(Forced::name),
            "copy": self.copy,
            "rounds": args.rounds,
            "note": self.note,
            "timed": "each side: host clock over its iterations back to back, divided by their number; medians of rounds in which the two \
                      sides took turns",
            "commands": self.commands,
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "all_targets_met": self.all_met(),
        })
    }

    /// One table of out-of-place rows; rows in place only where the peer has nothing else. All are in the JSON.
    pub fn markdown(&self) -> String {
        let has_out = |row: &Row| {
            self.rows
                .iter()
                .any(|r| (r.ranks, r.size) == (row.ranks, row.size) && r.placement == Placement::OutOfPlace)
        };
        let shown = self.rows.iter().filter(|row| row.placement == Placement::OutOfPlace || !has_out(row));
        let device = self.hardware["device"].as_str().unwrap_or("unknown hardware");
        let driver = self.hardware["driver"].as_str().unwrap_or("unknown driver");
        let commit = self.commit.as_str().unwrap_or("of an unnamed commit");
        let mut text = format!(
            "On {device}, {driver}; engine {commit}; peer: {}. Times in µs per execution: median ± half the interquartile range; {}.\n\n\
             | ranks | size | ours is | ours | {name} | times as fast | target met |\n| --- | --- | --- | --- | --- | --- | --- |\n",
            self.library.as_deref().unwrap_or(self.peer),
            self.note,
            name = self.peer,
        );
        shown.for_each(|row| text.push_str(&row.markdown()));
        text
    }
}

/// The commit this program was built from: set `RINGLAB_COMMIT` when building or running.
pub fn commit() -> Option<String> {
    option_env!("RINGLAB_COMMIT").map(Into::into).or_else(|| std::env::var("RINGLAB_COMMIT").ok())
}

/// Seconds since 1970.
pub fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |at| at.as_secs())
}

/// Three significant digits.
pub fn micros(us: f64) -> String {
    match us {
        us if us >= 100.0 => format!("{us:.0}"),
        us if us >= 10.0 => format!("{us:.1}"),
        us => format!("{us:.2}"),
    }
}

pub fn size(bytes: u64) -> String {
    [(30, "GiB"), (20, "MiB"), (10, "KiB")]
        .into_iter()
        .find(|(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift))
        .map_or_else(|| format!("{bytes} B"), |(shift, unit)| format!("{} {unit}", bytes >> shift))
}

/// Civil date of a moment in UTC, by Howard Hinnant's `civil_from_days`.
pub fn date(unix: u64) -> String {
    let days = unix / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_sizes_are_written_as_people_read_them() {
        assert_eq!(
            [date(0), date(951_782_400), date(1_798_761_599)],
            ["1970-01-01", "2000-02-29", "2026-12-31"]
        );
        assert_eq!(
            [size(8), size(1536), size(4 << 10), size(256 << 20)],
            ["8 B", "1536 B", "4 KiB", "256 MiB"]
        );
        assert_eq!([micros(0.456), micros(45.67), micros(4567.8)], ["0.46", "45.7", "4568"]);
    }

    #[test]
    fn a_row_says_both_medians_their_spread_and_whether_the_target_is_met() {
        let pair = Pair { ours: vec![1.0, 1.0, 2.0], theirs: vec![4.0, 4.0, 4.0], ..Pair::default() };
        let row = Row {
            ranks: 2,
            size: 8,
            placement: Placement::InPlace,
            flags: "one_shot".into(),
            pair,
            target: Some(1.0),
            met: Some(true),
        };
        assert_eq!(
            row.markdown(),
            "| 2 | 8 B, in place | one_shot | 1.00 ± 25 % | 4.00 ± 0 % | 4.00 | yes (1.0) |\n"
        );
        assert_eq!(row.json()["times_as_fast"], 4.0);
        assert_eq!(row.json()["ours"]["max_us"], 2.0);
    }
}
