//! One visitor: keeps its cookie, speaks JSON.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use ringlab_labs::api::JobView;
use ringlab_labs::job::Submission;
use serde_json::Value;

use crate::PATIENCE;
use crate::system::wait_within;

#[derive(Debug, Clone)]
pub struct Client {
    pub url: String,
    http: reqwest::Client,
    cookie: std::sync::Arc<std::sync::Mutex<String>>,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub media_type: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("status {}, not JSON: {}", self.status, self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub fn new(url: &str) -> Result<Client> {
        // The runner's build of reqwest has TLS without a provider, and one build of the workspace shares its features.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Client { url: url.to_owned(), http, cookie: Default::default() })
    }

    pub fn request(&self, method: &str, path: &str) -> Result<reqwest::RequestBuilder> {
        let method = reqwest::Method::from_bytes(method.as_bytes())?;
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        let cookie = self.cookie.lock().expect("no test panics while it holds this lock").clone();
        if !cookie.is_empty() {
            request = request.header("cookie", cookie);
        }
        Ok(request)
    }

    /// Sends it and keeps the cookie that comes back.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Result<Answer> {
        let response = request.send().await?;
        if let Some(cookie) = response.headers().get("set-cookie") {
            let pair = cookie.to_str()?.split(';').next().unwrap_or("").to_owned();
            *self.cookie.lock().expect("no test panics while it holds this lock") = pair;
        }
        let media_type = response.headers().get("content-type").map(|v| v.to_str().unwrap_or("").to_owned());
        Ok(Answer {
            status: response.status().as_u16(),
            media_type: media_type.unwrap_or_default(),
            body: response.bytes().await?.to_vec(),
        })
    }

    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send(self.request("GET", path)?).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send(self.request("POST", path)?.json(body)).await
    }

    /// Submits a lab and returns its job, which must be accepted.
    pub async fn submit(&self, submission: &Submission) -> Result<JobView> {
        let answer = self.post("/api/v1/jobs", &serde_json::to_value(submission)?).await?;
        if answer.status != 201 {
            bail!("the submission was answered {}: {}", answer.status, answer.text());
        }
        Ok(serde_json::from_slice(&answer.body)?)
    }

    pub async fn job(&self, id: &str) -> Result<JobView> {
        let answer = self.get(&format!("/api/v1/jobs/{id}")).await?;
        serde_json::from_slice(&answer.body)
            .with_context(|| format!("status {}: {}", answer.status, answer.text()))
    }

    /// The job once it is done, failed or cancelled.
    pub async fn finished(&self, id: &str) -> Result<JobView> {
        self.finished_within(PATIENCE, id).await
    }

    pub async fn finished_within(&self, limit: Duration, id: &str) -> Result<JobView> {
        wait_within(limit, "the job to end", || async {
            let job = self.job(id).await?;
            Ok(job.state.is_final().then_some(job))
        })
        .await
    }
}
