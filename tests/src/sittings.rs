//! Many candidates who type at once, a server that is killed under them, and the count of what was lost.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::StatusCode;
use ringlab_interview::api::{AssessmentView, Invitation, Saved, SittingView};
use serde_json::{Value, json};

use crate::PATIENCE;
use crate::process;
use crate::system::System;

/// Of every bank so far; a sitting of one question saves one draft.
const QUESTION: u32 = 6;
const AGAIN: Duration = Duration::from_millis(100);
const PASSWORD: &str = "a long password of the load test";

#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub candidates: usize,
    pub every: Duration,
    pub lasts: Duration,
}

/// What became of the saves.
#[derive(Debug, Default)]
pub struct Outcome {
    pub saves: u64,
    /// Requests that were answered at once: milliseconds, sorted.
    pub answered_ms: Vec<f64>,
    /// Saves that needed more than one request, as those in flight at the kill: from the first request to the answer, sorted.
    pub repeated_ms: Vec<f64>,
    /// Acknowledged saves that the server does not have, or has otherwise.
    pub lost: u64,
    pub restart_ms: f64,
}

impl Outcome {
    /// Of every save, from its first request to its answer.
    pub fn all_ms(&self) -> Vec<f64> {
        let mut all = [self.answered_ms.as_slice(), &self.repeated_ms].concat();
        all.sort_by(f64::total_cmp);
        all
    }
}

/// The share `q` of `sorted` is not above this.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = (sorted.len() as f64 * q).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[derive(Debug)]
struct Candidate {
    cookie: String,
    sitting: String,
    version: u64,
    text: String,
    saves: u64,
    answered_ms: Vec<f64>,
    repeated_ms: Vec<f64>,
    lost: u64,
}

/// Lets all candidates save, kills the server (SIGKILL) in the middle and starts it again, then compares every acknowledgement.
///
/// # Errors
/// The sittings could not be set up, or a save was refused.
pub async fn run(load: Load) -> Result<Outcome> {
    raise_open_files()?;
    let mut system = System::start().await?;
    let http = client()?;
    let candidates = set_up(&system, &http, load.candidates).await?;
    let (url, begin) = (Arc::new(system.url.clone()), Instant::now());
    let end = begin + load.lasts;
    let typing = candidates.into_iter().enumerate().map(|(n, candidate)| {
        let (url, http) = (url.clone(), http.clone());
        let first = begin + load.every.mul_f64(n as f64 / load.candidates as f64);
        tokio::spawn(type_until(candidate, n, url, http, first, load.every, end))
    });
    let typing: Vec<_> = typing.collect();
    tokio::time::sleep_until((begin + load.lasts / 2).into()).await;
    let killed = Instant::now();
    system.server.kill()?;
    system.restart_server().await?;
    let mut outcome = Outcome { restart_ms: ms(killed.elapsed()), ..Outcome::default() };
    for task in typing {
        let mut candidate = task.await.context("a candidate panicked")??;
        outcome.lost += candidate.lost + compare(&system.url, &http, &candidate).await?;
        outcome.saves += candidate.saves;
        outcome.answered_ms.append(&mut candidate.answered_ms);
        outcome.repeated_ms.append(&mut candidate.repeated_ms);
    }
    outcome.answered_ms.sort_by(f64::total_cmp);
    outcome.repeated_ms.sort_by(f64::total_cmp);
    Ok(outcome)
}

async fn type_until(
    mut candidate: Candidate,
    n: usize,
    url: Arc<String>,
    http: reqwest::Client,
    first: Instant,
    every: Duration,
    end: Instant,
) -> Result<Candidate> {
    let path = format!("{url}/api/v1/sittings/{}/drafts/{QUESTION}", candidate.sitting);
    let mut next = first;
    while next < end {
        tokio::time::sleep_until(next.into()).await;
        next += every;
        candidate.saves += 1;
        let words = "a sentence about streams; ".repeat(20 + candidate.saves as usize % 20);
        let text = format!("candidate {n}, save {}: {words}", candidate.saves);
        let body = json!({ "tab": "a", "base": candidate.version, "text": text }).to_string();
        let (asked, mut again) = (Instant::now(), false);
        let saved = loop {
            if let Some(saved) = put(&http, &path, &candidate.cookie, &body).await? {
                break saved;
            }
            ensure!(asked.elapsed() < PATIENCE, "a save was not answered within {PATIENCE:?}");
            again = true;
            tokio::time::sleep(AGAIN).await;
        };
        let took = ms(asked.elapsed());
        if again {
            candidate.repeated_ms.push(took)
        } else {
            candidate.answered_ms.push(took)
        }
        // Each save is one version: a gap backwards is an acknowledged save that a killed server forgot.
        if saved.version != candidate.version + 1 {
            candidate.lost += 1;
        }
        (candidate.version, candidate.text) = (saved.version, text);
    }
    Ok(candidate)
}

