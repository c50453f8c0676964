//! The lab panel: parameters, prediction, the plan, submission. Drafts stay in the browser until they are submitted.

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_labs::api::{FieldError, JobView, Problem};
use ringlab_labs::catalogue::LabView;
use ringlab_labs::job::{Backend, Submission};
use ringlab_labs::text::Lang;
use serde::{Deserialize, Serialize};

use super::client;
use super::form::{FieldList, Typed, defaults, elsewhere, from_fields, refusal, to_fields};
use super::hints::Hints;
use super::plan_editor::PlanEditor;
use crate::strings as t;

/// What somebody has typed so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Draft {
    params: Typed,
    prediction: Typed,
    code: Option<String>,
    #[serde(default)]
    hints: u32,
}

/// `online`: back ends of the runners that are connected.
#[island]
pub fn LabPanel(lang: Lang, lab: LabView, seed: u64, online: Vec<Backend>) -> impl IntoView {
    let params = RwSignal::new(defaults(&lab.params));
    let prediction = RwSignal::new(defaults(&lab.prediction));
    let code = RwSignal::new(None::<String>);
    let hints = RwSignal::new(0u32);
    let errors = RwSignal::new(Vec::<FieldError>::new());
    let message = RwSignal::new(None::<String>);
    let sending = RwSignal::new(false);
    let kept = RwSignal::new(false);

    let key = format!("ringlab.draft.{}.{}", lab.id, lab.version);
    let fill = {
        let lab = lab.clone();
        move |draft: Draft| {
            // Through the schema, so that a draft of an older form cannot bring unknown fields.
            params.set(from_fields(&lab.params, &to_fields(&lab.params, &draft.params)));
            prediction.set(from_fields(&lab.prediction, &to_fields(&lab.prediction, &draft.prediction)));
            code.set(draft.code);
            hints.set(draft.hints.min(lab.hints.len() as u32));
        }
    };
    let restored = StoredValue::new(false);
    Effect::new({
        let (key, fill, lab) = (key.clone(), fill.clone(), lab.clone());
        move |_| {
            if restored.get_value() {
                return;
            }
            restored.set_value(true);
            if let Some(draft) = client::recall(&key).and_then(|text| serde_json::from_str(&text).ok()) {
                fill(draft);
                kept.set(true);
            }
            if let Some(job) = client::query("from") {
                load_values(job, lab.clone(), fill.clone());
            }
        }
    });
    Effect::new({
        let (key, lab) = (key.clone(), lab.clone());
        move |_| {
            let draft = Draft {
                params: params.get(),
                prediction: prediction.get(),
                code: code.get(),
                hints: hints.get(),
            };
            let fresh = Draft {
                params: defaults(&lab.params),
                prediction: defaults(&lab.prediction),
                code: None,
                hints: 0,
            };
            if !restored.get_value() || draft == fresh {
                return;
            }
            if let Ok(text) = serde_json::to_string(&draft) {
                kept.set(client::remember(&key, &text));
            }
        }
    });

    let reset = {
        let (key, lab) = (key.clone(), lab.clone());
        move |_| {
            client::forget(&key);
            params.set(defaults(&lab.params));
            prediction.set(defaults(&lab.prediction));
            code.set(None);
            errors.set(vec![]);
            message.set(None);
            kept.set(false);
        }
    };
    let submit = {
        let (key, lab) = (key.clone(), lab.clone());
        move |e: leptos::ev::SubmitEvent| {
            e.prevent_default();
            if sending.get_untracked() {
                return;
            }
            let submission = Submission {
                lab: lab.id.clone(),
                params: to_fields(&lab.params, &params.get_untracked()),
                prediction: to_fields(&lab.prediction, &prediction.get_untracked()),
                code: code.get_untracked(),
                hints: hints.get_untracked(),
            };
            let key = key.clone();
            sending.set(true);
            message.set(None);
            spawn_local(async move {
                match post_job(&submission).await {
                    Ok(job) => {
                        client::forget(&key);
                        client::go(&format!("/{}/runs/{}", lang.code(), job.id));
                    }
                    Err(refused) => {
                        sending.set(false);
                        let (found, text) =
                            refused.unwrap_or_else(|| (vec![], t::network_failed(lang).into()));
                        let others = elsewhere(lang, &found, &["params.", "prediction.", "code"]);
                        let text = if found.is_empty() { text } else { refusal(lang) };
                        message.set(Some(std::iter::once(text).chain(others).collect::<Vec<_>>().join(" ")));
                        errors.set(found);
                        focus_first_error();
                    }
                }
            });
        }
    };
    let no_runner = {
        let known: Vec<&'static str> = lab.backends.iter().map(|b| b.name()).collect();
        move || {
            let chosen = params.with(|p| p.get("backend").cloned());
            chosen.is_some_and(|c| known.contains(&c.as_str()) && !online.iter().any(|b| b.name() == c))
        }
    };
    let editor = lab
        .takes_plan
        .then(|| view! { <PlanEditor lang=lang lab=lab.clone() params=params code=code errors=errors /> });
    let help =
        (!lab.hints.is_empty()).then(|| view! { <Hints lang=lang hints=lab.hints.clone() open=hints /> });
    let judged: Vec<_> = lab.checks.iter().map(|c| view! { <li>{c.title.get(lang).to_owned()} " " <span class="muted">{t::marks(lang, c.marks)}</span></li> }).collect();
    let ask = (!lab.prediction.is_empty()).then(|| {
        view! {
            <fieldset>
                <legend>{t::prediction(lang)}</legend>
                <p class="help">{t::prediction_hint(lang)}</p>
                <FieldList lang=lang section="prediction" fields=lab.prediction.clone() typed=prediction errors=errors />
            </fieldset>
        }
    });
    view! {
        <form class="panel" novalidate=true on:submit=submit>
            <fieldset>
                <legend>{t::parameters(lang)}</legend>
                <FieldList lang=lang section="params" fields=lab.params.clone() typed=params errors=errors />
                <p class="notice" hidden=move || !no_runner()>
                    {t::no_such_runner(lang)}
                </p>
                <p class="seed">{t::your_seed(lang)} " " <code>{seed.to_string()}</code></p>
            </fieldset>
            {ask}
            {editor}
            {help}
            <details class="judged">
                <summary>{t::judged_on(lang)}</summary>
                <ul>{judged}</ul>
            </details>
            <div class="panel-end">
                <p class="form-error" role="alert">
                    {message}
                </p>
                <p class="actions">
                    <button type="submit" class="button primary" prop:disabled=move || sending.get()>
                        {move || if sending.get() { t::submitting(lang) } else { t::submit(lang) }}
                    </button>
                    <button type="button" class="button quiet" on:click=reset>
                        {t::reset_form(lang)}
                    </button>
                </p>
                <p class="help" aria-live="polite">
                    {move || if kept.get() { t::draft_kept(lang) } else { "" }}
                </p>
            </div>
        </form>
    }
    .into_any()
}

