//! Where a run stands.

use ringlab_labs::api::JobState;
use ringlab_labs::text::Lang;

use crate::strings as t;

/// Style class and word of a state.
pub fn state_word(lang: Lang, state: &JobState) -> (&'static str, &'static str) {
    match state {
        JobState::Queued { .. } => ("queued", t::queued(lang)),
        JobState::Running => ("running", t::running(lang)),
        JobState::Done => ("done", t::done(lang)),
        JobState::Failed { .. } => ("failed", t::failed(lang)),
        JobState::Cancelled => ("cancelled", t::cancelled(lang)),
    }
}
