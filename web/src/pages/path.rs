//! The learning path: which chapter builds on which, as a drawing and as lists.

use std::collections::BTreeMap;

use leptos::prelude::*;
use ringlab_labs::text::Lang;

use super::chapter_address;
use crate::document::{Rendered, address};
use crate::page::ChapterCard;
use crate::strings_reference as t;

/// Of the drawing, in its own units.
const COLUMN: usize = 92;
const ROW: usize = 54;
const RADIUS: usize = 16;
const EDGE: usize = 24;

pub(super) fn render(lang: Lang, chapters: &[ChapterCard]) -> Rendered {
    let stages = stages(chapters);
    let lists: Vec<_> = stages.iter().enumerate().map(|(i, stage)| list(lang, i, stage, chapters)).collect();
    let body = view! {
        <div class="page path">
            <header class="page-head">
                <p class="eyebrow"><a href=address(lang, "/course")>{t::as_list(lang)}</a></p>
                <h1>{t::path(lang)}</h1>
                <p class="lead">{t::path_lead(lang)}</p>
            </header>
            <div class="scroll path-graph" role="region" tabindex="0" aria-label=t::path_graph(lang) inner_html=drawing(lang, &stages, chapters)></div>
            {lists}
        </div>
    };
    Rendered {
        title: t::path(lang).into(),
        description: Some(t::path_lead(lang).into()),
        section: Some("course"),
        body: body.into_any(),
        islands: false,
    }
}

fn requires(chapter: &ChapterCard) -> &[u32] {
    chapter.written.as_ref().map_or(&[], |meta| &meta.requires)
}

/// Chapter numbers by how long the longest way to them is. A prerequisite is always an earlier chapter, so one pass is enough.
fn stages(chapters: &[ChapterCard]) -> Vec<Vec<u32>> {
    let mut stage_of: BTreeMap<u32, usize> = BTreeMap::new();
    let mut stages: Vec<Vec<u32>> = Vec::new();
    for chapter in chapters {
        let stage =
            requires(chapter).iter().filter_map(|n| stage_of.get(n)).max().map_or(0, |deepest| deepest + 1);
        stage_of.insert(chapter.number, stage);
        stages.resize(stages.len().max(stage + 1), Vec::new());
        stages[stage].push(chapter.number);
    }
    stages
}

/// Circles and arrows; every circle is a link with its title. What it shows also stands in the lists.
fn drawing(lang: Lang, stages: &[Vec<u32>], chapters: &[ChapterCard]) -> String {
    let tallest = stages.iter().map(Vec::len).max().unwrap_or(0);
    let (width, height) = (stages.len() * COLUMN, tallest * ROW + 2 * EDGE);
    let mut place: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    let mut rows: BTreeMap<u32, f64> = BTreeMap::new();
    for (column, stage) in stages.iter().enumerate() {
        // Near what it builds on, so that arrows cross less.
        let mut ordered = stage.clone();
        let middle = |number: &u32| {
            let needed: Vec<f64> = chapters
                .iter()
                .find(|c| c.number == *number)
                .map_or(&[][..], requires)
                .iter()
                .filter_map(|n| rows.get(n).copied())
                .collect();
            if needed.is_empty() {
                f64::from(*number)
            } else {
                needed.iter().sum::<f64>() / needed.len() as f64
            }
        };
        ordered.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
        let top = (height - stage.len() * ROW) / 2;
        for (i, number) in ordered.iter().enumerate() {
            let y = top + i * ROW + ROW / 2;
            place.insert(*number, (column * COLUMN + COLUMN / 2, y));
            rows.insert(*number, y as f64);
        }
    }
    let mut edges = String::new();
    let mut nodes = String::new();
    for chapter in chapters {
        let Some(&(x, y)) = place.get(&chapter.number) else { continue };
        for (x0, y0) in requires(chapter).iter().filter_map(|n| place.get(n)) {
            let (from, to) = (x0 + RADIUS, x - RADIUS - 3);
            let bend = (to.saturating_sub(from)) / 2;
            edges.push_str(&format!(
                "<path d=\"M{from} {y0}C{} {y0} {} {y} {to} {y}\" marker-end=\"url(#path-arrow)\"/>",
                from + bend,
                to - bend
            ));
        }
        let title = crate::html::esc(&chapter.title);
        let circle = format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{RADIUS}\"/><text x=\"{x}\" y=\"{}\">{}</text>",
            y + 5,
            chapter.number
        );
        match &chapter.written {
            Some(meta) => nodes.push_str(&format!(
                "<a href=\"{}\" aria-label=\"{} {title}\"><title>{} {title}</title>{circle}</a>",
                chapter_address(lang, meta.number, &meta.slug),
                chapter.number,
                chapter.number
            )),
            None => nodes.push_str(&format!("<g class=\"announced\"><title>{title}</title>{circle}</g>")),
        }
    }
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"group\"><defs><marker id=\"path-arrow\" viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L6 3L0 6z\"/></marker></defs><g class=\"edges\">{edges}</g>{nodes}</svg>"
    )
}

