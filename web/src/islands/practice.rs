//! Practice: the list, and one question at a time with its grade and reasons.

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_interview::api::{
    ModelAnswer, PracticeAnswer, PracticeItem, PracticeResult, PracticeView, QuestionCard,
};
use ringlab_labs::text::{Lang, Text};

use super::client;
use super::editor::Editor;
use super::remote::{Failure, Remote, post};
use crate::format;
use crate::html;
use crate::strings_interview as ti;
use crate::strings_report as tr;

/// Below this a question counts as weak.
const WEAK: u32 = 6;

#[island]
pub fn PracticePanel(lang: Lang) -> impl IntoView {
    let remote = Remote::<PracticeView>::load("/api/v1/practice".into());
    remote.view(lang, tr::practice_none(lang), move |view| list(lang, &view))
}

fn standing(lang: Lang, item: &PracticeItem, now_ms: i64) -> (&'static str, &'static str) {
    match (item.attempts, item.due_ms) {
        (0, _) => ("cancelled", tr::fresh(lang)),
        (_, Some(due)) if due <= now_ms => ("queued", tr::due(lang)),
        _ if item.last_total.unwrap_or(0) < WEAK => ("failed", tr::weak(lang)),
        _ => ("done", tr::solid(lang)),
    }
}

fn list(lang: Lang, view: &PracticeView) -> AnyView {
    if view.items.is_empty() {
        return view! { <p class="muted">{tr::practice_none(lang)}</p> }.into_any();
    }
    let rows: Vec<_> = view
        .items
        .iter()
        .map(|item| {
            let number = item.question.number;
            let (class, word) = standing(lang, item, view.now_ms);
            let best = item.best_total.map(|n| format!("{} {n} / 10", tr::best(lang)));
            view! {
                <li class="practice-item">
                    <a class="practice-open" href=format!("/{}/practice/{number}", lang.code())>
                        <span class="question-number">{number}</span>
                        <span class="practice-name">{item.question.title.get(lang).to_owned()}</span>
                        <span class="muted">{ti::level(lang, item.question.level)}</span>
                        <span class=format!("badge {class}")>{word}</span>
                        <span class="muted">{best}</span>
                    </a>
                </li>
            }
        })
        .collect();
    view! { <ol class="practice-list">{rows}</ol> }.into_any()
}

/// `prompt`: HTML.
#[island]
pub fn PracticeQuestion(lang: Lang, question: QuestionCard, prompt: Text) -> impl IntoView {
    let number = question.number;
    let key = format!("ringlab.practice.{number}");
    let text = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let failed = RwSignal::new(None::<Failure>);
    let result = RwSignal::new(None::<PracticeResult>);
    let model = RwSignal::new(None::<ModelAnswer>);
    // The follow-up that is being answered, from 1; the question itself without.
    let follow = RwSignal::new(None::<u32>);
    let replace = RwSignal::new(None::<String>);
    let kept = StoredValue::new(key);
    Effect::new(move |begun: Option<()>| {
        if begun.is_none()
            && let Some(earlier) = kept.with_value(|key| client::recall(key))
        {
            replace.set(Some(earlier));
        }
    });
    let grade = move |_| {
        busy.set(true);
        failed.set(None);
        let body = PracticeAnswer { text: text.get_untracked(), follow_up: follow.get_untracked() };
        spawn_local(async move {
            match post::<PracticeResult>(&format!("/api/v1/practice/{number}/answers"), &body).await {
                Ok(new) => {
                    model.set(Some(new.model.clone()));
                    result.set(Some(new));
                }
                Err(failure) => failed.set(Some(failure)),
            }
            busy.set(false);
        });
    };
    let reveal = move |_| {
        spawn_local(async move {
            match post::<ModelAnswer>(&format!("/api/v1/practice/{number}/reveal"), &()).await {
                Ok(answer) => model.set(Some(answer)),
                Err(failure) => failed.set(Some(failure)),
            }
        });
    };
    let follow_ups = move || {
        let all = model.with(|m| m.as_ref().map(|m| m.follow_ups.clone())).unwrap_or_default();
        all.into_iter()
            .enumerate()
            .map(|(i, f)| {
                let at = i as u32 + 1;
                let choose = move |_| {
                    follow.set(Some(at));
                    result.set(None);
                    replace.set(Some(String::new()));
                };
                view! {
                    <div class="follow-up">
                        <h4>{tr::follow_up(lang)} " " {at}</h4>
                        <div class="prose" inner_html=f.prompt.get(lang).to_owned()></div>
                        <button type="button" class="button quiet" on:click=choose>
                            {tr::answer_follow_up(lang)}
                        </button>
                    </div>
                }
            })
            .collect_view()
    };
    let grade_shown = move || {
        result.get().map(|r| {
            let due = r.due_ms.map(|ms| format!("{}: {}", tr::next_due(lang), format::when_ms(ms)));
            let answer = text.get_untracked();
            view! {
                <section class="practice-grade" aria-live="polite">
                    <h3>
                        {tr::your_grade(lang)} " " <span class="question-total">{r.grade.total} " / " {r.grade.max}</span>
                    </h3>
                    <div class="table-wrap" inner_html=html::points(lang, &r.grade, &[])></div>
                    <div inner_html=html::answer(lang, &answer, &r.grade)></div>
                    <p class="meta">{due}</p>
                </section>
            }
        })
    };
    view! {
        <section class="practice-one">
            <p class="actions">
                <a class="button quiet" href=format!("/{}/practice", lang.code())>
                    {tr::back_to_list(lang)}
                </a>
            </p>
            <p class="eyebrow">{ti::question(lang, number)} " · " {ti::level(lang, question.level)}</p>
            <h2>{question.title.get(lang).to_owned()}</h2>
            <div class="prose prompt" inner_html=prompt.get(lang).to_owned()></div>
            <p class="notice" hidden=move || follow.with(Option::is_none)>
                {tr::follow_up(lang)} " " {move || follow.get()}
            </p>
            <Editor
                lang=lang
                id=format!("practice-{number}")
                label=ti::your_answer(lang).to_owned()
                text=text
                replace=replace
                locked=busy
                typed=Callback::new(move |now: String| {
                    kept.with_value(|key| client::remember(key, &now));
                })
                pasted=Callback::new(|_| {})
            />
            {super::account::message(lang, failed)}
            <p class="actions">
                <button
                    type="button"
                    class="button primary"
                    id="grade"
                    prop:disabled=move || busy.get() || text.with(|t| t.trim().is_empty())
                    on:click=grade
                >
                    {move || if busy.get() { tr::grading(lang) } else { tr::grade_me(lang) }}
                </button>
                <button type="button" class="button" hidden=move || model.with(Option::is_some) on:click=reveal>
                    {tr::reveal(lang)}
                </button>
            </p>
            <p class="help" hidden=move || model.with(Option::is_some)>{tr::reveal_hint(lang)}</p>
            {grade_shown}
            {move || {
                model
                    .get()
                    .map(|m| {
                        view! {
                            <section class="practice-model">
                                <h3>{tr::the_model(lang)}</h3>
                                <div inner_html=html::model(lang, &m)></div>
                            </section>
                        }
                    })
            }}
            {follow_ups}
        </section>
    }
    .into_any()
}
