//! The lab of chapter 12, with its plans really run on the CPU backend.

#[allow(dead_code, reason = "shared with the other tests")]
mod common;

use common::{execute, fields, lab, result, submission};
use proptest::prelude::*;
use ringlab_engine::plan::{Algorithm, Plan, generate, text};
use ringlab_engine::types::Collective;
use ringlab_labs::api::VerifyRequest;
use ringlab_labs::job::{JobResult, Marks, Submission, Verdict};
use ringlab_labs::text::Lang;
use ringlab_labs::{Compiled, compile, mark, starting_plan, verify};
use serde_json::{Value, json};

/// What the text of the lab and chapter 12 give for the ring: 2N−1 steps, 2(N−1)/N · S bytes, and chunk r at rank r.
fn right(ranks: u64, bytes: u64) -> Value {
    json!({ "steps": 2 * ranks - 1, "bytes": 2 * (ranks - 1) * bytes / ranks, "chunk": 0 })
}

fn run(submission: &Submission) -> (Compiled, JobResult) {
    let compiled =
        compile(lab("ring-allreduce"), submission, 1).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let result = result(&compiled, execute);
    (compiled, result)
}

fn judge(submission: &Submission) -> Marks {
    mark(lab("ring-allreduce"), submission, 1, &run(submission).1, None)
}

fn failed(marks: &Marks) -> Vec<&str> {
    assert!(marks.checks.iter().all(|check| check.verdict != Verdict::Pending));
    marks
        .checks
        .iter()
        .filter(|check| check.verdict == Verdict::Fail)
        .map(|check| check.id.as_str())
        .collect()
}

fn params(ranks: u64, bytes: u64, dtype: &str, channels: u32, backend: &str) -> Value {
    let (size, channels) = (bytes.to_string(), channels.to_string());
    json!({ "ranks": ranks, "size": size, "dtype": dtype, "channels": channels, "backend": backend })
}

/// The lab's own plan turned round, the way its second hint says.
fn reversed(params: &Value) -> String {
    let given = starting_plan(lab("ring-allreduce"), &fields(params.clone()), Lang::En).unwrap();
    given
        .replace("(r-1)", "(r~1)")
        .replace("(r+1)", "(r-1)")
        .replace("(r~1)", "(r+1)")
        .replace("(r-j)", "(r+j)")
}

fn dtype() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["float", "half", "bfloat16", "int32", "int64"])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn right_predictions_of_the_given_plan_lose_only_the_rewriting(
        ranks in 2u64..9, dtype in dtype(), channels in prop::sample::select(vec![1u32, 2, 4]), big in any::<bool>(),
    ) {
        let bytes = if big { 860_160 } else { 107_520 };
        let params = params(ranks, bytes, dtype, channels, "cpu");
        let marks = judge(&submission("ring-allreduce", params, right(ranks, bytes), None));
        prop_assert_eq!(failed(&marks), ["own_plan"], "{:#?}", marks.checks);
        prop_assert_eq!(marks.total, 8.0);
    }

    #[test]
    fn a_ring_turned_round_earns_full_marks(
        ranks in 3u64..9, dtype in dtype(), channels in prop::sample::select(vec![1u32, 2, 4]),
    ) {
        let params = params(ranks, 107_520, dtype, channels, "cpu");
        let code = reversed(&params);
        let submission = submission("ring-allreduce", params, right(ranks, 107_520), Some(code.clone()));
        let (compiled, _) = run(&submission);
        prop_assert_eq!(compiled.plan, Some(code));
        let marks = judge(&submission);
        prop_assert_eq!(failed(&marks), Vec::<&str>::new(), "{:#?}", marks.checks);
        prop_assert_eq!(marks.total, lab("ring-allreduce").max_marks);
    }

    #[test]
    fn a_wrong_prediction_loses_its_own_check_alone(
        ranks in 3u64..9, which in prop::sample::select(vec!["steps", "bytes", "chunk"]), off in 1i64..50,
    ) {
        let params = params(ranks, 107_520, "float", 1, "cpu");
        let mut prediction = right(ranks, 107_520);
        prediction[which] = json!(prediction[which].as_i64().unwrap() + off);
        let code = reversed(&params);
        let marks = judge(&submission("ring-allreduce", params, prediction, Some(code)));
        prop_assert_eq!(failed(&marks), [which]);
    }
}