fn list(lang: Lang, stage: usize, numbers: &[u32], chapters: &[ChapterCard]) -> impl IntoView + use<> {
    let title = match stage {
        0 => t::path_start(lang).to_owned(),
        stage => t::path_stage(lang, stage + 1),
    };
    let items: Vec<_> = numbers
        .iter()
        .filter_map(|number| chapters.iter().find(|c| c.number == *number))
        .map(|chapter| item(lang, chapter, chapters))
        .collect();
    view! {
        <section>
            <h2>{title}</h2>
            <ul class="path-list">{items}</ul>
        </section>
    }
}

fn item(lang: Lang, chapter: &ChapterCard, chapters: &[ChapterCard]) -> impl IntoView + use<> {
    let number = chapter.number;
    let name = format!("{number} · {}", chapter.title);
    let name = match &chapter.written {
        Some(meta) => view! { <a href=chapter_address(lang, number, &meta.slug)>{name}</a> }.into_any(),
        None => name.into_any(),
    };
    let leads: Vec<u32> =
        chapters.iter().filter(|c| requires(c).contains(&number)).map(|c| c.number).collect();
    view! {
        <li id=format!("path-{number:02}")>
            <h3>{name}</h3>
            <p class="meta">
                {numbers(t::path_needs(lang), requires(chapter))}
                {numbers(t::path_leads(lang), &leads)}
            </p>
        </li>
    }
}

fn numbers(label: &'static str, numbers: &[u32]) -> Option<impl IntoView + use<>> {
    (!numbers.is_empty()).then(|| {
        let links: Vec<_> =
            numbers.iter().map(|n| view! { " " <a href=format!("#path-{n:02}")>{*n}</a> }).collect();
        view! { <span>{label} {links}</span> }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringlab_content::types::ChapterMeta;

    fn card(number: u32, requires: &[u32]) -> ChapterCard {
        let meta = ChapterMeta {
            number,
            slug: "s".into(),
            title: "<t>".into(),
            lang: "zh".into(),
            summary: "s".into(),
            minutes: 1,
            objectives: vec![],
            prerequisites: vec![],
            requires: requires.to_vec(),
            lab: None,
        };
        ChapterCard { number, title: "<t>".into(), written: Some(meta) }
    }

    #[test]
    fn a_chapter_stands_behind_everything_it_builds_on() {
        let chapters = [card(1, &[]), card(2, &[1]), card(3, &[]), card(4, &[2, 3]), card(5, &[3])];
        assert_eq!(stages(&chapters), [vec![1, 3], vec![2, 5], vec![4]]);
    }

    #[test]
    fn the_drawing_has_every_arrow_and_escapes_titles() {
        let chapters = [card(1, &[]), card(2, &[1]), card(3, &[1, 2])];
        let svg = drawing(Lang::Zh, &stages(&chapters), &chapters);
        assert_eq!(svg.matches("marker-end").count(), 3);
        assert!(!svg.contains("<t>") && svg.contains("&lt;t&gt;"));
    }
}