/// Field errors and a sentence, or nothing when no answer came.
type Refused = Option<(Vec<FieldError>, String)>;

async fn post_job(submission: &Submission) -> Result<JobView, Refused> {
    let json = serde_json::to_string(submission).map_err(|e| Some((vec![], e.to_string())))?;
    let reply = client::post("/api/v1/jobs", &json).await.map_err(|_| None)?;
    if reply.status == 201 {
        return serde_json::from_str(&reply.body).map_err(|e| Some((vec![], e.to_string())));
    }
    Err(Some(problem(reply.status, &reply.body)))
}

/// Field errors and a sentence of a refused request.
pub(super) fn problem(status: u16, body: &str) -> (Vec<FieldError>, String) {
    match serde_json::from_str::<Problem>(body) {
        Ok(problem) if problem.detail.is_empty() => (problem.errors, problem.title),
        Ok(problem) => (problem.errors, problem.detail),
        Err(_) => (vec![], format!("HTTP {status}")),
    }
}

/// The values of an earlier run, when the page was opened with `?from=`.
fn load_values(job: String, lab: LabView, fill: impl Fn(Draft) + 'static) {
    // The id goes into an address: only what an id can consist of.
    if !job.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return;
    }
    spawn_local(async move {
        let Ok(reply) = client::get(&format!("/api/v1/jobs/{job}")).await else { return };
        let Ok(job) = serde_json::from_str::<JobView>(&reply.body) else { return };
        if job.lab == lab.id {
            fill(Draft {
                params: from_fields(&lab.params, &job.submission.params),
                prediction: from_fields(&lab.prediction, &job.submission.prediction),
                code: job.submission.code,
                hints: job.submission.hints,
            });
        }
    });
}

/// After the errors have been drawn.
fn focus_first_error() {
    request_animation_frame(|| {
        use wasm_bindgen::JsCast;
        let found = document().query_selector("form.panel [aria-invalid=true]").ok().flatten();
        if let Some(input) = found.and_then(|e| e.dyn_into::<web_sys::HtmlElement>().ok()) {
            // An element that cannot take the focus keeps the page as it is.
            let _ = input.focus();
        }
    });
}
