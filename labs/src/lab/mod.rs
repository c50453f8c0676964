//! From a submission to tasks, and from results to marks. Pure: the browser, the server and the tests call the same functions.

use crate::api::FieldError;
use crate::catalogue::LabView;
use crate::form::validate;
use crate::job::{Backend, Fields, JobResult, Limits, Submission, Task};

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

/// Whether the answers have the shape the lab asks for. Whether they are right is for `mark`.
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
