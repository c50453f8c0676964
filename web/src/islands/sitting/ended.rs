//! After the end: what was answered, and the way to the report.

use std::time::Duration;

use leptos::prelude::*;
use ringlab_interview::api::{SittingState, SittingView};
use ringlab_labs::text::Lang;

use crate::islands::remote::Remote;
use crate::strings_interview as ti;

/// Grading takes a moment after the end.
const SOON: Duration = Duration::from_secs(2);
/// A review takes people and hours.
const LATER: Duration = Duration::from_secs(60);

/// The way to the report appears by itself, once there is one. Called each time the sitting was read without.
pub fn look_again(view: &SittingView, remote: Remote<SittingView>) {
    let just_ended = view.ended_ms.is_none_or(|ended| view.now_ms - ended < 20_000);
    let wait = if just_ended { SOON } else { LATER };
    if cfg!(feature = "hydrate") {
        set_timeout(move || remote.reload(), wait);
    }
}

pub fn show(lang: Lang, view: &SittingView) -> AnyView {
    let how = match view.state {
        SittingState::TimeOver => ti::ended_time_over(lang),
        SittingState::Submitted | SittingState::Running => ti::ended_submitted(lang),
    };
    let report = if view.report {
        view! {
            <p class="actions">
                <a class="button primary" href=format!("/{}/sittings/{}/report", lang.code(), view.id)>
                    {ti::open_report(lang)}
                </a>
            </p>
        }
        .into_any()
    } else {
        view! { <p class="notice">{ti::report_later(lang)}</p> }.into_any()
    };
    let answers: Vec<_> = view
        .questions
        .iter()
        .map(|q| {
            let text = q.draft.text.clone();
            let body = if text.trim().is_empty() {
                view! { <p class="muted">{ti::nothing_written(lang)}</p> }.into_any()
            } else {
                view! { <pre class="draft-text">{text}</pre> }.into_any()
            };
            view! {
                <section>
                    <h3>{ti::question(lang, q.question.number)} " · " {q.question.title.get(lang).to_owned()}</h3>
                    {body}
                </section>
            }
        })
        .collect();
    view! {
        <div class="sitting" data-state="ended">
            <h2>{view.title.clone()}</h2>
            <p role="status">
                <strong>{how}</strong>
                " "
                {ti::ended_text(lang)}
            </p>
            {report}
            <div class="ended-answers">{answers}</div>
        </div>
    }
    .into_any()
}
