//! Earlier versions of an answer: to look at and to restore. Restoring types the text anew, so nothing is lost by it either.

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_interview::api::DraftVersion;

use super::clock::time_of_day;
use super::session::{Session, Work};
use crate::islands::remote::{self, Failure};
use crate::strings_interview as ti;

#[component]
pub fn History(session: Session, work: Work) -> impl IntoView {
    let lang = session.lang;
    let versions = RwSignal::new(None::<Result<Vec<DraftVersion>, Failure>>);
    let open = move |e: leptos::ev::Event| {
        let opened = event_target::<web_sys::Element>(&e).has_attribute("open");
        if !opened {
            return;
        }
        let path =
            session.id.with_value(|id| format!("/api/v1/sittings/{id}/drafts/{}/history", work.number));
        spawn_local(async move {
            let answer = remote::get(&path).await;
            versions.try_set(Some(answer));
        });
    };
    let entry = move |version: DraftVersion| {
        let text = version.text.clone();
        view! {
            <li>
                <details>
                    <summary>
                        {time_of_day(version.saved_ms)} " · " {ti::characters(lang, version.text.chars().count())}
                    </summary>
                    <pre class="draft-text">{version.text}</pre>
                    <button
                        type="button"
                        class="button quiet"
                        prop:disabled=move || session.locked.get()
                        on:click=move |_| work.replace.set(Some(text.clone()))
                    >
                        {ti::history_restore(lang)}
                    </button>
                </details>
            </li>
        }
    };
    view! {
        <details class="history" on:toggle=open>
            <summary>{ti::history(lang)}</summary>
            {move || match versions.get() {
                None => view! { <p class="muted">{ti::loading(lang)}</p> }.into_any(),
                Some(Ok(all)) if all.is_empty() => {
                    view! { <p class="muted">{ti::history_none(lang)}</p> }.into_any()
                }
                Some(Ok(all)) => view! { <ol class="versions">{all.into_iter().map(entry).collect_view()}</ol> }.into_any(),
                Some(Err(failure)) => view! { <p class="form-error">{failure.text(lang)}</p> }.into_any(),
            }}
        </details>
    }
    .into_any()
}
