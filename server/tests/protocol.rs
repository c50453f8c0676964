//! The runner's protocol: leases, fencing, events, retries.

mod common;

use std::time::{Duration, Instant};

use common::runner::{Runner, hello};
use common::{Browser, Server, TOKEN, lease, log, result};
use ringlab_labs::api::JobState;
use ringlab_labs::wire::{FailureKind, FromRunner, FromServer, PROTOCOL};

#[tokio::test]
async fn a_job_goes_to_an_idle_runner_and_its_result_earns_marks() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    runner.say(&FromRunner::Lease).await;

    let job = browser.submit().await;
    let (lease, spec) = runner.assigned().await;
    assert_eq!((lease.job.as_str(), lease.attempt), (job.id.as_str(), 1));
    assert_eq!((spec.seed, &spec.lab_version), (job.seed, &job.lab_version));
    let running = browser.job(&job.id).await;
    assert_eq!((running.state, running.runner.as_deref()), (JobState::Running, Some("one")));

    assert_eq!(runner.send_events(&lease, vec![log(1, "a"), log(2, "b")]).await, 2);
    assert!(runner.finish(&lease, result(&spec, vec![])).await);
    let done = browser.job(&job.id).await;
    assert_eq!(done.state, JobState::Done);
    assert_eq!(done.result.unwrap().tasks.len(), spec.tasks.len());
    assert!(done.marks.unwrap().max > 0.0);
}

#[tokio::test]
async fn a_job_is_assigned_at_once() {
    let server = Server::start_with(&["--max-active-jobs", "100"]);
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let mut waits = Vec::new();
    for _ in 0..15 {
        runner.say(&FromRunner::Lease).await;
        // The runner is idle before the job comes.
        while browser.get("/api/v1/runners").await.text.contains("\"busy\":true") {}
        let job = browser.submit().await;
        let accepted = Instant::now();
        let (lease, _) = runner.assigned().await;
        waits.push(accepted.elapsed());
        assert_eq!(lease.job, job.id);
        assert!(runner.fail(&lease, FailureKind::Job, "enough").await);
    }
    waits.sort();
    let p95 = waits[waits.len() * 95 / 100];
    assert!(p95 < Duration::from_millis(100), "{waits:?}");
}

#[tokio::test]
async fn events_are_stored_once_and_without_gaps() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let job = browser.submit().await;
    let (lease, spec) = runner.take().await;

    assert_eq!(runner.send_events(&lease, vec![log(1, "a"), log(2, "b")]).await, 2);
    assert_eq!(runner.send_events(&lease, vec![log(1, "again"), log(2, "again"), log(3, "c")]).await, 3);
    assert_eq!(runner.send_events(&lease, vec![log(5, "too early")]).await, 3);
    assert_eq!(runner.send_events(&lease, vec![log(4, "d"), log(6, "gap inside")]).await, 4);
    assert_eq!(runner.send_events(&lease, vec![]).await, 4);
    assert_eq!(runner.send_events(&lease, vec![log(0, "zero"), log(u64::MAX, "huge")]).await, 4);
    assert!(runner.finish(&lease, result(&spec, vec![])).await);

    let mut events = common::sse::Events::open(&browser, &job.id, "", None).await;
    let (ids, state) = events.rest().await;
    assert_eq!(ids, ["1.1", "1.2", "1.3", "1.4"]);
    assert_eq!(state.unwrap().state, JobState::Done);
}

