//! The standard schedules. Ring steps come in the order of NCCL's `runRing` (src/device/{all_reduce,all_gather,reduce_scatter,
//! broadcast}.h at v2.22.3-1); the direct ones read peers' buffers between barriers made of signals and waits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Buffer, Place, Plan, Program, Range, Scratch, Step, VERSION};
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

    /// Whether [`generate`] has a schedule of this kind for the collective.
    pub const fn supports(self, collective: Collective) -> bool {
        match self {
            Algorithm::Ring | Algorithm::OneShot => true,
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
                Text::new(
                    format!("{name} 没有 {algorithm} 算法：它只需要一个阶段，请改用 one_shot 或 ring。"),
                    format!(
                        "{name} has no {algorithm} schedule: it has only one phase; use one_shot or ring."
                    ),
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
    if let Collective::Broadcast { root } = collective
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

fn at(buffer: Buffer, start: u32) -> Range {
    Range { buffer, start, len: 1 }
}

fn own(buffer: Buffer, start: u32) -> Place {
    Place { rank: None, range: at(buffer, start) }
}

fn copy(src: Place, dst: Range) -> Step {
    Step::Copy { src, dst }
}

/// One rank's point of view; `ranks` is at least 2.
struct Of {
    rank: u32,
    ranks: u32,
}

impl Of {
    /// The rank, or chunk, `k` places further round the ring.
    fn ahead(&self, k: u32) -> u32 {
        (self.rank + k) % self.ranks
    }

    fn behind(&self, k: u32) -> u32 {
        (self.rank + self.ranks - k) % self.ranks
    }

    fn place(&self, rank: u32, buffer: Buffer, start: u32) -> Place {
        Place { rank: (rank != self.rank).then_some(Rank(rank)), range: at(buffer, start) }
    }

    /// The same chunk of all ranks, in rank order: all ranks then fold in one order and get the same bits.
    fn all(&self, buffer: Buffer, start: u32) -> Vec<Place> {
        (0..self.ranks).map(|p| self.place(p, buffer, start)).collect()
    }

    /// Tells all peers and hears from all: what they did before is then done.
    fn barrier(&self, steps: &mut Vec<Step>) {
        steps.extend((1..self.ranks).map(|k| Step::Signal { to: Rank(self.ahead(k)) }));
        steps.extend((1..self.ranks).map(|k| Step::Wait { from: Rank(self.ahead(k)) }));
    }

    fn ring(&self, collective: Collective) -> Vec<Step> {
        let (n, r) = (self.ranks, self.rank);
        let (prev, next) = (Rank(self.behind(1)), Rank(self.ahead(1)));
        let (input, output) = (|k| at(Buffer::Input, k), |k| at(Buffer::Output, k));
        let mut steps = Vec::new();
        match collective {
            Collective::AllReduce => {
                steps.push(Step::Send { src: input(self.behind(1)), to: next });
                steps.extend((2..n).map(|j| Step::RecvReduceSend {
                    from: prev,
                    src: input(self.behind(j)),
                    to: next,
                }));
                steps.push(Step::RecvReduceCopySend { from: prev, src: input(r), dst: output(r), to: next });
                steps.extend((1..n - 1).map(|j| Step::RecvCopySend {
                    from: prev,
                    dst: output(self.behind(j)),
                    to: next,
                }));
                steps.push(Step::Recv { from: prev, dst: output(self.ahead(1)) });
            }
            Collective::AllGather => {
                // NCCL's copySend in two steps; the send goes first so that the next rank need not wait for our own copy.
                steps.push(Step::Send { src: input(0), to: next });
                steps.push(copy(own(Buffer::Input, 0), output(r)));
                steps.extend((1..n - 1).map(|j| Step::RecvCopySend {
                    from: prev,
                    dst: output(self.behind(j)),
                    to: next,
                }));
                steps.push(Step::Recv { from: prev, dst: output(self.ahead(1)) });
            }
            Collective::ReduceScatter => {
                steps.push(Step::Send { src: input(self.behind(1)), to: next });
                steps.extend((2..n).map(|j| Step::RecvReduceSend {
                    from: prev,
                    src: input(self.behind(j)),
                    to: next,
                }));
                steps.push(Step::RecvReduceCopy { from: prev, src: input(r), dst: output(0) });
            }
            Collective::Broadcast { root } if r == root.0 => {
                steps.push(Step::Send { src: input(0), to: next });
                steps.push(copy(own(Buffer::Input, 0), output(0)));
            }
            Collective::Broadcast { root } if next == root => {
                steps.push(Step::Recv { from: prev, dst: output(0) });
            }
            Collective::Broadcast { .. } => {
                steps.push(Step::RecvCopySend { from: prev, dst: output(0), to: next });
            }
        }
        steps
    }

    fn one_shot(&self, collective: Collective) -> Vec<Step> {
        let (n, r) = (self.ranks, self.rank);
        let output = |k| at(Buffer::Output, k);
        let mut steps = Vec::new();
        match collective {
            Collective::AllReduce => {
                // In place, writing the output would change the input that slower peers still read: the sum waits in scratch.
                self.barrier(&mut steps);
                steps.push(Step::Reduce { srcs: self.all(Buffer::Input, 0), dst: at(Buffer::Scratch(0), 0) });
                self.barrier(&mut steps);
                steps.push(copy(own(Buffer::Scratch(0), 0), output(0)));
            }
            Collective::AllGather => {
                self.barrier(&mut steps);
                // Each rank begins with itself, so that no peer is read by all at the same time.
                steps.extend(
                    (0..n).map(|k| copy(self.place(self.ahead(k), Buffer::Input, 0), output(self.ahead(k)))),
                );
                self.barrier(&mut steps);
            }
            Collective::ReduceScatter => {
                // In place this writes block r of the own input, which no peer reads.
                self.barrier(&mut steps);
                steps.push(Step::Reduce { srcs: self.all(Buffer::Input, r), dst: output(0) });
                self.barrier(&mut steps);
            }
            Collective::Broadcast { root } if r == root.0 => {
                steps.extend((1..n).map(|k| Step::Signal { to: Rank(self.ahead(k)) }));
                steps.push(copy(own(Buffer::Input, 0), output(0)));
                steps.extend((1..n).map(|k| Step::Wait { from: Rank(self.ahead(k)) }));
            }
            Collective::Broadcast { root } => {
                steps.push(Step::Wait { from: root });
                steps.push(copy(self.place(root.0, Buffer::Input, 0), output(0)));
                steps.push(Step::Signal { to: root });
            }
        }
        steps
    }

    fn two_shot(&self, collective: Collective) -> Vec<Step> {
        let (n, r) = (self.ranks, self.rank);
        let output = |k| at(Buffer::Output, k);
        let mut steps = Vec::new();
        self.barrier(&mut steps);
        // First shot: rank r makes chunk r. In place this is safe because only rank r reads chunk r of any input.
        match collective {
            Collective::Broadcast { root } if r == root.0 => {
                let whole = |buffer| Range { buffer, start: 0, len: n };
                steps.push(copy(Place { rank: None, range: whole(Buffer::Input) }, whole(Buffer::Output)));
            }
            Collective::Broadcast { root } => {
                steps.push(copy(self.place(root.0, Buffer::Input, r), output(r)));
            }
            _ => steps.push(Step::Reduce { srcs: self.all(Buffer::Input, r), dst: output(r) }),
        }
        self.barrier(&mut steps);
        // Second shot: fetch the other chunks from their makers.
        if !matches!(collective, Collective::Broadcast { root } if r == root.0) {
            steps.extend((1..n).map(|k| {
                copy(self.place(self.ahead(k), Buffer::Output, self.ahead(k)), output(self.ahead(k)))
            }));
        }
        self.barrier(&mut steps);
        steps
    }
}

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
        assert!(err(Algorithm::TwoShot, Collective::AllGather, 4, 1).contains("use one_shot or ring"));
        assert!(err(Algorithm::Ring, Collective::AllReduce, 0, 1).contains("1 to 64"));
        assert!(err(Algorithm::Ring, Collective::AllReduce, 65, 1).contains("1 to 64"));
        assert!(err(Algorithm::Ring, Collective::AllReduce, 2, 33).contains("1 to 32"));
        let past = Collective::Broadcast { root: Rank(2) };
        assert!(err(Algorithm::Ring, past, 2, 1).contains("choose 0 to 1"));
    }
}
