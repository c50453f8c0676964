//! The optional judge: a language model behind any OpenAI-compatible endpoint, asked what it thinks of an answer that the grader has
//! marked. Off unless `--judge-url` is given. What its opinion may do is `ringlab_interview::opinion`'s rule: ask for a person, nothing else.
//!
//! The endpoint is as little trusted as the answer: a deadline, a limit on what is read, a limit on tries, no redirects, a reply in one
//! strict form. It gets the question, the rubric and the answer; never a name.

pub mod once;
mod prompt;

use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::StreamExt as _;
use reqwest::StatusCode;
use ringlab_content::report::Grade;
use ringlab_interview::opinion::{self, Opinion, Refusal};
use serde::Deserialize;
use tokio::time::{sleep, timeout};

use crate::config::Config;

/// Environment variable of the endpoint's key: not a flag, since a process list shows flags.
pub const KEY: &str = "RINGLAB_JUDGE_KEY";

/// Of a response: an opinion has a few kilobytes.
const BYTES_MAX: usize = 64 << 10;
const TRIES: u32 = 3;

#[derive(Debug)]
pub struct Judge {
    http: reqwest::Client,
    url: reqwest::Url,
    pub model: String,
    key: Option<String>,
    deadline: Duration,
    pause: Duration,
}

/// What a judge is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// Markdown.
    pub prompt: &'a str,
    /// Markdown: the answer in a few sentences.
    pub model_answer: &'a str,
    pub answer: &'a str,
    /// Of the grader: it names the rubric's points and claims. Its marks are not shown to the judge.
    pub grade: &'a Grade,
}

#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    #[error("the endpoint cannot be reached or broke off: {0}")]
    Unreachable(reqwest::Error),
    #[error("the endpoint gave no whole reply within {0:?}")]
    Slow(Duration),
    #[error("the endpoint answered {0}")]
    Status(StatusCode),
    #[error("the reply is larger than {BYTES_MAX} bytes")]
    TooLarge,
    #[error("the reply is not in the form asked for: {0}")]
    Form(serde_json::Error),
    #[error("the reply holds no message")]
    Empty,
    #[error("the reply is not believed: {0}")]
    Refused(#[from] Refusal),
}

impl JudgeError {
    /// Whether another try could go better: not where the request itself is refused.
    fn may_pass(&self) -> bool {
        match self {
            JudgeError::Status(status) => {
                status.is_server_error()
                    || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(status)
            }
            _ => true,
        }
    }
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

impl Judge {
    /// `None` where none is configured.
    ///
    /// # Errors
    /// The address is none, or the key cannot be sent.
    pub fn from_config(config: &Config) -> anyhow::Result<Option<Judge>> {
        let (Some(url), Some(model)) = (&config.judge_url, &config.judge_model) else { return Ok(None) };
        let deadline = Duration::from_secs(config.judge_seconds);
        let judge = Judge::new(url, model, std::env::var(KEY).ok(), deadline, Duration::from_secs(1))?;
        Ok(Some(judge))
    }

    /// `url`: what `/chat/completions` is appended to. `pause`: before the second try, longer before each further one.
    ///
    /// # Errors
    /// See [`Judge::from_config`].
    pub fn new(
        url: &str,
        model: &str,
        key: Option<String>,
        deadline: Duration,
        pause: Duration,
    ) -> anyhow::Result<Judge> {
        let full = format!("{}/chat/completions", url.trim_end_matches('/'));
        let url = reqwest::Url::parse(&full).with_context(|| {
            format!("--judge-url is `{url}`; give an address such as http://127.0.0.1:8000/v1")
        })?;
        if !["http", "https"].contains(&url.scheme()) {
            bail!("--judge-url begins with http:// or https://, not {}:", url.scheme());
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .context("making a client for the judge")?;
        Ok(Judge { http, url, model: model.to_owned(), key, deadline, pause })
    }

    /// # Errors
    /// There is no reply that holds; the last try says why.
    pub async fn ask(&self, case: &Case<'_>) -> Result<Opinion, JudgeError> {
        let mut tried = 0;
        loop {
            tried += 1;
            let result = match timeout(self.deadline, self.once(case)).await {
                Ok(result) => result,
                Err(_) => Err(JudgeError::Slow(self.deadline)),
            };
            metrics::counter!("ringlab_judge_replies_total", "held" => if result.is_ok() { "yes" } else { "no" })
                .increment(1);
            match result {
                Err(error) if tried < TRIES && error.may_pass() => {
                    tracing::debug!(%error, tried, "asking the judge again");
                    sleep(self.pause * tried).await;
                }
                result => return result,
            }
        }
    }

    async fn once(&self, case: &Case<'_>) -> Result<Opinion, JudgeError> {
        let mut request = self.http.post(self.url.clone()).json(&prompt::request(&self.model, case));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.map_err(JudgeError::Unreachable)?;
        if !response.status().is_success() {
            return Err(JudgeError::Status(response.status()));
        }
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(JudgeError::Unreachable)?);
            if body.len() > BYTES_MAX {
                return Err(JudgeError::TooLarge);
            }
        }
        let completion: Completion = serde_json::from_slice(&body).map_err(JudgeError::Form)?;
        let content = completion.choices.into_iter().next().and_then(|c| c.message.content);
        let reply = serde_json::from_str(&content.ok_or(JudgeError::Empty)?).map_err(JudgeError::Form)?;
        Ok(opinion::check(&reply, case.grade, case.answer, &self.model)?)
    }
}
