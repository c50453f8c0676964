//! Filling the buffers with [`crate::data`] and comparing every element afterwards, spread over the session's threads.

use std::sync::Mutex;

use super::buffers::Buffers;
use super::memory::Window;
use crate::data::{self, Exact};
use crate::exec::{CheckReport, WrongElement};
use crate::types::{Collective, DType, Rank};

/// What outputs hold before a run. A fraction as a float, which no sum is; as an integer one value of many.
pub const POISON: u8 = 0xA5;

/// Elements handled at a time.
const TILE: u64 = 4096;

/// What one thread has to do: every `threads`-th tile from `thread`.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    pub thread: usize,
    pub threads: usize,
}

impl Share {
    fn tiles(self, elems: u64) -> impl Iterator<Item = (u64, u64)> {
        let step = self.threads as u64 * TILE;
        (self.thread as u64 * TILE..elems)
            .step_by(step as usize)
            .map(move |from| (from, TILE.min(elems - from)))
    }
}

/// Poisons every output. In place this comes first, since the inputs lie in the same memory.
pub fn poison(buffers: &Buffers, ranks: u32, share: Share) {
    for rank in (0..ranks).map(Rank) {
        for (from, len) in share.tiles(buffers.output_elems) {
            buffers.output(rank, from, len).set(POISON);
        }
    }
}

/// Writes every rank's input.
pub fn fill(buffers: &Buffers, dtype: DType, exact: &Exact, ranks: u32, share: Share) {
    let mut bytes = Vec::new();
    for rank in (0..ranks).map(Rank) {
        for (from, len) in share.tiles(buffers.input_elems) {
            encode(&mut bytes, dtype, (from..from + len).map(|i| exact.input(rank, i)));
            buffers.input(rank, from, len).write(&bytes);
        }
    }
}

/// Compares every output, and out of place every input, with what it must be.
pub fn check(
    buffers: &Buffers,
    dtype: DType,
    exact: &Exact,
    ranks: u32,
    share: Share,
    report: &Mutex<CheckReport>,
) {
    let mut comparison = Comparison { dtype, report: empty(), bytes: Vec::new() };
    let mut expected = Vec::new();
    let (collective, block) = (buffers.collective, buffers.layout.block());
    let all = || (0..ranks).map(Rank);
    let receivers: Vec<Rank> = all().filter(|rank| collective.has_output(*rank)).collect();
    let own = match collective {
        Collective::ReduceScatter
        | Collective::AllToAll
        | Collective::Scatter { .. }
        | Collective::SendRecv => true,
        Collective::AllReduce
        | Collective::AllGather
        | Collective::Broadcast { .. }
        | Collective::Reduce { .. }
        | Collective::Gather { .. } => false,
    };
    let expect = |to: &mut Vec<u8>, rank, from, len| {
        encode(to, dtype, (from..from + len).map(|i| exact.expected(collective, rank, i, block)));
    };
    for (from, len) in share.tiles(buffers.output_elems) {
        // Where all have the same result, it is computed once.
        if !own {
            expect(&mut expected, receivers[0], from, len);
        }
        for &rank in &receivers {
            if own {
                expect(&mut expected, rank, from, len);
            }
            comparison.compare(buffers.output(rank, from, len), &expected, rank, from, "");
        }
    }
    if !buffers.in_place() {
        for rank in all() {
            for (from, len) in share.tiles(buffers.input_elems) {
                encode(&mut expected, dtype, (from..from + len).map(|i| exact.input(rank, i)));
                comparison.compare(
                    buffers.input(rank, from, len),
                    &expected,
                    rank,
                    from,
                    " (the input, unchanged)",
                );
            }
        }
    }
    let mut total = report.lock().expect("nothing panics while it holds the report");
    total.elements += comparison.report.elements;
    total.wrong += comparison.report.wrong;
    let place = |w: &WrongElement| (w.rank, w.index);
    let first =
        [total.first_wrong.take(), comparison.report.first_wrong].into_iter().flatten().min_by_key(place);
    total.first_wrong = first;
}

pub fn empty() -> CheckReport {
    CheckReport { elements: 0, wrong: 0, first_wrong: None }
}

struct Comparison {
    dtype: DType,
    report: CheckReport,
    bytes: Vec<u8>,
}

impl Comparison {
    fn compare(&mut self, window: Window<'_>, expected: &[u8], rank: Rank, from: u64, note: &str) {
        let size = self.dtype.size();
        self.bytes.resize(expected.len(), 0);
        window.read(&mut self.bytes);
        self.report.elements += (expected.len() / size) as u64;
        if self.bytes == expected {
            return;
        }
        for (i, (got, expected)) in self.bytes.chunks(size).zip(expected.chunks(size)).enumerate() {
            if got == expected {
                continue;
            }
            self.report.wrong += 1;
            let index = from + i as u64;
            if self.report.first_wrong.as_ref().is_none_or(|w| (rank, index) < (w.rank, w.index)) {
                let show = |bytes: &[u8]| data::show(self.dtype, decode(bytes));
                let expected = format!("{}{note}", show(expected));
                self.report.first_wrong = Some(WrongElement { rank, index, expected, got: show(got) });
            }
        }
    }
}

/// Little-endian elements from their bit patterns.
fn encode(to: &mut Vec<u8>, dtype: DType, values: impl Iterator<Item = u64>) {
    to.clear();
    for bits in values {
        to.extend_from_slice(&bits.to_le_bytes()[..dtype.size()]);
    }
}

fn decode(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}
