//! A quiz question: answer, verdict, explanation; remembered in the browser. Without a script the answer is a fold away.

use leptos::prelude::*;
use ringlab_content::quiz::{Judged, Response, fits, fresh, judge, shuffled};
use ringlab_content::types::{Quiz, QuizKind, QuizOption};
use ringlab_labs::text::Lang;

use super::client;
use crate::strings as t;

/// `key`: unique over the whole course, for the browser's memory.
#[island]
pub fn QuizIsland(lang: Lang, key: String, quiz: Quiz) -> impl IntoView {
    let Quiz { id, prompt, kind, explanation } = quiz;
    let store = format!("ringlab.quiz.{key}");
    let response = RwSignal::new(fresh(&kind, &key));
    let restored = StoredValue::new(false);
    let kind = StoredValue::new(kind);
    Effect::new({
        let (store, name) = (store.clone(), key.clone());
        move |_| {
            let now = response.get();
            if !restored.get_value() {
                restored.set_value(true);
                let old =
                    client::recall(&store).and_then(|text| serde_json::from_str::<Response>(&text).ok());
                if let Some(old) = old.filter(|old| kind.with_value(|k| fits(k, old))) {
                    response.set(old);
                }
            } else if let Ok(text) = serde_json::to_string(&now) {
                client::remember(&store, &text);
                client::tell("ringlab-quiz-changed", &format!("{name}\n{text}"));
            }
        }
    });
    // Another device's answer, once the server has told of it (ringlab-reader).
    Effect::new({
        let name = key.clone();
        move |listening: Option<()>| {
            if listening.is_some() {
                return;
            }
            let name = name.clone();
            client::hear("ringlab-quiz-restored", move |told| {
                let Some((_, text)) = told.split_once('\n').filter(|(of, _)| *of == name) else { return };
                let old = serde_json::from_str::<Response>(text).ok();
                if let Some(old) = old.filter(|old| kind.with_value(|k| fits(k, old))) {
                    response.set(old);
                }
            });
        }
    });
    let judged = move || response.with(|r| kind.with_value(|k| judge(k, r)));
    let checked = Memo::new(move |_| response.with(|r| r.checked));
    let asked = RwSignal::new(false);
    let check = move |e: leptos::ev::SubmitEvent| {
        e.prevent_default();
        asked.set(true);
        if matches!(judged(), Judged::Right | Judged::Wrong) {
            response.update(|r| r.checked = true);
        }
    };
    let again = {
        let key = key.clone();
        move |_| {
            asked.set(false);
            response.set(kind.with_value(|k| fresh(k, &key)));
        }
    };
    let verdict = move || {
        if !asked.get() && !checked.get() {
            return None;
        }
        let (class, words) = match judged() {
            Judged::Incomplete => ("hint", t::quiz_pick_first(lang)),
            Judged::NotANumber => ("hint", t::quiz_not_a_number(lang)),
            Judged::Right => ("pass", t::quiz_right(lang)),
            Judged::Wrong => ("fail", t::quiz_wrong(lang)),
        };
        Some(view! { <p class=format!("verdict {class}")>{words}</p> })
    };
    let shown = explanation.clone();
    let inputs = kind.with_value(|k| inputs(lang, &key, k, response, checked));
    let answer = kind.with_value(|k| answer_words(lang, k));
    view! {
        <form class="quiz" id=format!("quiz-{id}") on:submit=check>
            <p class="eyebrow">{t::quiz(lang)}</p>
            <div class="prose quiz-prompt" inner_html=prompt></div>
            {inputs}
            <div class="needs-wasm">
                <div aria-live="polite">
                    {verdict}
                    <div class="prose quiz-explanation" hidden=move || !checked.get() inner_html=shown></div>
                </div>
                <p class="actions">
                    <button type="submit" class="button" hidden=move || checked.get()>
                        {t::quiz_check(lang)}
                    </button>
                    <button type="button" class="button quiet" hidden=move || !checked.get() on:click=again>
                        {t::quiz_again(lang)}
                    </button>
                </p>
            </div>
            <details class="no-wasm">
                <summary>{t::quiz_answer(lang)}</summary>
                <div class="prose" inner_html=format!("{answer}{explanation}")></div>
            </details>
        </form>
    }
    .into_any()
}