/// `None`: no answer, or the server asks to come back.
async fn put(http: &reqwest::Client, path: &str, cookie: &str, body: &str) -> Result<Option<Saved>> {
    let request = http.put(path).header("cookie", cookie).header("content-type", "application/json");
    let Ok(response) = request.body(body.to_owned()).send().await else { return Ok(None) };
    match response.status() {
        StatusCode::OK => Ok(response.bytes().await.ok().and_then(|b| serde_json::from_slice(&b).ok())),
        status if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => Ok(None),
        status => bail!("a save was refused: {status} {}", response.text().await.unwrap_or_default()),
    }
}

/// 1 when what is stored is not what was acknowledged last.
async fn compare(url: &str, http: &reqwest::Client, candidate: &Candidate) -> Result<u64> {
    let path = format!("{url}/api/v1/sittings/{}", candidate.sitting);
    let answer = http.get(path).header("cookie", &candidate.cookie).send().await?;
    let view: SittingView = serde_json::from_slice(&answer.bytes().await?)?;
    let draft = &view.questions.first().context("a sitting has its question")?.draft;
    Ok(u64::from(draft.version != candidate.version || draft.text != candidate.text))
}

async fn set_up(system: &System, http: &reqwest::Client, n: usize) -> Result<Vec<Candidate>> {
    let api = format!("{}/api/v1", system.url);
    let cookie = instructor(system, http, &api).await?;
    let set =
        json!({ "title": "Load", "set": { "kind": "custom", "questions": [QUESTION] }, "seconds": 7_200 });
    let made: AssessmentView = post(http, &format!("{api}/assessments"), &cookie, &set).await?.0;
    let mut invitations: Vec<Invitation> = Vec::with_capacity(n);
    while invitations.len() < n {
        let labels: Vec<String> =
            (invitations.len()..n.min(invitations.len() + 500)).map(|i| format!("candidate {i}")).collect();
        let path = format!("{api}/assessments/{}/invitations", made.id);
        let more: Vec<Invitation> = post(http, &path, &cookie, &json!({ "labels": labels })).await?.0;
        invitations.extend(more);
    }
    let begin = invitations.into_iter().map(|invitation| {
        let code = invitation.code.unwrap_or_default();
        let path = format!("{api}/invitations/by-code/{code}/start");
        async move {
            let (view, cookie): (SittingView, _) = post(http, &path, "", &json!({})).await?;
            Ok(Candidate {
                cookie: cookie.context("a guest gets a cookie")?,
                sitting: view.id,
                version: 0,
                text: String::new(),
                saves: 0,
                answered_ms: Vec::new(),
                repeated_ms: Vec::new(),
                lost: 0,
            })
        }
    });
    let begun: Vec<Result<Candidate>> = stream::iter(begin).buffer_unordered(16).collect().await;
    begun.into_iter().collect()
}

/// Made on the command line beside the server; the cookie of its browser.
async fn instructor(system: &System, http: &reqwest::Client, api: &str) -> Result<String> {
    let email = "load@example.org";
    let mut command = Command::new(process::program("ringlab-server")?);
    command.arg("--data").arg(system.data());
    command.args(["account", "create", "--email", email, "--role", "instructor", "--password-stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    child.stdin.take().context("a pipe")?.write_all(format!("{PASSWORD}\n").as_bytes())?;
    ensure!(child.wait()?.success(), "the instructor's account was not made");
    let body = json!({ "email": email, "password": PASSWORD });
    let (_, cookie): (Value, _) = post(http, &format!("{api}/account/sign-in"), "", &body).await?;
    cookie.context("signing in sets a cookie")
}

/// The reply, and the cookie it sets.
async fn post<T: serde::de::DeserializeOwned>(
    http: &reqwest::Client,
    path: &str,
    cookie: &str,
    body: &Value,
) -> Result<(T, Option<String>)> {
    let mut request = http.post(path).header("content-type", "application/json").body(body.to_string());
    if !cookie.is_empty() {
        request = request.header("cookie", cookie);
    }
    let response = request.send().await?;
    let set = response.headers().get("set-cookie").and_then(|v| v.to_str().ok());
    let set = set.and_then(|v| v.split(';').next()).map(str::to_owned);
    let (status, bytes) = (response.status(), response.bytes().await?);
    ensure!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&bytes));
    Ok((serde_json::from_slice(&bytes)?, set))
}

fn client() -> Result<reqwest::Client> {
    // The runner's build of reqwest has TLS without a provider, and one build of the workspace shares its features.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(reqwest::Client::builder().timeout(PATIENCE).no_proxy().build()?)
}

/// A connection for every candidate.
fn raise_open_files() -> Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("raising the limit of open files")
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
