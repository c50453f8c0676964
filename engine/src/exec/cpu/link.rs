//! Simple: a FIFO of [`SLOTS`] steps on monotonic 64-bit counters, whose slots say themselves that they are filled.
//!
//! # Why the orderings suffice
//!
//! Each counter has one writer: `tail` the producer thread, `head` the consumer thread. A writer may therefore read its own counter
//! `Relaxed` and publish with a plain store.
//!
//! - *Data.* The producer fills the slot of step `tail`, then stores `tail + 1` with `Release` in front of it. The consumer that loads
//!   `head + 1` from the slot of step `head` with `Acquire` synchronises with that store, so the slot's bytes and its length are visible.
//!   Step, length and payload of a small message are on one cache line: it crosses between cores once. Before, the slot holds
//!   `head + 1 - SLOTS` or 0; steps never recur, so an old one is never taken for a new one.
//! - *Reuse.* The consumer reads the slot, then stores `head` past the slice with `Release`. The producer that loads
//!   `head + SLOTS >= tail + slice` with `Acquire` synchronises with it, so its overwriting happens after the reading.
//! - *Copy.* `head_seen` is what the producer loaded with `Acquire` before; counters only grow, so what it allowed is allowed still.
//!
//! A slice takes the slots of its steps as one: it starts at a multiple of its steps, which divide [`SLOTS`], so it never wraps.
//!
//! Counters only grow and live as long as the session: at a billion steps a second 64 bits last 584 years.

use std::sync::atomic::{AtomicU64, Ordering};

use super::connection::{Connection, Shape};
use super::memory::{ALIGN, Region, Window};
use super::signals::Signals;
use super::wait::Padded;
use crate::plan::SLOTS;

/// `SLICED`: a slice may take several steps, and a chunk several slices. The other kind has every message cross at once.
pub struct Link<const SLICED: bool> {
    /// Steps filled: the producer's own count. The consumer sees it in the slots.
    tail: Padded<AtomicU64>,
    head: Padded<AtomicU64>,
    signals: Signals,
    /// The producer's last look at `head`, on a line of its own: most steps need no newer one.
    head_seen: Padded<AtomicU64>,
    slots: Region,
    /// Most payload bytes of a slice.
    payload: usize,
    steps: u64,
}

/// A slot's step and length lie before its payload.
const HEADER: usize = 16;

/// Largest payload that follows its header at once, so that a small message is one cache line. A larger one starts on a line.
const COMPACT: usize = 4 << 10;

/// Bytes of a slot's memory before the payload.
const fn header_bytes(payload: usize) -> usize {
    if payload <= COMPACT { HEADER } else { ALIGN }
}

/// Bytes from one slot to the next, a whole number of lines.
const fn stride(payload: usize) -> usize {
    (header_bytes(payload) + payload).next_multiple_of(ALIGN)
}

impl<const SLICED: bool> Link<SLICED> {
    /// Of a slice.
    fn steps(&self) -> u64 {
        if SLICED { self.steps } else { 1 }
    }

    fn part(&self, step: u64, from: usize, bytes: usize) -> Window<'_> {
        let slot = (step % u64::from(SLOTS)) / self.steps();
        self.slots.window(slot as usize * stride(self.payload) + from, bytes)
    }

    fn payload(&self, step: u64) -> Window<'_> {
        self.part(step, header_bytes(self.payload), self.payload)
    }
}

impl<const SLICED: bool> Connection for Link<SLICED> {
    const SLICED: bool = SLICED;
    const TELLS_LENGTH: bool = true;

    fn bytes(Shape { steps, payload, .. }: Shape) -> Option<usize> {
        let fits = payload < usize::MAX / (2 * SLOTS as usize);
        fits.then(|| (SLOTS / steps) as usize * stride(payload))
    }

    fn new(shape: Shape) -> Option<Self> {
        assert!(SLICED || shape.steps == 1);
        // SAFETY: a connection has one producer and one consumer thread, whose accesses the counters order.
        let slots = unsafe { Region::new(Self::bytes(shape)?) }?;
        Some(Link {
            tail: Padded::default(),
            head: Padded::default(),
            signals: Signals::default(),
            head_seen: Padded::default(),
            slots,
            payload: shape.payload,
            steps: shape.steps.into(),
        })
    }

