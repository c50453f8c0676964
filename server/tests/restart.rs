//! A server killed or told to stop at any moment loses nothing.

mod common;

use std::time::{Duration, Instant};

use common::runner::Runner;
use common::sse::Events;
use common::{Browser, SOON, Server, lease, log, result};
use ringlab_labs::api::JobState;
use ringlab_labs::wire::{FromRunner, FromServer};

#[tokio::test]
async fn a_killed_server_comes_back_with_queue_leases_log_and_guests() {
    let mut server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let job = browser.submit().await;
    let waiting = browser.submit().await;
    let (held, spec) = runner.take().await;
    assert_eq!(runner.send_events(&held, vec![log(1, "a"), log(2, "b")]).await, 2);
    let mut events = Events::open(&browser, &job.id, "", None).await;
    assert_eq!(events.ids(2).await, ["1.1", "1.2"]);

    // Longer away than a lease: nobody could send a heartbeat.
    server.kill_and_restart();
    let mut browser = browser.at(&server);
    assert_eq!(browser.job(&job.id).await.state, JobState::Running);
    let position = browser.job(&waiting.id).await.state;
    assert!(matches!(position, JobState::Queued { position: 1, .. }), "{position:?}");

    let mut runner = Runner::connect(&server, "one", Some(held.clone())).await;
    assert_eq!(runner.hear().await, FromServer::Ack { lease: held.clone(), seq: 2 });
    let mut events = Events::open(&browser, &job.id, "", Some("1.2")).await;
    assert_eq!(runner.send_events(&held, vec![log(2, "b"), log(3, "c")]).await, 3);
    assert!(runner.finish(&held, result(&spec, vec![])).await);
    let (ids, state) = events.rest().await;
    assert_eq!(ids, ["1.3"]);
    assert_eq!(state.unwrap().state, JobState::Done);

    server.kill_and_restart();
    let mut browser = browser.at(&server);
    let done = browser.job(&job.id).await;
    assert_eq!((done.state, done.attempt), (JobState::Done, 1));
    assert!(done.marks.is_some());
    let mut runner = Runner::connect(&server, "one", None).await;
    assert_eq!(runner.take().await.0, lease(&waiting.id, 1));
}

#[tokio::test]
async fn a_runner_that_stays_away_after_the_restart_loses_its_lease_in_time() {
    let mut server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let job = browser.submit().await;
    runner.take().await;
    server.kill_and_restart();
    let back = Instant::now();
    let mut browser = browser.at(&server);
    browser.wait_for(&job.id, |s| matches!(s, JobState::Queued { .. })).await;
    assert!(
        back.elapsed() >= Duration::from_millis(1_000),
        "the lease got a fresh grace: {:?}",
        back.elapsed()
    );
}

#[tokio::test]
async fn a_server_told_to_stop_ends_streams_and_sockets_and_exits_well() {
    let mut server = Server::start_with(&["--shutdown-ms", "600000"]);
    let mut browser = Browser::new(&server);
    let job = browser.submit().await;
    let mut runner = Runner::connect(&server, "one", None).await;
    let (held, _) = runner.take().await;
    runner.say(&FromRunner::Heartbeat { lease: held }).await;
    let mut events = Events::open(&browser, &job.id, "", None).await;
    let stopping = std::thread::spawn(move || {
        let start = Instant::now();
        (server.terminate(), start.elapsed(), server)
    });
    let (_, state) = tokio::time::timeout(SOON, events.rest()).await.unwrap();
    assert_eq!(state.unwrap().state, JobState::Running);
    assert!(runner.next().await.is_none());
    let (status, took, _server) = stopping.join().unwrap();
    assert!(status.success(), "{status}");
    assert!(took < SOON, "it did not wait for its deadline: {took:?}");
}
