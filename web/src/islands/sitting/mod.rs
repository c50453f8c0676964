//! A sitting: while it runs the clock, the questions and an editor for each; afterwards what was answered, read only.

mod autosave;
mod clock;
mod ended;
mod history;
mod question;
mod session;
mod submit;
mod tabs;

use leptos::prelude::*;
use ringlab_interview::api::{QuestionCard, SittingState, SittingView};
use ringlab_labs::text::Lang;

use self::autosave::Status;
use self::question::QuestionPanel;
use self::session::{Session, Work};
use self::submit::SubmitDialog;
use super::remote::Remote;
use crate::format;
use crate::strings_interview as ti;

#[island]
pub fn SittingPanel(lang: Lang, id: String) -> impl IntoView {
    let remote = Remote::<SittingView>::load(format!("/api/v1/sittings/{id}"));
    remote.view(lang, ti::no_sitting(lang), move |view| match view.state {
        SittingState::Running => running(lang, &view, remote),
        SittingState::Submitted | SittingState::TimeOver => {
            if !view.report {
                ended::look_again(&view, remote);
            }
            ended::show(lang, &view)
        }
    })
}

fn running(lang: Lang, view: &SittingView, remote: Remote<SittingView>) -> AnyView {
    let session = Session::begin(lang, view, remote);
    let asking = RwSignal::new(false);
    let works = session.works.get_value();
    let entries: Vec<_> = view
        .questions
        .iter()
        .zip(&works)
        .enumerate()
        .map(|(i, (q, work))| entry(session, i, &q.question, *work))
        .collect();
    let count = works.len();
    let panels: Vec<_> = view
        .questions
        .iter()
        .zip(&works)
        .enumerate()
        .map(|(i, (q, work))| view! { <QuestionPanel session=session work=*work at=i of=count question=q.clone() /> })
        .collect();
    let cards = view.questions.iter().map(|q| q.question.clone()).collect();
    view! {
        <div class="sitting" data-state="running">
            <div class="sitting-bar">
                <p class="sitting-title">{view.title.clone()}</p>
                <p class="clock" class:short=move || session.left_ms.get() <= 60_000>
                    <span class="clock-label">{ti::time_left(lang)}</span>
                    " "
                    <strong role="timer">{move || format::remaining(session.left_ms.get())}</strong>
                </p>
                <button
                    type="button"
                    class="button primary"
                    id="submit-all"
                    prop:disabled=move || session.locked.get()
                    on:click=move |_| asking.set(true)
                >
                    {ti::submit_all(lang)}
                </button>
            </div>
            <p class="announcement" role="alert">
                {session.announcement}
            </p>
            <p class="notice" role="status" hidden=move || !session.other_tab.get()>
                {ti::second_tab(lang)}
            </p>
            <div class="sitting-columns">
                <nav class="question-list" aria-label=ti::questions(lang)>
                    <ol>{entries}</ol>
                </nav>
                <div class="question-panels">{panels}</div>
            </div>
            <SubmitDialog session=session asking=asking cards=cards />
        </div>
    }
    .into_any()
}

fn entry(session: Session, at: usize, card: &QuestionCard, work: Work) -> AnyView {
    let lang = session.lang;
    let state = move || {
        let saved =
            matches!(work.status.get(), Status::Saved(_) | Status::Empty | Status::Saving | Status::Typing);
        if !saved {
            ("trouble", ti::not_saved(lang))
        } else if work.text.with(|t| t.trim().is_empty()) {
            ("open", ti::unanswered(lang))
        } else {
            ("answered", ti::answered(lang))
        }
    };
    view! {
        <li>
            <button
                type="button"
                data-question=card.number.to_string()
                aria-current=move || (session.current.get() == at).then_some("step")
                on:click=move |_| session.current.set(at)
            >
                <span class="question-number">{card.number}</span>
                <span class="question-name">{card.title.get(lang).to_owned()}</span>
                <span class=move || format!("question-state {}", state().0)>{move || state().1}</span>
            </button>
        </li>
    }
    .into_any()
}