/// The right answer as HTML, for readers without a script.
fn answer_words(lang: Lang, kind: &QuizKind) -> String {
    match kind {
        QuizKind::Single { options } | QuizKind::Multiple { options } => {
            let right: Vec<_> =
                options.iter().filter(|o| o.correct).map(|o| format!("<li>{}</li>", o.html)).collect();
            format!("<ul>{}</ul>", right.concat())
        }
        QuizKind::Numeric { answer, unit, .. } => {
            let unit: String = unit.replace('&', "&amp;").replace('<', "&lt;");
            format!("<p><strong>{} {unit}</strong></p>", crate::format::decimal(*answer, 6))
        }
        QuizKind::Order { items } => {
            let items: Vec<_> = items.iter().map(|i| format!("<li>{i}</li>")).collect();
            format!("<ol>{}</ol>", items.concat())
        }
        QuizKind::Matching { pairs } => {
            let arrow = if lang == Lang::Zh { " —— " } else { " — " };
            let rows: Vec<_> = pairs.iter().map(|(a, b)| format!("<li>{a}{arrow}{b}</li>")).collect();
            format!("<ul>{}</ul>", rows.concat())
        }
    }
}

fn inputs(
    lang: Lang,
    key: &str,
    kind: &QuizKind,
    response: RwSignal<Response>,
    checked: Memo<bool>,
) -> AnyView {
    match kind {
        QuizKind::Single { options } => choices(lang, key, options, false, response, checked),
        QuizKind::Multiple { options } => choices(lang, key, options, true, response, checked),
        QuizKind::Numeric { unit, .. } => numeric(key, unit.clone(), response, checked),
        QuizKind::Order { items } => order(lang, items.clone(), response, checked),
        QuizKind::Matching { pairs } => matching(lang, key, pairs, response, checked),
    }
}

fn choices(
    lang: Lang,
    key: &str,
    options: &[QuizOption],
    many: bool,
    response: RwSignal<Response>,
    checked: Memo<bool>,
) -> AnyView {
    let items: Vec<_> = options
        .iter()
        .enumerate()
        .map(|(i, option)| {
            let chosen = move || response.with(|r| r.picks.contains(&i));
            let pick = move |_| {
                response.update(|r| match (many, r.picks.iter().position(|p| *p == i)) {
                    (true, Some(at)) => {
                        r.picks.remove(at);
                    }
                    (true, None) => r.picks.push(i),
                    (false, _) => r.picks = vec![i],
                });
            };
            let correct = option.correct;
            let class = move || match (checked.get(), correct, chosen()) {
                (true, true, _) => "option right",
                (true, false, true) => "option wrong",
                _ => "option",
            };
            view! {
                <li class=class>
                    <label>
                        <input
                            type=if many { "checkbox" } else { "radio" }
                            name=key.to_owned()
                            prop:checked=chosen
                            prop:disabled=move || checked.get()
                            on:change=pick
                        />
                        <span inner_html=option.html.clone()></span>
                    </label>
                    <div class="prose option-why" hidden=move || !checked.get() inner_html=option.why.clone()></div>
                </li>
            }
        })
        .collect();
    let hint = many.then(|| view! { <p class="help">{t::quiz_choose_all(lang)}</p> });
    view! {
        {hint}
        <ul class="options">{items}</ul>
    }
    .into_any()
}

fn numeric(key: &str, unit: String, response: RwSignal<Response>, checked: Memo<bool>) -> AnyView {
    let id = format!("quiz-number-{}", key.replace('/', "-"));
    view! {
        <p class="quiz-number">
            <label class="visually-hidden" for=id.clone()>
                {unit.clone()}
            </label>
            <input
                id=id
                type="text"
                inputmode="decimal"
                autocomplete="off"
                prop:value=move || response.with(|r| r.text.clone())
                prop:readOnly=move || checked.get()
                on:input=move |e| response.update(|r| r.text = event_target_value(&e))
            />
            " "
            <span class="unit">{unit}</span>
        </p>
    }
    .into_any()
}

