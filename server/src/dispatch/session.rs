//! One runner's connection, from hello to goodbye (`ringlab_labs::wire` is the protocol).
//!
//! The connection owns nothing that matters: a lease outlives it until it expires, and the runner takes it up again with
//! `hello.resume`.

use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use ringlab_labs::job::{Backend, Event};
use ringlab_labs::wire::{Failure, FailureKind, FromRunner, FromServer, LeaseRef, PROTOCOL};
use tokio::sync::mpsc;
use tokio::time::{interval, timeout};

use super::{Connection, settle};
use crate::app::App;
use crate::clock::UnixMs;
use crate::store::events::Append;
use crate::store::leases::Standing;
use crate::store::runners::Introduction;

const HELLO: Duration = Duration::from_secs(10);
const SEND: Duration = Duration::from_secs(10);
/// `runners.seen_ms` is written at most this often.
const SEEN: Duration = Duration::from_secs(2);
/// Longest name and version of a runner, in bytes.
const NAME_MAX: usize = 100;
/// Of a job's own output limit, how much an attempt may store: the runner stops at the limit, this is the server's own bound.
const OUTPUT_FACTOR: u64 = 2;
const OUTPUT_SLACK: u64 = 1 << 20;

/// Why a session ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("the runner closed the connection")]
    Closed,
    #[error("the server is shutting down")]
    Shutdown,
    #[error("nothing was heard of the runner for {0:?}")]
    Silent(Duration),
    #[error("connection: {0}")]
    Socket(#[from] axum::Error),
    #[error("the runner takes nothing")]
    Stuck,
    /// The runner broke the protocol; it is told so.
    #[error("refused: {0}")]
    Refused(String),
    #[error("storage: {0}")]
    Settle(#[from] settle::SettleError),
    #[error("storage: {0}")]
    Store(#[from] crate::store::StoreError),
}

/// Serves a connection whose token was checked.
pub async fn serve(app: App, mut socket: WebSocket, token: String) {
    let end = match greet(&app, &mut socket, token).await {
        Ok((id, connection, inbox)) => {
            let name = connection.name.clone();
            app.dispatcher.connect(&id, connection);
            tracing::info!(runner = name, id, "runner connected");
            let mut session =
                Session { app: &app, id: &id, last_heard: Instant::now(), last_seen: Instant::now() };
            let end = session.run(&mut socket, inbox).await;
            app.dispatcher.disconnect(&id);
            if let Err(error) = app.store.disconnect_runner(&id, UnixMs::now()).await {
                tracing::error!(runner = name, %error, "a runner's departure could not be recorded");
            }
            tracing::info!(runner = name, id, %end, "runner disconnected");
            end
        }
        Err(end) => {
            tracing::info!(%end, "a connection ended before a runner was welcomed");
            end
        }
    };
    farewell(socket, end).await;
}

async fn farewell(mut socket: WebSocket, end: End) {
    let code = match &end {
        End::Refused(reason) => {
            let _ = send(&mut socket, &FromServer::Refused { reason: reason.clone() }).await;
            close_code::POLICY
        }
        End::Shutdown => close_code::RESTART,
        End::Settle(_) | End::Store(_) => close_code::ERROR,
        End::Closed | End::Socket(_) | End::Stuck => return,
        End::Silent(_) => close_code::AWAY,
    };
    // A close frame carries at most 123 bytes of reason.
    let reason = if code == close_code::RESTART { "the server is shutting down; reconnect" } else { "" };
    let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    let _ = timeout(Duration::from_secs(1), socket.send(close)).await;
}

/// Hello, welcome, and the fate of a lease the runner still holds.
async fn greet(
    app: &App,
    socket: &mut WebSocket,
    token: String,
) -> Result<(String, Connection, mpsc::Receiver<FromServer>), End> {
    let first = tokio::select! {
        first = timeout(HELLO, receive(socket)) => first.map_err(|_| End::Silent(HELLO))??,
        () = app.shutdown.cancelled() => return Err(End::Shutdown),
    };
    let Some(FromRunner::Hello { oldest, newest, name, version, hardware, resume }) = first else {
        return Err(End::Refused("the first message must be `hello`".into()));
    };
    let protocol = PROTOCOL.1.min(newest);
    if protocol < PROTOCOL.0.max(oldest) {
        let (low, high) = PROTOCOL;
        let advice = if newest < low { "update the runner" } else { "update the server" };
        return Err(End::Refused(format!(
            "the runner speaks protocol {oldest} to {newest}, this server {low} to {high}: {advice}"
        )));
    }
    let shown = |s: &str| !s.trim().is_empty() && s.len() <= NAME_MAX && !s.chars().any(char::is_control);
    if !shown(&name) || !shown(&version) {
        return Err(End::Refused(format!(
            "name and version must have 1 to {NAME_MAX} bytes and no control characters, got {name:?} and {version:?}"
        )));
    }
    let mut backends: Vec<&'static str> = hardware.backends.iter().map(|b: &Backend| b.name()).collect();
    backends.sort_unstable();
    backends.dedup();
    let now = UnixMs::now();
    let who = Introduction { token, name: name.clone(), version, hardware };
    let id = app.store.connect_runner(&who, now).await?;
    let welcome = FromServer::Welcome {
        protocol,
        runner: id.clone(),
        heartbeat_ms: app.config.heartbeat_ms,
        lease_ms: app.config.lease_ms,
    };
    send(socket, &welcome).await?;
    if let Some(lease) = resume {
        let answer = match app.store.resume_lease(&lease, &id, now.plus(app.config.lease())).await? {
            Standing::Current { last_seq } => {
                tracing::info!(
                    runner = name,
                    job = lease.job,
                    attempt = lease.attempt,
                    last_seq,
                    "lease resumed"
                );
                FromServer::Ack { lease, seq: last_seq }
            }
            Standing::Settled => FromServer::Settled { lease, accepted: true },
            Standing::Over => over(lease),
        };
        send(socket, &answer).await?;
    }
    let (outbox, inbox) = mpsc::channel(16);
    Ok((id, Connection { name, backends, outbox }, inbox))
}

fn over(lease: LeaseRef) -> FromServer {
    FromServer::Cancel {
        lease,
        reason: "this lease is over: the job was cancelled, has ended or belongs to another attempt".into(),
    }
}

struct Session<'a> {
    app: &'a App,
    id: &'a str,
    last_heard: Instant,
    last_seen: Instant,
}

impl Session<'_> {
    async fn run(&mut self, socket: &mut WebSocket, mut inbox: mpsc::Receiver<FromServer>) -> End {
        let mut ping = interval(self.app.config.heartbeat());
        let silence = self.app.config.lease();
        loop {
            let step = tokio::select! {
                message = receive(socket) => match message {
                    Ok(message) => self.heard(socket, message).await,
                    Err(end) => Err(end),
                },
                Some(message) = inbox.recv() => send(socket, &message).await,
                _ = ping.tick() => {
                    if self.last_heard.elapsed() > silence {
                        Err(End::Silent(silence))
                    } else {
                        send_raw(socket, Message::Ping(Default::default())).await
                    }
                }
                () = self.app.shutdown.cancelled() => Err(End::Shutdown),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// `None`: a ping or pong.
    async fn heard(&mut self, socket: &mut WebSocket, message: Option<FromRunner>) -> Result<(), End> {
        self.last_heard = Instant::now();
        if self.last_seen.elapsed() > SEEN {
            self.last_seen = self.last_heard;
            self.app.store.runner_seen(self.id, UnixMs::now()).await?;
        }
        let Some(message) = message else { return Ok(()) };
        let answer = match message {
            FromRunner::Hello { .. } => return Err(End::Refused("`hello` was already said".into())),
            FromRunner::Lease => {
                self.wants_work().await?;
                None
            }
            FromRunner::Heartbeat { lease } => {
                let until = UnixMs::now().plus(self.app.config.lease());
                if self.app.store.extend_lease(&lease, until).await? {
                    None
                } else {
                    Some(self.ended(lease).await?)
                }
            }
            FromRunner::Events { lease, events } => Some(self.events(lease, &events).await?),
            FromRunner::Result { lease, result } => {
                let accepted = settle::result(self.app, &lease, *result).await?;
                Some(FromServer::Settled { lease, accepted })
            }
            FromRunner::Failed { lease, failure } => {
                let accepted = settle::failure(self.app, &lease, failure).await?;
                Some(FromServer::Settled { lease, accepted })
            }
        };
        match answer {
            Some(answer) => send(socket, &answer).await,
            None => Ok(()),
        }
    }

    /// An idle runner cannot hold a lease: one it was given and never settled is lost.
    async fn wants_work(&self) -> Result<(), End> {
        if let Some(lease) = self.app.store.lease_of(self.id).await? {
            let message = "the runner asked for other work without reporting a result".to_owned();
            settle::failure(self.app, &lease, Failure { kind: FailureKind::Runner, message }).await?;
        }
        self.app.dispatcher.idle(self.id);
        Ok(())
    }

    async fn events(&self, lease: LeaseRef, events: &[Event]) -> Result<FromServer, End> {
        let limit = match self.app.store.output_limit(&lease.job).await? {
            Some(bytes) => bytes.saturating_mul(OUTPUT_FACTOR).saturating_add(OUTPUT_SLACK),
            None => return Ok(over(lease)),
        };
        let until = UnixMs::now().plus(self.app.config.lease());
        match self.app.store.append_events(&lease, events, limit, until).await? {
            Append::Stored { last_seq, new } => {
                if new > 0 {
                    metrics::counter!("ringlab_events_total").increment(new);
                    self.app.hub.job_changed(&lease.job);
                }
                Ok(FromServer::Ack { lease, seq: last_seq })
            }
            Append::TooMany { limit_bytes } => {
                let message = format!(
                    "the run wrote more than {limit_bytes} bytes of log, far beyond its limit; it was stopped"
                );
                settle::failure(self.app, &lease, Failure { kind: FailureKind::Limit, message }).await?;
                Ok(FromServer::Cancel { lease, reason: "the attempt's output limit is exceeded".into() })
            }
            Append::NotCurrent => self.ended(lease).await,
        }
    }

    /// What a runner is told that speaks of a lease which is not current.
    async fn ended(&self, lease: LeaseRef) -> Result<FromServer, End> {
        Ok(match self.app.store.standing(&lease).await? {
            Standing::Settled => FromServer::Settled { lease, accepted: true },
            Standing::Current { .. } | Standing::Over => over(lease),
        })
    }
}

/// The next message; `None` for a ping or pong. Cancel-safe.
async fn receive(socket: &mut WebSocket) -> Result<Option<FromRunner>, End> {
    match socket.recv().await {
        None | Some(Ok(Message::Close(_))) => Err(End::Closed),
        Some(Err(error)) => Err(error.into()),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(None),
        Some(Ok(Message::Binary(_))) => {
            Err(End::Refused("messages are JSON in text frames, got a binary frame".into()))
        }
        Some(Ok(Message::Text(text))) => serde_json::from_str(text.as_str())
            .map(Some)
            .map_err(|e| End::Refused(format!("a message is not of protocol {}: {e}", PROTOCOL.1))),
    }
}

async fn send(socket: &mut WebSocket, message: &FromServer) -> Result<(), End> {
    let text = serde_json::to_string(message).expect("messages have string keys and finite numbers");
    send_raw(socket, Message::text(text)).await
}

async fn send_raw(socket: &mut WebSocket, message: Message) -> Result<(), End> {
    timeout(SEND, socket.send(message)).await.map_err(|_| End::Stuck)?.map_err(End::Socket)
}
