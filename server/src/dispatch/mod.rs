//! Jobs to runners. The queue and every lease live in the database; here is only who is connected, who is idle, and when to look.
//!
//! A new job, an idle runner, a retry: each calls [`Dispatcher::wake`], which stores a permit, so that a call between two looks is not
//! lost. One task ([`Dispatcher::run`]) hands out leases, in the order in which runners became idle.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ringlab_labs::wire::{FromServer, LeaseRef};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::clock::{Passage, UnixMs};
use crate::store::leases::{After, Taker};
use crate::store::{Store, StoreResult};
use crate::stream::hub::Hub;

pub mod report;
pub mod session;
pub mod settle;

/// How long a job keeps away from a runner that has just failed it.
pub const AVOID: Duration = Duration::from_secs(2);
/// Even without a wake-up call the queue is looked at this often: for jobs that kept away from a runner.
const TICK: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Dispatcher {
    store: Store,
    hub: Arc<Hub>,
    lease: Duration,
    wake: Notify,
    connections: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    by_id: HashMap<String, Connection>,
    /// Ids of connections that asked for work, longest waiting first.
    idle: VecDeque<String>,
}

#[derive(Debug, Clone)]
pub struct Connection {
    pub name: String,
    pub backends: Vec<&'static str>,
    /// What the session sends next. Bounded: a runner that takes nothing is gone.
    pub outbox: mpsc::Sender<FromServer>,
}

impl Dispatcher {
    pub fn new(store: Store, hub: Arc<Hub>, lease: Duration) -> Dispatcher {
        Dispatcher { store, hub, lease, wake: Notify::new(), connections: Mutex::default() }
    }

    /// There may be something to hand out.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    pub fn connect(&self, id: &str, connection: Connection) {
        self.lock().by_id.insert(id.to_owned(), connection);
        self.hub.queue_changed();
    }

    pub fn disconnect(&self, id: &str) {
        let mut connections = self.lock();
        connections.by_id.remove(id);
        connections.idle.retain(|other| other != id);
        drop(connections);
        self.hub.queue_changed();
    }

    /// The runner of this connection wants a job.
    pub fn idle(&self, id: &str) {
        let mut connections = self.lock();
        if connections.by_id.contains_key(id) && !connections.idle.iter().any(|other| other == id) {
            connections.idle.push_back(id.to_owned());
        }
        drop(connections);
        self.wake();
    }

    /// Tells a runner to stop, if it is connected here; otherwise it hears it when it comes back.
    pub fn cancel(&self, runner: &str, lease: LeaseRef, reason: &str) {
        let outbox = self.lock().by_id.get(runner).map(|c| c.outbox.clone());
        if let Some(outbox) = outbox
            && outbox.try_send(FromServer::Cancel { lease, reason: reason.to_owned() }).is_err()
        {
            tracing::warn!(runner, "a runner could not be told to stop; its next heartbeat is answered so");
        }
    }

    /// Connected and idle runners.
    pub fn counts(&self) -> (usize, usize) {
        let connections = self.lock();
        (connections.by_id.len(), connections.idle.len())
    }

    /// Hands out leases until shutdown.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.wake.notified() => {}
                _ = tick.tick() => {}
                () = shutdown.cancelled() => return,
            }
            if let Err(error) = self.hand_out().await {
                tracing::error!(%error, "leases could not be given; trying again in a moment");
            }
        }
    }

    async fn hand_out(&self) -> StoreResult<()> {
        let waiting: Vec<(String, Connection)> = {
            let connections = self.lock();
            let known = |id: &String| connections.by_id.get(id).map(|c| (id.clone(), c.clone()));
            connections.idle.iter().filter_map(known).collect()
        };
        if waiting.is_empty() {
            return Ok(());
        }
        let mut wanted = self.store.wanted_backends().await?;
        for (id, connection) in waiting {
            if wanted.is_empty() {
                break;
            }
            if !connection.backends.iter().any(|b| wanted.iter().any(|w| w == b)) {
                continue;
            }
            let taker = Taker { runner: &id, name: &connection.name, backends: &connection.backends };
            let Some(leased) = self.store.lease_next(&taker, self.lease, UnixMs::now()).await? else {
                continue;
            };
            let lease = leased.lease.clone();
            let assign = FromServer::Assign { lease: lease.clone(), spec: Box::new(leased.spec) };
            if self.take_idle(&id) && connection.outbox.try_send(assign).is_ok() {
                metrics::histogram!("ringlab_queue_wait_seconds").record(leased.waited.as_secs_f64());
                tracing::info!(
                    job = lease.job,
                    attempt = lease.attempt,
                    runner = connection.name,
                    waited_ms = leased.waited.as_millis(),
                    "job leased"
                );
            } else {
                tracing::info!(
                    job = lease.job,
                    runner = connection.name,
                    "runner left before it got the job"
                );
                self.store.return_lease(&lease, UnixMs::now()).await?;
                self.wake();
            }
            self.changed(&lease.job);
            wanted = self.store.wanted_backends().await?;
        }
        Ok(())
    }

    /// False: the runner left.
    fn take_idle(&self, id: &str) -> bool {
        let mut connections = self.lock();
        let before = connections.idle.len();
        connections.idle.retain(|other| other != id);
        connections.idle.len() < before
    }

    /// A job changed its state, and with it the queue.
    pub fn changed(&self, job: &str) {
        self.hub.job_changed(job);
        self.hub.queue_changed();
    }

    /// Ends leases that ran out, until shutdown.
    pub async fn sweep(self: Arc<Self>, shutdown: CancellationToken) {
        let mut tick = interval((self.lease / 4).clamp(Duration::from_millis(20), Duration::from_secs(1)));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut time = Passage::new(Instant::now(), UnixMs::now());
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = shutdown.cancelled() => return,
            }
            let now = UnixMs::now();
            if !time.is_even(Instant::now(), now, self.lease) {
                match self.store.refresh_leases(now.plus(self.lease)).await {
                    Ok(running) => tracing::warn!(
                        running,
                        "the clock was set, or this server stood still: leases renewed"
                    ),
                    Err(error) => tracing::error!(%error, "leases could not be renewed"),
                }
                continue;
            }
            match self.store.expire_leases(self.lease, now).await {
                Ok(expired) => {
                    for (lease, after) in expired {
                        metrics::counter!("ringlab_leases_expired_total").increment(1);
                        let retried = after == After::Requeued;
                        tracing::warn!(job = lease.job, attempt = lease.attempt, retried, "lease expired");
                        self.changed(&lease.job);
                        self.wake();
                    }
                }
                Err(error) => tracing::error!(%error, "leases could not be swept; trying again in a moment"),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        // Every change is complete before the guard is dropped, panic or not.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