fn order(lang: Lang, items: Vec<String>, response: RwSignal<Response>, checked: Memo<bool>) -> AnyView {
    let count = items.len();
    let shift = move |at: usize, to: usize| response.update(|r| r.picks.swap(at, to));
    // One row per place, not per item: the focus stays on the button while items move.
    let rows = (0..count)
        .map(|place| {
            let items = items.clone();
            let item = move || response.with(|r| r.picks.get(place).and_then(|i| items.get(*i)).cloned());
            let right = move || response.with(|r| r.picks.get(place) == Some(&place));
            let class = move || match (checked.get(), right()) {
                (false, _) => "option",
                (true, true) => "option right",
                (true, false) => "option wrong",
            };
            view! {
                <li class=class>
                    <span class="order-text" inner_html=move || item().unwrap_or_default()></span>
                    <span class="order-buttons needs-wasm">
                        <button
                            type="button"
                            aria-label=t::quiz_up(lang)
                            prop:disabled=move || checked.get() || place == 0
                            on:click=move |_| shift(place, place - 1)
                        >
                            "↑"
                        </button>
                        <button
                            type="button"
                            aria-label=t::quiz_down(lang)
                            prop:disabled=move || checked.get() || place + 1 == count
                            on:click=move |_| shift(place, place + 1)
                        >
                            "↓"
                        </button>
                    </span>
                </li>
            }
        })
        .collect_view();
    view! {
        <p class="help">{t::quiz_order_hint(lang)}</p>
        <ol class="options order">{rows}</ol>
    }
    .into_any()
}

fn matching(
    lang: Lang,
    key: &str,
    pairs: &[(String, String)],
    response: RwSignal<Response>,
    checked: Memo<bool>,
) -> AnyView {
    let shuffle = shuffled(pairs.len(), key);
    // Right sides get letters in shuffled order: they are HTML, which an <option> cannot hold.
    let letter = |place: usize| char::from(b'A' + place as u8).to_string();
    let sides: Vec<_> = shuffle
        .iter()
        .enumerate()
        .map(|(place, i)| {
            view! {
                <li>
                    <strong>{letter(place)}</strong>
                    " "
                    <span inner_html=pairs[*i].1.clone()></span>
                </li>
            }
        })
        .collect();
    let rows: Vec<_> = pairs
        .iter()
        .enumerate()
        .map(|(i, (left, _))| {
            let id = format!("match-{}-{i}", key.replace('/', "-"));
            let choices: Vec<_> = shuffle
                .iter()
                .enumerate()
                .map(|(place, right)| {
                    let value = right + 1;
                    let chosen = move || response.with(|r| r.picks.get(i) == Some(&value));
                    view! {
                        <option value=value.to_string() selected=chosen>
                            {letter(place)}
                        </option>
                    }
                })
                .collect();
            let class = move || match (checked.get(), response.with(|r| r.picks.get(i) == Some(&(i + 1)))) {
                (false, _) => "option",
                (true, true) => "option right",
                (true, false) => "option wrong",
            };
            view! {
                <li class=class>
                    <label for=id.clone() inner_html=left.clone()></label>
                    <select
                        id=id
                        prop:disabled=move || checked.get()
                        on:change=move |e| {
                            if let Ok(value) = event_target_value(&e).parse() {
                                response
                                    .update(|r| {
                                        if let Some(slot) = r.picks.get_mut(i) {
                                            *slot = value;
                                        }
                                    });
                            }
                        }
                    >
                        <option value="0" selected=move || response.with(|r| r.picks.get(i) == Some(&0))>
                            "–"
                        </option>
                        {choices}
                    </select>
                </li>
            }
        })
        .collect();
    view! {
        <p class="help">{t::quiz_match_hint(lang)}</p>
        <div class="matching">
            <ul class="options">{rows}</ul>
            <ul class="matching-sides">{sides}</ul>
        </div>
    }
    .into_any()
}
