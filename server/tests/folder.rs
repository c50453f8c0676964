//! One data folder, more than one process; and a process that stood still.

mod common;

use std::time::Duration;

use common::runner::Runner;
use common::{Browser, SOON, Server, TOKEN, result};
use ringlab_labs::api::JobState;
use ringlab_labs::wire::FromServer;
use rustix::process::Signal;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn a_second_server_on_the_same_folder_is_refused_and_disturbs_nothing() {
    // The runner says nothing while the test waits for the second server, which reads the whole course and bank first.
    let server = Server::start_with(&["--lease-ms", "60000", "--heartbeat-ms", "20000"]);
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let out = server.beside(&[]);
    let words = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && words.contains("another ringlab-server serves"), "{out:?}");
    let runners = browser.get("/api/v1/runners").await.text;
    assert!(runners.contains("\"one\""), "the runner counts as connected: {runners}");
    let job = browser.submit().await;
    let (held, spec) = runner.take().await;
    assert!(runner.finish(&held, result(&spec, vec![])).await);
    assert_eq!(browser.job(&job.id).await.state, JobState::Done);
}

#[tokio::test]
async fn a_command_beside_a_server_leaves_its_uploads_alone() {
    let server = Server::start();
    let content = vec![7u8; 100_000];
    let sha256: String = Sha256::digest(&content).iter().map(|b| format!("{b:02x}")).collect();
    let mut socket = tokio::net::TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    let head = format!(
        "PUT /api/v1/runner/artifacts/{sha256} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&content[..50_000]).await.unwrap();
    let unfinished = || std::fs::read_dir(server.data.join("artifacts/tmp")).unwrap().count();
    let start = std::time::Instant::now();
    while unfinished() == 0 {
        assert!(start.elapsed() < SOON, "the upload has begun");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.command(&["remark"]);
    socket.write_all(&content[50_000..]).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(SOON, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

/// As on a machine that was suspended: nobody could be heard, so nobody is to blame.
#[tokio::test]
async fn a_server_that_stood_still_for_longer_than_a_lease_ends_none() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let mut runner = Runner::connect(&server, "one", None).await;
    let job = browser.submit().await;
    let (held, spec) = runner.take().await;
    server.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    server.signal(Signal::CONT);
    tokio::time::sleep(Duration::from_millis(700)).await;
    let mut runner = Runner::connect(&server, "one", Some(held.clone())).await;
    assert_eq!(runner.hear().await, FromServer::Ack { lease: held.clone(), seq: 0 });
    assert!(runner.finish(&held, result(&spec, vec![])).await);
    assert_eq!(browser.job(&job.id).await.attempt, 1);
}
