//! What each collective promises: blocks, roots, which buffers there are, and what in place means. The contract is NCCL's; where NCCL
//! has none (all-to-all, gather, scatter, send-recv are loops over sends and receives there), it is that of nccl-tests v2.19.6.

use serde::{Deserialize, Serialize};

use crate::text::Text;
use crate::types::Rank;

/// What a collective promises. Block and buffer sizes: see [`Collective::input_blocks`] and [`Collective::output_blocks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast {
        root: Rank,
    },
    /// The root gets the reduction of all inputs; the others have no output.
    Reduce {
        root: Rank,
    },
    /// Block `q` of rank `r`'s input becomes block `r` of rank `q`'s output.
    AllToAll,
    /// The root gets every rank's block, in rank order; the others have no output.
    Gather {
        root: Rank,
    },
    /// Rank `r` gets block `r` of the root's input; the others have no input.
    Scatter {
        root: Rank,
    },
    /// Every rank sends its block to the next and receives that of the previous: nccl-tests' `sendrecv`.
    SendRecv,
}

/// How input and output lie in one memory when a call is in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alias {
    /// They are the same.
    Same,
    /// The input is block `rank` of the output.
    InputInOutput,
    /// The output is block `rank` of the input.
    OutputInInput,
}

impl Collective {
    /// Every collective, those with a root with this one.
    pub const fn all(root: Rank) -> [Collective; 9] {
        [
            Collective::AllReduce,
            Collective::AllGather,
            Collective::ReduceScatter,
            Collective::Broadcast { root },
            Collective::Reduce { root },
            Collective::AllToAll,
            Collective::Gather { root },
            Collective::Scatter { root },
            Collective::SendRecv,
        ]
    }

    /// The collective of a [`Collective::name`]; one that has a root gets this one.
    pub fn named(name: &str, root: Rank) -> Option<Collective> {
        Collective::all(root).into_iter().find(|collective| collective.name() == name)
    }

    /// Name in the plan language, the API and the tables.
    pub const fn name(self) -> &'static str {
        match self {
            Collective::AllReduce => "all_reduce",
            Collective::AllGather => "all_gather",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::Broadcast { .. } => "broadcast",
            Collective::Reduce { .. } => "reduce",
            Collective::AllToAll => "all_to_all",
            Collective::Gather { .. } => "gather",
            Collective::Scatter { .. } => "scatter",
            Collective::SendRecv => "send_recv",
        }
    }

    pub const fn root(self) -> Option<Rank> {
        match self {
            Collective::Broadcast { root }
            | Collective::Reduce { root }
            | Collective::Gather { root }
            | Collective::Scatter { root } => Some(root),
            _ => None,
        }
    }

    /// Length of the input buffer in blocks. A block is the unit of the collective's contract: the whole vector where every rank has
    /// one and the same, one rank's part where a buffer holds a part per rank.
    pub const fn input_blocks(self, ranks: u32) -> u32 {
        match self {
            Collective::ReduceScatter | Collective::AllToAll | Collective::Scatter { .. } => ranks,
            _ => 1,
        }
    }

    /// Length of the output buffer in blocks.
    pub const fn output_blocks(self, ranks: u32) -> u32 {
        match self {
            Collective::AllGather | Collective::AllToAll | Collective::Gather { .. } => ranks,
            _ => 1,
        }
    }

    /// Whether the contract gives the rank an input. Where it does not, NCCL takes any pointer, so no plan may read it.
    pub fn has_input(self, rank: Rank) -> bool {
        match self {
            Collective::Broadcast { root } | Collective::Scatter { root } => rank == root,
            _ => true,
        }
    }

    /// Whether the contract gives the rank an output. Where it does not, NCCL takes any pointer, so no plan may touch it and nothing
    /// is checked.
    pub fn has_output(self, rank: Rank) -> bool {
        match self {
            Collective::Reduce { root } | Collective::Gather { root } => rank == root,
            _ => true,
        }
    }

    pub const fn reduces(self) -> bool {
        matches!(self, Collective::AllReduce | Collective::ReduceScatter | Collective::Reduce { .. })
    }

    /// What in place means; `None` where nccl-tests has no such run, because a rank's input would be overwritten before it was sent.
    pub const fn alias(self) -> Option<Alias> {
        match self {
            Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
                Some(Alias::Same)
            }
            Collective::AllGather | Collective::Gather { .. } => Some(Alias::InputInOutput),
            Collective::ReduceScatter | Collective::Scatter { .. } => Some(Alias::OutputInInput),
            Collective::AllToAll | Collective::SendRecv => None,
        }
    }

    /// Why a collective without an [`Collective::alias`] cannot run in place, and what to do.
    pub(crate) fn no_in_place(self) -> Text {
        let name = self.name();
        Text::new(
            format!("{name} 没有 in-place：收到的数据会盖住还没发出的输入；请用两个不同的缓冲区。"),
            format!(
                "{name} has no in-place form: what arrives would overwrite input that is still to be sent; use two buffers."
            ),
        )
    }

    /// Blocks from the start of the one memory to the rank's input and to its output, in place.
    pub const fn in_place_offsets(self, rank: Rank) -> (u32, u32) {
        match self.alias() {
            Some(Alias::InputInOutput) => (rank.0, 0),
            Some(Alias::OutputInInput) => (0, rank.0),
            Some(Alias::Same) | None => (0, 0),
        }
    }

    /// nccl-tests' factor from algorithm to bus bandwidth, with S the larger of the two buffers (PERFORMANCE.md, `*_perf` sources).
    pub fn busbw_factor(self, ranks: u32) -> f64 {
        let n = f64::from(ranks);
        match self {
            Collective::AllReduce => 2.0 * (n - 1.0) / n,
            Collective::AllGather
            | Collective::ReduceScatter
            | Collective::AllToAll
            | Collective::Gather { .. }
            | Collective::Scatter { .. } => (n - 1.0) / n,
            Collective::Broadcast { .. } | Collective::Reduce { .. } | Collective::SendRecv => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_the_collective() {
        for collective in Collective::all(Rank(3)) {
            assert_eq!(Collective::named(collective.name(), Rank(3)), Some(collective));
        }
        assert_eq!(Collective::named("all_scatter", Rank(0)), None);
    }

    #[test]
    fn in_place_the_smaller_buffer_lies_within_the_larger() {
        for collective in Collective::all(Rank(0)) {
            let (input, output) = (collective.input_blocks(4), collective.output_blocks(4));
            let (from, to) = collective.in_place_offsets(Rank(3));
            assert!(from + input <= input.max(output) && to + output <= input.max(output), "{collective:?}");
        }
    }
}
