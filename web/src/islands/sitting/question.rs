//! One question: its prompt, the editor, and how its saving goes.

use leptos::prelude::*;
use ringlab_interview::api::SittingQuestion;

use super::autosave::{Slot, Status};
use super::clock::{monotonic, time_of_day};
use super::history::History;
use super::session::{Session, Work};
use crate::islands::editor::Editor;
use crate::strings_interview as ti;

#[component]
pub fn QuestionPanel(
    session: Session,
    work: Work,
    at: usize,
    of: usize,
    question: SittingQuestion,
) -> impl IntoView {
    let lang = session.lang;
    let number = work.number;
    let card = question.question;
    let heading = format!("question-{number}");
    let go = move |to: usize| {
        session.current.set(to);
        if let Some(window) = web_sys::window() {
            window.scroll_to_with_x_and_y(0.0, 0.0);
        }
    };
    view! {
        <section class="question" aria-labelledby=heading hidden=move || session.current.get() != at>
            <p class="eyebrow">{ti::question(lang, number)} " · " {ti::level(lang, card.level)}</p>
            <h2 id=format!("question-{number}")>{card.title.get(lang).to_owned()}</h2>
            <div class="prose prompt" inner_html=question.prompt.get(lang).to_owned()></div>
            <Editor
                lang=lang
                id=format!("answer-{number}")
                label=ti::your_answer(lang).to_owned()
                text=work.text
                replace=work.replace
                locked=session.locked
                typed=Callback::new(move |text| session.typed(work, text))
                pasted=Callback::new(move |n| session.pasted(work, n))
            />
            {status_line(session, work)}
            {move || conflict(session, work)}
            <History session=session work=work />
            <p class="actions neighbours-buttons">
                <button type="button" class="button quiet" prop:disabled=at == 0 on:click=move |_| go(at.saturating_sub(1))>
                    {ti::previous_question(lang)}
                </button>
                <button type="button" class="button" prop:disabled=at + 1 == of on:click=move |_| go(at + 1)>
                    {ti::next_question(lang)}
                </button>
            </p>
        </section>
    }
    .into_any()
}

/// What happens by the second is only seen; what needs attention is also said to a screen reader.
fn status_line(session: Session, work: Work) -> AnyView {
    let lang = session.lang;
    let class = move || match work.status.get() {
        Status::Empty | Status::Typing | Status::Saving => "save-status",
        Status::Saved(_) => "save-status saved",
        Status::Offline | Status::Conflict | Status::Refused(_) => "save-status trouble",
    };
    let text = move || match work.status.get() {
        Status::Empty => ti::status_empty(lang).to_owned(),
        Status::Typing => ti::status_typing(lang).to_owned(),
        Status::Saving => ti::status_saving(lang).to_owned(),
        Status::Saved(Some(ms)) => ti::saved_at(lang, &time_of_day(ms)),
        Status::Saved(None) => ti::status_saved(lang).to_owned(),
        Status::Offline | Status::Conflict | Status::Refused(_) => String::new(),
    };
    let trouble = move || match work.status.get() {
        Status::Offline => ti::status_offline(lang).to_owned(),
        Status::Conflict => ti::conflict_title(lang).to_owned(),
        Status::Refused(why) => format!("{}{why}", ti::status_refused(lang)),
        _ => String::new(),
    };
    view! {
        <p class=class>
            <span>{text}</span>
            <span role="status">{trouble}</span>
            <span class="count">{move || ti::characters(lang, work.text.with(|t| t.chars().count()))}</span>
        </p>
    }
    .into_any()
}

fn conflict(session: Session, work: Work) -> Option<AnyView> {
    if work.status.get() != Status::Conflict {
        return None;
    }
    let lang = session.lang;
    let other = work.slot.with_value(|s| s.conflict().cloned())?;
    let keep = move |_| {
        work.slot.update_value(|s| s.keep_mine(monotonic()));
        work.status.set(work.slot.with_value(Slot::status));
    };
    let take = move |_| {
        work.slot.update_value(Slot::take_theirs);
        work.status.set(work.slot.with_value(Slot::status));
        work.replace.set(Some(work.slot.with_value(|s| s.text.clone())));
    };
    Some(
        view! {
            <div class="conflict" role="group" aria-label=ti::conflict_title(lang)>
                <p>{ti::conflict_text(lang)}</p>
                <details>
                    <summary>{ti::stored_text(lang)}</summary>
                    <pre class="draft-text">{other.text}</pre>
                </details>
                <p class="actions">
                    <button type="button" class="button primary" on:click=keep>
                        {ti::keep_mine(lang)}
                    </button>
                    <button type="button" class="button" on:click=take>
                        {ti::take_theirs(lang)}
                    </button>
                </p>
            </div>
        }
        .into_any(),
    )
}
