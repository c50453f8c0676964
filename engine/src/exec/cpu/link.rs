//! Connections between two threads: a FIFO of [`SLOTS`] slots and a counting semaphore, both on monotonic 64-bit counters.
//!
//! # Why the orderings suffice
//!
//! Each counter has one writer: `tail` and `signals` the producer thread, `head` and `waited` the consumer thread. A writer may
//! therefore read its own counter `Relaxed` and publish with a plain store.
//!
//! - *Data.* The producer fills slot `tail % SLOTS`, then stores `tail + 1` with `Release`. The consumer that loads a value above its
//!   `head` with `Acquire` synchronises with that store, so the slot's bytes and its length are visible.
//! - *Reuse.* The consumer reads the slot, then stores `head + 1` with `Release`. The producer that loads `head > tail - SLOTS` with
//!   `Acquire` synchronises with it, so its overwriting happens after the reading.
//! - *Signal.* Everything the signaller read or wrote before its `Release` store of `signals` happens before whatever the waiter does
//!   after its `Acquire` load: this is what lets a plan order direct accesses to a peer's buffer. Happens-before is transitive, so a
//!   chain of signals and FIFOs through third ranks orders as well.
//!
//! Counters only grow and live as long as the session: at a billion steps a second 64 bits last 584 years.

use std::sync::atomic::{AtomicU64, Ordering};

use super::memory::{Region, Window};
use super::wait::Padded;
use crate::plan::SLOTS;

pub struct Link {
    tail: Padded<AtomicU64>,
    head: Padded<AtomicU64>,
    signals: Padded<AtomicU64>,
    waited: Padded<AtomicU64>,
    /// Elements in each slot: written with the slot and ordered with it.
    lens: [AtomicU64; SLOTS as usize],
    slots: Region,
    slot_bytes: usize,
}

impl Link {
    /// `slots` holds `SLOTS * slot_bytes` bytes.
    pub fn new(slots: Region, slot_bytes: usize) -> Link {
        assert_eq!(slots.bytes(), SLOTS as usize * slot_bytes);
        Link {
            tail: Padded::default(),
            head: Padded::default(),
            signals: Padded::default(),
            waited: Padded::default(),
            lens: Default::default(),
            slots,
            slot_bytes,
        }
    }

    fn slot(&self, step: u64) -> (usize, Window<'_>) {
        let slot = (step % u64::from(SLOTS)) as usize;
        (slot, self.slots.window(slot * self.slot_bytes, self.slot_bytes))
    }

    /// Producer: the next slot, once it is free.
    pub fn try_reserve(&self) -> Option<Window<'_>> {
        let tail = self.tail.0.load(Ordering::Relaxed);
        let free = self.head.0.load(Ordering::Acquire) + u64::from(SLOTS) > tail;
        free.then(|| self.slot(tail).1)
    }

    /// Producer: hands over the reserved slot with `elems` elements in it.
    pub fn post(&self, elems: u64) {
        let tail = self.tail.0.load(Ordering::Relaxed);
        self.lens[self.slot(tail).0].store(elems, Ordering::Relaxed);
        self.tail.0.store(tail + 1, Ordering::Release);
    }

    /// Consumer: the oldest filled slot and its number of elements, once there is one.
    pub fn try_peek(&self) -> Option<(Window<'_>, u64)> {
        let head = self.head.0.load(Ordering::Relaxed);
        let filled = self.tail.0.load(Ordering::Acquire) > head;
        filled.then(|| {
            let (slot, window) = self.slot(head);
            (window, self.lens[slot].load(Ordering::Relaxed))
        })
    }

    /// Consumer: frees the slot it peeked at.
    pub fn free(&self) {
        let head = self.head.0.load(Ordering::Relaxed);
        self.head.0.store(head + 1, Ordering::Release);
    }

    pub fn signal(&self) {
        let signals = self.signals.0.load(Ordering::Relaxed);
        self.signals.0.store(signals + 1, Ordering::Release);
    }

    /// Takes one signal if there is one.
    pub fn try_wait(&self) -> bool {
        let waited = self.waited.0.load(Ordering::Relaxed);
        let signalled = self.signals.0.load(Ordering::Acquire) > waited;
        if signalled {
            self.waited.0.store(waited + 1, Ordering::Relaxed);
        }
        signalled
    }

    /// (head, tail) of the FIFO, for reports.
    pub fn counters(&self) -> (u64, u64) {
        (self.head.0.load(Ordering::Relaxed), self.tail.0.load(Ordering::Relaxed))
    }

    /// (signals taken, signals given), for reports.
    pub fn signal_counters(&self) -> (u64, u64) {
        (self.waited.0.load(Ordering::Relaxed), self.signals.0.load(Ordering::Relaxed))
    }

    /// Forgets whatever a stopped run left in the connection. Only while no thread runs a plan.
    pub fn drain(&self) {
        self.head.0.store(self.tail.0.load(Ordering::Relaxed), Ordering::Relaxed);
        self.waited.0.store(self.signals.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_has_eight_credits_and_keeps_order() {
        // SAFETY: one thread.
        let link = Link::new(unsafe { Region::new(8 * 64) }.unwrap(), 64);
        for i in 0..8u8 {
            link.try_reserve().unwrap().set(i);
            link.post(u64::from(i));
        }
        assert!(link.try_reserve().is_none());
        for i in 0..8u8 {
            let (window, elems) = link.try_peek().unwrap();
            let mut byte = [0];
            window.first(1).read(&mut byte);
            assert_eq!((byte[0], elems), (i, u64::from(i)));
            link.free();
        }
        assert!(link.try_peek().is_none());
        assert!(link.try_reserve().is_some());
        assert_eq!(link.counters(), (8, 8));
    }

    #[test]
    fn signals_are_counted() {
        // SAFETY: one thread.
        let link = Link::new(unsafe { Region::new(0) }.unwrap(), 0);
        link.signal();
        link.signal();
        assert!(link.try_wait() && link.try_wait() && !link.try_wait());
    }
}
