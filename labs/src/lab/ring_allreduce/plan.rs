//! Whether a learner's plan text may run, and what to tell when it may not.

use ringlab_engine::plan::text;
use ringlab_engine::types::Collective;
use ringlab_engine::verify::{Proof, verify};

use super::Params;
use crate::api::{FieldError, VerifyReport};
use crate::lab::show::significant;
use crate::text::Text;

/// A plan that does not run.
pub(super) struct Refused {
    message: Text,
    /// From 1.
    line: Option<u32>,
}

impl Refused {
    pub fn into_error(self) -> FieldError {
        FieldError { field: "code".to_owned(), message: self.message, line: self.line }
    }
}

/// Parses, fits to the parameters and proves. The job runs out of place, and so is the proof.
pub(super) fn accept(code: &str, params: &Params) -> Result<Proof, Refused> {
    let parsed =
        text::parse(code).map_err(|error| Refused { line: Some(error.line), message: error.message })?;
    let plan = &parsed.plan;
    let unfit = |message| Refused { message, line: None };
    if plan.collective != Collective::AllReduce {
        let name = plan.collective.name();
        return Err(unfit(Text::new(
            format!("文本里写的是 {name}；这个实验要的是 all_reduce。"),
            format!("the text says {name}; this lab wants all_reduce"),
        )));
    }
    if plan.ranks != params.ranks {
        return Err(unfit(Text::new(
            format!("文本里写的是 {} 个 rank，参数选的是 {}；让两者一致。", plan.ranks, params.ranks),
            format!(
                "the text is for {} ranks, the parameters say {}; make them agree",
                plan.ranks, params.ranks
            ),
        )));
    }
    if plan.channels != params.channels {
        return Err(unfit(Text::new(
            format!(
                "文本里写的是 {} 个 channel，参数选的是 {}；让两者一致。",
                plan.channels, params.channels
            ),
            format!(
                "the text is for {} channels, the parameters say {}; make them agree",
                plan.channels, params.channels
            ),
        )));
    }
    verify(plan, false).map_err(|refusal| Refused {
        line: refusal.location.and_then(|location| parsed.lines.line(location)),
        message: refusal.message_in(&parsed.lines),
    })
}

pub(super) fn report(code: &str, params: &Params) -> VerifyReport {
    match accept(code, params) {
        Ok(proof) => {
            VerifyReport { accepted: true, refusal: None, line: None, summary: Some(summary(&proof)) }
        }
        Err(Refused { message, line }) => {
            VerifyReport { accepted: false, refusal: Some(message), line, summary: None }
        }
    }
}

/// Says that the plan is sound and how near the bound it comes, but neither steps nor bytes: those are for the learner to predict.
fn summary(proof: &Proof) -> Text {
    if proof.is_optimal() {
        return Text::new(
            "证明通过：每个 rank 都得到完整的和，各份恰好一次，谁也不会永远等下去；流量正好在下界上。可以上机。",
            "Proven: every rank ends with the whole sum, each contribution counted once, and nobody waits \
             for ever. Traffic is at the lower bound. It may run.",
        );
    }
    let ratio = significant(proof.busiest.blocks() / proof.lower_bound.blocks(), 3);
    Text::new(
        format!(
            "证明通过：每个 rank 都得到完整的和，各份恰好一次，谁也不会永远等下去；但最忙的 rank 的流量是下界的 {ratio} 倍。可以上机，只是拿不到流量那一分。"
        ),
        format!(
            "Proven: every rank ends with the whole sum, each contribution counted once, and nobody waits \
             for ever. But the busiest rank moves {ratio} times the lower bound: it may run, and will \
             miss the mark for traffic."
        ),
    )
}