    fn signals(&self) -> &Signals {
        &self.signals
    }

    fn has_room(&self) -> bool {
        let tail = self.tail.0.load(Ordering::Relaxed);
        let room = |head: u64| head + u64::from(SLOTS) >= tail + self.steps();
        if room(self.head_seen.0.load(Ordering::Relaxed)) {
            return true;
        }
        let head = self.head.0.load(Ordering::Acquire);
        self.head_seen.0.store(head, Ordering::Relaxed);
        room(head)
    }

    fn try_reserve(&self) -> Option<Window<'_>> {
        self.has_room().then(|| self.payload(self.tail.0.load(Ordering::Relaxed)))
    }

    fn post(&self, _: usize, elems: u64) {
        let tail = self.tail.0.load(Ordering::Relaxed);
        self.part(tail, 8, 8).counter().store(elems, Ordering::Relaxed);
        self.part(tail, 0, 8).counter().store(tail + 1, Ordering::Release);
        self.tail.0.store(tail + self.steps(), Ordering::Relaxed);
    }

    fn has_data(&self, _: usize) -> bool {
        let head = self.head.0.load(Ordering::Relaxed);
        self.part(head, 0, 8).counter().load(Ordering::Acquire) == head + 1
    }

    fn try_peek(&self, bytes: usize) -> Option<(Window<'_>, u64)> {
        self.has_data(bytes).then(|| {
            let head = self.head.0.load(Ordering::Relaxed);
            (self.payload(head), self.part(head, 8, 8).counter().load(Ordering::Relaxed))
        })
    }

    fn free(&self) {
        let head = self.head.0.load(Ordering::Relaxed);
        self.head.0.store(head + self.steps(), Ordering::Release);
    }

    fn counters(&self) -> (u64, u64) {
        (self.head.0.load(Ordering::Relaxed), self.tail.0.load(Ordering::Relaxed))
    }

    fn drain(&self) {
        self.head.0.store(self.tail.0.load(Ordering::Relaxed), Ordering::Relaxed);
        self.signals.drain();
    }

    #[cfg(test)]
    fn start_at(&self, steps: u64) {
        self.tail.0.store(steps, Ordering::Relaxed);
        self.head.0.store(steps, Ordering::Relaxed);
        self.head_seen.0.store(steps, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::Protocol;

    fn link<const SLICED: bool>(steps: u32) -> Link<SLICED> {
        Link::new(Shape { protocol: Protocol::Simple, steps, payload: 64 }).unwrap()
    }

    fn holds_and_keeps_order<const SLICED: bool>(steps: u32) {
        let link = link::<SLICED>(steps);
        let slices = (SLOTS / steps) as u8;
        for i in 0..slices {
            link.try_reserve().unwrap().set(i);
            link.post(64, u64::from(i));
        }
        assert!(link.try_reserve().is_none());
        for i in 0..slices {
            let (window, elems) = link.try_peek(64).unwrap();
            let mut byte = [0];
            window.part(0, 1).read(&mut byte);
            assert_eq!((byte[0], elems), (i, u64::from(i)));
            link.free();
        }
        assert!(link.try_peek(64).is_none());
        assert!(link.try_reserve().is_some());
        assert_eq!(link.counters(), (8, 8));
    }

    #[test]
    fn a_fifo_has_eight_credits_and_keeps_order() {
        holds_and_keeps_order::<false>(1);
        for steps in [1, 2, 4, 8] {
            holds_and_keeps_order::<true>(steps);
        }
    }

    #[test]
    fn a_slice_waits_for_all_its_steps() {
        let link = link::<true>(4);
        link.post(0, 0);
        link.post(0, 0);
        link.free();
        assert!(link.has_room());
        link.post(0, 0);
        assert!(!link.has_room(), "{:?}", link.counters());
        assert_eq!(link.counters(), (4, 12));
    }
}
