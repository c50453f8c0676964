//! One lab: instructions, the panel, earlier runs.

use leptos::prelude::*;
use ringlab_content::types::ChapterMeta;
use ringlab_labs::api::{JobView, RunnerView};
use ringlab_labs::catalogue::LabView;
use ringlab_labs::job::Backend;
use ringlab_labs::text::{Lang, Text};

use super::{chapter_address, labs, runs_table};
use crate::document::{Rendered, address};
use crate::islands::lab_panel::LabPanel;
use crate::strings as t;

pub(super) fn render(
    lang: Lang,
    lab: LabView,
    seed: u64,
    runners: Vec<RunnerView>,
    jobs: Vec<JobView>,
    chapter: Option<ChapterMeta>,
) -> Rendered {
    let title = lab.title.get(lang).to_owned();
    let summary = lab.summary.get(lang).to_owned();
    let body_html = lab.body.get(lang).to_owned();
    let facts = labs::facts(lang, &lab);
    let number = lab.chapter;
    let origin = match chapter {
        Some(meta) => view! {
            <a href=chapter_address(lang, meta.number, &meta.slug)>
                {format!("{} · {}", t::chapter_number(lang, meta.number), meta.title)}
            </a>
        }
        .into_any(),
        None => t::chapter_number(lang, number).into_any(),
    };
    let mut online: Vec<Backend> = runners.iter().flat_map(|r| r.hardware.backends.clone()).collect();
    online.sort_unstable();
    online.dedup();
    // The panel has no use for the instructions: they stay out of its data.
    let lab = LabView { body: Text::new("", ""), ..lab };
    let panel = view! { <LabPanel lang=lang lab=lab seed=seed online=online /> }.into_any();
    let body = view! {
        <div class="page lab-page">
            <header class="page-head">
                <p class="eyebrow">
                    <a href=address(lang, "/labs")>{t::labs(lang)}</a>
                    " · "
                    {origin}
                </p>
                <h1>{title.clone()}</h1>
                <p class="lead">{summary.clone()}</p>
                <p class="meta">{facts}</p>
            </header>
            <div class="lab-columns">
                <section class="lab-text" aria-label=t::instructions(lang)>
                    <div class="prose" inner_html=body_html></div>
                </section>
                <section class="lab-panel" aria-label=t::start_lab(lang)>
                    <p class="notice no-wasm">{t::lab_needs_js(lang)}</p>
                    <div class="needs-wasm">
                        {panel}
                    </div>
                </section>
            </div>
            <section class="lab-runs">
                <h2>{t::your_runs(lang)}</h2>
                {runs_table(lang, &jobs)}
            </section>
        </div>
    };
    Rendered {
        title,
        description: Some(summary),
        section: Some("labs"),
        body: body.into_any(),
        islands: true,
    }
}
