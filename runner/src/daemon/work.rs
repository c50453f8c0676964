//! The one lease a runner holds, apart from any connection: its events, its end, and how far the server knows of both.

use std::time::{Duration, Instant};

use ringlab_labs::wire::{FromRunner, LeaseRef};
use tokio::sync::watch;

use super::attempt::{Finished, Report};
use super::outbox::Outbox;
use crate::supervise::Order;

/// A result that the server has not settled is said again after this long.
const SETTLE: Duration = Duration::from_secs(10);
/// A result nobody wants to settle for this long is dropped.
const GIVE_UP: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub struct Work {
    lease: LeaseRef,
    outbox: Outbox,
    orders: watch::Sender<Order>,
    end: Option<FromRunner>,
    end_sent: Option<Instant>,
    ended: Option<Instant>,
    /// The server wants nothing more of it; it is over as soon as its worker is gone.
    abandoned: bool,
    over: bool,
}

impl Work {
    pub fn new(lease: LeaseRef, orders: watch::Sender<Order>) -> Work {
        Work {
            lease,
            outbox: Outbox::default(),
            orders,
            end: None,
            end_sent: None,
            ended: None,
            abandoned: false,
            over: false,
        }
    }

    pub fn lease(&self) -> &LeaseRef {
        &self.lease
    }

    /// Whether the lease is still this runner's, as far as it knows.
    pub fn is_held(&self) -> bool {
        !self.abandoned && !self.over
    }

    /// Nothing left to do or to say.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Stops the worker; what it reports afterwards still counts unless the work is abandoned too.
    pub fn stop(&self) {
        self.orders.send_replace(Order::Stop);
    }

    pub fn abandon(&mut self) {
        self.stop();
        self.abandoned = true;
        self.over |= self.end.is_some();
    }

    pub fn take(&mut self, report: Report, if_stopped: impl FnOnce() -> FromRunner) {
        match report {
            Report::Event { .. } if self.abandoned => {}
            Report::Event { at_ms, body } => self.outbox.push(at_ms, body),
            Report::Finished(_) if self.abandoned => self.over = true,
            Report::Finished(finished) => {
                let lease = self.lease.clone();
                self.end = Some(match finished {
                    Finished::Result(result) => FromRunner::Result { lease, result },
                    Finished::Failure(failure) => FromRunner::Failed { lease, failure },
                    Finished::Stopped => if_stopped(),
                });
                self.ended = Some(Instant::now());
            }
        }
    }

    pub fn acknowledge(&mut self, lease: &LeaseRef, seq: u64) {
        if *lease == self.lease {
            self.outbox.acknowledge(seq, Instant::now());
        }
    }

    pub fn settle(&mut self, accepted: bool) {
        if accepted && self.end.is_some() {
            self.over = true;
        } else {
            self.abandon();
        }
    }

    /// A new connection knows nothing of what the last one was told.
    pub fn rewind(&mut self) {
        self.outbox.rewind();
        self.end_sent = None;
    }

    /// Time passes: what was said and not answered is said again, and a result that nobody settles is dropped.
    pub fn on_tick(&mut self, now: Instant) {
        self.outbox.rewind_if_overdue(now);
        if self.end_sent.is_some_and(|sent| now.duration_since(sent) >= SETTLE) {
            self.end_sent = None;
        }
        if self.ended.is_some_and(|ended| now.duration_since(ended) >= GIVE_UP) {
            tracing::error!(job = %self.lease.job, "nobody took the result for {} s; dropped", GIVE_UP.as_secs());
            self.over = true;
        }
    }

    /// The next message to send. The end is said only after every event is acknowledged.
    pub fn next_message(&mut self) -> Option<FromRunner> {
        if !self.is_held() {
            return None;
        }
        let now = Instant::now();
        if let Some(events) = self.outbox.next_batch(now) {
            return Some(FromRunner::Events { lease: self.lease.clone(), events });
        }
        if !self.outbox.is_empty() || self.end_sent.is_some() {
            return None;
        }
        let end = self.end.clone()?;
        self.end_sent = Some(now);
        Some(end)
    }
}
