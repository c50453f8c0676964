//! LL and LL128: slots of lines that say themselves that they are there. The receiver looks at flags alone, and knows from the plan's
//! layout how many lines to look for.
//!
//! - LL: a line is 16 bytes, two atomic words of 8, each 4 bytes of data and a flag of 4.
//! - LL128: a line is 128 bytes, 15 words of data and then one that is the flag.
//!
//! The flag is the step that a slice starts at plus one; LL's is the low half of it.
//!
//! # Why the orderings suffice
//!
//! `tail` and `head` have one writer each, as in [`super::link`], and free slots are known as there.
//!
//! - *LL.* A word is stored and loaded whole, so a flag vouches for the data beside it. Data alone would need no more than `Relaxed`; but a
//!   received slice also orders what its sender did before it (a plan may then access the sender's buffers), so words are stored with
//!   `Release` and loaded with `Acquire`.
//! - *LL128.* The data is stored `Relaxed` and then the flag with `Release`; the consumer that loads the flag with `Acquire` sees the data.
//!   On a GPU a warp's store of a whole line does without: it becomes visible at once.
//! - *Empty.* A slice of no bytes still crosses as one line, so that it orders what came before it and no consumer gets ahead of its
//!   producer.
//! - *Old lines.* A slot holds lines of its earlier slices, behind those of a short one for any number of steps. LL128's flags never recur.
//!   LL's recur after 2^32 steps; but every slot is written whole once in [`CLEAN_EVERY`] steps, from the first steps on, so no line's
//!   flag is older than that, and none is the zero of fresh memory when zero is due.
//!
//! Data goes through a staging buffer at either end, each of one thread: what is staged is encoded when it is posted, and decoded, line
//! by line as it comes, when it is looked for.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::connection::{Connection, Shape};
use super::memory::{Region, Window};
use super::signals::Signals;
use super::wait::Padded;
use crate::fifo::Protocol;
use crate::plan::SLOTS;

/// Every slot of LL is written whole once in so many steps: four times before a flag recurs. As on the GPU (kernels/cuda/line.cuh).
const CLEAN_EVERY: u64 = 1 << 30;
const _: () = assert!(CLEAN_EVERY.is_multiple_of(SLOTS as u64), "all slots come up behind a boundary");

const LL_WORDS: usize = 2;
const LL128_WORDS: usize = 16;
/// Data of a line of LL128, in words.
const LL128_DATA: usize = LL128_WORDS - 1;

/// Eight lines of LL or one of LL128.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Block([AtomicU64; LL128_WORDS]);

pub struct Lines {
    shape: Shape,
    /// Steps filled: the producer's own count. The consumer sees it in the lines.
    tail: Padded<AtomicU64>,
    head: Padded<AtomicU64>,
    /// Lines of the next slice that the consumer has decoded.
    decoded: Padded<AtomicUsize>,
    signals: Signals,
    blocks: Box<[Block]>,
    /// The producer's staging buffer, and the consumer's.
    outgoing: Region,
    incoming: Region,
}

/// Words of a line, and bytes of data in it.
fn line(protocol: Protocol) -> (usize, usize) {
    let (line, carries) = protocol.line().expect("only protocols of lines have such connections");
    ((line / 8) as usize, carries as usize)
}

impl Shape {
    /// Lines for so many bytes: one at least.
    fn lines(self, bytes: usize) -> usize {
        bytes.div_ceil(line(self.protocol).1).max(1)
    }

    /// Blocks of one slot.
    fn blocks(self) -> usize {
        (self.lines(self.payload) * line(self.protocol).0).div_ceil(LL128_WORDS)
    }
}

impl Lines {
    /// Word `nth` of the slot that begins at a step.
    fn word(&self, step: u64, nth: usize) -> &AtomicU64 {
        let slot = (step % u64::from(SLOTS)) as usize / self.shape.steps as usize;
        let block = slot * self.shape.blocks() + nth / LL128_WORDS;
        &self.blocks[block].0[nth % LL128_WORDS]
    }

