//! Connections: taken in, closed when they send no request in time, ended in order. `axum::serve` has no deadline for a request's head:
//! a thousand clients that say nothing would use up the open files of a common limit, and nobody else could connect.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

/// After an error that says nothing about the one connection (out of open files): until the next try.
const PAUSE: Duration = Duration::from_millis(200);

/// Each event stream holds a connection: takes as many open files as this process may have.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, ?limit, "the limit of open files stays: it bounds the connections");
    }
}

/// Serves until `shutdown`, then until the last request in flight is answered.
pub async fn serve(listener: TcpListener, router: Router, idle: Duration, shutdown: CancellationToken) {
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((tcp, peer)) => {
                connections.spawn(connection(tcp, peer, router.clone(), idle, shutdown.clone()));
            }
            // The client left before its turn came.
            Err(e) if matches!(e.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
            Err(error) => {
                tracing::error!(%error, "a connection could not be taken in");
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn connection(
    tcp: TcpStream,
    peer: SocketAddr,
    router: Router,
    idle: Duration,
    shutdown: CancellationToken,
) {
    if let Err(error) = tcp.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(idle);
    let serving = builder.serve_connection(TokioIo::new(tcp), service).with_upgrades();
    tokio::pin!(serving);
    let end = tokio::select! {
        end = serving.as_mut() => end,
        () = shutdown.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = end {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}