/// One number or sign changed, or one line struck out, anywhere in the text.
fn slip_of_the_pen(text: &str, at: prop::sample::Index, with: char, line: bool) -> String {
    if line {
        let gone = at.index(text.lines().count());
        return text
            .lines()
            .enumerate()
            .filter(|(i, _)| *i != gone)
            .map(|(_, line)| format!("{line}\n"))
            .collect();
    }
    let places: Vec<usize> =
        text.char_indices().filter(|(_, c)| "0123456789+-rnj".contains(*c)).map(|(i, _)| i).collect();
    let place = places[at.index(places.len())];
    format!("{}{with}{}", &text[..place], &text[place + 1..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_slip_of_the_pen_is_refused_or_harmless(
        at in any::<prop::sample::Index>(), with in prop::sample::select(vec!['0', '1', '2', '3', '+', '-', 'r', 'j']),
        line in any::<bool>(), explicit in any::<bool>(),
    ) {
        let params = params(4, 107_520, "int32", 1, "cpu");
        let mut text = starting_plan(lab("ring-allreduce"), &fields(params.clone()), Lang::En).unwrap();
        if explicit {
            text = text::print(&text::parse(&text).unwrap().plan);
        }
        let code = slip_of_the_pen(&text, at, with, line);
        let submission = submission("ring-allreduce", params, right(4, 107_520), Some(code));
        match compile(lab("ring-allreduce"), &submission, 1) {
            Ok(compiled) => prop_assert!(result(&compiled, execute).tasks.iter().all(|task| task.wrong == 0)),
            Err(errors) => prop_assert!(errors.iter().all(|error| error.field == "code"), "{errors:#?}"),
        }
    }
}

#[test]
fn a_plan_that_sends_too_much_is_correct_but_above_the_bound() {
    let plan = generate(Algorithm::OneShot, Collective::AllReduce, 4, 1).unwrap();
    let prediction = json!({ "steps": 1, "bytes": 3 * 107_520, "chunk": 0 });
    let params = params(4, 107_520, "float", 1, "cpu");
    let marks = judge(&submission("ring-allreduce", params, prediction, Some(text::print(&plan))));
    assert_eq!(failed(&marks), ["chunk", "traffic"]);
    let traffic = marks.checks.iter().find(|check| check.id == "traffic").unwrap();
    assert_eq!((traffic.expected.as_str(), traffic.got.as_str()), ("≤ 161280 B", "322560 B"));
}

#[test]
fn the_usual_slips_are_named() {
    let slip = |field: &str, value: u64| {
        let mut prediction = right(4, 107_520);
        prediction[field] = json!(value);
        let marks =
            judge(&submission("ring-allreduce", params(4, 107_520, "float", 1, "cpu"), prediction, None));
        marks.checks.into_iter().find(|check| check.id == field).unwrap().why.en
    };
    assert!(slip("steps", 6).contains("hence one more"));
    assert!(slip("bytes", 3 * 26_880).contains("one phase"));
    assert!(slip("bytes", 2 * 107_520).contains("limit for many ranks"));
}

#[test]
fn a_half_turned_ring_is_refused_with_its_line_in_both_languages() {
    let params = params(4, 107_520, "float", 1, "cpu");
    let given = starting_plan(lab("ring-allreduce"), &fields(params.clone()), Lang::Zh).unwrap();
    let half = given.replace("(r-j)", "(r+j)");
    assert_ne!(half, given);
    let submission = submission("ring-allreduce", params.clone(), right(4, 107_520), Some(half.clone()));
    let errors = compile(lab("ring-allreduce"), &submission, 1).unwrap_err();
    let [error] = errors.as_slice() else { panic!("{errors:#?}") };
    assert_eq!(error.field, "code");
    let line = error.line.expect("the refusal is about a step") as usize;
    assert!(half.lines().nth(line - 1).unwrap().contains("rec"), "{error:#?}\n{half}");
    assert!(!error.message.zh.is_ascii() && error.message.en.is_ascii(), "{error:#?}");
    let report =
        verify(lab("ring-allreduce"), &VerifyRequest { params: fields(params), code: half }).unwrap();
    assert_eq!((report.accepted, report.line), (false, error.line));
    assert_eq!(report.refusal.as_ref(), Some(&error.message));
}

#[test]
fn a_plan_for_another_job_is_refused() {
    let refusal = |plan: Plan| {
        let params = params(4, 107_520, "float", 1, "cpu");
        let submission = submission("ring-allreduce", params, right(4, 107_520), Some(text::print(&plan)));
        compile(lab("ring-allreduce"), &submission, 1).unwrap_err().remove(0).message.en
    };
    let ring = |collective, ranks, channels| generate(Algorithm::Ring, collective, ranks, channels).unwrap();
    assert_eq!(
        refusal(ring(Collective::AllReduce, 5, 1)),
        "the text is for 5 ranks, the parameters say 4; make them agree"
    );
    assert_eq!(
        refusal(ring(Collective::AllReduce, 4, 2)),
        "the text is for 2 channels, the parameters say 1; make them agree"
    );
    assert_eq!(
        refusal(ring(Collective::AllGather, 4, 1)),
        "the text says all_gather; this lab wants all_reduce"
    );
}

#[test]
fn the_panel_says_how_near_the_bound_a_plan_is_and_gives_no_prediction_away() {
    let params = params(4, 107_520, "float", 1, "cpu");
    let report = |code| {
        let report =
            verify(lab("ring-allreduce"), &VerifyRequest { params: fields(params.clone()), code }).unwrap();
        assert!(report.accepted && report.refusal.is_none());
        report.summary.unwrap().en
    };
    let own = report(starting_plan(lab("ring-allreduce"), &fields(params.clone()), Lang::En).unwrap());
    assert!(own.contains("at the lower bound") && !own.contains(|c: char| c.is_ascii_digit()), "{own}");
    let one_shot = generate(Algorithm::OneShot, Collective::AllReduce, 4, 1).unwrap();
    assert!(report(text::print(&one_shot)).contains("2.00 times the lower bound"));
}
