//! What an island asks the API for, and what it shows until the answer is there or when none comes.

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_labs::api::{FieldError, Problem};
use ringlab_labs::text::Lang;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::{self, NoAnswer, Reply};
use crate::strings as t;
use crate::strings_interview as ti;

/// Why there is no answer to go on with.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    Network,
    /// What the server said, for people; field errors apart.
    Refused {
        status: u16,
        text: String,
        errors: Vec<FieldError>,
        body: String,
    },
    /// An answer of another shape: the page is older than the server.
    Unread,
}

impl Failure {
    pub fn text(&self, lang: Lang) -> String {
        match self {
            Failure::Network => t::network_failed(lang).into(),
            Failure::Refused { text, errors, .. } => {
                let more = errors.iter().map(|e| e.message.get(lang).to_owned());
                std::iter::once(text.clone()).chain(more).collect::<Vec<_>>().join(" ")
            }
            Failure::Unread => ti::answer_unread(lang).into(),
        }
    }

    pub fn status(&self) -> Option<u16> {
        match self {
            Failure::Refused { status, .. } => Some(*status),
            Failure::Network | Failure::Unread => None,
        }
    }
}

pub fn read<T: DeserializeOwned>(reply: Result<Reply, NoAnswer>) -> Result<T, Failure> {
    let reply = reply.map_err(|_| Failure::Network)?;
    if (200..300).contains(&reply.status) {
        // 204 has no body: `()` is read from it.
        let body = if reply.body.is_empty() { "null" } else { &reply.body };
        return serde_json::from_str(body).map_err(|_| Failure::Unread);
    }
    let (errors, text) = match serde_json::from_str::<Problem>(&reply.body) {
        Ok(problem) if problem.detail.is_empty() => (problem.errors, problem.title),
        Ok(problem) => (problem.errors, problem.detail),
        Err(_) => (vec![], format!("HTTP {}", reply.status)),
    };
    Err(Failure::Refused { status: reply.status, text, errors, body: reply.body })
}

pub async fn get<T: DeserializeOwned>(path: &str) -> Result<T, Failure> {
    read(client::get(path).await)
}

pub async fn post<T: DeserializeOwned>(path: &str, body: &impl Serialize) -> Result<T, Failure> {
    let json = serde_json::to_string(body).map_err(|_| Failure::Unread)?;
    read(client::post(path, &json).await)
}

/// A view that the API has, loaded once the island is in the browser.
pub struct Remote<T: Send + Sync + 'static> {
    pub state: RwSignal<Option<Result<T, Failure>>>,
    path: StoredValue<String>,
}

impl<T: Send + Sync + 'static> Clone for Remote<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync + 'static> Copy for Remote<T> {}

impl<T: Clone + Send + Sync + DeserializeOwned + 'static> Remote<T> {
    pub fn load(path: String) -> Remote<T> {
        let remote = Remote { state: RwSignal::new(None), path: StoredValue::new(path) };
        Effect::new(move |begun: Option<()>| {
            if begun.is_none() {
                remote.reload();
            }
        });
        remote
    }

    /// Asks again; what is shown stays until the answer is there.
    pub fn reload(self) {
        self.reload_when(|_| true);
    }

    /// Asks again and shows the answer only if it is `news`.
    pub fn reload_when(self, news: impl Fn(&T) -> bool + 'static) {
        spawn_local(async move {
            let answer = get(&self.path.get_value()).await;
            let shown = match &answer {
                Ok(value) => news(value),
                // A view that is shown is worth more than the news that the network is away.
                Err(_) => !self.state.with_untracked(|s| matches!(s, Some(Ok(_)))),
            };
            if shown {
                self.state.set(Some(answer));
            }
        });
    }

    pub fn set(self, value: T) {
        self.state.set(Some(Ok(value)));
    }

    /// `missing`: what a 404 means here.
    pub fn view(
        self,
        lang: Lang,
        missing: &'static str,
        show: impl Fn(T) -> AnyView + Send + Sync + 'static,
    ) -> AnyView {
        (move || match self.state.get() {
            None => view! {
                <p class="muted needs-wasm" role="status">
                    {ti::loading(lang)}
                </p>
            }
            .into_any(),
            Some(Ok(value)) => show(value),
            Some(Err(failure)) => {
                let gone = failure.status() == Some(404);
                let text = if gone { missing.to_owned() } else { failure.text(lang) };
                view! {
                    <div class="load-failed">
                        <p class="form-error" role="alert">
                            {text}
                        </p>
                        <p class="actions">
                            <button type="button" class="button" hidden=gone on:click=move |_| self.reload()>
                                {ti::again(lang)}
                            </button>
                            <a class="button" href=format!("/{}/sign-in?next={}", lang.code(), here())>
                                {ti::sign_in(lang)}
                            </a>
                        </p>
                    </div>
                }
                .into_any()
            }
        })
        .into_any()
    }
}

/// The page's own path, for the way back after signing in.
fn here() -> String {
    web_sys::window().and_then(|w| w.location().pathname().ok()).unwrap_or_default()
}
