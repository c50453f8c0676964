//! Lines of a job's log.

use leptos::html::Ol;
use leptos::prelude::*;
use ringlab_labs::api::StreamEvent;
use ringlab_labs::job::{EventBody, Level};
use ringlab_labs::text::Lang;

use super::stream::Live;
use crate::format;
use crate::strings as t;

/// One line as shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Place in the job's stream: `attempt.seq`.
    pub key: (u32, u64),
    pub class: &'static str,
    pub at: String,
    pub text: String,
}

/// The line an event shows as.
pub fn line_of(lang: Lang, event: &StreamEvent) -> Line {
    let (class, text) = match &event.event.body {
        EventBody::Log { level, source, message } => (level_class(*level), format!("{source}: {message}")),
        EventBody::Progress { task, done, total, phase } => {
            ("progress", format!("{task}: {} {done}/{total}", phase_word(lang, phase)))
        }
        EventBody::TaskDone { result } => {
            ("info", format!("{}: {} / {} #wrong", result.id, result.wrong, result.elements))
        }
        EventBody::Truncated { limit_bytes } => {
            ("warn", format!("{}{}", t::log_truncated(lang), format::bytes(*limit_bytes)))
        }
    };
    Line { key: (event.attempt, event.event.seq), class, at: format::clock(event.event.at_ms), text }
}

fn level_class(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    }
}

/// A phase's stable key in words; an unknown one stays as it is.
pub fn phase_word(lang: Lang, phase: &str) -> &str {
    match phase {
        "verify" => t::phase_verify(lang),
        "warmup" => t::phase_warmup(lang),
        "measure" => t::phase_measure(lang),
        "check" => t::phase_check(lang),
        "trace" => t::phase_trace(lang),
        "upload" => t::phase_upload(lang),
        other => other,
    }
}

/// The log as it grows. `open`: shown at once; a finished run's log is folded.
#[component]
pub fn LogView(lang: Lang, live: Live, open: bool) -> impl IntoView {
    let list = NodeRef::<Ol>::new();
    // Follows the end, unless somebody has scrolled up to read.
    let follows = RwSignal::new(true);
    let scrolled = move |_| {
        if let Some(list) = list.get() {
            let rest = list.scroll_height() - list.scroll_top() - list.client_height();
            follows.set(rest < 40);
        }
    };
    Effect::new(move |_| {
        live.lines.with(Vec::len);
        if follows.get_untracked()
            && let Some(list) = list.get()
        {
            request_animation_frame(move || list.set_scroll_top(list.scroll_height()));
        }
    });
    view! {
        <details class="run-log" open=open>
            <summary>
                <h2>{t::log(lang)}</h2>
            </summary>
            <p class="muted" hidden=move || !live.lines.with(Vec::is_empty)>
                {t::log_empty(lang)}
            </p>
            <ol
                class="log"
                node_ref=list
                role="log"
                tabindex="0"
                aria-label=t::log(lang)
                hidden=move || live.lines.with(Vec::is_empty)
                on:scroll=scrolled
            >
                <For each=move || live.lines.get() key=|line| line.key let:line>
                    <li class=line.class>
                        <span class="at">{line.at}</span>
                        " "
                        <span>{line.text}</span>
                    </li>
                </For>
            </ol>
        </details>
    }
    .into_any()
}
