//! What one looks up: glossary, environment variables, formulas, source map.

use leptos::prelude::*;
use ringlab_content::reference::{Formula, Group, MapEntry, Place, Variable};
use ringlab_labs::text::Lang;

use crate::document::{Rendered, address};
use crate::page::{ReferencePage, TermCard};
use crate::strings::chapter_number;
use crate::strings_reference as t;

/// Number and folder of each chapter.
type Chapters = [(u32, String)];

pub(super) fn render(lang: Lang, shown: ReferencePage, chapters: &Chapters) -> Rendered {
    let (title, lead, body) = match shown {
        ReferencePage::Front { terms, variables, formulas, places } => {
            let cards = [
                ("/reference/glossary", t::glossary(lang), t::glossary_lead(lang), terms),
                ("/reference/environment", t::environment(lang), t::environment_lead(lang), variables),
                ("/reference/formulas", t::formulas(lang), t::formulas_lead(lang), formulas),
                ("/reference/source-map", t::source_map(lang), t::source_map_lead(lang), places),
            ];
            (t::reference(lang), t::reference_lead(lang), front(lang, cards))
        }
        ReferencePage::Glossary { terms } => {
            (t::glossary(lang), t::glossary_lead(lang), glossary(lang, &terms, chapters))
        }
        ReferencePage::Environment { groups } => (
            t::environment(lang),
            t::environment_lead(lang),
            grouped(lang, &groups, |entry| variable(lang, entry, chapters)),
        ),
        ReferencePage::Formulas { groups } => (
            t::formulas(lang),
            t::formulas_lead(lang),
            grouped(lang, &groups, |entry| formula(lang, entry, chapters)),
        ),
        ReferencePage::SourceMap { groups } => (
            t::source_map(lang),
            t::source_map_lead(lang),
            grouped(lang, &groups, |entry| place_entry(lang, entry, chapters)),
        ),
    };
    let up = (title != t::reference(lang)).then(|| {
        view! { <p class="eyebrow"><a href=address(lang, "/reference")>{t::reference(lang)}</a></p> }
    });
    let body = view! {
        <div class="page reference">
            <header class="page-head">{up} <h1>{title}</h1> <p class="lead">{lead}</p></header>
            {body}
        </div>
    };
    Rendered {
        title: title.into(),
        description: Some(lead.into()),
        section: Some("reference"),
        body: body.into_any(),
        islands: false,
    }
}

fn front(lang: Lang, cards: [(&str, &'static str, &'static str, usize); 4]) -> AnyView {
    let cards: Vec<_> = cards
        .into_iter()
        .map(|(path, title, lead, count)| {
            view! {
                <li class="card">
                    <p class="eyebrow">{t::entries(lang, count)}</p>
                    <h2><a href=address(lang, path)>{title}</a></h2>
                    <p>{lead}</p>
                </li>
            }
        })
        .collect();
    view! { <ul class="cards">{cards}</ul> }.into_any()
}

/// The script of every page makes the field work; without it there is none.
fn filter(lang: Lang) -> impl IntoView {
    view! {
        <div class="filter" data-filter="">
            <label for="filter">{t::filter(lang)}</label>
            <input id="filter" type="search" autocomplete="off" />
            <p class="muted" role="status" hidden="" data-filter-none="">{t::filter_none(lang)}</p>
        </div>
    }
}

fn grouped<T>(lang: Lang, groups: &[Group<T>], one: impl Fn(&T) -> AnyView) -> AnyView {
    let links: Vec<_> = groups
        .iter()
        .map(|group| view! { <li><a href=format!("#{}", group.id)>{group.title.clone()}</a></li> })
        .collect();
    let sections: Vec<_> = groups
        .iter()
        .map(|group| {
            let entries: Vec<_> = group.entries.iter().map(&one).collect();
            let label = group.id.clone();
            view! {
                <section aria-labelledby=label data-filter-group="">
                    <h2 id=group.id.clone()>{group.title.clone()}</h2>
                    <ul class="entries">{entries}</ul>
                </section>
            }
        })
        .collect();
    view! {
        {filter(lang)}
        <nav class="jump" aria-label=t::on_this_page(lang)><ul>{links}</ul></nav>
        {sections}
    }
    .into_any()
}

