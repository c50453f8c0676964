//! The question before the end: what has no answer yet, and that nothing can be changed afterwards.

use leptos::html::Dialog;
use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_interview::api::QuestionCard;

use super::session::Session;
use crate::strings_interview as ti;

#[component]
pub fn SubmitDialog(session: Session, asking: RwSignal<bool>, cards: Vec<QuestionCard>) -> impl IntoView {
    let lang = session.lang;
    let dialog = NodeRef::<Dialog>::new();
    let sending = RwSignal::new(false);
    let failed = RwSignal::new(None::<String>);
    Effect::new(move |_| {
        let Some(dialog) = dialog.get() else { return };
        if asking.get() && !dialog.open() {
            failed.set(None);
            // Fails only for a dialog that is not in the page, or open already.
            let _ = dialog.show_modal();
        } else if !asking.get() && dialog.open() {
            dialog.close();
        }
    });
    let missing = move || {
        let blank = |i: usize| {
            session.works.with_value(|all| all.get(i).is_some_and(|w| w.text.with(|t| t.trim().is_empty())))
        };
        let names: Vec<_> = cards
            .iter()
            .enumerate()
            .filter(|(i, _)| blank(*i))
            .map(|(_, c)| view! { <li>{ti::question(lang, c.number)} " · " {c.title.get(lang).to_owned()}</li> })
            .collect();
        if names.is_empty() {
            return view! { <p>{ti::submit_none_missing(lang)}</p> }.into_any();
        }
        view! {
            <p>{ti::submit_missing(lang)}</p>
            <ul class="missing">{names}</ul>
        }
        .into_any()
    };
    let submit = move |_| {
        if sending.get_untracked() {
            return;
        }
        sending.set(true);
        failed.set(None);
        spawn_local(async move {
            let answer = session.submit().await;
            sending.try_set(false);
            match answer {
                Ok(view) => session.remote.set(view),
                Err(why) => {
                    failed.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <dialog class="submit-dialog" node_ref=dialog aria-labelledby="submit-title" on:close=move |_| asking.set(false)>
            <h2 id="submit-title">{ti::submit_title(lang)}</h2>
            {missing}
            <p>
                <strong>{ti::submit_final(lang)}</strong>
            </p>
            <p class="form-error" role="alert">
                {failed}
            </p>
            <p class="actions">
                <button type="button" class="button" autofocus=true on:click=move |_| asking.set(false)>
                    {ti::submit_back(lang)}
                </button>
                <button
                    type="button"
                    class="button primary"
                    id="submit-now"
                    prop:disabled=move || sending.get()
                    on:click=submit
                >
                    {move || if sending.get() { ti::submit_saving(lang) } else { ti::submit_now(lang) }}
                </button>
            </p>
        </dialog>
    }
    .into_any()
}
