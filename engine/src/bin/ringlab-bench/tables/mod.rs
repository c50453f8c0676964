//! `ringlab-bench tables`: the tables of Markdown files, written from stored runs.
//!
//! Between a line `<!-- table FILES -->` and the next `<!-- end of table -->` stands what those files of the folder say, each name with at
//! most one `*`. Runs beside a peer get a table for each peer and collective, comparisons of kernels one for each plan, other runs of
//! `ringlab-perf` are joined into one, a column a run. Behind `<!-- summary FILES -->` stands one line for each peer, collective and number
//! of ranks.

mod beside;
mod bound;
mod kernels;
mod perf;
mod robust;
mod summary;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::Value;

use crate::report::{date, size};

const END: &str = "<!-- end of table -->";

/// Writes the tables of Markdown files anew from stored runs.
#[derive(Debug, Parser)]
#[command(name = "ringlab-bench tables")]
pub struct Args {
    #[arg(value_name = "FILE", default_values = ["engine/PERFORMANCE.md", "engine/README.md"])]
    files: Vec<PathBuf>,

    /// Folder of the runs' JSON files.
    #[arg(long, value_name = "FOLDER", default_value = "labs/measurements")]
    from: PathBuf,

    /// Writes nothing and ends with code 1 if a table is not what the files say.
    #[arg(long)]
    check: bool,
}

/// Whether the files say what the runs do, now or already.
pub fn run(args: &Args) -> Result<bool, String> {
    let mut same = true;
    for file in &args.files {
        let name = file.display();
        let text = std::fs::read_to_string(file).map_err(|err| format!("cannot read {name}: {err}"))?;
        let filled = filled(&text, &args.from).map_err(|why| format!("{name}: {why}"))?;
        if filled == text {
            continue;
        }
        if args.check {
            eprintln!("{name} differs from {}; run `ringlab-bench tables`", args.from.display());
            same = false;
            continue;
        }
        std::fs::write(file, filled).map_err(|err| format!("cannot write {name}: {err}"))?;
    }
    Ok(same)
}

fn filled(text: &str, from: &Path) -> Result<String, String> {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let marked = |mark: &str| line.strip_prefix(mark).and_then(|rest| rest.strip_suffix(" -->"));
        let filled = match (marked("<!-- table "), marked("<!-- summary ")) {
            (Some(names), _) => tables(names, from)?,
            (None, Some(names)) => summary::lines(&runs(names, from)?)?,
            (None, None) => continue,
        };
        out.push_str(if filled.is_empty() { "\nNo run is stored yet.\n\n" } else { &filled });
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
    let of = |kind: Kind| runs.iter().filter(move |run| run.kind == kind).collect::<Vec<_>>();
    let mut out = beside::tables(&of(Kind::Beside), &of(Kind::Copy))?;
    out.push_str(&kernels::tables(&of(Kind::Kernels))?);
    out.push_str(&perf::joined(&of(Kind::Perf))?);
    out.push_str(&robust::table(&of(Kind::Robust))?);
    Ok(out)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Ours and a peer.
    Beside,
    /// The bandwidth of the GPU's memory.
    Copy,
    Robust,
    /// One plan carried out by a kernel that was asked for.
    Kernels,
    /// Other runs of `ringlab-perf`.
    Perf,
}

struct Run {
    name: String,
    kind: Kind,
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
            let json: Value =
                serde_json::from_str(&text).map_err(|err| format!("{name} is no JSON: {err}"))?;
            let kind =
                kind(&json).ok_or_else(|| format!("{name} is of neither ringlab-bench nor ringlab-perf"))?;
            runs.push(Run { name: name.clone(), kind, json });
        }
        if !wanted.contains('*') && runs.len() == before {
            return Err(format!("{wanted} is not in {}", from.display()));
        }
    }
    Ok(runs)
}

fn kind(json: &Value) -> Option<Kind> {
    match (json["program"].as_str()?, json["kind"].as_str()) {
        ("ringlab-bench", None | Some("beside")) => Some(Kind::Beside),
        ("ringlab-bench", Some("copy")) => Some(Kind::Copy),
        ("ringlab-bench", Some("robust")) => Some(Kind::Robust),
        ("ringlab-perf", _) => match json.pointer("/settings/kernel").and_then(Value::as_str) {
            None | Some("auto") => Some(Kind::Perf),
            Some(_) => Some(Kind::Kernels),
        },
        _ => None,
    }
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

    /// As a reader types it: with a placeholder for what lies elsewhere on his machine.
    fn command(&self) -> Result<String, String> {
        const ELSEWHERE: [(&str, &str); 3] =
            [("--nccl-perf", "NCCL_PERF"), ("--nccl-tests", "NCCL_TESTS"), ("--python", "PYTHON")];
        let words = self.json["command"].as_array().ok_or_else(|| format!("{} has no command", self.name))?;
        let mut words = words.iter().filter_map(Value::as_str);
        let program = words.next().ok_or_else(|| format!("{} has an empty command", self.name))?;
        let mut line = vec![program.rsplit('/').next().unwrap_or(program).to_owned()];
        while let Some(word) = words.next() {
            if word == "--ours" {
                words.next();
                continue;
            }
            // NCCL's name as a peer in older commands, which is still understood.
            line.push(if word == "nccl-tests" { "nccl" } else { word }.to_owned());
            if word == "--json" {
                words.next();
                line.push(self.name.clone());
            } else if let Some((_, place)) = ELSEWHERE.iter().find(|(flag, _)| *flag == word) {
                words.next();
                line.push((*place).to_owned());
            }
        }
        Ok(line.join(" "))
    }
}

