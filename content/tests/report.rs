//! `ringlab-grade --report`: the shape of what it prints and records, on a bank of three questions.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn report(name: &str, words: &[&str]) -> (Output, Value) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let bank = root.join("content/interview");
    for question in ["06", "12", "13"] {
        fs::create_dir_all(bank.join(question)).unwrap();
        for file in ["zh.md", "en.md", "rubric.toml", "samples.toml"] {
            let path = Path::new(question).join(file);
            fs::copy(from.join("interview").join(&path), bank.join(&path)).unwrap();
        }
    }
    fs::copy(from.join("interview/lexicon.toml"), bank.join("lexicon.toml")).unwrap();
    let written = |line: &&str| ["06", "12", "13"].iter().any(|n| line.contains(&format!("\"ours-{n}")));
    let answers: Vec<&str> = include_str!("answers.jsonl").lines().filter(written).collect();
    fs::write(root.join("answers.jsonl"), answers.join("\n")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringlab-grade"));
    command.current_dir(&root).env("RINGLAB_COMMIT", "abc").args(["--report", "r.json", "--rounds", "3"]);
    let output = command.args(words).output().unwrap();
    let json = fs::read_to_string(root.join("r.json")).unwrap();
    (output, serde_json::from_str(&json).unwrap())
}

#[test]
fn it_says_where_it_comes_from_and_what_it_found() {
    let answers = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report/answers.jsonl");
    let (output, json) = report("report", &["--answers", answers.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    assert_eq!(json["commit"], "abc");
    // No folder of this machine.
    assert_eq!(json["command"], "cargo xtask grade --report r.json --answers answers.jsonl --rounds 3");
    assert_eq!(json["date"].as_str().unwrap().len(), 10);
    assert!(json["hardware"].as_str().unwrap().contains("core"));
    assert!(json.as_object().unwrap().contains_key("driver"));

    let sets = json["sets"].as_array().unwrap();
    let names: Vec<&Value> = sets.iter().map(|set| &set["name"]).collect();
    assert_eq!(names, ["answers", "samples tuned on", "samples kept aside"]);
    for set in sets {
        assert!(set["n"].as_u64().unwrap() >= 4);
        for key in ["kappa", "mae", "mae_4_to_7", "fatal_recall", "false_fatal"] {
            assert!(set[key].is_f64(), "{key} of {set}");
        }
        assert!(set["errors_of_2"].is_u64() && set["person"]["asked"].is_u64());
        for (part, key) in [("person", "mae_asked"), ("person", "mae_alone"), ("translations", "share")] {
            assert!(set[part][key].is_f64() || set[part][key].is_null(), "{part}/{key} of {set}");
        }
    }
    assert_eq!(sets[0]["n"], 4);
    assert_eq!(sets[1]["translations"]["share"], 1.0);

    for sort in ["prompt", "keywords", "keyword_phrases", "other_question", "other_question_poor"] {
        let most = &json["maxima"][sort];
        assert!(most["answers"].as_u64().unwrap() > 0 && most["marks"].is_u64(), "{sort}: {most}");
        assert_eq!(most["question"].is_u64(), most["marks"] != 0, "{sort}: {most}");
    }
    assert!(json["maxima"]["prompt"]["marks"].as_u64().unwrap() <= 1);
    assert_eq!(json["wrongly_other_question"]["flagged"], Value::Array(Vec::new()));

    let time = &json["time"];
    assert_eq!((&time["answers"], &time["rubrics"]), (&3.into(), &3.into()));
    let mut rounds: Vec<f64> =
        time["rounds_ms"].as_array().unwrap().iter().map(|ms| ms.as_f64().unwrap()).collect();
    rounds.sort_by(f64::total_cmp);
    assert_eq!((rounds.len(), time["median_ms"].as_f64()), (3, Some(rounds[1])));

    let table = String::from_utf8(output.stdout).unwrap();
    for start in ["answers ", "samples tuned on ", "samples kept aside ", "the prompt itself earns at most "]
    {
        assert!(table.lines().any(|line| line.starts_with(start)), "{start} in\n{table}");
    }
}

#[test]
fn without_a_file_of_answers_there_are_the_samples() {
    let (output, json) = report("report-of-samples", &[]);
    assert!(output.status.success());
    assert_eq!(json["sets"].as_array().unwrap().len(), 2);
    assert_eq!(json["command"], "cargo xtask grade --report r.json --rounds 3");
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringlab-grade"));
    command.current_dir(from.parent().unwrap()).args(["--samples", "--question", "6", "--explain"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
