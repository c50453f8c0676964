//! Connections between two threads: a FIFO of [`SLOTS`] slots and a counting semaphore, both on monotonic 64-bit counters.
//!
//! # Why the orderings suffice
//!
//! Each counter has one writer: `tail` and `signals` the producer thread, `head` and `waited` the consumer thread. A writer may
//! therefore read its own counter `Relaxed` and publish with a plain store.
//!
//! - *Data.* The producer fills slot `tail % SLOTS`, then stores `tail + 1` with `Release` in front of it. The consumer that loads
//!   `head + 1` from slot `head % SLOTS` with `Acquire` synchronises with that store, so the slot's bytes and its length are visible. Step,
//!   length and payload of a small message are on one cache line: it crosses between cores once. Before, the slot holds `head + 1 - SLOTS`
//!   or 0; steps never recur, so an old one is never taken for a new one.
//! - *Reuse.* The consumer reads the slot, then stores `head + 1` with `Release`. The producer that loads `head > tail - SLOTS` with
//!   `Acquire` synchronises with it, so its overwriting happens after the reading.
//! - *Copy.* `head_seen` is what the producer loaded with `Acquire` before; counters only grow, so what it allowed is allowed still.
//! - *Signal.* Everything the signaller read or wrote before its `Release` store of `signals` happens before whatever the waiter does
//!   after its `Acquire` load: this is what lets a plan order direct accesses to a peer's buffer. Happens-before is transitive, so a
//!   chain of signals and FIFOs through third ranks orders as well.
//!
//! Counters only grow and live as long as the session: at a billion steps a second 64 bits last 584 years.

use std::sync::atomic::{AtomicU64, Ordering};

use super::memory::{ALIGN, Region, Window};
use super::wait::Padded;
use crate::plan::SLOTS;

pub struct Link {
    /// Slots filled: the producer's own count. The consumer sees it in the slots.
    tail: Padded<AtomicU64>,
    head: Padded<AtomicU64>,
    signals: Padded<AtomicU64>,
    waited: Padded<AtomicU64>,
    /// The producer's last look at `head`, on a line of its own: most steps need no newer one.
    head_seen: Padded<AtomicU64>,
    slots: Region,
    slot_bytes: usize,
}

/// A slot's step and length lie before its payload.
const HEADER: usize = 16;

/// Largest payload that follows its header at once, so that a small message is one cache line. A larger one starts on a line.
const COMPACT: usize = 4 << 10;

/// Bytes of a slot's memory before the payload.
const fn header_bytes(slot_bytes: usize) -> usize {
    if slot_bytes <= COMPACT { HEADER } else { ALIGN }
}

/// Bytes from one slot to the next, a whole number of lines.
const fn stride(slot_bytes: usize) -> usize {
    (header_bytes(slot_bytes) + slot_bytes).next_multiple_of(ALIGN)
}

impl Link {
    /// Memory for the slots of a connection with payloads of up to `slot_bytes` bytes.
    pub const fn bytes(slot_bytes: usize) -> usize {
        SLOTS as usize * stride(slot_bytes)
    }

    /// `slots` holds [`Link::bytes`] bytes, zeroed.
    pub fn new(slots: Region, slot_bytes: usize) -> Link {
        assert_eq!(slots.bytes(), Link::bytes(slot_bytes));
        Link {
            tail: Padded::default(),
            head: Padded::default(),
            signals: Padded::default(),
            waited: Padded::default(),
            head_seen: Padded::default(),
            slots,
            slot_bytes,
        }
    }

    fn part(&self, step: u64, from: usize, bytes: usize) -> Window<'_> {
        self.slots.window((step % u64::from(SLOTS)) as usize * stride(self.slot_bytes) + from, bytes)
    }

    fn payload(&self, step: u64) -> Window<'_> {
        self.part(step, header_bytes(self.slot_bytes), self.slot_bytes)
    }

    /// Producer: whether a slot is free.
    pub fn has_room(&self) -> bool {
        let tail = self.tail.0.load(Ordering::Relaxed);
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
        self.has_room().then(|| self.payload(self.tail.0.load(Ordering::Relaxed)))
    }

    /// Producer: hands over the reserved slot with `elems` elements in it.
    pub fn post(&self, elems: u64) {
        let tail = self.tail.0.load(Ordering::Relaxed);
        self.part(tail, 8, 8).counter().store(elems, Ordering::Relaxed);
        self.part(tail, 0, 8).counter().store(tail + 1, Ordering::Release);
        self.tail.0.store(tail + 1, Ordering::Relaxed);
    }

    /// Consumer: whether a slot is filled.
    pub fn has_data(&self) -> bool {
        let head = self.head.0.load(Ordering::Relaxed);
        self.part(head, 0, 8).counter().load(Ordering::Acquire) == head + 1
    }

    /// Consumer: the oldest filled slot and its number of elements, once there is one.
    pub fn try_peek(&self) -> Option<(Window<'_>, u64)> {
        self.has_data().then(|| {
            let head = self.head.0.load(Ordering::Relaxed);
            (self.payload(head), self.part(head, 8, 8).counter().load(Ordering::Relaxed))
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
        let link = Link::new(unsafe { Region::new(Link::bytes(64)) }.unwrap(), 64);
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
        let link = Link::new(unsafe { Region::new(Link::bytes(0)) }.unwrap(), 0);
        link.signal();
        link.signal();
        assert!(link.try_wait() && link.try_wait() && !link.try_wait());
    }
}
