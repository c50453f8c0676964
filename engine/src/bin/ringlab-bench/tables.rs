//! `ringlab-bench tables`: the tables of a Markdown file, written from stored runs.
//!
//! Between a line `<!-- table FILES -->` and the next `<!-- end of table -->` stands what those files of the folder say, each name with at
//! most one `*`. Runs of this program get a table each; those of `ringlab-perf` are joined into one, a column a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::Value;

use crate::report::{date, micros, size};

const END: &str = "<!-- end of table -->";

/// Writes the tables of a Markdown file anew from stored runs.
#[derive(Debug, Parser)]
#[command(name = "ringlab-bench tables")]
pub struct Args {
    #[arg(value_name = "FILE", default_value = "engine/PERFORMANCE.md")]
    file: PathBuf,

    /// Folder of the runs' JSON files.
    #[arg(long, value_name = "FOLDER", default_value = "labs/measurements")]
    from: PathBuf,

    /// Writes nothing and ends with code 1 if a table is not what the files say.
    #[arg(long)]
    check: bool,
}

/// Whether the file says what the runs do, now or already.
pub fn run(args: &Args) -> Result<bool, String> {
    let name = args.file.display();
    let text = std::fs::read_to_string(&args.file).map_err(|err| format!("cannot read {name}: {err}"))?;
    let filled = filled(&text, &args.from).map_err(|why| format!("{name}: {why}"))?;
    if filled == text {
        return Ok(true);
    }
    if args.check {
        eprintln!("{name} differs from {}; run `ringlab-bench tables`", args.from.display());
        return Ok(false);
    }
    std::fs::write(&args.file, filled).map_err(|err| format!("cannot write {name}: {err}"))?;
    Ok(true)
}

fn filled(text: &str, from: &Path) -> Result<String, String> {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(names) = line.strip_prefix("<!-- table ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        out.push_str(&tables(names, from)?);
        if !lines.any(|line| line == END) {
            return Err(format!("no line `{END}` behind `{line}`"));
        }
        out.push_str(END);
        out.push('\n');
    }
    Ok(out)
}

fn tables(names: &str, from: &Path) -> Result<String, String> {
    let runs = runs(names, from)?;
    if runs.is_empty() {
        return Ok("\nNo run is stored yet.\n\n".into());
    }
    let (beside, alone): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|run| run.json["program"] == "ringlab-bench");
    if let Some(other) = alone.iter().find(|run| run.json["program"] != "ringlab-perf") {
        return Err(format!("{} is of neither ringlab-bench nor ringlab-perf", other.name));
    }
    let mut out = String::new();
    for run in &beside {
        out.push_str(&peer(run)?);
    }
    if !alone.is_empty() {
        out.push_str(&joined(&alone)?);
    }
    Ok(out)
}

struct Run {
    name: String,
    json: Value,
}

fn runs(names: &str, from: &Path) -> Result<Vec<Run>, String> {
    let folder = std::fs::read_dir(from).map_err(|err| format!("cannot read {}: {err}", from.display()))?;
    let all: BTreeSet<String> =
        folder.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let mut runs = Vec::new();
    for wanted in names.split_whitespace() {
        let (begin, end) = wanted.split_once('*').unwrap_or((wanted, ""));
        let fits = |name: &&String| match wanted.contains('*') {
            true => name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end),
            false => *name == wanted,
        };
        let before = runs.len();
        for name in all.iter().filter(fits) {
            let text = std::fs::read_to_string(from.join(name))
                .map_err(|err| format!("cannot read {name}: {err}"))?;
            let json = serde_json::from_str(&text).map_err(|err| format!("{name} is no JSON: {err}"))?;
            runs.push(Run { name: name.clone(), json });
        }
        if !wanted.contains('*') && runs.len() == before {
            return Err(format!("{wanted} is not in {}", from.display()));
        }
    }
    Ok(runs)
}

impl Run {
    fn text(&self, pointer: &str) -> Result<&str, String> {
        let value = self.json.pointer(pointer).and_then(Value::as_str);
        value.ok_or_else(|| format!("{} has no text at {pointer}", self.name))
    }

