//! The ring, one message at a time.

use std::collections::BTreeMap;

use leptos::prelude::*;
use ringlab_engine::types::Collective;
use ringlab_labs::text::Lang;

use super::ring_walk::{Cell, Message, Walk, walk};
use crate::strings as t;

/// Ranks one can choose.
const CHOICES: std::ops::RangeInclusive<u32> = 2..=8;

/// `params`: `ranks` (2 to 8, 4 by default) and `collective` (`all_reduce` by default, `all_gather`, `reduce_scatter`).
#[island]
pub fn RingStepper(lang: Lang, params: BTreeMap<String, String>) -> impl IntoView {
    let asked = params.get("ranks").and_then(|n| n.parse().ok()).filter(|n| CHOICES.contains(n));
    let collective = match params.get("collective").map(String::as_str) {
        Some("all_gather") => Collective::AllGather,
        Some("reduce_scatter") => Collective::ReduceScatter,
        _ => Collective::AllReduce,
    };
    let ranks = RwSignal::new(asked.unwrap_or(4u32));
    let at = RwSignal::new(0usize);
    let walk = Memo::new(move |_| walk(collective, ranks.get()).expect("the ring serves 2 to 8 ranks"));
    let last = move || walk.with(|w| w.frames.len() - 1);
    let go = move |to: usize| at.set(to.min(last()));
    let key = move |e: leptos::ev::KeyboardEvent| {
        // The select has its own arrows.
        let in_select = event_target::<web_sys::Element>(&e).tag_name() == "SELECT";
        if in_select || e.ctrl_key() || e.meta_key() || e.alt_key() {
            return;
        }
        match e.key().as_str() {
            "ArrowRight" => go(at.get_untracked() + 1),
            "ArrowLeft" => go(at.get_untracked().saturating_sub(1)),
            "Home" => go(0),
            "End" => go(last()),
            _ => return,
        }
        e.prevent_default();
    };
    let choose = move |e: leptos::ev::Event| {
        if let Ok(n) = event_target_value(&e).parse() {
            ranks.set(n);
            at.set(0);
        }
    };
    let options = CHOICES
        .map(|n| {
            view! {
                <option value=n.to_string() selected=move || ranks.get() == n>
                    {n}
                </option>
            }
        })
        .collect_view();
    let says = move || {
        walk.with(|w| {
            let k = at.get();
            if k == 0 {
                t::stepper_start(lang).to_owned()
            } else {
                format!("{} · {}", t::step_of(lang, k, w.frames.len() - 1), phase(lang, w, k))
            }
        })
    };
    view! {
        <section class="stepper" aria-label=title(lang, collective) on:keydown=key>
            <header class="widget-head">
                <h3>{title(lang, collective)}</h3>
                <label>
                    {t::stepper_ranks(lang)} " " <select on:change=choose>{options}</select>
                </label>
            </header>
            <p class="stepper-says" aria-live="polite">
                {says}
            </p>
            <div class="stepper-view">
                <div class="stepper-ring" inner_html=move || walk.with(|w| ring_svg(w, at.get())) aria-hidden="true"></div>
                <div class="scroll" role="region" tabindex="0" aria-label=t::stepper_holds(lang)>
                    {move || walk.with(|w| table(lang, w, at.get()))}
                </div>
            </div>
            <p class="actions">
                <button type="button" class="button quiet" on:click=move |_| go(0) prop:disabled=move || at.get() == 0>
                    {t::stepper_first(lang)}
                </button>
                <button
                    type="button"
                    class="button"
                    on:click=move |_| go(at.get_untracked().saturating_sub(1))
                    prop:disabled=move || at.get() == 0
                >
                    {t::stepper_prev(lang)}
                </button>
                <button
                    type="button"
                    class="button primary"
                    on:click=move |_| go(at.get_untracked() + 1)
                    prop:disabled=move || at.get() == last()
                >
                    {t::stepper_next(lang)}
                </button>
                <button type="button" class="button quiet" on:click=move |_| go(last()) prop:disabled=move || at.get() == last()>
                    {t::stepper_last(lang)}
                </button>
            </p>
            <p class="origin">{t::stepper_source(lang)}</p>
        </section>
    }
    .into_any()
}

fn title(lang: Lang, collective: Collective) -> &'static str {
    match collective {
        Collective::AllGather => t::stepper_title_gather(lang),
        Collective::ReduceScatter => t::stepper_title_scatter(lang),
        _ => t::stepper_title(lang),
    }
}

/// In all-reduce the first half of the messages carries partial sums, the second half finished ones.
fn phase(lang: Lang, walk: &Walk, frame: usize) -> &'static str {
    let all = (1u32 << walk.ranks) - 1;
    let complete = walk.frames[frame].arrived.iter().all(|m| m.holds == all);
    match walk.collective {
        Collective::AllGather => t::stepper_phase_gather(lang),
        _ if complete => t::stepper_phase_gather(lang),
        _ => t::stepper_phase_reduce(lang),
    }
}

