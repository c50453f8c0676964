//! The lab of chapter 8, answered as a learner would: from the text of its tables alone.

#[allow(dead_code, reason = "shared with the other tests")]
mod common;

use common::{execute, fields, lab, result, submission, task_result};
use proptest::prelude::*;
use ringlab_labs::job::{Fields, JobResult, Marks, Submission, Table, Verdict};
use ringlab_labs::{check_answers, compile, mark};
use serde_json::{Value, json};

/// A run on a machine whose times follow from `noise`.
fn run(backend: &str, seed: u64, noise: &[f64]) -> (Submission, JobResult) {
    let submission = submission("busbw", json!({ "backend": backend }), json!({}), None);
    let compiled = compile(lab("busbw"), &submission, seed).unwrap();
    let mut noise = noise.iter().cycle();
    let result = result(&compiled, |task| {
        let times = (0..task.iterations).map(|_| 20.0 + 5e4 * noise.next().unwrap()).collect();
        task_result(task, times, Vec::new(), 0)
    });
    (submission, result)
}

fn table<'a>(marks: &'a Marks, id: &str) -> &'a Table {
    marks.tables.iter().find(|table| table.id == id).unwrap()
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap()
}

/// Bytes of an element and of the `size` column, as PERFORMANCE.md and the sources of nccl-tests define them.
fn size(collective: &str, ranks: f64, count: f64, bytes: f64) -> f64 {
    match collective {
        "all_reduce" | "broadcast" => count * bytes,
        "all_gather" | "reduce_scatter" => ranks * count * bytes,
        other => panic!("{other}"),
    }
}

fn factor(collective: &str, n: f64) -> f64 {
    match collective {
        "all_reduce" => 2.0 * (n - 1.0) / n,
        "broadcast" => 1.0,
        _ => (n - 1.0) / n,
    }
}

fn width(dtype: &str) -> f64 {
    match dtype {
        "half" | "bfloat16" => 2.0,
        "float" => 4.0,
        "int64" => 8.0,
        other => panic!("{other}"),
    }
}

/// Works everything out from the two tables.
fn learn(marks: &Marks) -> Fields {
    let mut answers = Fields::new();
    for row in &table(marks, "raw").rows {
        let [label, collective, ranks, count, dtype, bytes, times] = row.as_slice() else {
            panic!("{row:?}")
        };
        let times: Vec<f64> = times.split_whitespace().map(number).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert_eq!(number(bytes), width(dtype));
        let algbw = size(collective, number(ranks), number(count), number(bytes)) / (mean * 1e-6) / 1e9;
        let label = label.to_lowercase();
        answers.insert(format!("algbw_{label}"), json!(algbw));
        answers.insert(format!("busbw_{label}"), json!(algbw * factor(collective, number(ranks))));
    }
    let off = |a: f64, b: f64| (a / b - 1.0).abs() > 0.01;
    for row in &table(marks, "printed").rows {
        let [label, collective, ranks, s, count, dtype, time, algbw, busbw] = row.as_slice() else {
            panic!("{row:?}")
        };
        let n = number(ranks);
        let broken = (
            off(number(s), size(collective, n, number(count), width(dtype))),
            off(number(s) / number(time) / 1e3, number(algbw)),
            off(number(algbw) * factor(collective, n), number(busbw)),
        );
        let column = match broken {
            (false, false, false) => continue,
            (true, true, false) => "size",
            (false, true, false) => "time",
            (false, true, true) => "algbw",
            (false, false, true) => "busbw",
            other => panic!("more than one cell is wrong: {other:?} in {row:?}"),
        };
        let before = answers.insert("broken_row".into(), json!(number(label)));
        assert_eq!(before, None, "two rows are wrong");
        answers.insert("broken_column".into(), json!(column));
    }
    answers
}

