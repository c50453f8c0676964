//! Connections that say nothing, or not enough.

mod common;

use std::time::{Duration, Instant};

use common::{Browser, SOON, Server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn dial(server: &Server) -> TcpStream {
    TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap()
}

#[tokio::test]
async fn who_sends_no_whole_request_in_time_is_let_go() {
    let server = Server::start_with(&["--idle-ms", "500"]);
    let start = Instant::now();
    for said in ["", "GET /en/ HTTP/1.1\r\nHost: a\r\nX-Slow: ", "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let mut socket = dial(&server).await;
        socket.write_all(said.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        let end = timeout(SOON, socket.read_to_end(&mut heard)).await;
        assert!(end.is_ok(), "after {said:?} the connection stays open");
    }
    assert!(start.elapsed() >= Duration::from_millis(1_400), "not before its time: {:?}", start.elapsed());
}

#[tokio::test]
async fn more_silent_connections_than_a_common_limit_of_open_files_keep_nobody_out() {
    // The server inherits the soft limit and takes the hard one; this process needs as many itself.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(1_024), ..limit }).unwrap();
    let server = Server::start();
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let mut silent = Vec::new();
    for _ in 0..1_200 {
        silent.push(dial(&server).await);
    }
    let answer = timeout(SOON, Browser::new(&server).get("/healthz")).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}