    fn encode(&self, step: u64, nth: usize, bytes: usize) {
        let (words, carries) = line(self.shape.protocol);
        let mut data = [0; 8 * LL128_DATA];
        self.staged(&self.outgoing, nth, bytes).read_into(&mut data);
        let store = |at, value, order| self.word(step, nth * words + at).store(value, order);
        match self.shape.protocol {
            Protocol::Ll => {
                for at in 0..LL_WORDS {
                    let half = u32::from_le_bytes(array(&data[4 * at..]));
                    store(at, ll_word(half, step), Ordering::Release);
                }
            }
            _ => {
                for (at, word) in data[..carries].chunks_exact(8).enumerate() {
                    store(at, u64::from_le_bytes(array(word)), Ordering::Relaxed);
                }
                store(LL128_DATA, step + 1, Ordering::Release);
            }
        }
    }

    /// Whether line `nth` is there; if it is, its data is staged.
    fn decode(&self, step: u64, nth: usize, bytes: usize) -> bool {
        let (words, carries) = line(self.shape.protocol);
        let load = |at, order| self.word(step, nth * words + at).load(order);
        let mut data = [0; 8 * LL128_DATA];
        match self.shape.protocol {
            Protocol::Ll => {
                for at in 0..LL_WORDS {
                    let word = load(at, Ordering::Acquire);
                    let half = word as u32;
                    if word != ll_word(half, step) {
                        return false;
                    }
                    data[4 * at..4 * at + 4].copy_from_slice(&half.to_le_bytes());
                }
            }
            _ => {
                if load(LL128_DATA, Ordering::Acquire) != step + 1 {
                    return false;
                }
                for (at, word) in data[..carries].chunks_exact_mut(8).enumerate() {
                    word.copy_from_slice(&load(at, Ordering::Relaxed).to_le_bytes());
                }
            }
        }
        self.staged(&self.incoming, nth, bytes).write_from(&data);
        true
    }

    /// What line `nth` carries of a staged slice of `bytes` bytes.
    fn staged<'a>(&self, region: &'a Region, nth: usize, bytes: usize) -> Window<'a> {
        let carries = line(self.shape.protocol).1;
        let from = (nth * carries).min(bytes);
        region.window(from, carries.min(bytes - from))
    }
}

/// Data in the low half, flag in the high half: the order on the wire, little-endian.
fn ll_word(data: u32, step: u64) -> u64 {
    u64::from(data) | (step + 1) << 32
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("a line's data is a whole number of words")
}

impl Connection for Lines {
    const SLICED: bool = true;
    const TELLS_LENGTH: bool = false;

    fn bytes(shape: Shape) -> Option<usize> {
        // A line is at most twice what it carries.
        let fits = shape.payload < usize::MAX / (4 * SLOTS as usize);
        let slots = (SLOTS / shape.steps) as usize;
        fits.then(|| slots * shape.blocks() * size_of::<Block>() + 2 * shape.payload)
    }

    fn new(shape: Shape) -> Option<Lines> {
        Self::bytes(shape)?;
        let count = (SLOTS / shape.steps) as usize * shape.blocks();
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(count).ok()?;
        blocks.resize_with(count, Block::default);
        // SAFETY: only the producer thread touches `outgoing`, only the consumer thread `incoming`.
        let staging = || unsafe { Region::new(shape.payload) };
        Some(Lines {
            shape,
            tail: Padded::default(),
            head: Padded::default(),
            decoded: Padded::default(),
            signals: Signals::default(),
            blocks: blocks.into(),
            outgoing: staging()?,
            incoming: staging()?,
        })
    }

    fn signals(&self) -> &Signals {
        &self.signals
    }

    fn has_room(&self) -> bool {
        let tail = self.tail.0.load(Ordering::Relaxed);
        self.head.0.load(Ordering::Acquire) + u64::from(SLOTS) >= tail + u64::from(self.shape.steps)
    }

