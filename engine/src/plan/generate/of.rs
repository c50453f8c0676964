//! One rank's point of view, and the few words all generators are written in.

use crate::plan::{Buffer, Place, Range, Step};
use crate::types::Rank;

pub fn range(buffer: Buffer, start: u32, len: u32) -> Range {
    Range { buffer, start, len }
}

pub fn at(buffer: Buffer, start: u32) -> Range {
    Range { buffer, start, len: 1 }
}

pub fn own(buffer: Buffer, start: u32) -> Place {
    Place { rank: None, range: at(buffer, start) }
}

pub fn copy(src: Place, dst: Range) -> Step {
    Step::Copy { src, dst }
}

/// One rank's point of view; `ranks` is at least 2.
#[derive(Debug, Clone, Copy)]
pub struct Of {
    pub rank: u32,
    pub ranks: u32,
}

impl Of {
    /// The rank, or chunk, `k` places further round the ring.
    pub fn ahead(&self, k: u32) -> u32 {
        (self.rank + k) % self.ranks
    }

    pub fn behind(&self, k: u32) -> u32 {
        (self.rank + self.ranks - k) % self.ranks
    }

    pub fn place(&self, rank: u32, buffer: Buffer, start: u32) -> Place {
        Place { rank: (rank != self.rank).then_some(Rank(rank)), range: at(buffer, start) }
    }

    /// The same chunk of all ranks, in rank order: all ranks then fold in one order and get the same bits.
    pub fn all(&self, buffer: Buffer, start: u32) -> Vec<Place> {
        (0..self.ranks).map(|p| self.place(p, buffer, start)).collect()
    }

    /// Tells all peers and hears from all: what they did before is then done.
    pub fn barrier(&self, steps: &mut Vec<Step>) {
        steps.extend((1..self.ranks).map(|k| Step::Signal { to: Rank(self.ahead(k)) }));
        steps.extend((1..self.ranks).map(|k| Step::Wait { from: Rank(self.ahead(k)) }));
    }
}
