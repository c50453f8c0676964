//! The job API as a browser sees it.

mod common;

use common::runner::Runner;
use common::sse::{Events, Heard};
use common::{Browser, Server, log, result};
use reqwest::StatusCode;
use ringlab_labs::api::{JobState, JobView, RunnerView};
use ringlab_labs::job::{Artifact, Verdict};
use serde_json::json;
use sha2::{Digest as _, Sha256};

#[tokio::test]
async fn a_guest_is_made_by_the_first_job_and_sees_its_own_jobs_alone() {
    let server = Server::start();
    let (mut one, mut two) = (Browser::new(&server), Browser::new(&server));
    assert_eq!(one.get("/api/v1/jobs").await.text, "[]");
    assert!(one.cookie.is_none(), "reading makes no account");
    let first = one.submit().await;
    let cookie = one.cookie.clone().expect("the first job makes one");
    let second = one.submit().await;
    assert_eq!(one.cookie.as_ref(), Some(&cookie), "and the next one keeps it");
    assert_ne!(first.seed, second.seed, "every run has its own instance");
    let ids: Vec<String> =
        one.get("/api/v1/jobs").await.json::<Vec<JobView>>().into_iter().map(|j| j.id).collect();
    assert_eq!(ids, [second.id.clone(), first.id.clone()], "newest first");

    two.submit().await;
    let paths = ["", "/events", "/artifacts/trace.json", "/perfetto"];
    for path in paths.map(|p| format!("/api/v1/jobs/{}{p}", first.id)) {
        for browser in [&mut two, &mut Browser::new(&server)] {
            let answer = browser.get(&path).await;
            assert_eq!(
                (answer.status, answer.problem().as_str()),
                (StatusCode::NOT_FOUND, "not-found"),
                "{path}"
            );
        }
    }
    for (path, body) in [("cancel", json!({})), ("answers", json!({ "answers": {} }))] {
        let answer = two.post(&format!("/api/v1/jobs/{}/{path}", first.id), &body).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert!(matches!(one.job(&first.id).await.state, JobState::Queued { .. }), "nobody cancelled it");
}

#[tokio::test]
async fn only_so_many_jobs_at_a_time() {
    let server = Server::start_with(&["--max-active-jobs", "2"]);
    let mut browser = Browser::new(&server);
    let first = browser.submit().await;
    browser.submit().await;
    let refused = browser.post("/api/v1/jobs", &json!({ "lab": "busbw" })).await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::TOO_MANY_REQUESTS, "active-jobs"));
    assert!(!refused.header("retry-after").is_empty());
    browser.post(&format!("/api/v1/jobs/{}/cancel", first.id), &json!({})).await;
    browser.submit().await;
}

#[tokio::test]
async fn one_user_cannot_flood_the_queue() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    for _ in 0..20 {
        let job = browser.submit().await;
        browser.post(&format!("/api/v1/jobs/{}/cancel", job.id), &json!({})).await;
    }
    let refused = browser.post("/api/v1/jobs", &json!({ "lab": "busbw" })).await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::TOO_MANY_REQUESTS, "too-fast"));
}

#[tokio::test]
async fn concurrent_submissions_of_one_user_each_get_their_own_run_number() {
    let server = Server::start_with(&["--max-active-jobs", "100"]);
    let mut browser = Browser::new(&server);
    browser.submit().await;
    let submit = |mut browser: Browser| async move { browser.submit().await.seed };
    let mut seeds = futures_util::future::join_all((0..6).map(|_| submit(browser.clone()))).await;
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 6);
}

#[tokio::test]
async fn a_field_error_names_the_field_and_speaks_both_languages() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let body = json!({ "lab": "busbw", "params": { "backend": "abacus" } });
    let answer = browser.post("/api/v1/jobs", &body).await;
    assert_eq!((answer.status, answer.problem().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "invalid"));
    let problem: ringlab_labs::api::Problem = answer.json();
    assert_eq!(problem.errors[0].field, "params.backend");
    assert!(!problem.errors[0].message.zh.is_empty() && !problem.errors[0].message.en.is_empty());

    let request = |name, value| browser.request(reqwest::Method::GET, "/api/v1/nothing").header(name, value);
    let (zh, page) = (request("accept-language", "zh-CN"), request("referer", "http://x/zh/labs"));
    for request in [zh, page] {
        assert!(browser.clone().send(request).await.text.contains("没有找到"));
    }
}