    fn try_reserve(&self) -> Option<Window<'_>> {
        self.has_room().then(|| self.outgoing.window(0, self.shape.payload))
    }

    fn post(&self, bytes: usize, _: u64) {
        let tail = self.tail.0.load(Ordering::Relaxed);
        let cleans = self.shape.protocol == Protocol::Ll && tail % CLEAN_EVERY < u64::from(SLOTS);
        let lines = if cleans { self.shape.lines(self.shape.payload) } else { self.shape.lines(bytes) };
        (0..lines).for_each(|nth| self.encode(tail, nth, bytes));
        self.tail.0.store(tail + u64::from(self.shape.steps), Ordering::Relaxed);
    }

    fn has_data(&self, bytes: usize) -> bool {
        let head = self.head.0.load(Ordering::Relaxed);
        let first = self.decoded.0.load(Ordering::Relaxed);
        let lines = self.shape.lines(bytes);
        let missing = (first..lines).find(|&nth| !self.decode(head, nth, bytes));
        self.decoded.0.store(missing.unwrap_or(lines), Ordering::Relaxed);
        missing.is_none()
    }

    fn try_peek(&self, bytes: usize) -> Option<(Window<'_>, u64)> {
        self.has_data(bytes).then(|| (self.incoming.window(0, self.shape.payload), 0))
    }

    fn free(&self) {
        let head = self.head.0.load(Ordering::Relaxed);
        self.decoded.0.store(0, Ordering::Relaxed);
        self.head.0.store(head + u64::from(self.shape.steps), Ordering::Release);
    }

    fn counters(&self) -> (u64, u64) {
        (self.head.0.load(Ordering::Relaxed), self.tail.0.load(Ordering::Relaxed))
    }

    fn drain(&self) {
        self.decoded.0.store(0, Ordering::Relaxed);
        self.head.0.store(self.tail.0.load(Ordering::Relaxed), Ordering::Relaxed);
        self.signals.drain();
    }

    #[cfg(test)]
    fn start_at(&self, steps: u64) {
        self.tail.0.store(steps, Ordering::Relaxed);
        self.head.0.store(steps, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: usize = 600;

    fn lines(protocol: Protocol, steps: u32) -> Lines {
        Lines::new(Shape { protocol, steps, payload: PAYLOAD }).unwrap()
    }

    fn send(lines: &Lines, bytes: usize, value: u8) {
        lines.try_reserve().unwrap().part(0, bytes).set(value);
        lines.post(bytes, 0);
    }

    #[track_caller]
    fn receive(lines: &Lines, bytes: usize, value: u8) {
        let window = lines.try_peek(bytes).unwrap().0;
        let mut got = vec![0; bytes];
        window.part(0, bytes).read(&mut got);
        assert_eq!(got, vec![value; bytes]);
        lines.free();
    }

    #[test]
    fn slices_of_any_length_cross_in_order_until_credits_are_out() {
        for protocol in [Protocol::Ll, Protocol::Ll128] {
            for steps in [1, 2, 4, 8] {
                let lines = lines(protocol, steps);
                let slices = (SLOTS / steps) as usize;
                for round in 0..3 {
                    let bytes = |i: usize| [0, 1, 7, 8, 119, 121, 599, 600][(i + round) % 8];
                    for i in 0..slices {
                        send(&lines, bytes(i), i as u8 + 1);
                    }
                    assert!(lines.try_reserve().is_none());
                    (0..slices).for_each(|i| receive(&lines, bytes(i), i as u8 + 1));
                    assert!(!lines.has_data(0), "an empty slice crosses as well");
                }
                assert_eq!(lines.counters(), (24, 24));
            }
        }
    }

    /// The formats that both ends, and the GPU, agree on.
    #[test]
    fn lines_lie_in_memory_as_nccl_has_them() {
        let ll = lines(Protocol::Ll, 1);
        ll.start_at(12);
        ll.try_reserve().unwrap().part(0, 12).write(b"abcdefghijkl");
        ll.post(12, 0);
        let words: Vec<_> =
            (0..4).map(|nth| ll.word(12, nth).load(Ordering::Relaxed).to_le_bytes()).collect();
        assert_eq!(
            words,
            [*b"abcd\x0d\0\0\0", *b"efgh\x0d\0\0\0", *b"ijkl\x0d\0\0\0", *b"\0\0\0\0\x0d\0\0\0"]
        );
        let ll128 = lines(Protocol::Ll128, 1);
        ll128.start_at(1 << 40);
        send(&ll128, 121, 7);
        let word = |nth| ll128.word(1 << 40, nth).load(Ordering::Relaxed);
        assert_eq!(
            [word(0), word(14), word(15)],
            [0x0707_0707_0707_0707, 0x0707_0707_0707_0707, (1 << 40) + 1]
        );
        assert_eq!([word(16), word(17), word(31)], [7, 0, (1 << 40) + 1]);
    }

    /// Part of a slice is no slice, and what has been decoded of it is kept.
    #[test]
    fn a_slice_is_there_when_its_last_line_is() {
        for protocol in [Protocol::Ll, Protocol::Ll128] {
            let lines = lines(protocol, 1);
            lines.try_reserve().unwrap().part(0, PAYLOAD).set(9);
            let all = lines.shape.lines(PAYLOAD);
            for nth in [0, 1, 3] {
                lines.encode(0, nth, PAYLOAD);
                assert!(!lines.has_data(PAYLOAD));
            }
            assert_eq!(lines.decoded.0.load(Ordering::Relaxed), 2);
            (0..all).for_each(|nth| lines.encode(0, nth, PAYLOAD));
            receive(&lines, PAYLOAD, 9);
        }
    }

    /// A word whose one half has come is not a line.
    #[test]
    fn both_flags_of_a_line_are_looked_at() {
        let lines = lines(Protocol::Ll, 1);
        for at in 0..2 {
            assert!(!lines.has_data(8));
            lines.word(0, at).store(ll_word(5, 0), Ordering::Release);
        }
        assert!(lines.has_data(8));
    }

    /// Leaves lines of a long slice in a slot, and `steps` later looks for another long one there. `cleaned`: whether the steps between,
    /// of which only those after the last boundary are taken, were taken at all.
    fn stale(protocol: Protocol, steps: u64, cleaned: bool) -> bool {
        const STEP: u64 = 13;
        let lines = lines(protocol, 1);
        lines.start_at(STEP);
        send(&lines, PAYLOAD, 1);
        receive(&lines, PAYLOAD, 1);
        let boundary = (STEP + steps) / CLEAN_EVERY * CLEAN_EVERY;
        if cleaned {
            lines.start_at(boundary - 3);
            for _ in 0..3 + SLOTS {
                send(&lines, 4, 2);
                receive(&lines, 4, 2);
            }
        }
        lines.start_at(STEP + steps);
        lines.has_data(PAYLOAD)
    }

    #[test]
    fn slots_are_cleaned_before_a_flag_recurs() {
        assert!(stale(Protocol::Ll, 1 << 32, false), "without cleaning the old lines are taken for new ones");
        assert!(!stale(Protocol::Ll, 1 << 32, true));
        assert!(!stale(Protocol::Ll128, 1 << 32, false), "flags of 64 bits do not recur");
    }

    #[test]
    fn fresh_memory_is_no_data_when_the_flag_is_zero() {
        let step = (1 << 32) - 1;
        let fresh = lines(Protocol::Ll, 1);
        fresh.start_at(step);
        assert!(fresh.has_data(PAYLOAD), "zeros are lines of step 2^32 - 1");
        let used = lines(Protocol::Ll, 1);
        for _ in 0..SLOTS {
            send(&used, 4, 1);
            receive(&used, 4, 1);
        }
        used.start_at(step);
        assert!(!used.has_data(PAYLOAD), "the first steps wrote all slots whole");
    }

    #[test]
    fn flags_wrap_with_data_under_way() {
        for start in [(1 << 32) - 4, (1 << 32) - 8, (1 << 33) - 12] {
            let lines = lines(Protocol::Ll, 4);
            lines.start_at(start);
            for i in 0..20usize {
                let bytes = if i % 3 == 0 { PAYLOAD } else { 4 * i };
                send(&lines, bytes, i as u8);
                receive(&lines, bytes, i as u8);
            }
        }
    }
}
