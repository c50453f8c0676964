//! The standard schedules: which there are, and how a plan is put together from one rank's steps.

mod direct;
mod of;
mod ring;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use self::of::{Of, at, copy, own};
use super::{Buffer, Plan, Program, Scratch, VERSION};
use crate::text::Text;
use crate::types::{ChannelId, Collective, Rank, UnknownName};

/// Most ranks and channels of a plan.
pub const MAX_RANKS: u32 = 64;
pub const MAX_CHANNELS: u32 = 32;

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
}

impl Algorithm {
    pub const ALL: [Algorithm; 3] = [Algorithm::Ring, Algorithm::OneShot, Algorithm::TwoShot];

    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::OneShot => "one_shot",
            Algorithm::TwoShot => "two_shot",
        }
    }

    /// What it is for: why there is none for another collective.
    const fn serves(self) -> (&'static str, &'static str) {
        match self {
            Algorithm::Ring => (
                "环上每一站都要用到或加上经过的数据，而这里各 rank 的数据互不相干",
                "on a ring every rank uses or adds to what passes, and here each rank has its own data",
            ),
            Algorithm::OneShot => ("它适用于所有集合操作", "it serves every collective"),
            Algorithm::TwoShot => (
                "它分两个阶段，而这个操作只需要一个",
                "it has two phases, and this collective needs only one",
            ),
        }
    }

    /// Whether [`generate`] has a schedule of this kind for the collective.
    pub const fn supports(self, collective: Collective) -> bool {
        match self {
            Algorithm::OneShot => true,
            Algorithm::Ring => matches!(
                collective,
                Collective::AllReduce
                    | Collective::AllGather
                    | Collective::ReduceScatter
                    | Collective::Broadcast { .. }
                    | Collective::Reduce { .. }
            ),
            Algorithm::TwoShot => matches!(collective, Collective::AllReduce | Collective::Broadcast { .. }),
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
            known: "ring, one_shot, two_shot",
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

/// The plan of an algorithm for a collective. Every plan it returns verifies in place and out of place.
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
    let scratch = match (algorithm, collective) {
        (Algorithm::OneShot, Collective::AllReduce) if ranks > 1 => {
            vec![Scratch { name: "sum".into(), chunks: 1 }]
        }
        _ => Vec::new(),
    };
    let mut programs = Vec::with_capacity((ranks * channels) as usize);
    for rank in (0..ranks).map(Rank) {
        let steps = if ranks == 1 {
            vec![copy(own(Buffer::Input, 0), at(Buffer::Output, 0))]
        } else {
            let of = Of { rank: rank.0, ranks };
            match algorithm {
                Algorithm::Ring => of.ring(collective),
                Algorithm::OneShot => of.one_shot(collective),
                Algorithm::TwoShot => of.two_shot(collective),
            }
        };
        for channel in (0..channels).map(ChannelId) {
            programs.push(Program { rank, channel, steps: steps.clone() });
        }
    }
    let name = format!("{algorithm}_{}", collective.name());
    Ok(Plan { version: VERSION, name, collective, ranks, channels, chunks, scratch, programs })
}

/// Chunks per block of a generated plan.
pub(super) const fn chunks(algorithm: Algorithm, collective: Collective, ranks: u32) -> u32 {
    match (algorithm, collective) {
        (Algorithm::Ring, Collective::AllReduce) | (Algorithm::TwoShot, _) => ranks,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Step;

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
        assert!(err(Algorithm::Ring, Collective::AllReduce, 0, 1).contains("1 to 64"));
        assert!(err(Algorithm::Ring, Collective::AllReduce, 65, 1).contains("1 to 64"));
        assert!(err(Algorithm::Ring, Collective::AllReduce, 2, 33).contains("1 to 32"));
        let past = Collective::Broadcast { root: Rank(2) };
        assert!(err(Algorithm::Ring, past, 2, 1).contains("choose 0 to 1"));
    }
}
