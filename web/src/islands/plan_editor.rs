//! The plan's text with line numbers, verified while it is written.

use std::time::Duration;

use leptos::html::{Div, Textarea};
use leptos::prelude::*;
use ringlab_labs::api::{FieldError, VerifyReport, VerifyRequest};
use ringlab_labs::catalogue::LabView;
use ringlab_labs::text::Lang;

use super::form::{Typed, to_fields};
use crate::strings as t;

/// Pause after the last key before the plan is verified.
const PAUSE: Duration = Duration::from_millis(250);

/// Texts an undo can go back to.
const HISTORY: usize = 100;

/// `code`: `None` while the lab's own plan stands unchanged.
#[component]
pub fn PlanEditor(
    lang: Lang,
    lab: LabView,
    params: RwSignal<Typed>,
    code: RwSignal<Option<String>>,
    errors: RwSignal<Vec<FieldError>>,
) -> impl IntoView {
    let lab = StoredValue::new(lab);
    let fields = move || lab.with_value(|l| to_fields(&l.params, &params.get()));
    // While a parameter is being typed wrong, the last good plan stays.
    let own = Memo::new(move |before: Option<&String>| {
        let made = lab.with_value(|l| ringlab_labs::starting_plan(l, &fields(), lang));
        made.unwrap_or_else(|_| before.cloned().unwrap_or_default())
    });
    let text = Memo::new(move |_| code.get().unwrap_or_else(|| own.get()));
    let report = RwSignal::new(None::<VerifyReport>);
    let history = RwSignal::new(Vec::<Option<String>>::new());
    let area = NodeRef::<Textarea>::new();
    let gutter = NodeRef::<Div>::new();

    let pending = StoredValue::new(None::<TimeoutHandle>);
    Effect::new(move |_| {
        let request = VerifyRequest { params: fields(), code: text.get() };
        report.set(None);
        if let Some(handle) = pending.get_value() {
            handle.clear();
        }
        let check = move || {
            // Errors of the parameters stand at their fields once submitted; the plan has nothing to say then.
            report.set(lab.with_value(|l| ringlab_labs::verify(l, &request)).ok());
        };
        pending.set_value(set_timeout_with_handle(check, PAUSE).ok());
    });

    let last_kept = StoredValue::new(0.0);
    let keep = move |now: f64| {
        // One undo takes back a burst of typing, not a letter.
        if now - last_kept.get_value() > 800.0 {
            history.update(|h| {
                h.push(code.get_untracked());
                if h.len() > HISTORY {
                    h.remove(0);
                }
            });
        }
        last_kept.set_value(now);
    };
    let edit = move |e: leptos::ev::Event| {
        keep(e.time_stamp());
        code.set(Some(event_target_value(&e)));
        errors.update(|all| all.retain(|e| e.field != "code"));
    };
    let undo = move |_| {
        let mut last = None;
        history.update(|h| last = h.pop());
        if let Some(earlier) = last {
            code.set(earlier);
            last_kept.set_value(0.0);
        }
    };
    let reset = move |_| {
        history.update(|h| h.push(code.get_untracked()));
        last_kept.set_value(0.0);
        code.set(None);
        errors.update(|all| all.retain(|e| e.field != "code"));
    };
    let bad_line = move || {
        let refused = report.with(|r| r.as_ref().and_then(|r| r.line));
        refused.or_else(|| errors.with(|all| all.iter().find(|e| e.field == "code").and_then(|e| e.line)))
    };
    let numbers = move || {
        let bad = bad_line();
        (1..=lines_of(&text.get()))
            .map(|n| {
                let class = if bad == Some(n) { "bad" } else { "" };
                view! { <span class=class>{n}</span> }
            })
            .collect_view()
    };
    let scrolled = move |_| {
        if let (Some(area), Some(gutter)) = (area.get(), gutter.get()) {
            gutter.set_scroll_top(area.scroll_top());
        }
    };
    let show_line = move |_| {
        if let (Some(area), Some(line)) = (area.get(), bad_line()) {
            let (start, end) = line_range(&text.get_untracked(), line);
            // A textarea on display takes focus and selection.
            let _ = area.focus();
            let _ = area.set_selection_range(start, end);
            let all = f64::from(area.scroll_height());
            let at = all * f64::from(line.saturating_sub(4)) / f64::from(lines_of(&text.get_untracked()));
            area.set_scroll_top(at as i32);
        }
    };
    let refused_by_server = move || {
        errors.with(|all| all.iter().find(|e| e.field == "code").map(|e| e.message.get(lang).to_owned()))
    };
    let verdict = move || match report.get() {
        None => view! { <p class="muted">{t::plan_checking(lang)}</p> }.into_any(),
        Some(VerifyReport { accepted: true, summary, .. }) => view! {
            <p class="verdict pass">
                <strong>{t::plan_accepted(lang)}</strong>
                " "
                {summary.map(|s| s.get(lang).to_owned())}
            </p>
        }
        .into_any(),
        Some(VerifyReport { refusal, line, .. }) => view! {
            <p class="verdict fail">
                <strong>{t::plan_refused(lang)}</strong>
                " "
                {line
                    .map(|n| {
                        view! {
                            <button type="button" class="line-link" on:click=show_line>
                                {t::line(lang, n)}
                            </button>
                        }
                    })}
                " "
                {refusal.map(|r| r.get(lang).to_owned())}
            </p>
        }
        .into_any(),
    };
    view! {
        <fieldset class="plan">
            <legend>{t::plan_title(lang)}</legend>
            <p class="help" id="plan-help">
                {t::plan_hint(lang)}
            </p>
            <div class="editor">
                <div class="gutter" node_ref=gutter aria-hidden="true">
                    {numbers}
                </div>
                <textarea
                    node_ref=area
                    id="code"
                    rows="16"
                    spellcheck="false"
                    autocomplete="off"
                    autocapitalize="off"
                    wrap="off"
                    aria-label=t::plan_label(lang)
                    aria-describedby="plan-help plan-verdict"
                    aria-invalid=move || if bad_line().is_some() { "true" } else { "false" }
                    prop:value=move || text.get()
                    on:input=edit
                    on:scroll=scrolled
                ></textarea>
            </div>
            <div id="plan-verdict" aria-live="polite">
                {verdict}
                <p class="field-error">{refused_by_server}</p>
            </div>
            <p class="actions">
                <button type="button" class="button quiet" on:click=undo prop:disabled=move || history.with(Vec::is_empty)>
                    {t::undo(lang)}
                </button>
                <button type="button" class="button quiet" on:click=reset prop:disabled=move || code.with(Option::is_none)>
                    {t::reset_plan(lang)}
                </button>
                <span class="help">{move || if code.with(Option::is_none) { t::plan_default(lang) } else { "" }}</span>
            </p>
        </fieldset>
    }
    .into_any()
}

/// Lines a textarea shows for a text: one more than it has line ends.
fn lines_of(text: &str) -> u32 {
    text.bytes().filter(|b| *b == b'\n').count() as u32 + 1
}

/// Start and end of a line (from 1) in UTF-16 units, as a textarea counts.
fn line_range(text: &str, line: u32) -> (u32, u32) {
    let mut start = 0u32;
    for (n, content) in text.split('\n').enumerate() {
        let len = content.encode_utf16().count() as u32;
        if n as u32 + 1 == line {
            return (start, start + len);
        }
        start += len + 1;
    }
    (start, start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_a_textarea_shows_them() {
        assert_eq!(lines_of(""), 1);
        assert_eq!(lines_of("a\nb"), 2);
        assert_eq!(lines_of("a\n"), 2);
    }

    #[test]
    fn a_line_is_found_in_utf16_units() {
        let text = "plan 环 v1\n𝟙x\nend";
        assert_eq!(line_range(text, 1), (0, 9));
        assert_eq!(line_range(text, 2), (10, 13));
        assert_eq!(line_range(text, 3), (14, 17));
    }
}
