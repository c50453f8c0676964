//! One run: where it stands, its log, its marks and figures, its timeline.

use leptos::prelude::*;
use ringlab_engine::trace::Trace;
use ringlab_labs::api::{JobView, StreamEvent};
use ringlab_labs::catalogue::LabView;
use ringlab_labs::job::EventBody;
use ringlab_labs::text::{Lang, Text};

use super::trace_table;
use crate::document::{Rendered, address};
use crate::format;
use crate::islands::log::line_of;
use crate::islands::run_panel::RunPanel;
use crate::strings as t;

pub(super) fn render(
    lang: Lang,
    job: JobView,
    lab: LabView,
    events: Vec<StreamEvent>,
    trace: Option<Trace>,
) -> Rendered {
    let lab_title = lab.title.get(lang).to_owned();
    let lab_page = address(lang, &format!("/labs/{}", lab.id));
    let created = format::when(&job.created);
    let title = format!("{} · {}", t::run_title(lang), lab_title);
    let log = static_log(lang, &events);
    let figures = trace.map(|trace| {
        view! {
            <section class="no-wasm">
                <h2>{t::timeline(lang)}</h2>
                {trace_table::render(lang, &trace)}
            </section>
        }
    });
    let lab = LabView { body: Text::new("", ""), ..lab };
    let panel = view! { <RunPanel lang=lang job=job.clone() lab=lab /> }.into_any();
    let body = view! {
        <div class="page run-page">
            <header class="page-head">
                <p class="eyebrow">
                    <a href=address(lang, "/labs")>{t::labs(lang)}</a>
                    " · "
                    <a href=lab_page>{lab_title.clone()}</a>
                </p>
                <h1>{t::run_title(lang)}</h1>
                <p class="meta">{created} " · " <code>{job.id.clone()}</code></p>
            </header>
            {panel}
            <section class="no-wasm">
                <h2>{t::log(lang)}</h2>
                {log}
            </section>
            {figures}
        </div>
    };
    Rendered { title, description: None, section: Some("labs"), body: body.into_any(), islands: true }
}

fn static_log(lang: Lang, events: &[StreamEvent]) -> AnyView {
    let lines: Vec<_> = events
        .iter()
        .filter(|e| !matches!(e.event.body, EventBody::Progress { .. }))
        .map(|e| {
            let line = line_of(lang, e);
            view! {
                <li class=line.class>
                    <span class="at">{line.at}</span>
                    " "
                    <span>{line.text}</span>
                </li>
            }
        })
        .collect();
    if lines.is_empty() {
        return view! { <p class="muted">{t::log_empty(lang)}</p> }.into_any();
    }
    view! {
        <ol class="log" tabindex="0" role="region" aria-label=t::log(lang)>
            {lines}
        </ol>
    }
    .into_any()
}
