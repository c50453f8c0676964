//! The list of labs.

use leptos::prelude::*;
use ringlab_labs::catalogue::LabView;
use ringlab_labs::text::Lang;

use crate::document::{Rendered, address};
use crate::strings as t;

pub(super) fn render(lang: Lang, labs: Vec<LabView>) -> Rendered {
    let cards: Vec<_> = labs.iter().map(|lab| card(lang, lab)).collect();
    let body = view! {
        <div class="page">
            <header class="page-head">
                <h1>{t::labs(lang)}</h1>
                <p class="lead">{t::labs_lead(lang)}</p>
            </header>
            <ul class="cards wide">{cards}</ul>
        </div>
    };
    Rendered {
        title: t::labs(lang).into(),
        description: Some(t::labs_lead(lang).into()),
        section: Some("labs"),
        body: body.into_any(),
        islands: false,
    }
}

/// A lab on the front page and in the list.
pub(super) fn card(lang: Lang, lab: &LabView) -> impl IntoView + use<> {
    view! {
        <li class="card">
            <p class="eyebrow">{t::chapter_number(lang, lab.chapter)}</p>
            <h3>
                <a href=address(lang, &format!("/labs/{}", lab.id))>{lab.title.get(lang).to_owned()}</a>
            </h3>
            <p>{lab.summary.get(lang).to_owned()}</p>
            <p class="meta">{facts(lang, lab)}</p>
        </li>
    }
}

/// `about 30 min · cpu, cuda · 10 marks`
pub(super) fn facts(lang: Lang, lab: &LabView) -> String {
    let backends: Vec<_> = lab.backends.iter().map(|b| b.name()).collect();
    format!("{} · {} · {}", t::minutes(lang, lab.minutes), backends.join(", "), t::marks(lang, lab.max_marks))
}
