//! The daemon's life: connect, say hello, ask for work, keep the lease alive, report, come back after a lost connection, stop when told.
//!
//! One task owns all state. Work goes on while there is no connection; only the server decides that a lease is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use ringlab_labs::job::JobSpec;
use ringlab_labs::wire::{Failure, FailureKind, FromRunner, FromServer, LeaseRef, PROTOCOL};
use tokio::sync::{mpsc, watch};

use super::attempt::{self, Node, Report};
use super::backoff::Backoff;
use super::connection::{ConnectError, Connection, Incoming};
use super::work::Work;
use crate::config::Config;
use crate::supervise::Order;

/// Deadlines are looked at this often.
const TICK: Duration = Duration::from_millis(200);
/// Longest the server may take to answer a hello.
const WELCOME: Duration = Duration::from_secs(10);
/// After a worker was given up at shutdown: to end it and to tell the server.
const LAST_WORDS: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Agent {
    config: Config,
    node: Arc<Node>,
    work: Option<Work>,
    reports: mpsc::UnboundedReceiver<Report>,
    reporter: mpsc::UnboundedSender<Report>,
    stop: watch::Receiver<bool>,
    stopping_since: Option<Instant>,
}

/// Why a session ended without an error.
#[derive(Debug, PartialEq, Eq)]
enum Over {
    /// Everything is said; the daemon may end.
    Finished,
}

impl Agent {
    /// `stop` turns true when the daemon is to end.
    pub fn new(config: Config, node: Node, stop: watch::Receiver<bool>) -> Agent {
        let (reporter, reports) = mpsc::unbounded_channel();
        Agent { config, node: Arc::new(node), work: None, reports, reporter, stop, stopping_since: None }
    }

    /// Until told to stop, or refused by the server.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let mut backoff = Backoff::default();
        loop {
            let Some(opened) = self.meanwhile(open(self.config.clone(), self.hello())).await else {
                return Ok(());
            };
            let error = match opened {
                Ok((connection, heartbeat)) => {
                    tracing::info!(server = %self.config.server, "connected");
                    backoff.reset();
                    match self.session(connection, heartbeat).await {
                        Ok(Over::Finished) => return Ok(()),
                        Err(e) => e,
                    }
                }
                Err(ConnectError::Refused(reason)) => bail!("the server refused this runner: {reason}"),
                Err(ConnectError::Lost(e)) => e,
            };
            let wait = backoff.next_wait();
            tracing::warn!("no connection, trying again in {:.1} s: {error:#}", wait.as_secs_f64());
            if self.meanwhile(tokio::time::sleep(wait)).await.is_none() {
                return Ok(());
            }
        }
    }

    /// Waits for something while the work and the clock go on. `None`: the daemon is to end now.
    async fn meanwhile<T>(&mut self, what: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(what);
        let mut tick = tokio::time::interval(TICK);
        loop {
            if self.may_end() {
                return None;
            }
            tokio::select! {
                value = &mut what => return Some(value),
                Some(report) = self.reports.recv() => self.take(report),
                _ = tick.tick() => self.on_tick(),
            }
        }
    }

    async fn session(&mut self, mut connection: Connection, heartbeat: Duration) -> anyhow::Result<Over> {
        if let Some(work) = &mut self.work {
            work.rewind();
        }
        let mut asked = false;
        let mut last_sign = Instant::now();
        let mut tick = tokio::time::interval(TICK);
        let mut beat = tokio::time::interval(heartbeat);
        loop {
            self.say(&mut connection, &mut asked).await?;
            if self.may_end() {
                connection.close().await;
                return Ok(Over::Finished);
            }
            tokio::select! {
                incoming = connection.receive() => {
                    last_sign = Instant::now();
                    if let Incoming::Message(message) = incoming?
                        && let Some(answer) = self.hear(message, &mut asked)?
                    {
                        connection.send(&answer).await?;
                    }
                }
                Some(report) = self.reports.recv() => {
                    self.take(report);
                    // What is already there goes into the same frame.
                    while let Ok(report) = self.reports.try_recv() {
                        self.take(report);
                    }
                }
                _ = tick.tick() => self.on_tick(),
                _ = beat.tick() => {
                    if last_sign.elapsed() > heartbeat * 3 + Duration::from_secs(5) {
                        bail!("no sign of the server for {:.1} s", last_sign.elapsed().as_secs_f64());
                    }
                    if let Some(work) = self.work.as_ref().filter(|w| w.is_held()) {
                        connection.send(&FromRunner::Heartbeat { lease: work.lease().clone() }).await?;
                    }
                    connection.ping().await?;
                }
            }
        }
    }

    /// Sends everything that is due.
    async fn say(&mut self, connection: &mut Connection, asked: &mut bool) -> anyhow::Result<()> {
        if let Some(work) = &mut self.work {
            while let Some(message) = work.next_message() {
                connection.send(&message).await?;
            }
        } else if !*asked && self.stopping_since.is_none() {
            connection.send(&FromRunner::Lease).await?;
            *asked = true;
        }
        Ok(())
    }

    fn hear(&mut self, message: FromServer, asked: &mut bool) -> anyhow::Result<Option<FromRunner>> {
        let ours = |work: &&mut Work, lease: &LeaseRef| work.lease() == lease;
        match message {
            FromServer::Assign { lease, spec } => {
                *asked = false;
                return Ok(self.begin(lease, *spec));
            }
            FromServer::Ack { lease, seq } => {
                if let Some(work) = &mut self.work {
                    work.acknowledge(&lease, seq);
                }
            }
            FromServer::Settled { lease, accepted } => {
                if let Some(work) = self.work.as_mut().filter(|w| ours(w, &lease)) {
                    tracing::info!(job = %lease.job, attempt = lease.attempt, accepted, "settled");
                    work.settle(accepted);
                }
            }
            FromServer::Cancel { lease, reason } => {
                if let Some(work) = self.work.as_mut().filter(|w| ours(w, &lease)) {
                    tracing::info!(job = %lease.job, attempt = lease.attempt, reason, "cancelled");
                    work.abandon();
                }
            }
            FromServer::Welcome { .. } => {}
            FromServer::Refused { reason } => bail!("the server ended the connection: {reason}"),
        }
        self.forget_if_over();
        Ok(None)
    }

    fn begin(&mut self, lease: LeaseRef, spec: JobSpec) -> Option<FromRunner> {
        if let Some(work) = &self.work {
            if *work.lease() == lease {
                return None;
            }
            let message = format!("This runner still works on the job {}.", work.lease().job);
            return Some(FromRunner::Failed {
                lease,
                failure: Failure { kind: FailureKind::Runner, message },
            });
        }
        tracing::info!(job = %lease.job, attempt = lease.attempt, lab = %spec.lab, tasks = spec.tasks.len(), "assigned");
        let (orders, receiver) = watch::channel(Order::Work);
        tokio::spawn(attempt::run(
            Arc::clone(&self.node),
            lease.clone(),
            spec,
            receiver,
            self.reporter.clone(),
        ));
        self.work = Some(Work::new(lease, orders));
        None
    }

    fn take(&mut self, report: Report) {
        if let Some(work) = &mut self.work {
            let lease = work.lease().clone();
            work.take(report, || FromRunner::Failed {
                lease,
                failure: Failure {
                    kind: FailureKind::Runner,
                    message: "The runner was shut down before the job was finished; another attempt follows."
                        .into(),
                },
            });
        }
        self.forget_if_over();
    }

    fn on_tick(&mut self) {
        let now = Instant::now();
        if *self.stop.borrow() && self.stopping_since.is_none() {
            self.stopping_since = Some(now);
            let grace = self.config.grace.as_secs();
            tracing::info!(busy = self.work.is_some(), "stopping; a running job has {grace} s to finish");
        }
        if let Some(work) = &mut self.work {
            work.on_tick(now);
            if self.stopping_since.is_some_and(|since| now.duration_since(since) >= self.config.grace) {
                work.stop();
            }
        }
        self.forget_if_over();
    }

    fn forget_if_over(&mut self) {
        self.work.take_if(|work| work.is_over());
    }

    /// Whether the daemon was told to stop and has nothing left to wait for.
    fn may_end(&self) -> bool {
        let Some(since) = self.stopping_since else { return false };
        self.work.is_none() || since.elapsed() >= self.config.grace + LAST_WORDS
    }

    fn hello(&self) -> FromRunner {
        FromRunner::Hello {
            oldest: PROTOCOL.0,
            newest: PROTOCOL.1,
            name: self.config.name.clone(),
            version: crate::version(),
            hardware: self.node.hardware.clone(),
            resume: self.work.as_ref().filter(|w| w.is_held()).map(|w| w.lease().clone()),
        }
    }
}