    fn rows(&self) -> Result<&Vec<Value>, String> {
        self.json["rows"].as_array().ok_or_else(|| format!("{} has no rows", self.name))
    }

    fn figure(&self, row: &Value, pointer: &str) -> Result<f64, String> {
        let value = row.pointer(pointer).and_then(Value::as_f64);
        value.ok_or_else(|| format!("{} has a row without a figure at {pointer}: {row}", self.name))
    }

    fn count(&self, row: &Value, pointer: &str) -> Result<u64, String> {
        let value = row.pointer(pointer).and_then(Value::as_u64);
        value.ok_or_else(|| format!("{} has no whole number at {pointer}", self.name))
    }

    /// On what, of which commit, when.
    fn origin(&self) -> Result<String, String> {
        let (device, driver) = (self.text("/hardware/device")?, self.text("/hardware/driver")?);
        let driver = if self.json["hardware"]["backend"] == "cuda" {
            format!("driver {driver}")
        } else {
            driver.into()
        };
        let commit = self.json["commit"].as_str().unwrap_or("of no known commit");
        let day = date(self.count(&self.json, "/finished_unix")?);
        Ok(format!("{device} ({driver}), engine {commit}, {day}"))
    }
}

/// Powers of 4, and whatever the run began and ended with.
fn shown(sizes: &BTreeSet<u64>) -> impl Iterator<Item = u64> {
    let ends = [sizes.first().copied(), sizes.last().copied()];
    let is_shown = move |size: &u64| {
        ends.contains(&Some(*size)) || !size.is_power_of_two() || size.trailing_zeros().is_multiple_of(2)
    };
    sizes.iter().copied().filter(is_shown)
}

fn ranks_of(ranks: u64) -> String {
    format!("{ranks} ranks")
}

/// A head line, the line under it, and one line a size: the cells of every column group, or dashes.
fn table(heads: &[String], width: usize, lines: impl Iterator<Item = (u64, Vec<Option<String>>)>) -> String {
    let mut out = format!("| size | {} |\n|{}\n", heads.join(" | "), " --- |".repeat(1 + heads.len()));
    for (bytes, cells) in lines {
        let none = || vec!["-"; width].join(" | ");
        let cells: Vec<String> = cells.into_iter().map(|cell| cell.unwrap_or_else(none)).collect();
        out.push_str(&format!("| {} | {} |\n", size(bytes), cells.join(" | ")));
    }
    out
}

/// One run of this program: a group of columns for each number of ranks.
fn peer(run: &Run) -> Result<String, String> {
    let name = run.text("/peer/name")?;
    let rows = run.rows()?;
    // In place only where there is nothing else.
    let mut by_ranks: BTreeMap<u64, BTreeMap<u64, &Value>> = BTreeMap::new();
    for row in rows {
        let of_size = by_ranks.entry(run.count(row, "/ranks")?).or_default();
        let size = run.count(row, "/size")?;
        if row["placement"] == "out_of_place" || !of_size.contains_key(&size) {
            of_size.insert(size, row);
        }
    }
    let with_target = rows.iter().filter(|row| row["target_met"].is_boolean()).count();
    let met = rows.iter().filter(|row| row["target_met"] == true).count();
    let mut out = format!(
        "\n### {} beside {name}\n\nOn {}; peer: {}. Medians of {} rounds, in µs per execution; {}. Targets are met in {met} of {with_target} \
         rows, with those not shown.",
        run.text("/collective")?,
        run.origin()?,
        run.json["peer"]["library"].as_str().unwrap_or(name),
        run.count(&run.json, "/rounds")?,
        run.text("/note")?,
    );
    for (ranks, of_size) in &by_ranks {
        let mut last = "";
        let mut parts = Vec::new();
        for (bytes, row) in of_size {
            let flags = row["ours_flags"].as_str().unwrap_or("");
            if flags != last {
                parts.push(format!(
                    "{} from {}",
                    if flags.is_empty() { "defaults" } else { flags },
                    size(*bytes)
                ));
                last = flags;
            }
        }
        let ours = if parts.is_empty() { "defaults".into() } else { parts.join(", ") };
        out.push_str(&format!(" Ours with {}: {ours}.", ranks_of(*ranks)));
    }
    let heads: Vec<String> = by_ranks
        .keys()
        .flat_map(|ranks| {
            [format!("{}: ours", ranks_of(*ranks)), name.into(), "times as fast (target)".into()]
        })
        .collect();
    let sizes: BTreeSet<u64> = by_ranks.values().flat_map(BTreeMap::keys).copied().collect();
    let mut lines = Vec::new();
    for bytes in shown(&sizes) {
        let cells =
            by_ranks.values().map(|of_size| of_size.get(&bytes).map(|row| cells(run, row)).transpose());
        lines.push((bytes, cells.collect::<Result<Vec<_>, _>>()?));
    }
    out.push_str("\n\n");
    out.push_str(&table(&heads, 3, lines.into_iter()));
    out.push('\n');
    Ok(out)
}