/// Behind a table: what made it.
fn commands<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Result<String, String> {
    let lines = runs.into_iter().map(Run::command).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("Made by\n\n```sh\n{}\n```\n\n", lines.join("\n")))
}

/// Each once, in the order of their first appearance.
fn distinct(texts: impl IntoIterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join("; ")
}

/// All sizes where there are few; else powers of 4, and whatever the run began and ended with.
fn shown(sizes: &BTreeSet<u64>) -> impl Iterator<Item = u64> {
    const FEW: usize = 16;
    let ends = [sizes.first().copied(), sizes.last().copied()];
    let few = sizes.len() <= FEW;
    let is_shown = move |size: &u64| {
        few || ends.contains(&Some(*size))
            || !size.is_power_of_two()
            || size.trailing_zeros().is_multiple_of(2)
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
            "finished_unix": 0, "hardware": {"backend": "cuda", "devices": 1, "device": "H", "driver": "1.2"},
            "peer": {"name": "nccl_perf", "library": "nccl-library=23007 x"},
            "command": ["ringlab-bench", "--peer", "nccl-tests", "--ours", "p", "--nccl-perf", "np", "-f", "4", "--json", "x.json"],
            "rows": [
                row(2, 8, "out_of_place", 4.0, json!(true)), row(2, 8, "in_place", 1.25, json!(false)),
                row(2, 32, "out_of_place", 9.0, json!(true)), row(2, 64, "in_place", 1.25, json!(false)),
                row(2, 128, "out_of_place", 3.0, Value::Null), row(4, 128, "out_of_place", 3.0, json!(true)),
            ],
        })
    }

    fn of_ranks(ranks: u64, rows: Value) -> Value {
        let mut run = bench();
        run["rows"] = rows.as_array().unwrap().iter().filter(|row| row["ranks"] == ranks).cloned().collect();
        run
    }

    fn made(from: &Path, names: &str) -> String {
        let text = format!("before\n<!-- table {names} -->\nold\n<!-- end of table -->\nbehind\n");
        let filled = filled(&text, from).unwrap();
        std::fs::remove_dir_all(from).unwrap();
        filled
    }

    const BESIDE: &str = "\n### all_reduce beside nccl_perf\n\nOn H (driver 1.2), engine abc, 1970-01-01; \
                          peer: NCCL 2.30.7, timed by nccl_perf. Medians of 10 rounds, in µs per execution; a note. Targets are met in 3 \
                          of 5 rows, with those not shown. Ours with 2 ranks: exchange from 8 B, ring 2 from 64 B. Ours with 4 ranks: \
                          ring 2 from 128 B.\n\n\
                          | size | 2 ranks: ours | nccl_perf | times as fast (target) | 4 ranks: ours | nccl_perf | times as fast (target) |\n\
                          | --- | --- | --- | --- | --- | --- | --- |\n\
                          | 8 B | 2.00 | 8.00 | 4.00 (1.5) | - | - | - |\n\
                          | 32 B | 2.00 | 18.0 | 9.00 (1.5) | - | - | - |\n\
                          | 64 B | 2.00 | 2.50 | **1.25** (1.5) | - | - | - |\n\
                          | 128 B | 2.00 | 6.00 | 3.00 | 2.00 | 6.00 | 3.00 (1.5) |\n\n";

    #[test]
    fn a_run_beside_a_peer_is_a_table_with_columns_for_each_number_of_ranks() {
        let from = folder("peer", &[("bench-a.json", bench()), ("other.json", json!({}))]);
        let command = "ringlab-bench --peer nccl --nccl-perf NCCL_PERF -f 4 --json bench-a.json";
        let wanted = format!(
            "before\n<!-- table bench-*.json -->\n{BESIDE}Made by\n\n```sh\n{command}\n```\n\n<!-- end of table -->\nbehind\n"
        );
        assert_eq!(made(&from, "bench-*.json"), wanted);
    }

    #[test]
    fn a_file_for_each_number_of_ranks_is_the_same_table_with_both_commands() {
        let rows = bench()["rows"].clone();
        let files =
            [("bench-a-2.json", of_ranks(2, rows.clone())), ("bench-a-4.json", of_ranks(4, rows.clone()))];
        let text = made(&folder("joined", &files), "bench-*.json");
        assert!(text.contains(BESIDE), "{text}");
        assert!(
            text.contains("--json bench-a-2.json\nringlab-bench") && text.contains("--json bench-a-4.json\n"),
            "{text}"
        );
        // Two runs of the same cannot both be right.
        let twice = folder("twice", &[("bench-a.json", bench()), ("bench-b.json", of_ranks(4, rows))]);
        let why = filled("<!-- table bench-*.json -->\n<!-- end of table -->\n", &twice).unwrap_err();
        std::fs::remove_dir_all(&twice).unwrap();
        assert!(why.contains("bench-a.json and bench-b.json"), "{why}");
    }

    #[test]
    fn the_bound_is_of_the_bandwidth_measured_on_the_same_device() {
        // 2 x 2 x 1 GiB at 4295 GB/s take 1000 us.
        let mut run = bench();
        let row = |us: f64| {
            json!([{"ranks": 2, "size": 1u64 << 30, "placement": "out_of_place", "ours": {"median_us": us, "wrong": 0},
                    "theirs": {"median_us": 2600.0, "wrong": 0}, "times_as_fast": 2.6 * 1000.0 / us, "target_met": false, "target": 3.0}])
        };
        run["rows"] = row(1250.0);
        let copy = |driver: &str| {
            json!({"program": "ringlab-bench", "kind": "copy", "copy": {"gb_s": 4_294.967_296},
                   "hardware": {"device": "H", "driver": driver}})
        };
        let with = |run: &Value, copy| {
            made(&folder("bound", &[("b-a.json", run.clone()), ("b-c.json", copy)]), "b-*.json")
        };
        let missed = with(&run, copy("1.2"));
        assert!(missed.contains("| 1 GiB | 1000 | **80 %** | 2.60 |"), "{missed}");
        run["rows"] = row(1100.0);
        let met = with(&run, copy("1.2"));
        assert!(met.contains("| 1 GiB | 1000 | 91 % | 2.60 |") && met.contains("2·N·size"), "{met}");
        assert!(!with(&run, copy("9.9")).contains("bound"));
        run["copy"]["gb_s"] = json!(2.0 * 4_294.967_296);
        assert!(with(&run, copy("1.2")).contains("| 1 GiB | 500 | **45 %** | 5.20 |"));
    }

    #[test]
    fn a_summary_has_a_line_for_each_number_of_ranks() {
        let mut run = bench();
        run["rows"][5]["size"] = json!(4096);
        let from = folder("summary", &[("bench-a.json", run)]);
        let filled = filled("<!-- summary bench-*.json -->\n<!-- end of table -->\n", &from).unwrap();
        std::fs::remove_dir_all(&from).unwrap();
        assert!(
            filled.contains(
                "| all_reduce | 2 | NCCL 2.30.7 | 128 B | 2.00 | 6.00 | 3.00 | 128 B | 2.00 | 6.00 | 3.00 | 2 of 4 |"
            ),
            "{filled}"
        );
        assert!(
            filled.contains("| all_reduce | 4 | NCCL 2.30.7 | 4 KiB | 2.00 | 6.00 | 3.00 (1.5) | 4 KiB | "),
            "{filled}"
        );
    }

    #[test]
    fn what_was_tried_to_break_it_is_a_line_each() {
        let file = json!({
            "program": "ringlab-bench", "kind": "robust", "hardware": {"backend": "cuda", "device": "H", "driver": "1.2"}, "commit": "abc",
            "random": {"operations": 10_400, "elements": 8_400_000_000u64, "processes": 13, "first_seed": 1, "failed": [], "held": true,
                       "finished_unix": 0},
            "sanitizers": {"runs": 18, "clean": 17, "tools": ["memcheck"], "held": false, "finished_unix": 0},
        });
        let text = made(&folder("robust", &[("robust-h.json", file)]), "robust-*.json");
        assert!(
            text.contains("| 10400 random operations in 13 processes at a time, 8400.0 million elements"),
            "{text}"
        );
        assert!(text.contains("`ringlab-bench robust --backend cuda --only random --operations 10400 --processes 13 --seed 1`"), "{text}");
        assert!(text.contains("| **failed:** compute-sanitizer (memcheck): 17 of 18 runs clean |"), "{text}");
        assert!(!text.contains("killed"));
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

    fn measurements() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../labs/measurements")
    }

    #[test]
    fn published_tables_say_what_the_stored_runs_do() {
        for name in ["PERFORMANCE.md", "README.md"] {
            let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
            assert!(text.contains("<!-- table ") || text.contains("<!-- summary "), "{name}");
            let same = filled(&text, &measurements()).unwrap() == text;
            assert!(
                same,
                "{name}: run `cargo run -p ringlab-engine --bin ringlab-bench tables` in the workspace"
            );
        }
    }

    #[test]
    fn stored_runs_can_be_repeated_and_name_no_folder_of_a_machine() {
        let names = "bench-*.json copy-*.json kernels-*.json robust-*.json h200x1-all-reduce-*.json";
        let runs = runs(names, &measurements()).unwrap();
        assert!(!runs.is_empty());
        for run in runs {
            let mut clean = run.json.clone();
            crate::store::clean(&mut clean);
            assert!(clean == run.json, "{} was not put there by `ringlab-bench store`", run.name);
            if run.kind == Kind::Beside {
                let command = run.command().unwrap();
                let read = crate::args::Args::try_parse_from(command.split_whitespace());
                read.unwrap_or_else(|why| panic!("{}: {why}", run.name));
            }
        }
    }
}
