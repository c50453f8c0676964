//! A [`Plan`] says, per rank and channel, which primitive steps run in which order. It knows nothing of devices, threads, time or
//! message size: ranges are chunks (fractions of a block), and every back end repeats a channel's program for each tile of a chunk.
//!
//! How a buffer is cut is in [`layout`]; both back ends, the verifier and the simulator use that one definition.

mod generate;
pub mod layout;
pub mod text;
mod wellformed;

pub use generate::{Algorithm, GenerateError, MAX_CHANNELS, MAX_RANKS, generate};
pub(crate) use generate::{chunks, core_ranks, exchange_groups, tree_children, tree_degree, tree_depth};
use serde::{Deserialize, Serialize};

pub(crate) use wellformed::operands;
pub use wellformed::{Location, MAX_CHUNKS, MAX_SCRATCH, Malformed};

use crate::types::{ChannelId, Collective, Rank};

/// Version of the structure and of the text form. A reader refuses what it does not know.
pub const VERSION: u32 = 1;

/// Schedule of one collective for all ranks and channels.
///
/// Semantics, relied on by `verify`, `sim`, `exec::cpu` and `exec::cuda`:
/// - A block (see [`Collective::input_blocks`]) is cut into `chunks` chunks. A [`Range`] on input or output counts chunks over all blocks:
///   chunk `b * chunks + j` is chunk `j` of block `b`.
/// - Channel `c` works on its own slice of every chunk; channels never touch each other's elements and share no connection.
/// - A channel's slice of a chunk is cut into tiles that fit one FIFO slot. Program order is: for each tile, all steps in order.
///   Step ranges of several chunks are executed chunk by chunk, one FIFO slot each.
/// - A connection is an ordered pair of ranks on a channel with [`crate::plan::SLOTS`] slots. Sends block when all slots are full,
///   receives when none is. Data arrives in order.
/// - A scratch buffer holds one tile per chunk, per rank and channel, and is reused by the next tile.
/// - All ranges of one step cover chunks of one size: the verifier refuses a step that mixes chunk `j` with another `j`, since the last
///   chunk of a block may be shorter. A chunk of scratch holds as many elements as were last put into it.
/// - `Signal`/`Wait` is a counting semaphore per ordered pair and channel without a limit: it orders direct accesses to a peer's buffer,
///   as received data does. A freed slot orders nothing: no plan may count on how far back-pressure held its peer.
/// - Out of place, the input is read-only. In place, input and output share memory as [`Collective::alias`] says. No step has the input
///   as destination, and none touches an input or output that the collective does not give the rank ([`Collective::has_input`],
///   [`Collective::has_output`]). A copy of a chunk onto itself, as in place, touches nothing: a peer may be reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub version: u32,
    pub name: String,
    pub collective: Collective,
    pub ranks: u32,
    pub channels: u32,
    /// Chunks per block.
    pub chunks: u32,
    pub scratch: Vec<Scratch>,
    /// Exactly one program per rank and channel, ordered by rank, then channel.
    pub programs: Vec<Program>,
}

/// Slots of a connection: NCCL's `NCCL_STEPS` at v2.22.3-1 (src/include/device.h).
pub const SLOTS: u32 = 8;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scratch {
    pub name: String,
    /// Length in chunks (each holds one tile).
    pub chunks: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub rank: Rank,
    pub channel: ChannelId,
    pub steps: Vec<Step>,
}

/// A named buffer of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffer {
    Input,
    Output,
    /// Index into [`Plan::scratch`].
    Scratch(u16),
}

/// `len` consecutive chunks of a buffer of the rank itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Range {
    pub buffer: Buffer,
    pub start: u32,
    pub len: u32,
}

/// A range of the rank itself (`rank: None`) or read directly from a peer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    pub rank: Option<Rank>,
    pub range: Range,
}

/// One primitive, named as in NCCL's device code (src/device/primitives.h) where it exists there. `from` and `to` are peers.
/// All ranges of one step have the same length.
///
/// Reductions run in the element type, each rounded once (f16 and bf16 compute in f32 and round to the type); `Reduce` folds its
/// sources left to right, in f32 for f16 and bf16 with one rounding at the end. The order is part of the plan: same plan, same bits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Step {
    Send {
        to: Rank,
        src: Range,
    },
    Recv {
        from: Rank,
        dst: Range,
    },
    /// `dst = received (op) src`
    RecvReduceCopy {
        from: Rank,
        src: Range,
        dst: Range,
    },
    /// `send to: received (op) src`, nothing is stored.
    RecvReduceSend {
        from: Rank,
        src: Range,
        to: Rank,
    },
    /// `dst = received (op) src`, and the same goes to `to`.
    RecvReduceCopySend {
        from: Rank,
        src: Range,
        dst: Range,
        to: Rank,
    },
    /// `dst = received`, and the same goes to `to`.
    RecvCopySend {
        from: Rank,
        dst: Range,
        to: Rank,
    },
    Copy {
        src: Place,
        dst: Range,
    },
    /// `dst = srcs[0] (op) srcs[1] (op) …`, folded in this order; two or more sources.
    Reduce {
        srcs: Vec<Place>,
        dst: Range,
    },
    Signal {
        to: Rank,
    },
    Wait {
        from: Rank,
    },
}

impl Step {
    /// Name in the plan language, in traces and in messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Step::Send { .. } => "send",
            Step::Recv { .. } => "recv",
            Step::RecvReduceCopy { .. } => "recv_reduce_copy",
            Step::RecvReduceSend { .. } => "recv_reduce_send",
            Step::RecvReduceCopySend { .. } => "recv_reduce_copy_send",
            Step::RecvCopySend { .. } => "recv_copy_send",
            Step::Copy { .. } => "copy",
            Step::Reduce { .. } => "reduce",
            Step::Signal { .. } => "signal",
            Step::Wait { .. } => "wait",
        }
    }

    /// The peer whose data or signal this step waits for.
    pub const fn from(&self) -> Option<Rank> {
        match self {
            Step::Recv { from, .. }
            | Step::RecvReduceCopy { from, .. }
            | Step::RecvReduceSend { from, .. }
            | Step::RecvReduceCopySend { from, .. }
            | Step::RecvCopySend { from, .. }
            | Step::Wait { from } => Some(*from),
            _ => None,
        }
    }

    /// The peer this step sends to or signals.
    pub const fn to(&self) -> Option<Rank> {
        match self {
            Step::Send { to, .. }
            | Step::RecvReduceSend { to, .. }
            | Step::RecvReduceCopySend { to, .. }
            | Step::RecvCopySend { to, .. }
            | Step::Signal { to } => Some(*to),
            _ => None,
        }
    }

    /// Chunks the step works on: FIFO slots it takes per tile when it sends or receives data. 0 for signal and wait.
    pub fn chunk_len(&self) -> u32 {
        match self {
            Step::Send { src, .. } | Step::RecvReduceSend { src, .. } => src.len,
            Step::Recv { dst, .. }
            | Step::RecvReduceCopy { dst, .. }
            | Step::RecvReduceCopySend { dst, .. }
            | Step::RecvCopySend { dst, .. }
            | Step::Copy { dst, .. }
            | Step::Reduce { dst, .. } => dst.len,
            Step::Signal { .. } | Step::Wait { .. } => 0,
        }
    }
}

impl Plan {
    /// The program of a rank on a channel.
    pub fn program(&self, rank: Rank, channel: ChannelId) -> &Program {
        &self.programs[rank.index() * self.channels as usize + channel.index()]
    }
}