/// Ours, theirs and their ratio.
fn cells(run: &Run, row: &Value) -> Result<String, String> {
    let side = |side: &str| {
        let wrong = run.count(row, &format!("/{side}/wrong"))?;
        let median = micros(run.figure(row, &format!("/{side}/median_us"))?);
        Ok::<_, String>(if wrong > 0 { format!("{median} ({wrong} wrong)") } else { median })
    };
    let ratio = format!("{:.2}", run.figure(row, "/times_as_fast")?);
    let ratio = if row["target_met"] == false { format!("**{ratio}**") } else { ratio };
    let target = row["target"].as_f64().map(|target| format!(" ({target:.1})")).unwrap_or_default();
    Ok(format!("{} | {} | {ratio}{target}", side("ours")?, side("theirs")?))
}

/// Runs of `ringlab-perf`, out of place.
fn joined(runs: &[Run]) -> Result<String, String> {
    let mut out = String::from("\n");
    let mut heads = Vec::new();
    let mut by_run: Vec<BTreeMap<u64, String>> = Vec::new();
    for run in runs {
        let (collective, algorithm) = (run.text("/settings/collective")?, run.text("/settings/algorithm")?);
        let ranks = run.count(&run.json, "/settings/ranks")?;
        out.push_str(&format!(
            "- `{}`: {collective}, {algorithm}, {}; {}; medians of {} rounds of {} executions\n",
            run.name,
            ranks_of(ranks),
            run.origin()?,
            run.count(&run.json, "/settings/rounds")?,
            run.count(&run.json, "/settings/iters")?,
        ));
        heads.extend([format!("{}: µs", ranks_of(ranks)), "busbw GB/s".into()]);
        let mut of_size = BTreeMap::new();
        for row in run.rows()?.iter().filter(|row| !row["out_of_place"].is_null()) {
            let wrong = run.count(row, "/out_of_place/wrong")?;
            if wrong > 0 {
                return Err(format!("{} has {wrong} wrong elements in {row}", run.name));
            }
            let time = micros(run.figure(row, "/out_of_place/time_us")?);
            let busbw = run.figure(row, "/out_of_place/busbw_gb_s")?;
            of_size.insert(run.count(row, "/size")?, format!("{time} | {busbw:.1}"));
        }
        by_run.push(of_size);
    }
    let sizes: BTreeSet<u64> = by_run.iter().flat_map(BTreeMap::keys).copied().collect();
    let lines =
        shown(&sizes).map(|bytes| (bytes, by_run.iter().map(|run| run.get(&bytes).cloned()).collect()));
    out.push('\n');
    out.push_str(&table(&heads, 2, lines));
    out.push('\n');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn folder(name: &str, files: &[(&str, Value)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ringlab-tables-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, json) in files {
            std::fs::write(folder.join(name), json.to_string()).unwrap();
        }
        folder
    }

    fn bench() -> Value {
        let row = |ranks: u64, size: u64, placement: &str, ratio: f64, met: Value| {
            json!({
                "ranks": ranks, "size": size, "placement": placement, "ours_flags": if size < 64 { "exchange" } else { "ring 2" },
                "ours": {"median_us": 2.0, "wrong": 0}, "theirs": {"median_us": 2.0 * ratio, "wrong": 0}, "times_as_fast": ratio,
                "target": if met.is_null() { Value::Null } else { json!(1.5) }, "target_met": met,
            })
        };
        json!({
            "program": "ringlab-bench", "collective": "all_reduce", "rounds": 10, "note": "a note", "commit": "abc",
            "finished_unix": 0, "hardware": {"backend": "cuda", "device": "H", "driver": "1.2"},
            "peer": {"name": "nccl-tests", "library": null},
            "rows": [
                row(2, 8, "out_of_place", 4.0, json!(true)), row(2, 8, "in_place", 1.25, json!(false)),
                row(2, 32, "out_of_place", 9.0, json!(true)), row(2, 64, "in_place", 1.25, json!(false)),
                row(2, 128, "out_of_place", 3.0, Value::Null), row(4, 128, "out_of_place", 3.0, json!(true)),
            ],
        })
    }

    #[test]
    fn a_run_beside_a_peer_is_a_table_with_columns_for_each_number_of_ranks() {
        let from = folder("peer", &[("bench-a.json", bench()), ("other.json", json!({}))]);
        let text = "before\n<!-- table bench-*.json -->\nold\n<!-- end of table -->\nbehind\n";
        let filled = filled(text, &from).unwrap();
        std::fs::remove_dir_all(&from).unwrap();
        let wanted = "before\n<!-- table bench-*.json -->\n\n### all_reduce beside nccl-tests\n\nOn H (driver 1.2), engine abc, 1970-01-01; \
                      peer: nccl-tests. Medians of 10 rounds, in µs per execution; a note. Targets are met in 3 of 5 rows, with those not \
                      shown. Ours with 2 ranks: exchange from 8 B, ring 2 from 64 B. Ours with 4 ranks: ring 2 from 128 B.\n\n\
                      | size | 2 ranks: ours | nccl-tests | times as fast (target) | 4 ranks: ours | nccl-tests | times as fast (target) |\n\
                      | --- | --- | --- | --- | --- | --- | --- |\n\
                      | 8 B | 2.00 | 8.00 | 4.00 (1.5) | - | - | - |\n\
                      | 64 B | 2.00 | 2.50 | **1.25** (1.5) | - | - | - |\n\
                      | 128 B | 2.00 | 6.00 | 3.00 | 2.00 | 6.00 | 3.00 (1.5) |\n\n<!-- end of table -->\nbehind\n";
        assert_eq!(filled, wanted);
    }

    #[test]
    fn what_cannot_be_filled_is_named() {
        let mut wrong = bench();
        wrong["rows"][0]["ours"]["median_us"] = Value::Null;
        let from = folder("named", &[("bench-a.json", wrong), ("other.json", json!({"program": "x"}))]);
        let why = |text: &str| filled(text, &from).unwrap_err();
        assert!(why("<!-- table bench-a.json -->\n<!-- end of table -->\n").contains("/ours/median_us"));
        assert!(why("<!-- table none.json -->\n<!-- end of table -->\n").contains("none.json is not in"));
        assert!(why("<!-- table other.json -->\n<!-- end of table -->\n").contains("neither"));
        assert!(why("<!-- table x-*.json -->\n").contains("no line"));
        let empty = filled("<!-- table x-*.json -->\n<!-- end of table -->\n", &from).unwrap();
        assert!(empty.contains("No run is stored yet."));
        std::fs::remove_dir_all(&from).unwrap();
    }

    #[test]
    fn performance_md_says_what_the_stored_runs_do() {
        let engine = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(engine.join("PERFORMANCE.md")).unwrap();
        assert!(text.contains("<!-- table "));
        let filled = filled(&text, &engine.join("../labs/measurements")).unwrap();
        assert!(
            filled == text,
            "run `cargo run -p ringlab-engine --bin ringlab-bench tables` in the workspace"
        );
    }
}
