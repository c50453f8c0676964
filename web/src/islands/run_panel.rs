//! One run, live: state, progress, log, marks, answers, figures, artifacts, timeline. Everything but the stream is there without a
//! script too.

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_labs::api::{JobState, JobView};
use ringlab_labs::catalogue::LabView;
use ringlab_labs::text::Lang;
use ringlab_labs::wire::FailureKind;

use super::client;
use super::log::LogView;
use super::result_view::{Artifacts, ChecksTable, Figures, SubmissionList};
use super::stream::{self, Live};
use super::timeline::viewer::TimelineViewer;
use super::{answers::AnswersForm, lab_panel::problem};
use crate::format;
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

#[island]
pub fn RunPanel(lang: Lang, job: JobView, lab: LabView) -> impl IntoView {
    let live = Live::new();
    let id = StoredValue::new(job.id.clone());
    let ended_at_load = job.state.is_final();
    let job = RwSignal::new(job);
    stream::follow(lang, job, live);

    let state = Memo::new(move |_| job.with(|j| j.state.clone()));
    let cancelling = RwSignal::new(false);
    let trouble = RwSignal::new(None::<String>);
    let cancel = move |_| {
        cancelling.set(true);
        trouble.set(None);
        spawn_local(async move {
            match client::post(&format!("/api/v1/jobs/{}/cancel", id.get_value()), "{}").await {
                Ok(reply) if reply.status == 200 => {
                    if let Ok(now) = serde_json::from_str::<JobView>(&reply.body) {
                        job.set(now);
                    }
                }
                Ok(reply) => trouble.set(Some(problem(reply.status, &reply.body).1)),
                Err(client::NoAnswer) => trouble.set(Some(t::network_failed(lang).into())),
            }
            cancelling.set(false);
        });
    };
    let again = format!("/{}/labs/{}?from={}", lang.code(), lab.id, id.get_value());
    let trace_name = Memo::new(move |_| {
        job.with(|j| j.result.as_ref().and_then(|r| r.tasks.iter().find_map(|task| task.trace.clone())))
    });
    let lab = StoredValue::new(lab);
    view! {
        <div class="run">
            <section class="run-status" aria-live="polite">
                <p class="run-state">
                    {move || {
                        let (class, word) = state_word(lang, &state.get());
                        view! { <span class=format!("badge {class}")>{word}</span> }
                    }}
                    <span class="run-facts">{move || job.with(|j| facts(lang, j))}</span>
                </p>
                {move || state_detail(lang, &state.get())}
                <div class="needs-wasm">{move || progress(lang, live, &state.get())}</div>
                <p class="notice" role="status" hidden=move || !live.lost.get()>
                    {t::log_reconnecting(lang)}
                </p>
                <p class="form-error" role="alert">
                    {trouble}
                </p>
                <p class="actions">
                    <button
                        type="button"
                        class="button needs-wasm"
                        hidden=move || state.with(JobState::is_final)
                        prop:disabled=move || cancelling.get()
                        on:click=cancel
                    >
                        {t::cancel(lang)}
                    </button>
                    <a class="button" href=again hidden=move || !state.with(JobState::is_final)>
                        {t::run_again(lang)}
                    </a>
                </p>
            </section>
            {move || {
                job.with(|j| j.marks.clone()).map(|marks| view! { <ChecksTable lang=lang marks=marks /> })
            }}
            {move || {
                let open = state.with(|s| *s == JobState::Done) && job.with(awaits_answers);
                let fields = lab.with_value(|l| l.answers.clone());
                (open && !fields.is_empty())
                    .then(|| view! { <AnswersForm lang=lang fields=fields job=job /> })
            }}
            {move || job.with(|j| j.marks.clone()).map(|marks| view! { <Figures lang=lang tables=marks.tables /> })}
            <div class="needs-wasm">
                {move || {
                    trace_name
                        .get()
                        .map(|name| {
                            let submission = job.with_untracked(Clone::clone);
                            view! {
                                <TimelineViewer lang=lang job=submission lab=lab.get_value() artifact=name />
                            }
                        })
                }}
            </div>
            <div class="needs-wasm">
                <LogView lang=lang live=live open=!ended_at_load />
            </div>
            {move || {
                let (artifacts, id) = job.with(|j| (j.artifacts.clone(), j.id.clone()));
                (!artifacts.is_empty())
                    .then(|| {
                        view! {
                            <Artifacts lang=lang job=id artifacts=artifacts traced=trace_name.get().is_some() />
                        }
                    })
            }}
            <SubmissionList lang=lang lab=lab.get_value() job=job.get_untracked() />
        </div>
    }
    .into_any()
}

fn awaits_answers(job: &JobView) -> bool {
    use ringlab_labs::job::Verdict;
    job.marks.as_ref().is_some_and(|m| m.checks.iter().any(|c| c.verdict == Verdict::Pending))
}

/// Runner, attempt and times, as far as they are known.
fn facts(lang: Lang, job: &JobView) -> String {
    let mut parts = Vec::new();
    if let Some(runner) = &job.runner {
        parts.push(format!("{}: {runner}", t::on_runner(lang)));
    }
    if job.attempt > 1 {
        parts.push(format!("{}: {}", t::attempt(lang), t::attempt_of(lang, job.attempt, job.max_attempts)));
    }
    if let Some(started) = &job.started {
        parts.push(format!("{}: {}", t::started(lang), format::when(started)));
    }
    if let Some(finished) = &job.finished {
        parts.push(format!("{}: {}", t::finished(lang), format::when(finished)));
    }
    parts.join(" · ")
}

fn state_detail(lang: Lang, state: &JobState) -> Option<AnyView> {
    match state {
        JobState::Queued { position, reason } => Some(
            view! {
                <p>{t::queue_position(lang, *position)} " " {reason.get(lang).to_owned()}</p>
            }
            .into_any(),
        ),
        JobState::Failed { failure } => {
            let kind = match failure.kind {
                FailureKind::Job => t::failure_job(lang),
                FailureKind::Limit => t::failure_limit(lang),
                FailureKind::Runner => t::failure_runner(lang),
            };
            Some(
                view! {
                    <p class="failure">
                        <strong>{kind}</strong>
                        " "
                        {failure.message.clone()}
                    </p>
                }
                .into_any(),
            )
        }
        JobState::Running | JobState::Done | JobState::Cancelled => None,
    }
}

fn progress(lang: Lang, live: Live, state: &JobState) -> Option<AnyView> {
    let now = live.progress.get()?;
    if *state != JobState::Running {
        return None;
    }
    let label = format!("{}: {}", now.task, super::log::phase_word(lang, &now.phase));
    Some(
        view! {
            <p class="run-progress">
                <progress max=now.total.max(1).to_string() value=now.done.to_string() aria-label=label.clone()></progress>
                <span>{label} " " {now.done} " / " {now.total}</span>
            </p>
        }
        .into_any(),
    )
}
