//! `ringlab-perf` as a user runs it.

use std::process::{Command, Output};

use serde_json::Value;

fn perf(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringlab-perf")).args(line.split_whitespace()).output().unwrap()
}

fn rows(output: &Output) -> Vec<Vec<String>> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().map(Into::into).collect()).collect()
}

#[test]
fn every_size_is_a_row_of_thirteen_columns_without_a_wrong_element() {
    let path = std::env::temp_dir().join(format!("ringlab-perf-{}.json", std::process::id()));
    let output =
        perf(&format!("-g 3 -b 1K -e 4K -f 2 -n 2 -d half -o avg --rounds 2 --json {}", path.display()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
    let rows = rows(&output);
    assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["1024", "2048", "4096"]);
    for row in &rows {
        assert_eq!(row.len(), 13, "{row:?}");
        assert_eq!((row[2].as_str(), row[3].as_str(), row[4].as_str()), ("half", "avg", "-1"));
        assert_eq!((row[8].as_str(), row[12].as_str()), ("0", "0"));
        assert!(row[5].parse::<f64>().unwrap() > 0.0);
    }
    let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(file["hardware"]["backend"], "cpu");
    assert_eq!(file["settings"]["ranks"], 3);
    let row = &file["rows"][2];
    assert_eq!((row["size"].as_u64(), row["count"].as_u64()), (Some(4096), Some(2048)));
    assert_eq!(row["in_place"]["rounds_us"].as_array().unwrap().len(), 2);
    // 2048 halves in 3 chunks: every rank sends all but one of them twice.
    let moved = row["in_place"]["moved_bytes_per_rank"].as_array().unwrap();
    assert_eq!(moved.iter().map(|m| m.as_u64().unwrap()).sum::<u64>(), 4 * 4096);
}

#[test]
fn without_checks_wrong_is_not_available() {
    let output = perf("-g 2 -b 64 -e 64 -n 1 -c 0 --rounds 1 --collective broadcast -r 1");
    assert_eq!(output.status.code(), Some(0));
    let rows = rows(&output);
    assert_eq!((rows[0][3].as_str(), rows[0][4].as_str()), ("none", "1"));
    assert_eq!((rows[0][8].as_str(), rows[0][12].as_str()), ("N/A", "N/A"));
}

#[test]
fn the_simulation_is_reported_for_every_algorithm_of_the_collective() {
    let output = perf("--sim-report --collective reduce -g 3 -b 1K -e 64K -f 4 --rounds 1 -r 1");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<String> = rows(&output).into_iter().map(|row| row[..2].join(" ")).collect();
    let sending =
        |name: &str| ["LL", "LL128", "Simple"].map(|protocol| format!("{name} {protocol}")).to_vec();
    let mut wanted = sending("ring");
    wanted.push("one_shot Simple".into());
    wanted.extend(["chain", "tree", "exchange"].map(sending).concat());
    assert_eq!(rows, wanted);
}

#[test]
fn the_simulation_is_reported_for_the_connections_that_are_asked_for() {
    let path = std::env::temp_dir().join(format!("ringlab-sim-report-{}.json", std::process::id()));
    let output = perf(&format!(
        "--sim-report --collective broadcast -g 3 -b 1K -e 64K -f 4 --rounds 1 --proto ll --chunk-steps 4 --slice-steps 2 --json {}",
        path.display()
    ));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(rows(&output).iter().all(|row| row[1] == "LL"), "{}", String::from_utf8_lossy(&output.stdout));
    let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((&file["chunk_steps"], &file["slice_steps"]), (&Value::from(4), &Value::from(2)));
    assert!(file["model"]["ll_alpha_ns"].as_f64().unwrap() > 0.0);
}

#[test]
fn bad_flags_and_what_cannot_run_have_their_own_exit_codes() {
    let fails = |line: &str, code: i32, says: &str| {
        let output = perf(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {stderr}");
        assert!(stderr.contains(says), "{line}: {stderr}");
    };
    fails("-b 2K -e 1K", 2, "-b 2048 is above -e 1024");
    fails("-d int16", 2, "half, float, double, bfloat16, f8e4m3, f8e5m2, all");
    fails("-o xor", 2, "sum, prod, min, max, avg, mulsum, all");
    fails("--algo bush", 2, "ring, one_shot, two_shot");
    fails("--sim-report -b 1K -e 2K -f 2", 3, "four sizes");
    fails("-g 65", 2, "1..=64");
    fails("-x", 2, "-x");
    fails("-g 2 --collective all_gather --algo two_shot", 3, "two_shot");
    fails("-b 64 -e 64 -n 1 --rounds 1 --json /nowhere/file", 2, "--json /nowhere/file");
    fails("-g 64 --channels 32", 3, "1024");
}