/// One row per rank: pips say whose contributions each chunk holds; the chunk that just arrived is marked.
fn table(lang: Lang, walk: &Walk, frame: usize) -> AnyView {
    let now = &walk.frames[frame];
    let head = (0..walk.chunks)
        .map(|c| view! { <th scope="col">{format!("{} {c}", t::stepper_chunk(lang))}</th> })
        .collect_view();
    let size = walk.ranks;
    let rows = now
        .cells
        .iter()
        .enumerate()
        .map(|(rank, cells)| {
            let rank = rank as u32;
            let cells = cells
                .iter()
                .enumerate()
                .map(|(chunk, cell)| {
                    let arrived = now.arrived.iter().any(|m| m.to == rank && m.chunk == chunk as u32);
                    cell_view(lang, size, *cell, arrived)
                })
                .collect_view();
            let sent = share(walk.sent(frame, rank), walk.chunks);
            view! {
                <tr>
                    <th scope="row">{format!("rank {rank}")}</th>
                    {cells}
                    <td class="number">{sent}</td>
                </tr>
            }
        })
        .collect_view();
    let bound = share(walk.bound(), walk.chunks);
    view! {
        <table class="stepper-table">
            <thead>
                <tr>
                    <td></td>
                    {head}
                    <th scope="col" class="number">
                        {t::stepper_sent(lang)}
                    </th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
            <tfoot>
                <tr>
                    <th scope="row" colspan=(walk.chunks + 1).to_string()>
                        {t::stepper_bound(lang)}
                    </th>
                    <td class="number">{bound}</td>
                </tr>
            </tfoot>
        </table>
    }
    .into_any()
}

fn cell_view(lang: Lang, ranks: u32, cell: Cell, arrived: bool) -> AnyView {
    let have = cell.holds.count_ones();
    let pips = (0..ranks)
        .map(|r| view! { <i class=if cell.holds & (1 << r) != 0 { "pip on" } else { "pip" }></i> })
        .collect_view();
    let whole = have == ranks;
    let class = match (arrived, cell.stored && (whole || ranks == 0)) {
        (true, _) => "cell arrived",
        (false, true) => "cell whole",
        (false, false) => "cell",
    };
    let words = if whole {
        format!("{have}/{ranks} {}", t::stepper_complete(lang))
    } else {
        format!("{have}/{ranks}")
    };
    view! {
        <td class=class>
            <span class="pips" aria-hidden="true">
                {pips}
            </span>
            <span class="count" aria-label=words>
                {format!("{have}/{ranks}")}
            </span>
        </td>
    }
    .into_any()
}

/// `6/4 S` as `1.5 S`: chunks sent as a share of the collective's size.
fn share(chunks: u32, of: u32) -> String {
    format!("{} S", crate::format::decimal(f64::from(chunks) / f64::from(of), 3))
}

/// The ring with the messages that arrived last on its edges.
fn ring_svg(walk: &Walk, frame: usize) -> String {
    let n = walk.ranks;
    let (centre, radius) = (150.0, 108.0);
    let turn = |i: f64| std::f64::consts::TAU * (i / f64::from(n) - 0.25);
    let point = |i: f64, r: f64| (centre + r * turn(i).cos(), centre + r * turn(i).sin());
    let mut svg = String::from("<svg viewBox=\"0 0 300 300\">");
    let px = |x: f64| crate::format::decimal(x, 1);
    // The angle a node's circle takes, so that edges begin and end at its rim.
    let rim = 26.0 / (std::f64::consts::TAU * radius) * f64::from(n);
    let arriving = |from: u32| walk.frames[frame].arrived.iter().find(|m: &&Message| m.from == from);
    for i in 0..n {
        let message = arriving(i);
        let (x1, y1) = point(f64::from(i) + rim, radius);
        let (x2, y2) = point(f64::from(i + 1) - rim, radius);
        let class = if message.is_some() { "edge busy" } else { "edge" };
        let radius_text = px(radius);
        svg.push_str(&format!(
            "<path class=\"{class}\" d=\"M{} {}A{radius_text} {radius_text} 0 0 1 {} {}\"/>",
            px(x1),
            px(y1),
            px(x2),
            px(y2)
        ));
        if let Some(m) = message {
            let (x, y) = point(f64::from(i) + 0.5, radius);
            svg.push_str(&format!(
                "<g class=\"parcel\"><circle cx=\"{0}\" cy=\"{1}\" r=\"14\"/><text x=\"{0}\" y=\"{1}\">{2}</text></g>",
                px(x),
                px(y),
                m.chunk
            ));
        }
    }
    for i in 0..n {
        let (x, y) = point(f64::from(i), radius);
        svg.push_str(&format!(
            "<g class=\"node\"><circle cx=\"{0}\" cy=\"{1}\" r=\"22\"/><text x=\"{0}\" y=\"{1}\">r{i}</text></g>",
            px(x),
            px(y)
        ));
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_shows_one_parcel_per_message() {
        let walk = walk(Collective::AllReduce, 4).expect("4 ranks");
        assert_eq!(ring_svg(&walk, 0).matches("parcel").count(), 0);
        assert_eq!(ring_svg(&walk, 1).matches("parcel").count(), 4);
    }

    #[test]
    fn phases_change_halfway() {
        let walk = walk(Collective::AllReduce, 4).expect("4 ranks");
        assert_eq!(phase(Lang::En, &walk, 3), t::stepper_phase_reduce(Lang::En));
        assert_eq!(phase(Lang::En, &walk, 4), t::stepper_phase_gather(Lang::En));
    }

    #[test]
    fn shares_are_of_the_whole_size() {
        assert_eq!(share(6, 4), "1.5 S");
        assert_eq!(share(14, 8), "1.75 S");
    }
}
