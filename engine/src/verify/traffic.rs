//! What a plan moves: counts per connection and rank, the lower bound of its collective, and whether both ends of every connection
//! count alike.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::refusal::{At, Refusal, RefusalKind};
use crate::plan::{Plan, Step, operands};
use crate::text::Text;
use crate::types::{ChannelId, Collective, Rank};

/// A share of a block, in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    pub num: u64,
    pub den: u64,
}

impl Fraction {
    pub fn new(num: u64, den: u64) -> Fraction {
        let (mut a, mut b) = (num, den);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let by = a.max(1);
        Fraction { num: num / by, den: den / by }
    }

    /// As a number of blocks.
    pub fn blocks(self) -> f64 {
        self.num as f64 / self.den as f64
    }

    fn over(self, other: Fraction) -> bool {
        u128::from(self.num) * u128::from(other.den) > u128::from(other.num) * u128::from(self.den)
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.den {
            1 => write!(f, "{}", self.num),
            den => write!(f, "{}/{den}", self.num),
        }
    }
}

/// Data that went from one rank to another: sent, or read by the receiver from the sender's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub from: Rank,
    pub to: Rank,
    /// In blocks.
    pub sent: Fraction,
}

/// A plan that keeps its promise, and what it costs. Everything is in blocks (see [`Collective::input_blocks`]) and holds for a block
/// that divides evenly; signals are not counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Most transfers of one tile that have to follow each other: 2(n-1) for a ring all-reduce, 2 for a two-shot one.
    pub longest_chain: u32,
    /// Connections that carry data, by sender, then receiver.
    pub edges: Vec<Edge>,
    /// By rank.
    pub sent: Vec<Fraction>,
    pub received: Vec<Fraction>,
    /// The most that any rank sends or receives.
    pub busiest: Fraction,
    /// What the busiest rank of any plan for this collective sends or receives at least.
    pub lower_bound: Fraction,
}

impl Proof {
    /// No plan moves less through its busiest rank.
    pub fn is_optimal(&self) -> bool {
        self.busiest == self.lower_bound
    }

    /// One sentence for the learner.
    pub fn summary(&self) -> Text {
        let Proof { longest_chain, busiest, lower_bound, .. } = self;
        let (zh, en) = if self.is_optimal() {
            ("正好等于下界".to_string(), "which is the lower bound".to_string())
        } else {
            (format!("下界是 {lower_bound}"), format!("while the lower bound is {lower_bound}"))
        };
        Text::new(
            format!(
                "计划正确：最长的一串前后相接的传输有 {longest_chain} 次；最忙的 rank 收或发 {busiest} 个块，{zh}。"
            ),
            format!(
                "The plan is correct: its longest chain of transfers that follow each other is {longest_chain}; the busiest \
                 rank sends or receives {busiest} blocks, {en}."
            ),
        )
    }
}

/// All-reduce: each element of the result needs n-1 additions of data from other ranks and n-1 copies to them, 2(n-1) transfers of the
/// vector over n ranks (Patarasuk and Yuan 2009). All-gather and reduce-scatter: each rank lacks n-1 blocks. Broadcast: each rank but
/// the root lacks the block. Reduce: each rank but the root gives away a sum or its part of one. All-to-all: each rank lacks n-1 blocks;
/// so does the root of a gather, and the root of a scatter gives as many away. Send-recv: each rank gives one away.
pub fn lower_bound(collective: Collective, ranks: u32) -> Fraction {
    let n = u64::from(ranks);
    match collective {
        Collective::AllReduce => Fraction::new(2 * (n - 1), n),
        Collective::AllGather
        | Collective::ReduceScatter
        | Collective::AllToAll
        | Collective::Gather { .. }
        | Collective::Scatter { .. } => Fraction::new(n - 1, 1),
        Collective::Broadcast { .. } | Collective::Reduce { .. } | Collective::SendRecv => {
            Fraction::new(u64::from(n > 1), 1)
        }
    }
}

pub fn proof(plan: &Plan, longest_chain: u32) -> Proof {
    let ranks = plan.ranks as usize;
    let mut parts = vec![0u64; ranks * ranks];
    for program in &plan.programs {
        let me = program.rank.index();
        for step in &program.steps {
            if let (Some(to), len @ 1..) = (step.to(), u64::from(step.chunk_len())) {
                parts[me * ranks + to.index()] += len;
            }
            for place in operands(step).0 {
                if let Some(from) = place.rank {
                    parts[from.index() * ranks + me] += u64::from(place.range.len);
                }
            }
        }
    }
    // A chunk of one channel is this share of a block.
    let den = u64::from(plan.chunks) * u64::from(plan.channels);
    let blocks = |parts: u64| Fraction::new(parts, den);
    let rank = |i: usize| Rank(u32::try_from(i).expect("at most 64 ranks"));
    let edges = parts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(i, n)| Edge {
        from: rank(i / ranks),
        to: rank(i % ranks),
        sent: blocks(*n),
    });
    let edges = edges.collect();
    let sent: Vec<Fraction> = (0..ranks).map(|r| blocks(parts[r * ranks..][..ranks].iter().sum())).collect();
    let received: Vec<Fraction> =
        (0..ranks).map(|r| blocks(parts.iter().skip(r).step_by(ranks).sum())).collect();
    let busiest = sent
        .iter()
        .chain(&received)
        .fold(Fraction::new(0, 1), |most, f| if f.over(most) { *f } else { most });
    Proof {
        longest_chain,
        edges,
        sent,
        received,
        busiest,
        lower_bound: lower_bound(plan.collective, plan.ranks),
    }
}

/// Both ends of every connection handle equally many chunks per tile, and every signal has its wait: otherwise somebody waits for ever,
/// or what is left over is taken for something of the next tile.
pub fn check_pairs(plan: &Plan, channel: ChannelId) -> Result<(), Refusal> {
    let ranks = plan.ranks as usize;
    // Per ordered pair, the step of each chunk sent, received, signal and wait.
    let mut ends: Vec<[Vec<u32>; 4]> = vec![Default::default(); ranks * ranks];
    for rank in (0..plan.ranks).map(Rank) {
        for (step, i) in plan.program(rank, channel).steps.iter().zip(0u32..) {
            let len = step.chunk_len().max(1) as usize;
            let (sends, receives) = match step {
                Step::Signal { .. } | Step::Wait { .. } => (2, 3),
                _ => (0, 1),
            };
            if let Some(to) = step.to() {
                ends[rank.index() * ranks + to.index()][sends].extend(std::iter::repeat_n(i, len));
            }
            if let Some(from) = step.from() {
                ends[from.index() * ranks + rank.index()][receives].extend(std::iter::repeat_n(i, len));
            }
        }
    }
    for (pair, i) in ends.iter().zip(0u32..) {
        let (from, to) = (Rank(i / plan.ranks), Rank(i % plan.ranks));
        for (out, into, signal) in [(&pair[0], &pair[1], false), (&pair[2], &pair[3], true)] {
            // The first of the longer side that has no partner.
            let (rank, step) = match out.len().cmp(&into.len()) {
                std::cmp::Ordering::Equal => continue,
                std::cmp::Ordering::Greater => (from, out[into.len()]),
                std::cmp::Ordering::Less => (to, into[out.len()]),
            };
            let at = At { rank, channel, step, tile: 0 };
            let kind = RefusalKind::Unmatched {
                from,
                to,
                sent: out.len() as u64,
                received: into.len() as u64,
                signal,
            };
            return Err(Refusal::at(at, kind));
        }
    }
    Ok(())
}
