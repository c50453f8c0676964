//! The standard schedules: which there are, and how a plan is put together from one rank's steps.

mod chain;
mod direct;
mod exchange;
mod halving;
mod of;
mod ring;
mod tree;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use self::of::{Of, at, copy, own};
use super::{Buffer, Plan, Program, Scratch, Step, VERSION};
use crate::text::Text;
use crate::types::{ChannelId, Collective, Rank, UnknownName};

/// Most ranks and channels of a plan.
pub const MAX_RANKS: u32 = 64;
pub const MAX_CHANNELS: u32 = 64;

/// How a collective moves its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Each rank talks to its two neighbours: fewest bytes, most steps.
    Ring,
    /// Each rank reads what it needs from all peers at once: one step, most bytes.
    OneShot,
    /// Each rank first produces one part, then all read the parts of all: two steps, fewest bytes.
    TwoShot,
    /// From rank to rank in chunks that follow each other closely; all-reduce goes up the chain adding and down it again with the sum.
    Chain,
    /// NCCL's double binary tree, one tree for the even channels and one for the odd: fewest steps through FIFOs, and with an even
    /// number of channels no rank carries more than two blocks each way.
    Tree,
    /// All-reduce as recursive halving (reduce-scatter), then recursive doubling (all-gather): few steps and few bytes.
    HalvingDoubling,
    /// Step k exchanges with the ranks k places ahead and behind, one block at a time.
    Pairwise,
    /// Every rank sends its blocks straight to each peer's FIFO and folds what arrives in rank order: one hop, no access to a peer's
    /// buffers, and the same bits on all ranks.
    Exchange,
}

impl Algorithm {
    pub const ALL: [Algorithm; 8] = [
        Algorithm::Ring,
        Algorithm::OneShot,
        Algorithm::TwoShot,
        Algorithm::Chain,
        Algorithm::Tree,
        Algorithm::HalvingDoubling,
        Algorithm::Pairwise,
        Algorithm::Exchange,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::OneShot => "one_shot",
            Algorithm::TwoShot => "two_shot",
            Algorithm::Chain => "chain",
            Algorithm::Tree => "tree",
            Algorithm::HalvingDoubling => "halving_doubling",
            Algorithm::Pairwise => "pairwise",
            Algorithm::Exchange => "exchange",
        }
    }

    /// What it is for: why there is none for another collective.
    const fn serves(self) -> (&'static str, &'static str) {
        match self {
            Algorithm::Ring => (
                "环上每一站都要用到或加上经过的数据，而这里各 rank 的数据互不相干",
                "on a ring every rank uses or adds to what passes, and here each rank has its own data",
            ),
            Algorithm::OneShot | Algorithm::Exchange => {
                ("它适用于所有集合操作", "it serves every collective")
            }
            Algorithm::TwoShot => (
                "它分两个阶段，而这个操作只需要一个",
                "it has two phases, and this collective needs only one",
            ),
            Algorithm::Chain | Algorithm::Tree => (
                "它把一个向量汇到一处或从一处分发，只适用于 all_reduce、reduce 和 broadcast",
                "it brings one vector together or spreads it, as all_reduce, reduce and broadcast do",
            ),
            Algorithm::HalvingDoubling => {
                ("它是 all_reduce 的两个阶段合在一起", "it is the two phases of an all_reduce put together")
            }
            Algorithm::Pairwise => (
                "它把各不相同的块送到各个 rank，而这里大家要的是同样的数据",
                "it takes different blocks to different ranks, and here all want the same data",
            ),
        }
    }

    /// Whether [`generate`] has a schedule of this kind for the collective.
    pub const fn supports(self, collective: Collective) -> bool {
        match self {
            Algorithm::OneShot | Algorithm::Exchange => true,
            Algorithm::Ring => matches!(
                collective,
                Collective::AllReduce
                    | Collective::AllGather
                    | Collective::ReduceScatter
                    | Collective::Broadcast { .. }
                    | Collective::Reduce { .. }
            ),
            Algorithm::TwoShot => matches!(collective, Collective::AllReduce | Collective::Broadcast { .. }),
            Algorithm::Chain | Algorithm::Tree => matches!(
                collective,
                Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. }
            ),
            Algorithm::HalvingDoubling => matches!(collective, Collective::AllReduce),
            Algorithm::Pairwise => matches!(
                collective,
                Collective::AllToAll
                    | Collective::Gather { .. }
                    | Collective::Scatter { .. }
                    | Collective::SendRecv
            ),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        Algorithm::ALL.into_iter().find(|a| a.name() == s).ok_or_else(|| UnknownName {
            what: "algorithm",
            got: s.into(),
            known: "ring, one_shot, two_shot, chain, tree, halving_doubling, pairwise, exchange",
        })
    }
}

