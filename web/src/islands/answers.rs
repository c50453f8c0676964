//! Questions about the figures of a finished run.

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_labs::api::{Answers, FieldError, JobView};
use ringlab_labs::catalogue::Field;
use ringlab_labs::text::Lang;

use super::client;
use super::form::{FieldList, Typed, defaults, elsewhere, refusal, to_fields};
use super::lab_panel::problem;
use crate::strings as t;

/// Sends the answers; the job comes back with its marks.
#[component]
pub fn AnswersForm(lang: Lang, fields: Vec<Field>, job: RwSignal<JobView>) -> impl IntoView {
    let id = job.with_untracked(|j| j.id.clone());
    let key = format!("ringlab.answers.{id}");
    let typed = RwSignal::new(defaults(&fields));
    let errors = RwSignal::new(Vec::<FieldError>::new());
    let message = RwSignal::new(None::<String>);
    let sending = RwSignal::new(false);
    let restored = StoredValue::new(false);
    Effect::new({
        let (key, fields) = (key.clone(), fields.clone());
        move |_| {
            let now = typed.get();
            if !restored.get_value() {
                restored.set_value(true);
                let draft: Option<Typed> =
                    client::recall(&key).and_then(|text| serde_json::from_str(&text).ok());
                if let Some(draft) = draft {
                    typed.set(
                        draft.into_iter().filter(|(k, _)| fields.iter().any(|f| f.name == *k)).collect(),
                    );
                }
            } else if let Ok(text) = serde_json::to_string(&now) {
                client::remember(&key, &text);
            }
        }
    });
    let send = {
        let fields = fields.clone();
        move |e: leptos::ev::SubmitEvent| {
            e.prevent_default();
            if sending.get_untracked() {
                return;
            }
            let answers = Answers { answers: to_fields(&fields, &typed.get_untracked()) };
            let Ok(json) = serde_json::to_string(&answers) else { return };
            let (path, key) = (format!("/api/v1/jobs/{id}/answers"), key.clone());
            sending.set(true);
            message.set(None);
            spawn_local(async move {
                match client::post(&path, &json).await {
                    Ok(reply) if reply.status == 200 => {
                        if let Ok(now) = serde_json::from_str::<JobView>(&reply.body) {
                            client::forget(&key);
                            job.set(now);
                        }
                    }
                    Ok(reply) => {
                        let (found, text) = problem(reply.status, &reply.body);
                        let others = elsewhere(lang, &found, &["answers."]);
                        let text = if found.is_empty() { text } else { refusal(lang) };
                        message.set(Some(std::iter::once(text).chain(others).collect::<Vec<_>>().join(" ")));
                        errors.set(found);
                    }
                    Err(client::NoAnswer) => message.set(Some(t::network_failed(lang).into())),
                }
                sending.set(false);
            });
        }
    };
    view! {
        <section class="run-answers needs-wasm">
            <form class="panel" novalidate=true on:submit=send>
                <fieldset>
                    <legend>{t::answers(lang)}</legend>
                    <p class="help">{t::answers_hint(lang)}</p>
                    <FieldList lang=lang section="answers" fields=fields typed=typed errors=errors />
                </fieldset>
                <div class="panel-end">
                    <p class="form-error" role="alert">
                        {message}
                    </p>
                    <p class="actions">
                        <button type="submit" class="button primary" prop:disabled=move || sending.get()>
                            {move || if sending.get() { t::submitting(lang) } else { t::send_answers(lang) }}
                        </button>
                    </p>
                </div>
            </form>
        </section>
    }
    .into_any()
}
