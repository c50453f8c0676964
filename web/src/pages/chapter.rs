//! A chapter: contents beside the prose, and between the prose the things that are alive.

use leptos::prelude::*;
use ringlab_content::types::{Chapter, ChapterMeta, Segment, TocEntry, Widget};
use ringlab_interview::api::QuestionCard;
use ringlab_labs::text::Lang;

use super::{chapter_address, course};
use crate::document::{Rendered, address};
use crate::islands::bandwidth_calculator::BandwidthCalculator;
use crate::islands::quiz::QuizIsland;
use crate::islands::ring_stepper::RingStepper;
use crate::strings as t;
use crate::strings_reference as t_ref;

pub(super) fn render(
    lang: Lang,
    chapter: Chapter,
    previous: Option<ChapterMeta>,
    next: Option<ChapterMeta>,
    questions: &[QuestionCard],
) -> Rendered {
    let Chapter { meta, version: _, toc, segments } = chapter;
    // Everything of a chapter speaks one language, which is not the page's while a translation is missing.
    let page = lang;
    let lang = Lang::from_code(&meta.lang).unwrap_or(page);
    let islands = segments.iter().any(|s| match s {
        Segment::Quiz(_) => true,
        Segment::Widget(widget) => is_known(&widget.kind),
        Segment::Html { .. } | Segment::Lab { .. } => false,
    });
    let scope = format!("{:02}-{}", meta.number, meta.slug);
    let segments: Vec<_> = segments.into_iter().map(|s| segment(page, lang, &scope, s)).collect();
    let body = view! {
        <div
            class="chapter"
            lang=lang.tag()
            data-reader="chapter"
            data-lang=page.code()
            data-text-lang=lang.code()
            data-folder=scope
        >
            <aside class="chapter-side">
                <nav class="toc toc-side" aria-label=t::chapter_contents(lang)>
                    <p class="toc-title">{t::chapter_contents(lang)}</p>
                    {contents(&toc)}
                </nav>
            </aside>
            <article class="chapter-body">
                <header class="chapter-head">
                    <p class="eyebrow">
                        <a href=address(page, "/course")>{t::course(lang)}</a>
                        " · "
                        {t::chapter_number(lang, meta.number)}
                    </p>
                    <h1>{meta.title.clone()}</h1>
                    <p class="lead">{meta.summary.clone()}</p>
                    <p class="meta">{course::facts(lang, &meta)}</p>
                    {(lang != page).then(|| view! { <p class="notice" lang=page.tag()>{t::not_translated(page)}</p> })}
                </header>
                <details class="toc toc-top">
                    <summary>{t::chapter_contents(lang)}</summary>
                    {contents(&toc)}
                </details>
                {list(t::objectives(lang), "objectives", &meta.objectives)}
                {list(t::prerequisites(lang), "prerequisites", &meta.prerequisites)}
                {segments}
                {open_questions(page, lang, questions)}
                <nav class="neighbours" aria-label=format!("{} / {}", t::previous(lang), t::next(lang))>
                    {previous.map(|meta| neighbour(page, "previous", t::previous(lang), &meta))}
                    {next.map(|meta| neighbour(page, "next", t::next(lang), &meta))}
                </nav>
            </article>
        </div>
    };
    Rendered {
        title: meta.title,
        description: Some(meta.summary),
        section: Some("course"),
        body: body.into_any(),
        islands,
    }
}

fn contents(toc: &[TocEntry]) -> impl IntoView + use<> {
    let entries: Vec<_> = toc
        .iter()
        .map(|entry| {
            view! {
                <li class=format!("level-{}", entry.level)>
                    <a href=format!("#{}", entry.id) inner_html=entry.html.clone()></a>
                </li>
            }
        })
        .collect();
    view! { <ol>{entries}</ol> }
}

fn list(title: &'static str, class: &'static str, items: &[String]) -> Option<impl IntoView + use<>> {
    (!items.is_empty()).then(|| {
        let items: Vec<_> = items.iter().map(|item| view! { <li inner_html=item.clone()></li> }).collect();
        view! {
            <section class=format!("plain-list {class}")>
                <h2>{title}</h2>
                <ul>{items}</ul>
            </section>
        }
    })
}

/// `page` is the language of what a link leads to, `lang` that of the words here.
fn segment(page: Lang, lang: Lang, scope: &str, segment: Segment) -> AnyView {
    match segment {
        Segment::Html { html } => view! { <div class="prose" inner_html=html></div> }.into_any(),
        Segment::Widget(widget) => widget_figure(lang, widget),
        Segment::Quiz(quiz) => {
            let key = format!("{scope}/{}", quiz.id);
            view! { <QuizIsland lang=lang key=key quiz=quiz /> }.into_any()
        }
        Segment::Lab { id, html } => view! {
            <aside class="lab-call">
                <p class="eyebrow">{t::the_lab(lang)}</p>
                <div class="prose" inner_html=html></div>
                <p class="actions">
                    <a class="button primary" href=address(page, &format!("/labs/{id}"))>
                        {t::open_lab(lang)}
                    </a>
                </p>
            </aside>
        }
        .into_any(),
    }
}

/// Questions of the bank that the chapter prepares for.
fn open_questions(page: Lang, lang: Lang, questions: &[QuestionCard]) -> Option<impl IntoView + use<>> {
    (!questions.is_empty()).then(|| {
        let items: Vec<_> = questions
            .iter()
            .map(|card| {
                let number = t_ref::question_number(lang, card.number);
                view! {
                    <li>
                        <a href=address(page, &format!("/practice/{}", card.number))>
                            {number} " · " {card.title.get(lang).to_owned()}
                        </a>
                    </li>
                }
            })
            .collect();
        view! {
            <section class="open-questions" aria-labelledby="open-questions">
                <h2 id="open-questions">{t_ref::open_questions(lang)}</h2>
                <p class="muted">{t_ref::open_questions_lead(lang)}</p>
                <ul>{items}</ul>
            </section>
        }
    })
}

fn is_known(kind: &str) -> bool {
    matches!(kind, "ring-stepper" | "bandwidth-calculator")
}

/// The fallback is the whole figure where no script runs, and gives way to the island where one does.
fn widget_figure(lang: Lang, widget: Widget) -> AnyView {
    let Widget { kind, params, fallback } = widget;
    let island = match kind.as_str() {
        "ring-stepper" => view! { <RingStepper lang=lang params=params /> }.into_any(),
        "bandwidth-calculator" => view! { <BandwidthCalculator lang=lang params=params /> }.into_any(),
        _ => {
            return view! { <figure class="widget"><div class="prose" inner_html=fallback></div></figure> }
                .into_any();
        }
    };
    view! {
        <figure class="widget" role="group" aria-label=t::widget(lang)>
            <div class="no-wasm">
                <p class="muted">{t::no_wasm(lang)}</p>
                <div class="prose" inner_html=fallback></div>
            </div>
            <div class="needs-wasm">{island}</div>
        </figure>
    }
    .into_any()
}

fn neighbour(
    lang: Lang,
    class: &'static str,
    label: &'static str,
    meta: &ChapterMeta,
) -> impl IntoView + use<> {
    view! {
        <a class=class href=chapter_address(lang, meta.number, &meta.slug)>
            <span class="eyebrow">{label}</span>
            <span lang=meta.lang.clone()>{format!("{} · {}", meta.number, meta.title)}</span>
        </a>
    }
}
