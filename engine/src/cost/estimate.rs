//! How long a standard plan takes on a [`SimModel`].

use super::SimModel;
use crate::fifo::Protocol;
use crate::plan::{Algorithm, chunks, core_ranks, tree_children};
use crate::types::Collective;

/// Nanoseconds of a standard plan for a block of `block_bytes` that is one tile, without the work in local memory; `None` where
/// [`crate::plan::generate`] has no such plan. Broadcast along the ring is one hop after the other: with one tile there is nothing to
/// overlap.
pub fn estimate(
    algorithm: Algorithm,
    collective: Collective,
    ranks: u32,
    block_bytes: u64,
    model: &SimModel,
) -> Option<f64> {
    estimate_with(algorithm, collective, ranks, block_bytes, model, Protocol::Simple)
}

/// As [`estimate`], over connections with the bytes and the latency of a protocol and chunks of one slice. The work of putting data into
/// lines is local work.
pub fn estimate_with(
    algorithm: Algorithm,
    collective: Collective,
    ranks: u32,
    block_bytes: u64,
    model: &SimModel,
    protocol: Protocol,
) -> Option<f64> {
    if ranks == 0 || !algorithm.supports(collective) {
        return None;
    }
    if ranks == 1 {
        return Some(model.step_ns);
    }
    let of = Of { ranks, model, protocol };
    let block = block_bytes as f64;
    let part = block / f64::from(chunks(algorithm, collective, ranks));
    Some(match algorithm {
        Algorithm::Ring => of.ring(collective, part),
        Algorithm::OneShot => of.one_shot(collective, block),
        Algorithm::TwoShot => 3.0 * of.barrier() + of.pull(part) + of.peers() * of.fetch(part),
        Algorithm::Chain => match collective {
            Collective::AllReduce => of.chain(part, f64::from(chunks(algorithm, collective, ranks))),
            _ => of.ring(collective, part),
        },
        Algorithm::Tree => of.tree(collective, part, f64::from(chunks(algorithm, collective, ranks))),
        Algorithm::HalvingDoubling => of.halving_doubling(part),
        Algorithm::Pairwise => match collective {
            // Each step sends, then receives what was sent at the same time.
            Collective::AllToAll => model.step_ns + of.peers() * (model.step_ns + of.hop(block)),
            _ => of.exchange(collective, block),
        },
        Algorithm::Exchange => of.exchange(collective, block),
    })
}

struct Of<'a> {
    ranks: u32,
    model: &'a SimModel,
    protocol: Protocol,
}

