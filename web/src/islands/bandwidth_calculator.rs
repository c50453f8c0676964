//! The bandwidth calculator: every step of the derivation with the reader's own numbers.

use std::collections::BTreeMap;

use leptos::prelude::*;
use ringlab_labs::text::Lang;

use super::bandwidth::{COLLECTIVES, compute, factor_formula, parse_bytes};
use crate::format::{bytes, decimal};
use crate::strings as t;

/// `params`: `collective`, `ranks`, `bytes`, `time_us`, all optional.
#[island]
pub fn BandwidthCalculator(lang: Lang, params: BTreeMap<String, String>) -> impl IntoView {
    let first = |name: &str, otherwise: &str| params.get(name).cloned().unwrap_or_else(|| otherwise.into());
    let collective = RwSignal::new(first("collective", "all_reduce"));
    let ranks = RwSignal::new(first("ranks", "8"));
    let size = RwSignal::new(first("bytes", "1 GiB"));
    let time = RwSignal::new(first("time_us", "10000"));
    let chosen = move || {
        let name = collective.get();
        COLLECTIVES.into_iter().find(|c| c.name() == name).unwrap_or(COLLECTIVES[0])
    };
    let options = COLLECTIVES
        .map(|c| {
            view! {
                <option value=c.name() selected=move || collective.get() == c.name()>
                    {c.name()}
                </option>
            }
        })
        .collect_view();
    let input = |id: &'static str, label: &'static str, mode: &'static str, value: RwSignal<String>| {
        view! {
            <div class="field">
                <label for=id>{label}</label>
                <input
                    id=id
                    type="text"
                    inputmode=mode
                    autocomplete="off"
                    value=value.get_untracked()
                    prop:value=value
                    on:input=move |e| value.set(event_target_value(&e))
                />
            </div>
        }
    };
    let result = move || {
        let n = ranks.get().trim().parse().unwrap_or(0);
        let s = parse_bytes(&size.get()).unwrap_or(0.0);
        let micros = time.get().trim().parse().unwrap_or(0.0);
        let collective = chosen();
        let Some(b) = compute(collective, n, s, micros) else {
            return view! { <p class="field-error">{t::calc_bad(lang)}</p> }.into_any();
        };
        let formula = factor_formula(collective, n);
        let (s_text, t_text) = (bytes(s as u64), format!("{} µs", decimal(micros, 3)));
        let steps = [
            ("algbw", format!("S / t = {s_text} / {t_text}"), format!("{} GB/s", decimal(b.algbw, 3))),
            (t::calc_factor(lang), formula, decimal(b.factor, 4)),
            (
                "busbw",
                format!(
                    "algbw × {} = {} × {}",
                    t::calc_factor(lang),
                    decimal(b.algbw, 3),
                    decimal(b.factor, 4)
                ),
                format!("{} GB/s", decimal(b.busbw, 3)),
            ),
        ]
        .map(|(name, how, value)| {
            view! {
                <tr>
                    <th scope="row">{name}</th>
                    <td>{how}</td>
                    <td class="number">
                        <strong>{value}</strong>
                    </td>
                </tr>
            }
        });
        view! {
            <table>
                <tbody>{steps.collect_view()}</tbody>
            </table>
        }
        .into_any()
    };
    view! {
        <section class="calculator" aria-label=t::calc_title(lang)>
            <header class="widget-head">
                <h3>{t::calc_title(lang)}</h3>
            </header>
            <div class="calculator-inputs">
                <div class="field">
                    <label for="calc-collective">{t::calc_collective(lang)}</label>
                    <select id="calc-collective" on:change=move |e| collective.set(event_target_value(&e))>
                        {options}
                    </select>
                </div>
                {input("calc-ranks", t::calc_ranks(lang), "numeric", ranks)}
                {input("calc-bytes", t::calc_bytes(lang), "text", size)}
                {input("calc-time", t::calc_time(lang), "decimal", time)}
            </div>
            <div class="scroll" aria-live="polite">
                {result}
            </div>
            <p class="origin">{t::calc_rule(lang)}</p>
        </section>
    }
    .into_any()
}
