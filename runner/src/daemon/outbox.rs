//! Events of one attempt on their way to the server: numbered here, kept until acknowledged, sent again when need be.
//!
//! Bounded by the job's output limit, which the watchdog enforces on the worker: no second limit is needed here.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ringlab_labs::job::{Event, EventBody};

/// Most events of one frame, and most unacknowledged ones on the wire.
const BATCH: usize = 256;
const WINDOW: u64 = 1024;
/// Unacknowledged for this long on a live connection: sent again.
const ACK_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct Outbox {
    /// The events after `acked`, without gaps.
    kept: VecDeque<Event>,
    acked: u64,
    /// Up to here sent on this connection, or acknowledged.
    sent: u64,
    /// The highest number ever sent: a new connection may begin with the acknowledgement of what the last one carried.
    ever_sent: u64,
    /// When the oldest unacknowledged event was sent.
    waiting_since: Option<Instant>,
}

impl Outbox {
    pub fn push(&mut self, at_ms: u64, body: EventBody) {
        let seq = self.acked + self.kept.len() as u64 + 1;
        self.kept.push_back(Event { seq, at_ms, body });
    }

    /// The next events to send, and notes them as sent. `None`: nothing to send, or the window is full.
    pub fn next_batch(&mut self, now: Instant) -> Option<Vec<Event>> {
        let in_flight = self.sent - self.acked;
        let room = WINDOW.saturating_sub(in_flight).min(BATCH as u64) as usize;
        let batch: Vec<Event> = self.kept.iter().skip(in_flight as usize).take(room).cloned().collect();
        self.sent = batch.last()?.seq;
        self.ever_sent = self.ever_sent.max(self.sent);
        self.waiting_since.get_or_insert(now);
        Some(batch)
    }

    /// All up to `seq` are stored. A number never sent is ignored: it cannot be about these events.
    pub fn acknowledge(&mut self, seq: u64, now: Instant) {
        if seq <= self.acked || seq > self.ever_sent {
            return;
        }
        self.kept.drain(..(seq - self.acked) as usize);
        self.acked = seq;
        self.sent = self.sent.max(seq);
        self.waiting_since = (self.sent > self.acked).then_some(now);
    }

    /// Everything unacknowledged is to be sent again: the connection is new.
    pub fn rewind(&mut self) {
        self.sent = self.acked;
        self.waiting_since = None;
    }

    pub fn rewind_if_overdue(&mut self, now: Instant) {
        if self.waiting_since.is_some_and(|since| now.duration_since(since) >= ACK_TIMEOUT) {
            self.rewind();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(n: u64) -> Outbox {
        let mut outbox = Outbox::default();
        (0..n).for_each(|_| outbox.push(0, EventBody::Truncated { limit_bytes: 0 }));
        outbox
    }

    fn numbers(batch: Option<Vec<Event>>) -> Vec<u64> {
        batch.into_iter().flatten().map(|e| e.seq).collect()
    }

    #[test]
    fn unacknowledged_events_are_sent_again_after_a_reconnect_with_the_same_numbers() {
        let now = Instant::now();
        let mut outbox = filled(5);
        assert_eq!(numbers(outbox.next_batch(now)), [1, 2, 3, 4, 5]);
        outbox.acknowledge(2, now);
        assert_eq!(numbers(outbox.next_batch(now)), [0u64; 0]);
        outbox.rewind();
        assert_eq!(numbers(outbox.next_batch(now)), [3, 4, 5]);
        outbox.acknowledge(5, now);
        assert!(outbox.is_empty());
        outbox.push(0, EventBody::Truncated { limit_bytes: 0 });
        assert_eq!(numbers(outbox.next_batch(now)), [6]);
    }

    #[test]
    fn an_acknowledgement_that_comes_with_the_next_connection_counts() {
        let now = Instant::now();
        let mut outbox = filled(4);
        outbox.next_batch(now);
        outbox.rewind();
        outbox.acknowledge(3, now);
        assert_eq!(numbers(outbox.next_batch(now)), [4]);
    }

    #[test]
    fn an_overdue_acknowledgement_rewinds_and_a_wrong_one_changes_nothing() {
        let now = Instant::now();
        let mut outbox = filled(3);
        outbox.next_batch(now);
        outbox.acknowledge(9, now);
        outbox.rewind_if_overdue(now + ACK_TIMEOUT / 2);
        assert_eq!(numbers(outbox.next_batch(now)), [0u64; 0]);
        outbox.rewind_if_overdue(now + ACK_TIMEOUT);
        assert_eq!(numbers(outbox.next_batch(now)), [1, 2, 3]);
    }

    #[test]
    fn the_window_bounds_what_is_on_the_wire() {
        let now = Instant::now();
        let mut outbox = filled(3000);
        let mut sent = 0;
        while let Some(batch) = outbox.next_batch(now) {
            assert!(batch.len() <= BATCH);
            sent += batch.len() as u64;
        }
        assert_eq!(sent, WINDOW);
        outbox.acknowledge(10, now);
        assert_eq!(numbers(outbox.next_batch(now)).len(), 10);
    }
}