fn noise() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.0..1.0f64, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tables_are_enough_for_full_marks(seed in any::<u64>(), cuda in any::<bool>(), noise in noise()) {
        let lab = lab("busbw");
        let (submission, result) = run(if cuda { "cuda" } else { "cpu" }, seed, &noise);
        let before = mark(lab, &submission, seed, &result, None);
        let answers = learn(&before);
        prop_assert_eq!(check_answers(lab, &submission, seed, &result, &answers), Ok(()));
        let marks = mark(lab, &submission, seed, &result, Some(&answers));
        prop_assert_eq!(marks.total, lab.max_marks, "{:#?}", marks.checks);
        prop_assert_eq!(&marks.tables, &before.tables);
        prop_assert_eq!(mark(lab, &submission, seed, &result, Some(&answers)), marks);
    }

    #[test]
    fn a_wrong_answer_loses_its_own_check_alone(seed in any::<u64>(), noise in noise(), which in 0usize..10) {
        let lab = lab("busbw");
        let (submission, result) = run("cpu", seed, &noise);
        let mut answers = learn(&mark(lab, &submission, seed, &result, None));
        let field = &lab.answers[which].name;
        let wrong = match &answers[field] {
            Value::String(column) if column == "size" => json!("time"),
            Value::String(_) => json!("size"),
            row if field == "broken_row" => json!(row.as_f64().unwrap() % 6.0 + 1.0),
            figure => json!(figure.as_f64().unwrap() * 1.006),
        };
        answers.insert(field.clone(), wrong);
        let marks = mark(lab, &submission, seed, &result, Some(&answers));
        let failed: Vec<&str> =
            marks.checks.iter().filter(|check| check.verdict != Verdict::Pass).map(|check| check.id.as_str()).collect();
        prop_assert_eq!(failed, [field.as_str()]);
    }

    #[test]
    fn nothing_is_told_before_the_answers(seed in any::<u64>(), noise in noise()) {
        let lab = lab("busbw");
        let (submission, result) = run("cpu", seed, &noise);
        let marks = mark(lab, &submission, seed, &result, None);
        for check in marks.checks.iter().filter(|check| check.id != "correct") {
            prop_assert_eq!(check.verdict, Verdict::Pending);
            prop_assert_eq!(&check.expected, "");
            prop_assert_eq!(&check.why.en, "Judged once you have answered.");
        }
        prop_assert!(marks.total <= 1.0);
    }
}

#[test]
fn a_real_run_on_this_machine_can_be_answered() {
    let lab = lab("busbw");
    let submission = submission("busbw", json!({}), json!({}), None);
    for seed in [1, 2] {
        let compiled = compile(lab, &submission, seed).unwrap();
        let result = result(&compiled, execute);
        let answers = learn(&mark(lab, &submission, seed, &result, None));
        let marks = mark(lab, &submission, seed, &result, Some(&answers));
        assert_eq!(marks.total, lab.max_marks, "{:#?}", marks.checks);
    }
}

#[test]
fn a_wrong_element_fails_the_run_and_says_how_many() {
    let (submission, mut result) = run("cpu", 5, &[0.5]);
    result.tasks[3].wrong = 7;
    let marks = mark(lab("busbw"), &submission, 5, &result, None);
    assert_eq!((marks.checks[0].verdict, marks.checks[0].got.as_str()), (Verdict::Fail, "7"));
}

#[test]
fn the_usual_slips_are_named() {
    let lab = lab("busbw");
    let (submission, result) = run("cpu", 11, &[0.3, 0.31, 0.29]);
    let right = learn(&mark(lab, &submission, 11, &result, None));
    let why = |field: &str, answer: f64| {
        let mut answers = right.clone();
        answers.insert(field.into(), json!(answer));
        let marks = mark(lab, &submission, 11, &result, Some(&answers));
        marks.checks.into_iter().find(|check| check.id == field).unwrap().why.en
    };
    let algbw = right["algbw_a"].as_f64().unwrap();
    assert!(why("algbw_a", algbw / 1.073741824).contains("2^30"));
    assert!(why("algbw_a", algbw * 1000.0).contains("thousand"));
}

#[test]
fn a_run_without_usable_times_is_said_to_be_so() {
    let lab = lab("busbw");
    let (submission, mut result) = run("cpu", 3, &[0.2]);
    let answers = learn(&mark(lab, &submission, 3, &result, None));
    for task in &mut result.tasks {
        task.times_us = vec![0.0, f64::NAN];
    }
    let marks = mark(lab, &submission, 3, &result, Some(&answers));
    assert!(
        marks.checks[1..]
            .iter()
            .all(|check| check.verdict == Verdict::Fail && check.why.en.contains("no usable"))
    );
    result.tasks.clear();
    assert_eq!(mark(lab, &submission, 3, &result, Some(&answers)).total, 0.0);
}

#[test]
fn learners_get_different_instances() {
    let plans =
        |seed| compile(lab("busbw"), &submission("busbw", json!({}), json!({}), None), seed).unwrap().tasks;
    assert_eq!(plans(1), plans(1));
    assert_ne!(plans(1), plans(2));
}

#[test]
fn hints_cost_what_they_say() {
    let lab = lab("busbw");
    let (mut submission, result) = run("cpu", 9, &[0.4]);
    let answers = learn(&mark(lab, &submission, 9, &result, None));
    submission.hints = 2;
    let marks = mark(lab, &submission, 9, &result, Some(&answers));
    assert_eq!(marks.total, lab.max_marks - 1.5);
    assert_eq!(marks.checks.iter().map(|check| check.marks).sum::<f64>(), marks.total);
    submission.hints = 3;
    let errors = compile(lab, &submission, 9).unwrap_err();
    assert_eq!(errors[0].message.en, "this lab has 2 hints, got 3");
    let unknown = fields(json!({ "algbw_z": 1 }));
    assert!(check_answers(lab, &submission, 9, &result, &unknown).is_err());
}
