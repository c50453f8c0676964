//! The daemon against the wire: a server that loses connections, cancels, refuses; workers that hang or die; the daemon itself killed.

mod common;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::server::{Daemon, Server, TOKEN, lease, until};
use common::{Folder, children, endless_job, is_alive, job, task};
use ringlab_engine::plan::Algorithm;
use ringlab_engine::trace::Trace;
use ringlab_labs::job::EventBody;
use ringlab_labs::wire::{FailureKind, FromRunner, FromServer};
use rustix::process::{Pid, Signal};
use sha2::{Digest, Sha256};

fn kill(pid: i32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn a_job_is_run_and_its_events_files_and_result_arrive_in_this_order() {
    let mut server = Server::start().await;
    server.busy.store(2, Ordering::SeqCst);
    let daemon = Daemon::start(&server, &[]);
    let mut peer = server.assign(job(vec![task(Algorithm::Ring, 4)])).await;
    let (events, end) = peer.finish(0).await;
    let FromRunner::Result { lease: of, result } = end else { panic!("{end:?}") };
    assert_eq!(of, lease(1));
    assert_eq!(
        (result.tasks[0].wrong, result.tasks[0].elements),
        (0, 2 * 4 * 1000),
        "outputs, and inputs left as they were"
    );
    assert!(
        events.iter().any(|e| matches!(&e.body, EventBody::TaskDone { result: r } if *r == result.tasks[0]))
    );
    let stored = server.artifacts.lock().unwrap().clone();
    for artifact in &result.artifacts {
        let content = &stored[&artifact.sha256];
        let hash: String = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!((artifact.bytes, &artifact.sha256), (content.len() as u64, &hash), "{}", artifact.name);
    }
    let trace = result.artifacts.iter().find(|a| a.name == "trace-first.json").unwrap();
    let trace: Trace = serde_json::from_slice(&stored[&trace.sha256]).unwrap();
    assert_eq!((trace.ranks, trace.spans.is_empty()), (4, false));

    peer.send(FromServer::Settled { lease: lease(1), accepted: true }).await;
    assert_eq!(peer.receive().await, FromRunner::Lease, "after its job it wants the next one");
    assert_eq!(daemon.job_folders(), Vec::<String>::new());
    assert_eq!(children(daemon.pid()), Vec::<i32>::new());
}

#[tokio::test]
async fn after_a_lost_connection_the_lease_is_resumed_and_nothing_is_lost_or_renumbered() {
    let mut server = Server::start().await;
    let _daemon = Daemon::start(&server, &[]);
    let mut peer = server.assign(job(vec![task(Algorithm::TwoShot, 2)])).await;
    let first = peer.events(3).await;
    peer.acknowledge(2).await;
    drop(peer);

    let (mut peer, _, resume) = server.welcome().await;
    assert_eq!(resume, Some(lease(1)));
    let again = peer.events(1).await;
    // The acknowledgement may have been lost with the connection; both are right, a gap is not.
    assert!([1, 3].contains(&again[0].seq), "{}", again[0].seq);
    let same = &first[again[0].seq as usize - 1];
    assert_eq!(&again[0], same);
    let so_far = again.last().unwrap().seq;
    peer.acknowledge(so_far).await;
    let (_, end) = peer.finish(so_far).await;
    assert!(matches!(end, FromRunner::Result { .. }), "{end:?}");
    drop(peer);

    let (mut peer, _, resume) = server.welcome().await;
    assert_eq!(resume, Some(lease(1)), "a result nobody settled is still owed");
    assert_eq!(peer.receive().await, end);
    peer.send(FromServer::Settled { lease: lease(1), accepted: true }).await;
    assert_eq!(peer.receive().await, FromRunner::Lease);
}

#[tokio::test]
async fn events_that_are_not_acknowledged_are_sent_again_on_the_same_connection() {
    let mut server = Server::start().await;
    let _daemon = Daemon::start(&server, &[]);
    let mut peer = server.assign(job(vec![task(Algorithm::Ring, 2)])).await;
    let first = peer.events(1).await;
    let again = loop {
        let events = peer.events(1).await;
        if events[0].seq == 1 {
            break events;
        }
    };
    assert_eq!(again[0], first[0]);
}

#[tokio::test]
async fn a_cancelled_job_is_killed_and_nothing_more_is_said_of_it() {
    let mut server = Server::start().await;
    let daemon = Daemon::start(&server, &[]);
    let mut peer = server.assign(endless_job()).await;
    peer.events(1).await;
    let worker = daemon.worker().await;
    peer.send(FromServer::Cancel { lease: lease(1), reason: "the learner changed their mind".into() }).await;
    loop {
        match peer.receive().await {
            // On its way before the cancellation arrived.
            FromRunner::Events { .. } => {}
            FromRunner::Lease => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(!is_alive(worker));
    assert_eq!(daemon.job_folders(), Vec::<String>::new());
}

#[tokio::test]
async fn a_lease_that_another_attempt_owns_is_dropped() {
    let mut server = Server::start().await;
    let daemon = Daemon::start(&server, &[]);
    let mut peer = server.assign(endless_job()).await;
    peer.events(1).await;
    let worker = daemon.worker().await;
    drop(peer);
    let (mut peer, _, resume) = server.welcome().await;
    assert_eq!(resume, Some(lease(1)));
    peer.send(FromServer::Settled { lease: lease(1), accepted: false }).await;
    while !matches!(peer.receive().await, FromRunner::Lease) {}
    assert!(!is_alive(worker));
}

#[tokio::test]
async fn a_worker_that_hangs_is_stopped_and_reported_within_its_wall_clock_limit() {
    let mut server = Server::start().await;
    let daemon = Daemon::start(&server, &[]);
    let mut spec = endless_job();
    spec.limits.wall_ms = 2_000;
    let mut peer = server.assign(spec).await;
    let started = Instant::now();
    let worker = daemon.worker().await;
    kill(worker, Signal::STOP);
    let (_, end) = peer.finish(0).await;
    let FromRunner::Failed { failure, .. } = end else { panic!("{end:?}") };
    assert_eq!(failure.kind, FailureKind::Limit);
    assert!(failure.message.contains("2 s") && failure.message.contains("suspended"), "{}", failure.message);
    // The limit, SIGTERM's grace, and a busy machine.
    assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
    assert!(!is_alive(worker));
}

#[tokio::test]
async fn a_worker_that_dies_is_the_runners_failure() {
    let mut server = Server::start().await;
    let daemon = Daemon::start(&server, &[]);
    let mut peer = server.assign(endless_job()).await;
    let first = peer.events(1).await;
    kill(daemon.worker().await, Signal::KILL);
    let so_far = first.last().unwrap().seq;
    peer.acknowledge(so_far).await;
    let (events, end) = peer.finish(so_far).await;
    let FromRunner::Failed { failure, .. } = end else { panic!("{end:?}") };
    assert_eq!(failure.kind, FailureKind::Runner);
    assert!(failure.message.contains("signal 9"), "{}", failure.message);
    let last = &events.last().unwrap().body;
    assert!(matches!(last, EventBody::Log { message, .. } if *message == failure.message), "{last:?}");
}

#[tokio::test]
async fn a_daemon_killed_at_once_takes_its_worker_along_and_the_next_one_cleans_up() {
    let mut server = Server::start().await;
    let work = Folder::new();
    let mut daemon = Daemon::start_in(work.path(), &server, TOKEN, &[]);
    let mut peer = server.assign(endless_job()).await;
    peer.events(1).await;
    let worker = daemon.worker().await;
    daemon.signal(Signal::KILL);
    daemon.exit().await;
    until("the worker is gone", || (!is_alive(worker)).then_some(())).await;
    assert_eq!(daemon.job_folders().len(), 1);

    let next = Daemon::start_in(work.path(), &server, TOKEN, &[]);
    server.welcome().await;
    assert_eq!(daemon.job_folders(), Vec::<String>::new(), "{}", next.log());
}

#[tokio::test]
async fn sigterm_gives_a_running_job_its_grace_then_reports_it_and_ends() {
    let mut server = Server::start().await;
    let mut daemon = Daemon::start(&server, &["--grace", "1"]);
    let mut peer = server.assign(endless_job()).await;
    peer.events(1).await;
    daemon.signal(Signal::TERM);
    let failure = loop {
        match peer.receive().await {
            FromRunner::Events { events, .. } => peer.acknowledge(events.last().unwrap().seq).await,
            FromRunner::Failed { failure, .. } => break failure,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(failure.kind, FailureKind::Runner);
    peer.send(FromServer::Settled { lease: lease(1), accepted: true }).await;
    assert!(daemon.exit().await.success());
}

#[tokio::test]
async fn an_idle_daemon_ends_at_sigterm() {
    let mut server = Server::start().await;
    let mut daemon = Daemon::start(&server, &[]);
    let (mut peer, ..) = server.welcome().await;
    assert_eq!(peer.receive().await, FromRunner::Lease);
    daemon.signal(Signal::TERM);
    assert!(daemon.exit().await.success());
}

#[tokio::test]
async fn a_wrong_token_ends_the_daemon_with_a_word_about_it() {
    let server = Server::start().await;
    let work = Folder::new();
    let mut daemon = Daemon::start_in(work.path(), &server, "another", &[]);
    assert!(!daemon.exit().await.success());
    assert!(daemon.log().contains("--runner-token"), "{}", daemon.log());
    assert!(!daemon.log().contains("another"), "the token is not logged");
}

#[tokio::test]
async fn a_job_for_a_backend_it_does_not_offer_goes_back() {
    let mut server = Server::start().await;
    let _daemon = Daemon::start(&server, &[]);
    let mut task = task(Algorithm::Ring, 2);
    task.backend = ringlab_labs::job::Backend::Cuda;
    let mut peer = server.assign(job(vec![task])).await;
    let (_, end) = peer.finish(0).await;
    let FromRunner::Failed { failure, .. } = end else { panic!("{end:?}") };
    assert_eq!(failure.kind, FailureKind::Runner);
    assert!(failure.message.contains("offers cpu"), "{}", failure.message);
}
