//! What a lab's code promises, and whether a lab's data fits it.

use super::sheet::Judged;
use super::{Compiled, find};
use crate::api::{FieldError, VerifyReport};
use crate::catalogue::{Field, FieldKind, LabView};
use crate::form::Values;
use crate::job::{JobResult, Task};
use crate::text::Lang;

pub(super) trait Checker: Sync {
    /// To be raised when the same seed would make another instance, or the same answers other marks.
    fn revision(&self) -> u32;

    /// Names the code reads; a lab's data must declare these and no others.
    fn needs(&self) -> Needs;

    fn compile(&self, params: &Values, code: Option<&str>, seed: u64) -> Result<Work, Vec<FieldError>>;

    /// Only called for labs that take a plan.
    fn starting_plan(&self, _params: &Values, _lang: Lang) -> Result<String, Vec<FieldError>> {
        Err(vec![super::no_plan()])
    }

    /// Only called for labs that take a plan.
    fn verify(&self, _params: &Values, _code: &str) -> Result<VerifyReport, Vec<FieldError>> {
        Err(vec![super::no_plan()])
    }

    /// One ruling for each check of [`Needs::checks`].
    fn judge(&self, run: &Run) -> Judged;
}

pub(super) struct Work {
    pub tasks: Vec<Task>,
    pub plan: Option<String>,
}

/// A finished job with everything valid.
pub(super) struct Run<'a> {
    pub lab: &'a LabView,
    pub params: &'a Values,
    pub prediction: &'a Values,
    pub answers: Option<&'a Values>,
    pub seed: u64,
    pub compiled: &'a Compiled,
    pub result: &'a JobResult,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Number,
    Choice,
}

pub(super) struct Needs {
    /// Besides `backend`, which every lab has.
    pub params: Vec<(String, Kind)>,
    pub prediction: Vec<(String, Kind)>,
    pub answers: Vec<(String, Kind)>,
    pub checks: Vec<String>,
    pub takes_plan: bool,
}

/// Where a lab's data and its code do not fit, as (field, message). Empty for a lab that can run: after that, every name in
/// [`Needs`] is there, with its type.
pub(crate) fn misfits(lab: &LabView) -> Vec<(String, String)> {
    let Some(checker) = find(&lab.id) else {
        return vec![("id".to_owned(), format!("there is no checker for a lab `{}`", lab.id))];
    };
    let needs = checker.needs();
    let mut out = Vec::new();
    let mut params = needs.params;
    params.push(("backend".to_owned(), Kind::Choice));
    fields("params", &params, &lab.params, &mut out);
    fields("prediction", &needs.prediction, &lab.prediction, &mut out);
    fields("answers", &needs.answers, &lab.answers, &mut out);
    names("checks", &needs.checks, lab.checks.iter().map(|check| &check.id), &mut out);
    if lab.takes_plan != needs.takes_plan {
        out.push(("takes_plan".to_owned(), format!("must be {} for this lab's checker", needs.takes_plan)));
    }
    let offered = lab.params.iter().find(|field| field.name == "backend");
    if let Some(Field { kind: FieldKind::Choice { options, .. }, .. }) = offered
        && !options
            .iter()
            .map(|option| option.value.as_str())
            .eq(lab.backends.iter().map(|backend| backend.name()))
    {
        out.push((
            "params".to_owned(),
            "the options of `backend` must be the lab's `backends`, in order".to_owned(),
        ));
    }
    out
}

fn fields(section: &str, needs: &[(String, Kind)], has: &[Field], out: &mut Vec<(String, String)>) {
    let wanted: Vec<String> = needs.iter().map(|(name, _)| name.clone()).collect();
    names(section, &wanted, has.iter().map(|field| &field.name), out);
    for field in has {
        let kind = match field.kind {
            FieldKind::Integer { .. } => Kind::Integer,
            FieldKind::Number { .. } => Kind::Number,
            FieldKind::Choice { .. } => Kind::Choice,
            FieldKind::Text { .. } => continue,
        };
        if let Some((name, wanted)) = needs.iter().find(|(name, _)| *name == field.name)
            && *wanted != kind
        {
            out.push((
                section.to_owned(),
                format!("`{name}` must be of type {wanted:?}, not {kind:?}").to_lowercase(),
            ));
        }
    }
}

fn names<'a>(
    section: &str,
    needs: &[String],
    has: impl Iterator<Item = &'a String> + Clone,
    out: &mut Vec<(String, String)>,
) {
    for name in needs {
        if has.clone().all(|had| had != name) {
            out.push((section.to_owned(), format!("`{name}` is missing: this lab's checker reads it")));
        }
    }
    for name in has {
        if !needs.contains(name) {
            out.push((section.to_owned(), format!("`{name}` is unknown to this lab's checker")));
        }
    }
}