impl Of<'_> {
    fn peers(&self) -> f64 {
        f64::from(self.ranks - 1)
    }

    /// Until the sender can go on, and until the receiver has the data.
    fn send(&self, bytes: f64) -> f64 {
        self.model.step_ns + self.model.transfer_ns(self.on_wire(bytes))
    }

    fn on_wire(&self, bytes: f64) -> f64 {
        let (line, carries) = self.protocol.line().unwrap_or((1, 1));
        bytes * line as f64 / carries as f64
    }

    /// Of data on a connection.
    fn alpha(&self) -> f64 {
        self.model.alpha(self.protocol)
    }

    fn hop(&self, bytes: f64) -> f64 {
        self.send(bytes) + self.alpha()
    }

    /// A read of one peer's memory.
    fn fetch(&self, bytes: f64) -> f64 {
        self.model.step_ns + self.model.transfer_ns(bytes) + self.model.alpha_ns
    }

    /// From every peer at the same time, over connections.
    fn collect(&self, bytes: f64) -> f64 {
        self.model.step_ns + self.model.gather_ns(self.ranks - 1, self.on_wire(bytes)) + self.alpha()
    }

    /// From every peer at the same time.
    fn pull(&self, bytes: f64) -> f64 {
        self.model.step_ns + self.model.gather_ns(self.ranks - 1, bytes) + self.model.alpha_ns
    }

    /// Signals to all peers, then waits for all.
    fn barrier(&self) -> f64 {
        2.0 * self.peers() * self.model.step_ns + self.model.alpha_ns
    }

    fn ring(&self, collective: Collective, part: f64) -> f64 {
        let hops = if collective == Collective::AllReduce { 2.0 } else { 1.0 } * self.peers();
        hops * self.hop(part)
    }

    fn one_shot(&self, collective: Collective, block: f64) -> f64 {
        let SimModel { alpha_ns, step_ns, .. } = *self.model;
        // Signals from all to the root before it reads, and from the root to all after.
        let to_root = 2.0 * self.peers() * step_ns + 2.0 * alpha_ns;
        // One copy after the other.
        let one_by_one = self.peers() * self.fetch(block);
        match collective {
            Collective::AllReduce | Collective::ReduceScatter => 2.0 * self.barrier() + self.pull(block),
            Collective::AllGather | Collective::AllToAll => 2.0 * self.barrier() + one_by_one,
            Collective::Broadcast { .. } | Collective::Scatter { .. } => {
                2.0 * (alpha_ns + step_ns) + self.pull(block)
            }
            Collective::Reduce { .. } => to_root + self.pull(block),
            Collective::Gather { .. } => to_root + one_by_one,
            Collective::SendRecv => 2.0 * (alpha_ns + 2.0 * step_ns) + self.fetch(block),
        }
    }

    /// The rank before the last takes its first chunk down when it is there and the last one is up; then the chunks follow each other.
    fn chain(&self, part: f64, chunks: f64) -> f64 {
        let (send, hop) = (self.send(part), self.hop(part));
        2.0 * (self.peers() - 1.0) * hop + (2.0 * hop).max(chunks * send) + (chunks - 1.0) * send
    }

    /// On the first tree. All chunks come to the top before the first goes down; between them lies what a rank with two children does for
    /// each.
    fn tree(&self, collective: Collective, part: f64, chunks: f64) -> f64 {
        let top = collective.root().map_or(0, |root| root.0);
        let (up, down) = (self.up(collective, top, part), self.down(collective, top, part));
        match collective {
            Collective::AllReduce => {
                let forks = (0..self.ranks).any(|r| tree_children(collective, self.ranks, r, 0).len() > 1);
                let send = self.send(part);
                let (add, copy) = if forks { (send + self.model.step_ns, 2.0 * send) } else { (send, send) };
                up + down + (chunks - 1.0) * (add + copy)
            }
            Collective::Reduce { .. } => up,
            _ => down,
        }
    }

    /// Until a rank has the sum of those below it, and has sent it on where it is not the top.
    fn up(&self, collective: Collective, rank: u32, part: f64) -> f64 {
        let children = tree_children(collective, self.ranks, rank, 0);
        let top = collective.root().map_or(0, |root| root.0);
        let last = if rank == top { self.model.step_ns } else { self.send(part) };
        let Some((second, first)) = children.split_last() else { return last };
        let arrives = |child: u32| self.up(collective, child, part) + self.alpha();
        let first = first.iter().map(|child| arrives(*child) + self.model.step_ns).fold(0.0, f64::max);
        first.max(arrives(*second)) + last
    }

    /// From a rank having the data until all below it have: it serves one child after the other.
    fn down(&self, collective: Collective, rank: u32, part: f64) -> f64 {
        let children = tree_children(collective, self.ranks, rank, 0).into_iter().zip(0u32..);
        let below = children.map(|(child, i)| {
            f64::from(i) * self.send(part) + self.hop(part) + self.down(collective, child, part)
        });
        below.fold(0.0, f64::max)
    }

    /// A stage's chunks leave one after the other; the last arrives one alpha later and is then worked on.
    fn halving_doubling(&self, part: f64) -> f64 {
        let core = core_ranks(self.ranks);
        let stage = |chunks: f64| chunks * self.send(part) + self.alpha() + self.model.step_ns;
        let stages: f64 = (0..core.ilog2()).map(|k| 2.0 * stage(f64::from(1 << k))).sum();
        let outside = if self.ranks > core { 2.0 * stage(f64::from(core)) } else { 0.0 };
        stages + outside
    }

    fn exchange(&self, collective: Collective, block: f64) -> f64 {
        let (alpha_ns, step_ns) = (self.alpha(), self.model.step_ns);
        let send_all = self.peers() * self.send(block);
        let take_all = self.peers() * step_ns;
        match collective {
            Collective::SendRecv => self.hop(block) + step_ns,
            Collective::Broadcast { .. } | Collective::Scatter { .. } => send_all + alpha_ns + step_ns,
            Collective::Reduce { .. } | Collective::Gather { .. } => self.collect(block) + take_all,
            // Sums are added up in one order of ranks on all of them: the first to be taken may be the last to come.
            Collective::AllReduce | Collective::ReduceScatter => send_all + alpha_ns + take_all,
            // Others are taken as they come, one while the next is on its way.
            _ => send_all + (alpha_ns + step_ns).max(take_all),
        }
    }
}
