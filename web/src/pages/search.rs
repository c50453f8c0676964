//! Results of a search. A plain form: it works without scripts.

use leptos::prelude::*;
use ringlab_labs::text::Lang;
use ringlab_search::{Hit, Kind, Piece};

use crate::document::{Rendered, address};
use crate::page::SearchPage;
use crate::strings_reference as t;

pub(super) fn render(lang: Lang, shown: SearchPage) -> Rendered {
    let title = match shown.query.trim() {
        "" => t::search(lang).to_owned(),
        query => format!("{query} · {}", t::search(lang)),
    };
    let asked = !shown.query.trim().is_empty();
    let kind = shown.kind.map(|kind| view! { <input type="hidden" name="kind" value=kind.name() /> });
    let body = view! {
        <div class="page search-page">
            <header class="page-head">
                <h1>{t::search(lang)}</h1>
                <p class="lead">{t::search_lead(lang)}</p>
            </header>
            <form class="search-form" role="search" action=address(lang, "/search")>
                <label class="visually-hidden" for="search-q">{t::search_label(lang)}</label>
                <input id="search-q" type="search" name="q" value=shown.query.clone() maxlength="200" autocomplete="off"
                    placeholder=t::search_example(lang) autofocus=!asked />
                {kind}
                <button class="button primary">{t::search(lang)}</button>
            </form>
            {asked.then(|| found(lang, &shown))}
        </div>
    };
    Rendered { title, description: None, section: None, body: body.into_any(), islands: false }
}

fn found(lang: Lang, shown: &SearchPage) -> impl IntoView + use<> {
    let results = &shown.results;
    let tabs: Vec<_> =
        [None].into_iter().chain(Kind::ALL.map(Some)).map(|kind| tab(lang, shown, kind)).collect();
    let count = match results.total {
        0 => t::search_nothing_title(lang).to_owned(),
        total => t::results(lang, total),
    };
    let note = if results.total == 0 {
        Some(t::search_nothing(lang))
    } else {
        results.partial.then(|| t::search_partial(lang))
    };
    let hits: Vec<_> = results.hits.iter().map(|hit| row(lang, hit)).collect();
    let start = shown.offset + 1;
    let back = (shown.offset > 0).then(|| shown.offset.saturating_sub(shown.limit));
    let on = shown.offset + results.hits.len();
    let on = (on < results.total && !results.hits.is_empty()).then_some(on);
    let link = |to: Option<usize>, rel: &'static str, label: &'static str| {
        to.map(|offset| view! { <a class="button" rel=rel href=here(lang, shown, shown.kind, offset)>{label}</a> })
    };
    view! {
        <nav class="tabs" aria-label=t::filter(lang)>{tabs}</nav>
        <h2 class="search-count" role="status">{count}</h2>
        {note.map(|note| view! { <p class="notice">{note}</p> })}
        <ol class="hits" start=start>{hits}</ol>
        <p class="actions">
            {link(back, "prev", t::fewer(lang))}
            {link(on, "next", t::more(lang))}
        </p>
    }
}

fn tab(lang: Lang, shown: &SearchPage, kind: Option<Kind>) -> impl IntoView + use<> {
    let label = kind.map_or(t::everything(lang), |kind| t::kind(lang, kind));
    let current = (kind == shown.kind).then_some("true");
    view! { <a href=here(lang, shown, kind, 0) aria-current=current>{label}</a> }
}

fn here(lang: Lang, shown: &SearchPage, kind: Option<Kind>, offset: usize) -> String {
    let mut path = format!("/search?q={}", encoded(&shown.query));
    if let Some(kind) = kind {
        path.push_str("&kind=");
        path.push_str(kind.name());
    }
    if offset > 0 {
        path.push_str(&format!("&offset={offset}"));
    }
    address(lang, &path)
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn row(lang: Lang, hit: &Hit) -> impl IntoView + use<> {
    // A context of its own says more than the kind; where it says the same, once is enough.
    let kind = t::kind(lang, hit.kind);
    let kind = (!hit.context.starts_with(kind)).then(|| format!("{kind} · "));
    view! {
        <li>
            <p class="eyebrow">
                {kind} <span lang=hit.lang.clone()>{hit.context.clone()}</span>
            </p>
            <h3 lang=hit.lang.clone()>
                <a href=hit.href.clone()>{pieces(&hit.title)}</a>
            </h3>
            <p lang=hit.lang.clone()>{pieces(&hit.snippet)}</p>
        </li>
    }
}

fn pieces(pieces: &[Piece]) -> Vec<AnyView> {
    let piece = |piece: &Piece| match piece.found {
        true => view! { <mark>{piece.text.clone()}</mark> }.into_any(),
        false => piece.text.clone().into_any(),
    };
    pieces.iter().map(piece).collect()
}
