//! From a submission to tasks, and from results to marks. Pure: the browser, the server and the tests call the same functions.
//!
//! A lab is data (its [`LabView`]) and a checker, found by the lab's id. Each checker is a folder or file beside this one.

mod busbw;
mod checker;
mod ring_allreduce;
mod sheet;
mod show;

use checker::{Checker, Run};

use crate::api::{FieldError, VerifyReport, VerifyRequest};
use crate::catalogue::LabView;
use crate::form::{Values, validate};
use crate::job::{Backend, Fields, JobResult, Limits, Marks, Submission, Task};
use crate::text::{Lang, Text};

pub(crate) use checker::misfits;

/// What a valid submission becomes: everything a `JobSpec` needs, and the plan for those who look.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// Backend a runner must have.
    pub backend: Backend,
    pub tasks: Vec<Task>,
    pub limits: Limits,
    /// Text of the plan that runs, in labs that take one.
    pub plan: Option<String>,
}

/// The checker of a lab.
fn find(id: &str) -> Option<&'static dyn Checker> {
    match id {
        "busbw" => Some(&busbw::Busbw),
        "ring-allreduce" => Some(&ring_allreduce::RingAllReduce),
        _ => None,
    }
}

/// Revision of a lab's checker: part of the lab's version, since it decides instances and marks. `None`: no such lab.
pub fn revision(id: &str) -> Option<u32> {
    find(id).map(|checker| checker.revision())
}

/// Turns a submission into the tasks of a job.
///
/// # Errors
/// Everything that is wrong with it, by field: `lab`, `params.*`, `prediction.*`, `code` (with its line), `hints`.
pub fn compile(lab: &LabView, submission: &Submission, seed: u64) -> Result<Compiled, Vec<FieldError>> {
    let checker = checker_of(lab)?;
    let mut errors = Vec::new();
    if submission.lab != lab.id {
        errors.push(of_field(
            "lab",
            Text::new(
                format!("这里是实验 `{}`，提交却写着另一个。", lab.id),
                format!("this is lab `{}`; the submission names another", lab.id),
            ),
        ));
    }
    if submission.hints as usize > lab.hints.len() {
        errors.push(of_field(
            "hints",
            Text::new(
                format!("这个实验只有 {} 条提示，收到的是 {}。", lab.hints.len(), submission.hints),
                format!("this lab has {} hints, got {}", lab.hints.len(), submission.hints),
            ),
        ));
    }
    let params = keep(validate("params", &lab.params, &submission.params), &mut errors);
    let prediction = keep(validate("prediction", &lab.prediction, &submission.prediction), &mut errors);
    let code = submission.code.as_deref().filter(|code| !code.trim().is_empty());
    if code.is_some() && !lab.takes_plan {
        errors.push(no_plan());
    }
    let (Some(params), Some(_)) = (params, prediction) else { return Err(errors) };
    match checker.compile(&params, code, seed) {
        Ok(work) if errors.is_empty() => Ok(Compiled {
            backend: backend_of(&params),
            tasks: work.tasks,
            limits: lab.limits,
            plan: work.plan,
        }),
        Ok(_) => Err(errors),
        Err(more) => {
            errors.extend(more);
            Err(errors)
        }
    }
}

/// The text an empty plan editor starts with, its comments in `lang`.
///
/// # Errors
/// By field: parameters that are not valid, or `code` in a lab that takes no plan.
pub fn starting_plan(lab: &LabView, params: &Fields, lang: Lang) -> Result<String, Vec<FieldError>> {
    let checker = planned(lab)?;
    checker.starting_plan(&validate("params", &lab.params, params)?, lang)
}

/// Judges a plan text without running it, for the panel beside the editor. A text that cannot run is a report, not an error.
///
/// # Errors
/// By field: parameters that are not valid, or `code` in a lab that takes no plan.
pub fn verify(lab: &LabView, request: &VerifyRequest) -> Result<VerifyReport, Vec<FieldError>> {
    let checker = planned(lab)?;
    checker.verify(&validate("params", &lab.params, &request.params)?, &request.code)
}

/// Whether the answers have the shape the lab asks for. Whether they are right is for [`mark`].
///
/// # Errors
/// One for each field, named `answers.<field>`.
pub fn check_answers(
    lab: &LabView,
    _submission: &Submission,
    _seed: u64,
    _result: &JobResult,
    answers: &Fields,
) -> Result<(), Vec<FieldError>> {
    validate("answers", &lab.answers, answers).map(|_| ())
}

/// Judges a finished job. Deterministic: the same four facts make the same marks at any time. Checks that wait for answers are
/// `Pending` and say nothing about what is expected.
pub fn mark(
    lab: &LabView,
    submission: &Submission,
    seed: u64,
    result: &JobResult,
    answers: Option<&Fields>,
) -> Marks {
    let judged = judge(lab, submission, seed, result, answers);
    sheet::assemble(lab, submission.hints, judged)
}

fn judge(
    lab: &LabView,
    submission: &Submission,
    seed: u64,
    result: &JobResult,
    answers: Option<&Fields>,
) -> Result<sheet::Judged, Vec<FieldError>> {
    let compiled = compile(lab, submission, seed)?;
    let params = validate("params", &lab.params, &submission.params)?;
    let prediction = validate("prediction", &lab.prediction, &submission.prediction)?;
    let answers = answers.map(|given| validate("answers", &lab.answers, given)).transpose()?;
    Ok(checker_of(lab)?.judge(&Run {
        lab,
        params: &params,
        prediction: &prediction,
        answers: answers.as_ref(),
        seed,
        compiled: &compiled,
        result,
    }))
}

fn planned(lab: &LabView) -> Result<&'static dyn Checker, Vec<FieldError>> {
    let checker = checker_of(lab)?;
    if lab.takes_plan { Ok(checker) } else { Err(vec![no_plan()]) }
}

fn no_plan() -> FieldError {
    of_field(
        "code",
        Text::new("这个实验不收计划文本：请去掉它。", "this lab takes no plan text: leave it out"),
    )
}

fn checker_of(lab: &LabView) -> Result<&'static dyn Checker, Vec<FieldError>> {
    let misfits = misfits(lab);
    match find(&lab.id) {
        Some(checker) if misfits.is_empty() => Ok(checker),
        _ => {
            let told: Vec<String> =
                misfits.iter().map(|(field, message)| format!("{field}: {message}")).collect();
            let told = told.join("; ");
            Err(vec![of_field(
                "lab",
                Text::new(
                    format!("这一版平台运行不了这个实验（{told}）；请告诉管理员。"),
                    format!("this version of the platform cannot run the lab ({told}); tell whoever runs it"),
                ),
            )])
        }
    }
}

/// Every lab lets its learner choose the backend in the parameter of this name; [`misfits`] sees to it.
fn backend_of(params: &Values) -> Backend {
    params.text("backend").and_then(|name| name.parse().ok()).unwrap_or(Backend::Cpu)
}

fn of_field(field: &str, message: Text) -> FieldError {
    FieldError { field: field.to_owned(), message, line: None }
}

fn keep<T>(outcome: Result<T, Vec<FieldError>>, errors: &mut Vec<FieldError>) -> Option<T> {
    outcome.map_err(|more| errors.extend(more)).ok()
}
