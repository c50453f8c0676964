//! What a standard plan costs whatever the machine: how many transfers follow each other, and how much the busiest rank moves.

use serde::{Deserialize, Serialize};

use crate::plan::{Algorithm, core_ranks, exchange_groups, tree_degree, tree_depth};
use crate::types::Collective;
use crate::verify::Fraction;

/// As [`crate::verify::Proof`] counts them in the plan itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedForm {
    /// Most transfers of one tile that have to follow each other.
    pub longest_chain: u32,
    /// The most that any rank sends or receives, in blocks that divide evenly.
    pub busiest: Fraction,
}

/// `None` where [`crate::plan::generate`] has no such plan. Only a tree's cost depends on the channels: each runs one of two trees.
pub fn closed_form(
    algorithm: Algorithm,
    collective: Collective,
    ranks: u32,
    channels: u32,
) -> Option<ClosedForm> {
    if ranks == 0 || channels == 0 || !algorithm.supports(collective) {
        return None;
    }
    let n = u64::from(ranks);
    if ranks == 1 {
        return Some(ClosedForm { longest_chain: 0, busiest: Fraction::new(0, 1) });
    }
    let (once, rest) = (Fraction::new(1, 1), Fraction::new(n - 1, 1));
    let twice_parts = Fraction::new(2 * (n - 1), n);
    let (longest_chain, busiest) = match (algorithm, collective) {
        (Algorithm::Ring, Collective::AllReduce) => (2 * (ranks - 1), twice_parts),
        (Algorithm::Ring, Collective::AllGather | Collective::ReduceScatter) => (ranks - 1, rest),
        (Algorithm::Chain, Collective::AllReduce) => {
            // Between the ends a rank passes the vector on both ways.
            (2 * (ranks - 1), if ranks == 2 { once } else { Fraction::new(2, 1) })
        }
        (Algorithm::Ring | Algorithm::Chain, _) => (ranks - 1, once),
        // Of two ranks the other one reads both chunks from the root.
        (Algorithm::TwoShot, Collective::Broadcast { .. }) if ranks == 2 => (1, once),
        (Algorithm::TwoShot, _) => (2, twice_parts),
        (Algorithm::Tree, _) => tree(collective, ranks, channels),
        (Algorithm::HalvingDoubling, _) => halving_doubling(ranks),
        (_, Collective::SendRecv) => (1, once),
        (Algorithm::Pairwise, Collective::AllToAll) => (ranks - 1, rest),
        (Algorithm::OneShot | Algorithm::Pairwise | Algorithm::Exchange, _) => (1, rest),
    };
    Some(ClosedForm { longest_chain, busiest })
}

/// Up and down again for an all-reduce, which sends to and hears from each neighbour; the others send one way only.
fn tree(collective: Collective, ranks: u32, channels: u32) -> (u32, Fraction) {
    let depth = tree_depth(collective, ranks);
    let second = u64::from(channels / 2);
    let first = u64::from(channels) - second;
    let load = |of: fn((u32, u32)) -> u32, rank: u32| {
        let on = |channel| u64::from(of(tree_degree(collective, ranks, rank, channel)));
        first * on(0) + second * on(1)
    };
    let busiest = (0..ranks).map(|rank| match collective {
        Collective::AllReduce => load(|(parents, children)| parents + children, rank),
        _ => load(|(parents, _)| parents, rank).max(load(|(_, children)| children, rank)),
    });
    let busiest = busiest.max().expect("there are two ranks or more");
    let chain = if collective == Collective::AllReduce { 2 * depth } else { depth };
    (chain, Fraction::new(busiest, channels.into()))
}

/// Halving and doubling over the core; with ranks outside it, a vector in and a vector out for some of the core.
fn halving_doubling(ranks: u32) -> (u32, Fraction) {
    let core = core_ranks(ranks);
    let messages: u32 = (0..core.ilog2()).map(|stage| exchange_groups(1 << stage)).sum();
    let outside = ranks > core;
    let m = u64::from(core);
    (2 * messages + 2 * u32::from(outside), Fraction::new(2 * (m - 1) + u64::from(outside) * m, m))
}
