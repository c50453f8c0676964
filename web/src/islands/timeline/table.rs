//! The timeline's tables.

use leptos::prelude::*;
use ringlab_engine::trace::Span;
use ringlab_engine::types::Rank;
use ringlab_labs::text::Lang;

use super::summary::LaneSummary;
use crate::format;
use crate::strings as t;

/// Most rows of the table of steps: a page stays light, and says so.
pub const STEP_ROWS: usize = 200;

fn head(cells: &[&'static str]) -> AnyView {
    let cells: Vec<_> = cells.iter().map(|c| view! { <th scope="col">{*c}</th> }).collect();
    view! {
        <thead>
            <tr>{cells}</tr>
        </thead>
    }
    .into_any()
}

fn row(cells: Vec<String>) -> AnyView {
    let cells: Vec<_> = cells.into_iter().map(|c| view! { <td class="number">{c}</td> }).collect();
    view! { <tr>{cells}</tr> }.into_any()
}

/// One row per rank and channel.
pub fn lane_rows(lang: Lang, lanes: &[LaneSummary]) -> AnyView {
    let rows: Vec<_> = lanes
        .iter()
        .map(|l| {
            row(vec![
                l.rank.to_string(),
                l.channel.to_string(),
                l.spans.to_string(),
                format::nanos(l.waiting_ns as f64),
                format::nanos(l.moving_ns as f64),
                format::bytes(l.sent),
            ])
        })
        .collect();
    view! {
        <table>
            {head(&[
                t::rank(lang),
                t::channel(lang),
                t::steps_word(lang),
                t::waiting(lang),
                t::moving(lang),
                t::sent_bytes(lang),
            ])}
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// One row per step, the first [`STEP_ROWS`] of them.
pub fn step_rows(lang: Lang, spans: &[Span]) -> AnyView {
    let rows: Vec<_> = spans
        .iter()
        .take(STEP_ROWS)
        .map(|s| {
            row(vec![
                s.rank.to_string(),
                s.channel.to_string(),
                s.tile.to_string(),
                s.step.to_string(),
                s.op.clone(),
                peers(s.from, s.to),
                format::bytes(s.bytes),
                format::nanos(s.start_ns as f64),
                format::nanos(s.ready_ns.saturating_sub(s.start_ns) as f64),
                format::nanos(s.end_ns.saturating_sub(s.ready_ns) as f64),
            ])
        })
        .collect();
    let cut = (spans.len() > STEP_ROWS).then(|| view! { <caption>{t::first_rows(lang)}</caption> });
    view! {
        <table class="steps">
            {cut}
            {head(&[
                t::rank(lang),
                t::channel(lang),
                t::tile(lang),
                t::step(lang),
                t::operation(lang),
                t::peer(lang),
                t::span_bytes(lang),
                t::start_time(lang),
                t::waiting(lang),
                t::moving(lang),
            ])}
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// `0 → 2`: from whom it receives, to whom it sends.
pub fn peers(from: Option<Rank>, to: Option<Rank>) -> String {
    let name = |r: Option<Rank>| r.map(|r| r.to_string()).unwrap_or_default();
    format!("{} → {}", name(from), name(to)).trim().to_owned()
}