/// Connects and is welcomed. Returns the heartbeat interval the server wants.
async fn open(config: Config, hello: FromRunner) -> Result<(Connection, Duration), ConnectError> {
    let mut connection = Connection::open(&config).await?;
    let greeting = async {
        connection.send(&hello).await?;
        loop {
            if let Incoming::Message(message) = connection.receive().await? {
                return Ok(message);
            }
        }
    };
    let answer = match tokio::time::timeout(WELCOME, greeting).await {
        Ok(answer) => answer.map_err(ConnectError::Lost)?,
        Err(_) => {
            let error = anyhow::anyhow!("the server did not answer the hello within {} s", WELCOME.as_secs());
            return Err(ConnectError::Lost(error));
        }
    };
    match answer {
        FromServer::Welcome { protocol, heartbeat_ms, .. }
            if (PROTOCOL.0..=PROTOCOL.1).contains(&protocol) =>
        {
            // Zero would make the interval panic, and a tenth of a second is often enough for any lease.
            Ok((connection, Duration::from_millis(heartbeat_ms.max(100))))
        }
        FromServer::Welcome { protocol, .. } => Err(ConnectError::Refused(format!(
            "it speaks protocol {protocol}, this runner {} to {}: bring both to the same version",
            PROTOCOL.0, PROTOCOL.1
        ))),
        FromServer::Refused { reason } => Err(ConnectError::Refused(reason)),
        other => {
            let error = anyhow::anyhow!("expected a welcome, got {other:?}");
            Err(ConnectError::Lost(error.context("the server answered the hello with something else")))
        }
    }
}

/// Turns the first SIGTERM or SIGINT into `true` and ends the process at the second; the kernel then ends its worker.
pub fn stop_signals() -> anyhow::Result<watch::Receiver<bool>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (sender, receiver) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    tokio::spawn(async move {
        for count in 1.. {
            let number = tokio::select! {
                _ = terminate.recv() => 15,
                _ = interrupt.recv() => 2,
            };
            if count > 1 {
                tracing::warn!("second signal: ending at once");
                std::process::exit(128 + number);
            }
            sender.send_replace(true);
        }
    });
    Ok(receiver)
}
