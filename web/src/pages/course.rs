//! The index of all chapters, written or announced.

use leptos::prelude::*;
use ringlab_content::types::ChapterMeta;
use ringlab_labs::text::Lang;

use super::chapter_address;
use crate::document::{Rendered, address};
use crate::page::ChapterCard;
use crate::strings as t;
use crate::strings_reading as tn;
use crate::strings_reference as t_ref;

pub(super) fn render(lang: Lang, chapters: Vec<ChapterCard>) -> Rendered {
    let items: Vec<_> = chapters.iter().map(|chapter| row(lang, chapter)).collect();
    let body = view! {
        <div class="page">
            <header class="page-head">
                <h1>{t::course(lang)}</h1>
                <p class="lead">{t::course_lead(lang)}</p>
                <div data-reader="overview" data-lang=lang.code()></div>
                <p class="actions">
                    <a class="button" href=address(lang, "/notes")>{tn::my_notes(lang)}</a>
                    <a class="button" href=address(lang, "/course/path")>{t_ref::path(lang)}</a>
                    <a class="button" href=address(lang, "/reference")>{t_ref::reference(lang)}</a>
                </p>
            </header>
            <ol class="course">{items}</ol>
        </div>
    };
    Rendered {
        title: t::course(lang).into(),
        description: Some(t::course_lead(lang).into()),
        section: Some("course"),
        body: body.into_any(),
        islands: false,
    }
}

fn row(lang: Lang, chapter: &ChapterCard) -> AnyView {
    let number = chapter.number;
    match &chapter.written {
        Some(meta) => view! {
            <li class="written">
                <span class="chapter-number">{number}</span>
                <div>
                    <h2>
                        <a href=chapter_address(lang, meta.number, &meta.slug)>{chapter.title.clone()}</a>
                    </h2>
                    <p lang=meta.lang.clone()>{meta.summary.clone()}</p>
                    <p class="meta">{facts(lang, meta)}</p>
                </div>
            </li>
        }
        .into_any(),
        None => view! {
            <li class="announced" id=format!("chapter-{number:02}")>
                <span class="chapter-number">{number}</span>
                <div>
                    <h2>{chapter.title.clone()}</h2>
                    <p class="meta">{t::announced(lang)}</p>
                </div>
            </li>
        }
        .into_any(),
    }
}

/// `about 20 min · with a lab`
pub(super) fn facts(lang: Lang, meta: &ChapterMeta) -> String {
    let mut text = t::minutes(lang, meta.minutes);
    if meta.lab.is_some() {
        text.push_str(" · ");
        text.push_str(t::with_lab(lang));
    }
    if meta.lang != lang.code() {
        text.push_str(" · ");
        text.push_str(t::in_chinese(lang));
    }
    text
}

/// A chapter on the front page.
pub(super) fn card(lang: Lang, meta: &ChapterMeta) -> impl IntoView + use<> {
    view! {
        <li class="card">
            <p class="eyebrow">{t::chapter_number(lang, meta.number)}</p>
            <h3>
                <a lang=meta.lang.clone() href=chapter_address(lang, meta.number, &meta.slug)>{meta.title.clone()}</a>
            </h3>
            <p lang=meta.lang.clone()>{meta.summary.clone()}</p>
            <p class="meta">{facts(lang, meta)}</p>
        </li>
    }
}
