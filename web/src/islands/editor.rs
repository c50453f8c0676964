//! A text field for Markdown with a preview beside it. Nothing is ever done to the text while somebody writes, so that input methods
//! compose undisturbed: the field belongs to the browser, and is written to only when another text is asked for.

use std::time::Duration;

use leptos::html::Textarea;
use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_labs::text::Lang;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use super::indent;
use crate::strings_interview as ti;

/// Pause after the last key before the preview is made anew.
const PAUSE: Duration = Duration::from_millis(250);

/// `text`: what is in the field, for others to read. `replace`: a text to put there, once. `locked`: read only.
#[component]
pub fn Editor(
    lang: Lang,
    id: String,
    label: String,
    text: RwSignal<String>,
    replace: RwSignal<Option<String>>,
    #[prop(into)] locked: Signal<bool>,
    typed: Callback<String>,
    pasted: Callback<u32>,
) -> impl IntoView {
    let area = NodeRef::<Textarea>::new();
    let html = RwSignal::new(None::<String>);
    let broken = RwSignal::new(false);
    let used = RwSignal::new(!text.with_untracked(String::is_empty));

    let initial = text.get_untracked();
    Effect::new(move |_| {
        if let (Some(new), Some(field)) = (replace.get(), area.get_untracked()) {
            field.set_value(&new);
            text.set(new.clone());
            replace.set(None);
            typed.run(new);
        }
    });

    let pending = StoredValue::new(None::<TimeoutHandle>);
    Effect::new(move |_| {
        let now = text.get();
        if !used.get() {
            return;
        }
        if let Some(handle) = pending.get_value() {
            handle.clear();
        }
        let draw = move || {
            spawn_local(async move {
                match rendered(&now).await {
                    Some(made) => html.set(Some(made)),
                    None => broken.set(true),
                }
            });
        };
        pending.set_value(set_timeout_with_handle(draw, PAUSE).ok());
    });
    let edit = move |e: leptos::ev::Event| {
        let now = event_target_value(&e);
        used.set(true);
        text.set(now.clone());
        typed.run(now);
    };
    let key = move |e: leptos::ev::KeyboardEvent| {
        let out = match e.key().as_str() {
            "]" => false,
            "[" => true,
            _ => return,
        };
        let Some(field) = area.get_untracked() else { return };
        if !e.ctrl_key() || e.alt_key() || e.meta_key() || e.is_composing() || locked.get_untracked() {
            return;
        }
        e.prevent_default();
        let at = |p: Result<Option<u32>, JsValue>| p.ok().flatten().unwrap_or(0);
        let (from, to, new) =
            indent::lines(&field.value(), at(field.selection_start()), at(field.selection_end()), out);
        // Through the editing command, which the browser can undo.
        if field.set_selection_range(from, to).is_ok() {
            insert(&new);
        }
    };
    let paste = move |e: leptos::ev::ClipboardEvent| {
        let data = e.clipboard_data().and_then(|d| d.get_data("text/plain").ok()).unwrap_or_default();
        pasted.run(data.chars().count() as u32);
    };
    let help = format!("{id}-help");
    view! {
        <div class="write">
            <div class="write-field">
                <label class="write-label" for=id.clone()>
                    {label}
                </label>
                <textarea
                    id=id
                    node_ref=area
                    rows="14"
                    maxlength="20000"
                    autocomplete="off"
                    autocapitalize="off"
                    spellcheck="false"
                    aria-describedby=help.clone()
                    prop:value=initial
                    prop:readOnly=move || locked.get()
                    on:input=edit
                    on:keydown=key
                    on:paste=paste
                    on:focus=move |_| used.set(true)
                ></textarea>
                <p class="help" id=help>
                    {ti::editor_help(lang)}
                </p>
            </div>
            <div class="write-preview">
                <p class="write-label" aria-hidden="true">
                    {ti::preview(lang)}
                </p>
                <div class="prose" role="region" aria-label=ti::preview(lang) tabindex="0">
                    {move || {
                        if broken.get() {
                            return view! { <p class="muted">{ti::preview_failed(lang)}</p> }.into_any();
                        }
                        match html.get().filter(|made| !made.is_empty()) {
                            Some(made) => view! { <div inner_html=made></div> }.into_any(),
                            None => view! { <p class="muted">{ti::preview_empty(lang)}</p> }.into_any(),
                        }
                    }}
                </div>
            </div>
        </div>
    }
    .into_any()
}

/// Types `text` over the selection of the focused field.
fn insert(text: &str) {
    let Some(document) = web_sys::window().and_then(|w| w.document()) else { return };
    if let Ok(document) = document.dyn_into::<web_sys::HtmlDocument>() {
        // Without the command the key does nothing; the text stays as it is.
        let _ = document.exec_command_with_show_ui_and_value("insertText", false, text);
    }
}

/// The answer as HTML, by the module that the page's script loads when it is first asked.
async fn rendered(markdown: &str) -> Option<String> {
    let load: js_sys::Function =
        js_sys::Reflect::get(&js_sys::global(), &"ringlabPreview".into()).ok()?.dyn_into().ok()?;
    let promise: js_sys::Promise = load.call0(&JsValue::NULL).ok()?.dyn_into().ok()?;
    let render: js_sys::Function = JsFuture::from(promise).await.ok()?.dyn_into().ok()?;
    render.call1(&JsValue::NULL, &JsValue::from_str(markdown)).ok()?.as_string()
}
