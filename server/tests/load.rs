//! Many jobs, many runners: none lost, none doubled.

mod common;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::runner::Runner;
use common::{Browser, Server, log};
use futures_util::future::join_all;
use ringlab_labs::api::{JobState, JobView};
use ringlab_labs::wire::FailureKind;

const USERS: usize = 50;
const JOBS_EACH: usize = 20;
const RUNNERS: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_jobs_on_a_hundred_runners_each_run_once() {
    let server = Arc::new(Server::start_with(&[
        "--max-active-jobs",
        "100",
        "--lease-ms",
        "60000",
        "--heartbeat-ms",
        "20000",
    ]));
    let users = join_all((0..USERS).map(|_| {
        let mut browser = Browser::new(&server);
        async move {
            for _ in 0..JOBS_EACH {
                browser.submit().await;
            }
            browser
        }
    }))
    .await;
    let start = Instant::now();
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let runners = (0..RUNNERS).map(|n| {
        let (server, seen) = (server.clone(), seen.clone());
        tokio::spawn(async move {
            let mut runner = Runner::connect(&server, &format!("runner {n}"), None).await;
            loop {
                let (lease, _) = runner.take().await;
                assert_eq!(lease.attempt, 1);
                assert!(seen.lock().unwrap().insert(lease.job.clone()), "{} was given twice", lease.job);
                assert_eq!(runner.send_events(&lease, vec![log(1, "a"), log(2, "b")]).await, 2);
                assert!(runner.fail(&lease, FailureKind::Job, "done").await);
            }
        })
    });
    let runners: Vec<_> = runners.collect();
    while seen.lock().unwrap().len() < USERS * JOBS_EACH {
        assert!(start.elapsed() < Duration::from_secs(120), "{} jobs", seen.lock().unwrap().len());
        assert!(runners.iter().all(|r| !r.is_finished()), "a runner gave up");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for mut browser in users {
        let jobs: Vec<JobView> = browser.get("/api/v1/jobs").await.json();
        assert_eq!(jobs.len(), JOBS_EACH);
        for job in jobs {
            let end = browser.wait_for(&job.id, JobState::is_final).await;
            assert!(end.attempt == 1 && matches!(end.state, JobState::Failed { .. }), "{end:?}");
        }
    }
    println!("{} jobs leased by {RUNNERS} runners in {:?}", USERS * JOBS_EACH, start.elapsed());
    runners.iter().for_each(tokio::task::JoinHandle::abort);
}