/// Why there is no such plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text().en)]
pub enum GenerateError {
    Ranks(u32),
    Channels(u32),
    Root { root: Rank, ranks: u32 },
    Unsupported { algorithm: Algorithm, collective: Collective },
}

impl GenerateError {
    /// For people: what is wrong and what to do.
    pub fn text(&self) -> Text {
        match self {
            GenerateError::Ranks(got) => Text::new(
                format!("rank 数为 {got}，请取 1 到 {MAX_RANKS}。"),
                format!("{got} ranks asked for; choose 1 to {MAX_RANKS}."),
            ),
            GenerateError::Channels(got) => Text::new(
                format!("channel 数为 {got}，请取 1 到 {MAX_CHANNELS}。"),
                format!("{got} channels asked for; choose 1 to {MAX_CHANNELS}."),
            ),
            GenerateError::Root { root, ranks } => Text::new(
                format!("root 是 rank {root}，但只有 {ranks} 个 rank；请取 0 到 {}。", ranks - 1),
                format!("root is rank {root}, but there are {ranks} ranks; choose 0 to {}.", ranks - 1),
            ),
            GenerateError::Unsupported { algorithm, collective } => {
                let name = collective.name();
                let known: Vec<_> = Algorithm::ALL.into_iter().filter(|a| a.supports(*collective)).collect();
                let known: Vec<_> = known.into_iter().map(Algorithm::name).collect();
                let (why_zh, why_en) = algorithm.serves();
                Text::new(
                    format!("{name} 没有 {algorithm} 算法：{why_zh}。请改用 {}。", known.join("、")),
                    format!("{name} has no {algorithm} schedule: {why_en}; use {}.", known.join(" or ")),
                )
            }
        }
    }
}

/// The plan of an algorithm for a collective. Every plan it returns verifies out of place and, where there is such a thing, in place.
pub fn generate(
    algorithm: Algorithm,
    collective: Collective,
    ranks: u32,
    channels: u32,
) -> Result<Plan, GenerateError> {
    if !(1..=MAX_RANKS).contains(&ranks) {
        return Err(GenerateError::Ranks(ranks));
    }
    if !(1..=MAX_CHANNELS).contains(&channels) {
        return Err(GenerateError::Channels(channels));
    }
    if let Some(root) = collective.root()
        && root.0 >= ranks
    {
        return Err(GenerateError::Root { root, ranks });
    }
    if !algorithm.supports(collective) {
        return Err(GenerateError::Unsupported { algorithm, collective });
    }
    let chunks = chunks(algorithm, collective, ranks);
    let mut programs = Vec::with_capacity((ranks * channels) as usize);
    for rank in (0..ranks).map(Rank) {
        for channel in (0..channels).map(ChannelId) {
            let steps = steps(algorithm, collective, Of { rank: rank.0, ranks }, channel);
            programs.push(Program { rank, channel, steps });
        }
    }
    let name = format!("{algorithm}_{}", collective.name());
    let scratch = scratch(algorithm, collective, ranks);
    Ok(Plan { version: VERSION, name, collective, ranks, channels, chunks, scratch, programs })
}

