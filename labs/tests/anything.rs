//! Nothing that anybody can send makes the checkers panic or give more marks than there are.

#[allow(dead_code, reason = "shared with the other tests")]
mod common;

use common::{lab, names, result, task_result};
use proptest::prelude::*;
use ringlab_labs::api::VerifyRequest;
use ringlab_labs::catalogue::{Field, LabView};
use ringlab_labs::job::{Fields, JobResult, Submission};
use ringlab_labs::text::Lang;
use ringlab_labs::{check_answers, compile, mark, starting_plan, verify};
use serde_json::{Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3i64..12).prop_map(Value::from),
        any::<f64>().prop_map(|x| json!(x)),
        "[a-z0-9]{0,6}|\\PC{0,90}".prop_map(Value::from),
        prop::sample::select(vec![
            "cpu", "cuda", "107520", "860160", "float", "int64", "1", "4", "size", "time"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// Values for some of the form's fields and for some that it does not have.
fn form(fields: &[Field]) -> BoxedStrategy<Fields> {
    let mut known = names(fields);
    known.push("surplus".into());
    prop::collection::btree_map(prop::sample::select(known), value(), 0..12).boxed()
}

fn code() -> impl Strategy<Value = Option<String>> {
    let words = "(plan |rank |every |channel |send |recv |input|output|\\[|\\]|[0-9]{1,10}|r|n|c|\\+|-|:|\n|    |\\PC){0,60}";
    prop_oneof![
        Just(None),
        words.prop_map(Some),
        // A valid text with a piece cut out: deeper into the parser and the verifier than noise gets.
        (2u32..9, any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(|(ranks, a, b)| {
            let params = common::fields(json!({ "ranks": ranks }));
            let mut text: Vec<char> =
                starting_plan(lab("ring-allreduce"), &params, Lang::En).unwrap().chars().collect();
            let (a, b) = (a.index(text.len()), b.index(text.len()));
            text.drain(a.min(b)..a.max(b));
            Some(text.into_iter().collect())
        }),
    ]
}

fn submission(lab: &LabView) -> impl Strategy<Value = Submission> + use<> {
    let valid = valid(lab);
    let id = lab.id.clone();
    let any = (form(&lab.params), form(&lab.prediction), code(), 0u32..5);
    prop_oneof![
        Just(valid),
        any.prop_map(move |(params, prediction, code, hints)| {
            Submission { lab: id.clone(), params, prediction, code, hints }
        }),
    ]
}

fn valid(lab: &LabView) -> Submission {
    let prediction = names(&lab.prediction).into_iter().map(|name| (name, json!(1))).collect();
    Submission { lab: lab.id.clone(), params: Fields::new(), prediction, code: None, hints: 0 }
}

/// What a runner could send for the lab's default job, and what it should not.
fn outcome(lab: &'static LabView) -> impl Strategy<Value = JobResult> {
    let compiled = compile(lab, &valid(lab), 1).unwrap();
    let time = prop_oneof![any::<f64>(), 1.0..1e6f64];
    let task = (
        prop::collection::vec(time, 0..6),
        prop::collection::vec(any::<u64>(), 0..9),
        any::<u32>(),
        any::<u64>(),
    );
    (prop::collection::vec(task, 1..12), any::<bool>()).prop_map(move |(tasks, drop)| {
        let mut tasks = tasks.into_iter().cycle();
        let mut result = result(&compiled, |spec| {
            let (times, moved, steps, wrong) = tasks.next().unwrap();
            let mut result = task_result(spec, times, moved, steps);
            (result.wrong, result.elements) = (wrong, wrong.wrapping_mul(3));
            result
        });
        if drop {
            result.tasks.pop();
        }
        result
    })
}

fn try_everything(
    lab: &'static LabView,
) -> impl Strategy<Value = (Submission, JobResult, Option<Fields>, u64)> {
    (submission(lab), outcome(lab), prop::option::of(form(&lab.answers)), any::<u64>())
}

fn hold(
    lab: &LabView,
    submission: &Submission,
    result: &JobResult,
    answers: Option<&Fields>,
    seed: u64,
) -> Result<(), TestCaseError> {
    let compiled = compile(lab, submission, seed);
    if let Err(errors) = &compiled {
        prop_assert!(!errors.is_empty());
        prop_assert!(errors.iter().all(|e| !e.message.zh.is_empty() && !e.message.en.is_empty()));
    }
    let _ = starting_plan(lab, &submission.params, Lang::Zh);
    let code = submission.code.clone().unwrap_or_default();
    let _ = verify(lab, &VerifyRequest { params: submission.params.clone(), code });
    let _ = check_answers(lab, submission, seed, result, answers.unwrap_or(&Fields::new()));
    let marks = mark(lab, submission, seed, result, answers);
    prop_assert!(marks.total >= 0.0 && marks.total <= lab.max_marks);
    prop_assert!(marks.checks.iter().all(|check| check.marks <= check.max));
    prop_assert_eq!(mark(lab, submission, seed, result, answers), marks);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn busbw_takes_anything((submission, result, answers, seed) in try_everything(lab("busbw"))) {
        hold(lab("busbw"), &submission, &result, answers.as_ref(), seed)?;
    }

    #[test]
    fn ring_allreduce_takes_anything((submission, result, answers, seed) in try_everything(lab("ring-allreduce"))) {
        hold(lab("ring-allreduce"), &submission, &result, answers.as_ref(), seed)?;
    }
}
