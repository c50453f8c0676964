//! A timeline as tables, for readers without a script.

use leptos::prelude::*;
use ringlab_engine::trace::Trace;
use ringlab_labs::text::Lang;

use super::scrolling;
use crate::islands::timeline::summary::{LaneSummary, origin_text, summarise};
use crate::islands::timeline::table::{lane_rows, step_rows};
use crate::strings as t;

pub(super) fn render(lang: Lang, trace: &Trace) -> impl IntoView + use<> {
    let lanes: Vec<LaneSummary> = summarise(trace);
    let dropped =
        (trace.dropped > 0).then(|| view! { <p>{format!("{}{}", t::dropped(lang), trace.dropped)}</p> });
    view! {
        <p class="origin">{origin_text(lang, trace)}</p>
        {dropped}
        <h3>{t::by_rank(lang)}</h3>
        {scrolling(t::by_rank(lang), lane_rows(lang, &lanes))}
        <details>
            <summary>{t::all_steps(lang)}</summary>
            {scrolling(t::all_steps(lang), step_rows(lang, &trace.spans))}
        </details>
    }
}