#[tokio::test]
async fn a_silent_runner_loses_the_job_and_its_late_result_is_refused() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut silent = Runner::connect(&server, "silent", None).await;
    let job = browser.submit().await;
    let (old, spec) = silent.take().await;
    assert_eq!(silent.send_events(&old, vec![log(1, "from the first")]).await, 1);

    let mut second = Runner::connect(&server, "second", None).await;
    let (new, _) = second.take().await;
    assert_eq!(new, lease(&job.id, 2));

    let mut silent = Runner::connect(&server, "silent", Some(old.clone())).await;
    assert!(matches!(silent.hear().await, FromServer::Cancel { lease, .. } if lease == old));
    silent.say(&FromRunner::Heartbeat { lease: old.clone() }).await;
    assert!(matches!(silent.hear().await, FromServer::Cancel { lease, .. } if lease == old));
    silent.say(&FromRunner::Events { lease: old.clone(), events: vec![log(2, "late")] }).await;
    assert!(matches!(silent.hear().await, FromServer::Cancel { lease, .. } if lease == old));
    assert!(!silent.finish(&old, result(&spec, vec![])).await, "the old attempt's result is refused");
    assert_eq!(browser.job(&job.id).await.state, JobState::Running);

    assert!(second.finish(&new, result(&spec, vec![])).await);
    assert!(second.finish(&new, result(&spec, vec![])).await, "said again, it is still accepted");
    assert!(!silent.fail(&old, FailureKind::Job, "late").await);
    let done = browser.job(&job.id).await;
    assert_eq!((done.state, done.attempt, done.runner.as_deref()), (JobState::Done, 2, Some("second")));
}

#[tokio::test]
async fn a_runner_that_heartbeats_keeps_its_job_and_one_that_returns_resumes_it() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let job = browser.submit().await;
    let (lease, spec) = runner.take().await;
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2_500) {
        runner.say(&FromRunner::Heartbeat { lease: lease.clone() }).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(browser.job(&job.id).await.attempt, 1, "longer than a lease, and still the first attempt");
    assert_eq!(runner.send_events(&lease, vec![log(1, "a")]).await, 1);
    drop(runner);

    let mut runner = Runner::connect(&server, "one", Some(lease.clone())).await;
    assert_eq!(runner.hear().await, FromServer::Ack { lease: lease.clone(), seq: 1 });
    assert_eq!(runner.send_events(&lease, vec![log(2, "b")]).await, 2);
    assert!(runner.finish(&lease, result(&spec, vec![])).await);
    drop(runner);

    let mut runner = Runner::connect(&server, "one", Some(lease.clone())).await;
    assert_eq!(runner.hear().await, FromServer::Settled { lease, accepted: true }, "the first word was lost");
}

#[tokio::test]
async fn the_runners_faults_are_retried_up_to_the_limit_and_the_learners_are_not() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let job = browser.submit().await;
    for attempt in 1..=3 {
        let (lease, _) = runner.take().await;
        assert_eq!(lease.attempt, attempt);
        assert!(runner.fail(&lease, FailureKind::Runner, "the worker crashed").await);
        let now = browser.job(&job.id).await;
        match now.state {
            JobState::Queued { reason, .. } => {
                assert!(attempt < 3 && reason.en.contains("the worker crashed"), "{reason:?}");
            }
            JobState::Failed { failure } => {
                assert_eq!((attempt, failure.kind), (3, FailureKind::Runner));
                assert!(failure.message.contains("attempt 3 of 3"), "{failure:?}");
                assert!(failure.message.contains("the worker crashed"), "{failure:?}");
            }
            state => panic!("{state:?}"),
        }
    }
    let job = browser.submit().await;
    let (lease, _) = runner.take().await;
    assert!(runner.fail(&lease, FailureKind::Limit, "90 s are over").await);
    let failed = browser.job(&job.id).await;
    assert!(matches!(failed.state, JobState::Failed { failure } if failure.message == "90 s are over"));
}

#[tokio::test]
async fn after_a_fault_another_runner_is_preferred() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut ill = Runner::connect(&server, "ill", None).await;
    browser.submit().await;
    let (lease, _) = ill.take().await;
    assert!(ill.fail(&lease, FailureKind::Runner, "device lost").await);
    ill.say(&FromRunner::Lease).await;
    let mut well = Runner::connect(&server, "well", None).await;
    let (second, _) = well.take().await;
    assert_eq!(second.attempt, 2);
}

