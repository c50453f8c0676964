//! One file per page; each turns its plain data into a view.

mod chapter;
mod course;
mod error;
mod home;
mod interview;
mod lab;
mod labs;
mod notes;
mod path;
mod reference;
mod run;
mod search;
mod trace_table;

use leptos::prelude::*;
use ringlab_labs::api::{JobState, JobView};
use ringlab_labs::text::Lang;

use crate::document::{Rendered, address};
use crate::page::{Page, Shell};
use crate::strings as t;

pub use notes::markdown as notes_markdown;

pub(crate) fn render(shell: &Shell, page: Page) -> Rendered {
    let lang = shell.lang;
    match page {
        Page::Home { chapters, labs, runners } => home::render(lang, chapters, labs, runners),
        Page::Course { chapters } => course::render(lang, chapters),
        Page::Notes { chapters } => notes::render(lang, &chapters),
        Page::Path { chapters } => path::render(lang, &chapters),
        Page::Chapter { chapter, previous, next, questions } => {
            chapter::render(lang, chapter, previous, next, &questions)
        }
        Page::Reference { shown, chapters } => reference::render(lang, shown, &chapters),
        Page::Search(shown) => search::render(lang, shown),
        Page::Labs { labs } => labs::render(lang, labs),
        Page::Lab { lab, seed, runners, jobs, chapter } => {
            lab::render(lang, lab, seed, runners, jobs, chapter)
        }
        Page::Run { job, lab, events, trace } => run::render(lang, *job, lab, events, trace.map(|t| *t)),
        Page::Interview(page) => interview::render(lang, page),
        Page::Error { status, title, detail } => error::render(lang, status, title, detail),
    }
}

/// `/zh/course/12-ring-allreduce`
fn chapter_address(lang: Lang, number: u32, slug: &str) -> String {
    address(lang, &format!("/course/{number:02}-{slug}"))
}

/// Wide tables scroll inside themselves, also by keyboard.
fn scrolling(label: &str, table: impl IntoView) -> impl IntoView {
    view! {
        <div class="scroll" role="region" tabindex="0" aria-label=label.to_owned()>
            {table}
        </div>
    }
}

/// A visitor's runs of one lab.
fn runs_table(lang: Lang, jobs: &[JobView]) -> AnyView {
    if jobs.is_empty() {
        return view! { <p class="muted">{t::no_runs(lang)}</p> }.into_any();
    }
    let rows: Vec<_> = jobs
        .iter()
        .map(|job| {
            let marks =
                job.marks.as_ref().map(|m| format!("{} / {}", figure(m.total), figure(m.max)));
            view! {
                <tr>
                    <td>
                        <a href=address(lang, &format!("/runs/{}", job.id))>{crate::format::when(&job.created)}</a>
                    </td>
                    <td>{state_badge(lang, &job.state)}</td>
                    <td class="number">{marks.unwrap_or_else(|| "–".into())}</td>
                </tr>
            }
        })
        .collect();
    let table = view! {
        <table>
            <thead>
                <tr>
                    <th scope="col">{t::submitted(lang)}</th>
                    <th scope="col">{t::state_word(lang)}</th>
                    <th scope="col" class="number">
                        {t::score(lang)}
                    </th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
    };
    scrolling(t::your_runs(lang), table).into_any()
}

fn figure(n: f64) -> String {
    crate::format::decimal(n, 2)
}

/// A job's state as a coloured word.
pub(crate) fn state_badge(lang: Lang, state: &JobState) -> impl IntoView + use<> {
    let (class, word) = crate::islands::run_panel::state_word(lang, state);
    view! { <span class=format!("badge {class}")>{word}</span> }
}
