//! A lab's hints, opened one after another, each at its price.

use leptos::prelude::*;
use ringlab_labs::catalogue::Hint;
use ringlab_labs::text::Lang;

use crate::strings as t;

/// `open`: how many are open, counted from the first.
#[component]
pub fn Hints(lang: Lang, hints: Vec<Hint>, open: RwSignal<u32>) -> impl IntoView {
    let count = hints.len() as u32;
    let prices: Vec<f64> = hints.iter().map(|h| h.price).collect();
    let items: Vec<_> = hints
        .into_iter()
        .zip(1u32..)
        .map(|(hint, number)| {
            view! {
                <li hidden={move || open.get() < number}>
                    <div class="prose" inner_html=hint.body.get(lang).to_owned()></div>
                </li>
            }
        })
        .collect();
    let label = move || {
        let next = open.get() as usize;
        prices.get(next).map(|price| t::open_hint(lang, next + 1, *price)).unwrap_or_default()
    };
    view! {
        <fieldset class="hints">
            <legend>{t::hints(lang)}</legend>
            <ol aria-live="polite">{items}</ol>
            <p class="actions">
                <button
                    type="button"
                    class="button quiet"
                    hidden={move || open.get() >= count}
                    on:click=move |_| open.update(|n| *n += 1)
                >
                    {label}
                </button>
            </p>
        </fieldset>
    }
    .into_any()
}