#[tokio::test]
async fn asking_for_work_gives_up_the_work_one_has() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    browser.submit().await;
    let (first, _) = runner.take().await;
    let (second, _) = runner.take().await;
    assert_eq!((first.attempt, second.attempt), (1, 2));
}

#[tokio::test]
async fn a_cancelled_job_stops_its_runner() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let job = browser.submit().await;
    let (lease, spec) = runner.take().await;
    let path = format!("/api/v1/jobs/{}/cancel", job.id);
    assert_eq!(browser.post(&path, &serde_json::json!({})).await.status, 200);
    assert!(matches!(runner.hear().await, FromServer::Cancel { lease: of, .. } if of == lease));
    assert!(!runner.finish(&lease, result(&spec, vec![])).await);
    assert_eq!(browser.job(&job.id).await.state, JobState::Cancelled);
    assert_eq!(browser.post(&path, &serde_json::json!({})).await.status, 200, "again: nothing changes");
}

#[tokio::test]
async fn a_result_that_does_not_answer_the_job_is_the_runners_fault() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let job = browser.submit().await;
    let (lease, spec) = runner.take().await;
    let mut wrong = result(&spec, vec![]);
    wrong.tasks.pop();
    assert!(!runner.finish(&lease, wrong).await);
    let now = browser.job(&job.id).await;
    assert!(matches!(now.state, JobState::Queued { reason, .. } if reason.en.contains("cannot be used")));
    let (lease, _) = runner.take().await;
    let lost = ringlab_labs::job::Artifact {
        name: "trace.json".into(),
        media_type: "application/json".into(),
        bytes: 3,
        sha256: "0".repeat(64),
    };
    assert!(!runner.finish(&lease, result(&spec, vec![lost])).await, "the artifact was never uploaded");
}

#[tokio::test]
async fn a_waiting_learner_is_told_why() {
    let server = Server::start();
    let (mut one, mut two) = (Browser::new(&server), Browser::new(&server));
    let first = one.submit().await;
    let second = two.submit().await;
    let reason = |state: JobState| match state {
        JobState::Queued { position, reason } => (position, reason.en),
        state => panic!("{state:?}"),
    };
    let (position, why) = reason(two.job(&second.id).await.state);
    assert!(position == 2 && why.contains("no connected runner has the cpu backend"), "{position} {why}");
    let mut runner = Runner::connect(&server, "one", None).await;
    let (lease, _) = runner.take().await;
    assert_eq!(lease.job, first.id, "first come, first served");
    let (position, why) = reason(two.job(&second.id).await.state);
    assert!(position == 1 && why.contains("is busy"), "{position} {why}");
}

#[tokio::test]
async fn who_is_not_welcome_is_told_what_to_do() {
    let server = Server::start();
    for token in ["", "wrong", &TOKEN[1..]] {
        match Runner::dial(&server, token).await {
            Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => assert_eq!(answer.status(), 401),
            other => panic!("{token}: {:?}", other.map(|_| ())),
        }
    }
    let (_, high) = PROTOCOL;
    let refusals = [
        (hello("new", (high + 1, high + 2), None), "update the server"),
        (hello("old", (0, 0), None), "update the runner"),
        (hello("", PROTOCOL, None), "name"),
        (hello("a\nb", PROTOCOL, None), "name"),
        (FromRunner::Lease, "hello"),
    ];
    for (first, advice) in refusals {
        let mut runner = Runner::dial(&server, TOKEN).await.unwrap();
        runner.say(&first).await;
        match runner.hear().await {
            FromServer::Refused { reason } => assert!(reason.contains(advice), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert!(runner.next().await.is_none(), "the connection ends");
    }
    for text in ["", "{", "{\"type\":\"nonsense\"}", "[]"] {
        use futures_util::SinkExt as _;
        let mut runner = Runner::connect(&server, "one", None).await;
        runner.socket.send(tokio_tungstenite::tungstenite::Message::text(text)).await.unwrap();
        assert!(matches!(runner.hear().await, FromServer::Refused { .. }), "{text}");
    }
}
