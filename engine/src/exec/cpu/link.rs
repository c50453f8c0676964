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
//! - *Copies.* `head_seen` and `tail_seen` belong to one side each and hold what it loaded with `Acquire` before; counters only grow, so
//!   what an old value allowed is allowed still.
//! - *Signal.* Everything the signaller read or wrote before its `Release` store of `signals` happens before whatever the waiter does
//!   after its `Acquire` load: this is what lets a plan order direct accesses to a peer's buffer. Happens-before is transitive, so a
//!   chain of signals and FIFOs through third ranks orders as well.
//!
//! Counters only grow and live as long as the session: at a billion steps a second 64 bits last 584 years.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::memory::{Region, Window};
use super::wait::Padded;
use crate::plan::SLOTS;

pub struct Link {
    filled: Padded<Filled>,
    head: Padded<AtomicU64>,
    signals: Padded<AtomicU64>,
    waited: Padded<AtomicU64>,
    /// Each side's last look at the other's counter, on a line of its own: most steps need no newer one.
    head_seen: Padded<AtomicU64>,
    tail_seen: Padded<AtomicU64>,
    slots: Region,
    slot_bytes: usize,
}

/// What the consumer waits for and what it then needs to know, on one cache line.
#[derive(Default)]
struct Filled {
    tail: AtomicU64,
    /// Elements in each slot: written with the slot and ordered with it.
    lens: [AtomicU32; SLOTS as usize],
}

impl Link {
    /// `slots` holds `SLOTS * slot_bytes` bytes.
    pub fn new(slots: Region, slot_bytes: usize) -> Link {
        assert_eq!(slots.bytes(), SLOTS as usize * slot_bytes);
        Link {
            filled: Padded::default(),
            head: Padded::default(),
            signals: Padded::default(),
            waited: Padded::default(),
            head_seen: Padded::default(),
            tail_seen: Padded::default(),
            slots,
            slot_bytes,
        }
    }

    fn slot(&self, step: u64) -> (usize, Window<'_>) {
        let slot = (step % u64::from(SLOTS)) as usize;
        (slot, self.slots.window(slot * self.slot_bytes, self.slot_bytes))
    }

    /// Producer: whether a slot is free.
    pub fn has_room(&self) -> bool {
        let tail = self.filled.0.tail.load(Ordering::Relaxed);
        let room = |head: u64| head + u64::from(SLOTS) > tail;
        if room(self.head_seen.0.load(Ordering::Relaxed)) {
            return true;
        }
        let head = self.head.0.load(Ordering::Acquire);
        self.head_seen.0.store(head, Ordering::Relaxed);
        room(head)
    }

    /// Producer: the next slot, once it is free.
    pub fn try_reserve(&self) -> Option<Window<'_>> {
        self.has_room().then(|| self.slot(self.filled.0.tail.load(Ordering::Relaxed)).1)
    }

    /// Producer: hands over the reserved slot with `elems` elements in it.
    pub fn post(&self, elems: u64) {
        let tail = self.filled.0.tail.load(Ordering::Relaxed);
        let elems = u32::try_from(elems).expect("a slot has at most 1 GiB");
        self.filled.0.lens[self.slot(tail).0].store(elems, Ordering::Relaxed);
        self.filled.0.tail.store(tail + 1, Ordering::Release);
    }

    /// Consumer: whether a slot is filled.
    pub fn has_data(&self) -> bool {
        let head = self.head.0.load(Ordering::Relaxed);
        if self.tail_seen.0.load(Ordering::Relaxed) > head {
            return true;
        }
        let tail = self.filled.0.tail.load(Ordering::Acquire);
        self.tail_seen.0.store(tail, Ordering::Relaxed);
        tail > head
    }

    /// Consumer: the oldest filled slot and its number of elements, once there is one.
    pub fn try_peek(&self) -> Option<(Window<'_>, u64)> {
        self.has_data().then(|| {
            let (slot, window) = self.slot(self.head.0.load(Ordering::Relaxed));
            (window, u64::from(self.filled.0.lens[slot].load(Ordering::Relaxed)))
        })
    }

    /// Consumer: frees the slot it peeked at.
    pub fn free(&self) {
        let head = self.head.0.load(Ordering::Relaxed);
        self.head.0.store(head + 1, Ordering::Release);
    }

    /// Whether there is a signal to take.
    pub fn has_signal(&self) -> bool {
        self.signals.0.load(Ordering::Acquire) > self.waited.0.load(Ordering::Relaxed)
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
        (self.head.0.load(Ordering::Relaxed), self.filled.0.tail.load(Ordering::Relaxed))
    }

    /// (signals taken, signals given), for reports.
    pub fn signal_counters(&self) -> (u64, u64) {
        (self.waited.0.load(Ordering::Relaxed), self.signals.0.load(Ordering::Relaxed))
    }

    /// Forgets whatever a stopped run left in the connection. Only while no thread runs a plan.
    pub fn drain(&self) {
        self.head.0.store(self.filled.0.tail.load(Ordering::Relaxed), Ordering::Relaxed);
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
