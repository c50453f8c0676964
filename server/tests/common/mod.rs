//! A real server in its own process with its own folder, a browser's view of it, and a scripted runner.
#![allow(dead_code)] // Each test file uses its part.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, SET_COOKIE};
use reqwest::{Method, StatusCode};
use ringlab_labs::api::{JobState, JobView};
use ringlab_labs::job::{
    Artifact, Backend, Event, EventBody, HardwareInfo, JobResult, JobSpec, Level, SCHEMA, Task, TaskResult,
};
use ringlab_labs::wire::LeaseRef;
use serde_json::{Value, json};

pub mod exam;
pub mod members;
pub mod runner;
pub mod sse;

pub const TOKEN: &str = "a-token-of-the-tests-0123456789";
/// Everything a test waits for comes within this time, or the test fails.
pub const SOON: Duration = Duration::from_secs(20);

/// A server; ends with the test, its folder too.
pub struct Server {
    child: Child,
    pub url: String,
    pub data: PathBuf,
    args: Vec<String>,
}

impl Server {
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// Short leases, so that tests of their end are quick. A later argument wins over an earlier one.
    pub fn start_with(args: &[&str]) -> Server {
        let data = std::env::temp_dir().join(format!("ringlab-server-{}", uuid::Uuid::now_v7()));
        let quick = ["--heartbeat-ms", "200", "--lease-ms", "1500", "--shutdown-ms", "3000"];
        let args: Vec<String> = quick.iter().chain(args).map(|a| (*a).to_owned()).collect();
        let (child, url) = spawn(&data, &args);
        Server { child, url, data, args }
    }

    /// kill -9, and a new process over the same folder, on another port.
    pub fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (self.child, self.url) = spawn(&self.data, &self.args);
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn terminate(&mut self) -> std::process::ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().unwrap()
    }

    /// Runs another command of the program over the same folder, and returns what it says.
    pub fn command(&self, args: &[&str]) -> String {
        let out = self.beside(args);
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stdout).unwrap()
    }

    /// Runs the program to its end over the same folder; one that does not end is killed.
    pub fn beside(&self, args: &[&str]) -> std::process::Output {
        let mut command = self.program();
        let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let start = std::time::Instant::now();
        while child.try_wait().unwrap().is_none() && start.elapsed() < SOON {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        child.wait_with_output().unwrap()
    }

    /// Another process of the program over the same folder, not started yet.
    pub fn program(&self) -> Command {
        program(&self.data)
    }

    /// Changes the database behind the server's back.
    pub async fn sql(&self, statement: &'static str) {
        use sqlx::Connection as _;
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(self.data.join("ringlab.db"));
        let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::query(statement).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    pub fn socket_url(&self) -> String {
        format!("{}/api/v1/runner", self.url.replacen("http", "ws", 1))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

fn program(data: &PathBuf) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringlab-server"));
    command
        .args(["--listen", "127.0.0.1:0", "--root", concat!(env!("CARGO_MANIFEST_DIR"), "/..")])
        .args(["--runner-token", TOKEN, "--data"])
        .arg(data)
        .env("RUST_LOG", "warn")
        // What the whole-system tests are told by `cargo xtask test` is not meant for these.
        .env_remove("RINGLAB_PKG");
    command
}

fn spawn(data: &PathBuf, args: &[String]) -> (Child, String) {
    let mut child = program(data).args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on ").expect("the server says where it listens").to_owned();
    (child, url)
}

/// A browser with its cookie.
#[derive(Clone)]
pub struct Browser {
    pub http: reqwest::Client,
    pub url: String,
    pub cookie: Option<String>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    pub fn json<T: serde::de::DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e} in {}", self.text))
    }

    /// The problem's kind; panics if this is no proper problem.
    pub fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem: ringlab_labs::api::Problem = self.json();
        assert_eq!(problem.status, self.status.as_u16());
        assert!(!problem.title.is_empty() && !problem.detail.is_empty(), "{problem:?}");
        problem.kind.strip_prefix("urn:ringlab:problem:").expect("kinds are URNs").to_owned()
    }
}

impl Browser {
    pub fn new(server: &Server) -> Browser {
        // The runner's build of reqwest has TLS without a provider, and one build of the workspace shares its features.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(SOON)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .unwrap();
        Browser { http, url: server.url.clone(), cookie: None }
    }

    /// The same browser after the server came back elsewhere.
    pub fn at(&self, server: &Server) -> Browser {
        Browser { url: server.url.clone(), ..self.clone() }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        match &self.cookie {
            Some(cookie) => request.header(COOKIE, cookie),
            None => request,
        }
    }

    pub async fn send(&mut self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        if let Some(cookie) = headers.get(SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
            self.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        }
        Answer { status, headers, text: response.text().await.unwrap() }
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        let request = self.request(Method::GET, path);
        self.send(request).await
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Answer {
        let request =
            self.request(Method::POST, path).header(CONTENT_TYPE, "application/json").body(body.to_string());
        self.send(request).await
    }

    pub async fn submit(&mut self) -> JobView {
        let answer = self.post("/api/v1/jobs", &json!({ "lab": "busbw" })).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        answer.json()
    }

    pub async fn job(&mut self, id: &str) -> JobView {
        let answer = self.get(&format!("/api/v1/jobs/{id}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.json()
    }

    /// Waits until the job is in a state that `wanted` likes.
    pub async fn wait_for(&mut self, id: &str, wanted: impl Fn(&JobState) -> bool) -> JobView {
        let start = std::time::Instant::now();
        loop {
            let job = self.job(id).await;
            if wanted(&job.state) {
                return job;
            }
            assert!(start.elapsed() < SOON, "still {:?}", job.state);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub fn hardware(backends: &[Backend]) -> HardwareInfo {
    HardwareInfo {
        cpu: "a CPU".into(),
        cores: 2,
        memory_bytes: 1 << 30,
        os: "Linux".into(),
        gpus: vec![],
        backends: backends.to_vec(),
    }
}

/// What a sound run of the spec could hand back.
pub fn result(spec: &JobSpec, artifacts: Vec<Artifact>) -> JobResult {
    let task = |Task::Collective(t): &Task| TaskResult {
        id: t.id.clone(),
        elements: t.block * u64::from(t.ranks),
        wrong: 0,
        first_wrong: None,
        times_us: vec![100.0; t.iterations as usize],
        clock: "monotonic".into(),
        moved_bytes: vec![1024; t.ranks as usize],
        comm_steps: 2 * (t.ranks - 1),
        trace: None,
    };
    JobResult {
        schema: SCHEMA,
        hardware: hardware(&[Backend::Cpu]),
        tasks: spec.tasks.iter().map(task).collect(),
        artifacts,
        engine: "test".into(),
    }
}

pub fn log(seq: u64, message: &str) -> Event {
    let body = EventBody::Log { level: Level::Info, source: "worker".into(), message: message.into() };
    Event { seq, at_ms: seq.saturating_mul(10), body }
}

pub fn lease(job: &str, attempt: u32) -> LeaseRef {
    LeaseRef { job: job.into(), attempt }
}
