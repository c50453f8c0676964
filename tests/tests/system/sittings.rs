//! Candidates who save while the server is killed.

use std::time::Duration;

use ringlab_tests::sittings::{Load, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_save_is_lost_when_the_server_is_killed() {
    let load = Load { candidates: 40, every: Duration::from_secs(1), lasts: Duration::from_secs(8) };
    let outcome = run(load).await.unwrap();
    assert_eq!(outcome.lost, 0);
    assert!(outcome.saves >= 160 && !outcome.repeated_ms.is_empty(), "the kill met someone: {outcome:?}");
}