fn glossary(lang: Lang, terms: &[TermCard], chapters: &Chapters) -> AnyView {
    let mut sorted: Vec<&TermCard> = terms.iter().collect();
    // In the order in which the course teaches them: a list of Chinese terms has no alphabet that a reader would search by.
    sorted.sort_by_key(|term| (term.chapter, term.id.as_str()));
    let groups: Vec<Group<&TermCard>> = sorted
        .chunk_by(|a, b| a.chapter == b.chapter)
        .map(|group| Group {
            id: format!("chapter-{:02}", group[0].chapter),
            title: chapter_number(lang, group[0].chapter),
            entries: group.to_vec(),
        })
        .collect();
    grouped(lang, &groups, |term| {
        let link = chapter_link(lang, term.chapter, None, chapters);
        view! {
            <li id=format!("term-{}", term.id) data-filter-entry="">
                <p class="entry-head">
                    <dfn>{term.name.clone()}</dfn>
                    <span class="muted" lang=lang.other().tag()>{term.other.clone()}</span>
                    {link}
                </p>
                <p>{term.definition.clone()}</p>
            </li>
        }
        .into_any()
    })
}

fn variable(lang: Lang, entry: &Variable, chapters: &Chapters) -> AnyView {
    let since = entry.since.as_ref().map(|since| {
        view! { <span class="badge">{t::since(lang)} " " {since.clone()}</span> }
    });
    let default = entry.since.is_none().then(|| {
        view! {
            <span class="muted">
                {t::variable_kind(lang, entry.kind)} " · " {t::unset_means(lang)} " " <code>{entry.default.clone()}</code>
            </span>
        }
    });
    view! {
        <li id=entry.name.clone() data-filter-entry="">
            <p class="entry-head">
                <dfn><code>{entry.name.clone()}</code></dfn>
                {default}
                {since}
                {entry.chapter.and_then(|number| chapter_link(lang, number, None, chapters))}
            </p>
            <p inner_html=entry.meaning.clone()></p>
            {entry.note.clone().map(|note| view! { <p class="entry-note" inner_html=note></p> })}
            {entry.place.as_ref().map(place)}
        </li>
    }
    .into_any()
}

fn formula(lang: Lang, entry: &Formula, chapters: &Chapters) -> AnyView {
    let example = entry.example.clone().map(|example| {
        view! { <p class="muted">{t::example(lang)} ": " {example}</p> }
    });
    view! {
        <li id=entry.id.clone() data-filter-entry="">
            <p class="entry-head">
                <dfn>{entry.title.clone()}</dfn>
                {chapter_link(lang, entry.chapter, entry.anchor.as_deref(), chapters)}
            </p>
            <div class="formula" tabindex="0" role="group" aria-label=entry.title.clone() inner_html=entry.formula.clone()></div>
            <p inner_html=entry.letters.clone()></p>
            {example}
            <details class="tex"><summary>{t::copy_tex(lang)}</summary><code>{entry.tex.clone()}</code></details>
        </li>
    }
    .into_any()
}

fn place_entry(lang: Lang, entry: &MapEntry, chapters: &Chapters) -> AnyView {
    view! {
        <li data-filter-entry="">
            <p class="entry-head">
                <dfn>{entry.title.clone()}</dfn>
                {entry.chapter.and_then(|number| chapter_link(lang, number, None, chapters))}
            </p>
            {place(&entry.place)}
            <p inner_html=entry.note.clone()></p>
        </li>
    }
    .into_any()
}

fn place(place: &Place) -> impl IntoView + use<> {
    let Place { repo, tag, file, symbol } = place;
    view! {
        <p class="source-place">
            <a href=format!("https://github.com/{repo}/blob/{tag}/{file}") rel="external noreferrer"><code>{file.clone()}</code></a>
            " "
            <code class="symbol">{symbol.clone()}</code>
            " "
            <span class="source-tag">{format!("{repo} {tag}")}</span>
        </p>
    }
}

fn chapter_link(
    lang: Lang,
    number: u32,
    anchor: Option<&str>,
    chapters: &Chapters,
) -> Option<impl IntoView + use<>> {
    let (_, folder) = chapters.iter().find(|(n, _)| *n == number)?;
    let anchor = anchor.map_or(String::new(), |anchor| format!("#{anchor}"));
    let href = address(lang, &format!("/course/{folder}{anchor}"));
    Some(view! { <a class="entry-chapter" href=href>{chapter_number(lang, number)}</a> })
}
