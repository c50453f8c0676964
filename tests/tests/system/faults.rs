//! Everything that can die is killed.

use std::time::Duration;

use ringlab_labs::api::JobState;
use ringlab_labs::wire::FailureKind;
use ringlab_tests::process::{self, Signal};
use ringlab_tests::stream::{Heard, listen};
use ringlab_tests::system::{System, wait_for};

use crate::ring;

const LONG: &str = "27525120";

#[tokio::test]
async fn a_runner_killed_in_mid_job_costs_a_retry_and_gives_one_result() {
    let mut system = System::with_runner().await.unwrap();
    let client = system.client().unwrap();
    let job = client.submit(&ring(LONG)).await.unwrap();
    // Stopped, the worker cannot finish before its runner is killed.
    let worker = system.worker(0).await.unwrap();
    process::send(worker, Signal::STOP).unwrap();
    system.runners[0].kill().unwrap();
    wait_for("the worker to die with its runner", || async { Ok((!process::alive(worker)).then_some(())) })
        .await
        .unwrap();

    system.add_runner("two").unwrap();
    let done = client.finished(&job.id).await.unwrap();
    assert!(matches!(done.state, JobState::Done), "{:?}\n{}", done.state, system.logs());
    assert_eq!(done.attempt, 2);
    let marks = done.marks.expect("a finished job has marks");
    assert!(marks.total > 0.0, "{marks:?}");

    // The stream tells both attempts, each numbered from 1 without gaps.
    let mut heard = Heard::default();
    listen(&client, &job.id, &mut heard, |_| false).await.unwrap();
    assert!(heard.ended);
    assert_numbered(&heard);
    let finished_tasks = heard
        .events
        .iter()
        .filter(|e| e.attempt == 2 && matches!(e.event.body, ringlab_labs::job::EventBody::TaskDone { .. }))
        .count();
    assert_eq!(finished_tasks, done.result.expect("a result").tasks.len());
}

#[tokio::test]
async fn a_server_killed_in_mid_job_loses_nothing_and_the_log_resumes() {
    let mut system = System::with_runner().await.unwrap();
    let client = system.client().unwrap();
    let job = client.submit(&ring(LONG)).await.unwrap();
    let worker = system.worker(0).await.unwrap();
    process::send(worker, Signal::STOP).unwrap();

    let mut heard = Heard::default();
    let (listened, killed) = tokio::join!(listen(&client, &job.id, &mut heard, |_| false), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        system.server.kill()
    });
    killed.unwrap();
    listened.unwrap();
    assert!(!heard.ended || heard.states.iter().all(|s| !s.state.is_final()), "the job cannot be over");

    system.restart_server().await.unwrap();
    process::send(worker, Signal::CONT).unwrap();
    let done = client.finished(&job.id).await.unwrap();
    assert!(matches!(done.state, JobState::Done), "{:?}\n{}", done.state, system.logs());
    assert_eq!(done.attempt, 1, "the runner kept its lease over the server's death\n{}", system.logs());
    listen(&client, &job.id, &mut heard, |_| false).await.unwrap();
    assert_numbered(&heard);
    let all = heard.events.len();
    let mut again = Heard::default();
    listen(&client, &job.id, &mut again, |_| false).await.unwrap();
    assert_eq!(again.events.len(), all, "what arrived in two pieces is what is stored");
}

#[tokio::test]
async fn a_worker_that_hangs_is_stopped_and_reported() {
    let system = System::with_runner().await.unwrap();
    let client = system.client().unwrap();
    // Of the two labs the one with the shorter limit, 90 s: the watchdog's clock is real.
    let busbw =
        serde_json::from_value(serde_json::json!({"lab": "busbw", "params": {"backend": "cpu"}})).unwrap();
    let job = client.submit(&busbw).await.unwrap();
    let worker = system.worker(0).await.unwrap();
    process::send(worker, Signal::STOP).unwrap();
    let over = client.finished_within(Duration::from_secs(150), &job.id).await.unwrap();
    let JobState::Failed { failure } = &over.state else { panic!("{:?}\n{}", over.state, system.logs()) };
    assert_eq!(failure.kind, FailureKind::Limit, "{failure:?}");
    assert!(!failure.message.is_empty());
    assert!(!process::alive(worker), "the watchdog left the worker behind");

    // The runner is not harmed.
    let next = client.submit(&ring("107520")).await.unwrap();
    assert!(matches!(client.finished(&next.id).await.unwrap().state, JobState::Done), "{}", system.logs());
}

#[tokio::test]
async fn a_stopped_server_ends_in_order_and_keeps_what_waits() {
    let mut system = System::start().await.unwrap();
    let client = system.client().unwrap();
    let job = client.submit(&ring("107520")).await.unwrap();
    assert!(matches!(client.job(&job.id).await.unwrap().state, JobState::Queued { .. }));
    system.server.signal(Signal::TERM).unwrap();
    let status = system.server.ended_within(Duration::from_secs(20)).unwrap();
    assert!(status.success(), "{status}\n{}", system.logs());

    system.restart_server().await.unwrap();
    system.add_runner("late").unwrap();
    assert!(matches!(client.finished(&job.id).await.unwrap().state, JobState::Done), "{}", system.logs());
}

fn assert_numbered(heard: &Heard) {
    let mut last = (0, 0);
    for event in &heard.events {
        let now = (event.attempt, event.event.seq);
        let follows = if now.0 == last.0 { now.1 == last.1 + 1 } else { now.0 > last.0 && now.1 == 1 };
        assert!(follows, "event {now:?} after {last:?}");
        last = now;
    }
}