#[tokio::test]
async fn answers_are_marked_once() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let job = browser.submit().await;
    let path = format!("/api/v1/jobs/{}/answers", job.id);
    let early = browser.post(&path, &json!({ "answers": {} })).await;
    assert_eq!((early.status, early.problem().as_str()), (StatusCode::CONFLICT, "no-result"));

    let (lease, spec) = runner.take().await;
    assert!(runner.finish(&lease, result(&spec, vec![])).await);
    let pending = browser.job(&job.id).await.marks.unwrap();
    assert!(pending.checks.iter().any(|c| c.verdict == Verdict::Pending));

    let incomplete = browser.post(&path, &json!({ "answers": { "broken_row": 1 } })).await;
    assert_eq!(incomplete.status, StatusCode::UNPROCESSABLE_ENTITY);
    let fields = |row: u32| {
        let mut fields = json!({ "broken_row": row, "broken_column": "time" });
        for name in ["a", "b", "c", "d"].iter().flat_map(|r| [format!("algbw_{r}"), format!("busbw_{r}")]) {
            fields[name] = json!(1.5);
        }
        json!({ "answers": fields })
    };
    let marked: JobView = browser.post(&path, &fields(1)).await.json();
    let marks = marked.marks.unwrap();
    assert!(marks.checks.iter().all(|c| c.verdict != Verdict::Pending), "{marks:?}");
    assert_eq!(marked.answers.unwrap()["broken_row"], 1);

    let again: JobView = browser.post(&path, &fields(1)).await.json();
    assert_eq!(again.marks.unwrap(), marks, "the same answers get the same marks");
    let other = browser.post(&path, &fields(2)).await;
    assert_eq!((other.status, other.problem().as_str()), (StatusCode::CONFLICT, "answered"));
}

#[tokio::test]
async fn artifacts_are_stored_by_hash_and_served_by_name() {
    let server = Server::start_with(&["--max-artifact-bytes", "4096"]);
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let trace = json!({
        "version": 1, "ranks": 1, "channels": 1, "dropped": 0,
        "origin": { "kind": "simulated", "model": "none" },
        "spans": [{ "rank": 0, "channel": 0, "tile": 0, "step": 0, "op": "copy", "bytes": 4, "start_ns": 0, "ready_ns": 1, "end_ns": 2 }]
    })
    .to_string();
    let hash = Sha256::digest(trace.as_bytes()).iter().map(|b| format!("{b:02x}")).collect::<String>();
    let put = |hash: &str, body: String, token: &str| {
        let request = browser.request(reqwest::Method::PUT, &format!("/api/v1/runner/artifacts/{hash}"));
        request.header("authorization", format!("Bearer {token}")).body(body)
    };
    let cases = [
        (put(&hash, trace.clone(), "wrong"), 401, "runner-token"),
        (put(&hash, "other".into(), common::TOKEN), 422, "hash"),
        (put("nonsense", trace.clone(), common::TOKEN), 400, "malformed"),
        (put(&hash.to_uppercase(), trace.clone(), common::TOKEN), 400, "malformed"),
        (put("..%2F..%2Fringlab.db", trace.clone(), common::TOKEN), 400, "malformed"),
        (put(&hash, "x".repeat(5_000), common::TOKEN), 413, "too-large"),
    ];
    for (request, status, kind) in cases {
        let answer = browser.clone().send(request).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (status, kind));
    }
    for _ in 0..2 {
        let stored = browser.clone().send(put(&hash, trace.clone(), common::TOKEN)).await;
        assert_eq!(stored.status, StatusCode::NO_CONTENT, "{stored:?}");
    }

    let job = browser.submit().await;
    let (lease, spec) = runner.take().await;
    let artifact = Artifact {
        name: "trace.json".into(),
        media_type: "application/json".into(),
        bytes: trace.len() as u64,
        sha256: hash.clone(),
    };
    let mut result = result(&spec, vec![artifact.clone()]);
    result.tasks[0].trace = Some("trace.json".into());
    assert!(runner.finish(&lease, result).await);

    assert_eq!(browser.job(&job.id).await.artifacts, [artifact]);
    let file = browser.get(&format!("/api/v1/jobs/{}/artifacts/trace.json", job.id)).await;
    assert_eq!((file.status, &file.text), (StatusCode::OK, &trace));
    assert_eq!(file.header("content-type"), "application/json");
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"trace.json\"");
    assert!(file.header("cache-control").contains("immutable"));
    assert_eq!(file.header("x-content-type-options"), "nosniff");
    let missing = browser.get(&format!("/api/v1/jobs/{}/artifacts/plan.txt", job.id)).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    let perfetto = browser.get(&format!("/api/v1/jobs/{}/perfetto", job.id)).await;
    assert_eq!(perfetto.status, StatusCode::OK, "{perfetto:?}");
    assert!(perfetto.json::<serde_json::Value>()["traceEvents"].is_array());
}