fn steps(algorithm: Algorithm, collective: Collective, of: Of, channel: ChannelId) -> Vec<Step> {
    if of.ranks == 1 {
        return vec![copy(own(Buffer::Input, 0), at(Buffer::Output, 0))];
    }
    match algorithm {
        Algorithm::Ring => of.ring(collective),
        Algorithm::OneShot => of.one_shot(collective),
        Algorithm::TwoShot => of.two_shot(collective),
        Algorithm::Chain => of.chain(collective),
        Algorithm::Tree => of.tree(collective, channel),
        Algorithm::HalvingDoubling => of.halving_doubling(),
        Algorithm::Pairwise => of.pairwise(collective),
        Algorithm::Exchange => of.exchange(collective),
    }
}

fn scratch(algorithm: Algorithm, collective: Collective, ranks: u32) -> Vec<Scratch> {
    let needed = match (algorithm, collective) {
        (Algorithm::OneShot, Collective::AllReduce) | (Algorithm::Tree, Collective::Reduce { .. }) => true,
        (Algorithm::Exchange, collective) => collective.reduces(),
        _ => false,
    };
    if needed && ranks > 1 { vec![Scratch { name: "sum".into(), chunks: 1 }] } else { Vec::new() }
}

/// Chunks per block of a generated plan.
pub(crate) const fn chunks(algorithm: Algorithm, collective: Collective, ranks: u32) -> u32 {
    match (algorithm, collective) {
        (_, _) if ranks == 1 => 1,
        (Algorithm::Ring, Collective::AllReduce) | (Algorithm::TwoShot, _) => ranks,
        (Algorithm::Chain, Collective::AllReduce) => chain::CHUNKS,
        (Algorithm::Tree, Collective::AllReduce) => tree::CHUNKS,
        (Algorithm::HalvingDoubling, _) => halving::core(ranks),
        _ => 1,
    }
}

/// What [`crate::cost`] needs to know of how plans are made.
pub(crate) use halving::{core as core_ranks, groups as exchange_groups};
pub(crate) use tree::{children as tree_children, degree as tree_degree, depth as tree_depth};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_of_four_is_ncclss() {
        let plan = generate(Algorithm::Ring, Collective::AllReduce, 4, 2).unwrap();
        let steps = &plan.program(Rank(1), ChannelId(1)).steps;
        let names: Vec<_> = steps.iter().map(Step::name).collect();
        let (rrs, rcs) = ("recv_reduce_send", "recv_copy_send");
        assert_eq!(names, ["send", rrs, rrs, "recv_reduce_copy_send", rcs, rcs, "recv"]);
        assert_eq!(steps[0], Step::Send { to: Rank(2), src: at(Buffer::Input, 0) });
        assert_eq!(steps[1], Step::RecvReduceSend { from: Rank(0), src: at(Buffer::Input, 3), to: Rank(2) });
        assert_eq!(steps[6], Step::Recv { from: Rank(0), dst: at(Buffer::Output, 2) });
        assert_eq!((plan.chunks, plan.programs.len()), (4, 8));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_way_out() {
        let err = |a, c, n, ch| generate(a, c, n, ch).unwrap_err().to_string();
        assert!(err(Algorithm::TwoShot, Collective::AllGather, 4, 1).contains("use ring or one_shot"));
        assert!(err(Algorithm::Tree, Collective::AllToAll, 4, 1).contains("use one_shot or pairwise"));
        assert!(err(Algorithm::Ring, Collective::AllReduce, 0, 1).contains("1 to 64"));
        assert!(err(Algorithm::Ring, Collective::AllReduce, 65, 1).contains("1 to 64"));
        assert!(err(Algorithm::Ring, Collective::AllReduce, 2, 65).contains("1 to 64"));
        let past = Collective::Broadcast { root: Rank(2) };
        assert!(err(Algorithm::Ring, past, 2, 1).contains("choose 0 to 1"));
    }
}