#[tokio::test]
async fn an_event_stream_resumes_from_any_point_and_follows_every_attempt() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let job = browser.submit().await;
    let mut events = Events::open(&browser, &job.id, "", None).await;
    let Heard::State(first) = events.next().await else { panic!("the state comes first") };
    assert!(matches!(first.state, JobState::Queued { .. }));

    let mut runner = Runner::connect(&server, "one", None).await;
    let (lease, _) = runner.take().await;
    runner.send_events(&lease, vec![log(1, "a"), log(2, "b")]).await;
    assert_eq!(events.ids(2).await, ["1.1", "1.2"]);
    runner.fail(&lease, ringlab_labs::wire::FailureKind::Runner, "lost").await;
    let (lease, spec) = runner.take().await;
    let many = (1..=600).map(|seq| log(seq, "line")).collect();
    assert_eq!(runner.send_events(&lease, many).await, 600);
    runner.finish(&lease, result(&spec, vec![])).await;
    let (ids, state) = events.rest().await;
    assert_eq!((ids.len(), ids[0].as_str(), ids[599].as_str()), (600, "2.1", "2.600"));
    let state = state.unwrap();
    assert!(state.state == JobState::Done && state.marks.is_some() && state.attempt == 2);

    for (query, last, expected) in [
        ("?after=1.1", None, 601),
        ("?after=1.1", Some("2.598"), 2),
        ("?after=9.0", None, 0),
        ("?after=", None, 602),
    ] {
        let (ids, state) = Events::open(&browser, &job.id, query, last).await.rest().await;
        assert_eq!((ids.len(), state.unwrap().state), (expected, JobState::Done), "{query} {last:?}");
    }
}

#[tokio::test]
async fn machines_can_ask_how_the_server_is() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let health = browser.get("/healthz").await;
    assert_eq!(
        (health.status, health.json::<serde_json::Value>()["database"].clone()),
        (StatusCode::OK, json!("ok"))
    );
    browser.submit().await;
    let mut runner = Runner::connect(&server, "a runner", None).await;
    let (lease, spec) = runner.take().await;
    runner.send_events(&lease, vec![log(1, "a")]).await;
    let runners: Vec<RunnerView> = browser.get("/api/v1/runners").await.json();
    assert_eq!((runners.len(), runners[0].name.as_str(), runners[0].busy), (1, "a runner", true));
    runner.finish(&lease, result(&spec, vec![])).await;
    let metrics = browser.get("/metrics").await.text;
    for line in [
        "ringlab_jobs{state=\"done\"} 1",
        "ringlab_jobs{state=\"queued\"} 0",
        "ringlab_events_total 1",
        "ringlab_queue_wait_seconds_count 1",
        "ringlab_http_requests_total{method=\"POST\",route=\"/api/v1/jobs\",status=\"201\"} 1",
        "ringlab_runners{state=\"busy\"} 1",
        "ringlab_attempts_settled_total{outcome=\"done\"} 1",
    ] {
        assert!(metrics.lines().any(|l| l == line), "{line} is not in\n{metrics}");
    }
    drop(runner);
    while browser.get("/api/v1/runners").await.text != "[]" {}
}

#[tokio::test]
async fn marks_can_be_computed_again_from_what_is_stored() {
    let mut server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let job = browser.submit().await;
    let (lease, spec) = runner.take().await;
    assert!(runner.finish(&lease, result(&spec, vec![])).await);
    let marks = browser.job(&job.id).await.marks.unwrap();
    server.terminate();
    let said = server.command(&["remark"]);
    assert!(said.contains("1 results, 0 with other marks"), "{said}");
    server.sql("UPDATE marks SET marks = json_set(marks, '$.total', 99.0)").await;
    let said = server.command(&["remark", "--apply"]);
    assert!(said.contains(&job.id) && said.contains("1 results, 1 with other marks (stored)"), "{said}");
    server.kill_and_restart();
    assert_eq!(browser.at(&server).job(&job.id).await.marks.unwrap(), marks);
}
