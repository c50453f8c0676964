//! Timelines: the same structure for a measured run and for a simulated one, so that a viewer can lay them over each other.

pub mod perfetto;

use serde::{Deserialize, Serialize};

use crate::types::{ChannelId, Rank};

/// Version of the structure.
pub const VERSION: u32 = 1;

/// Where the times come from: every figure shown says whether it was simulated or measured, and on what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// `hardware`: device name, or CPU model; `clock`: which clock stamped the spans.
    Measured { backend: String, hardware: String, clock: String },
    /// `model`: name and parameters of the cost model.
    Simulated { model: String },
}

/// One step of one rank on one channel for one tile. Times in nanoseconds since the earliest span of the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    pub rank: Rank,
    pub channel: ChannelId,
    pub tile: u64,
    /// Index of the step in the channel's program.
    pub step: u32,
    /// [`crate::plan::Step::name`].
    pub op: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Rank>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Rank>,
    pub bytes: u64,
    pub start_ns: u64,
    /// When the step had what it was waiting for (data, credit, signal): `start_ns..ready_ns` is waiting, the rest is moving. A step
    /// over several chunks may wait for each; all its waiting is then counted here, before all its moving.
    pub ready_ns: u64,
    pub end_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    pub version: u32,
    pub origin: Origin,
    pub ranks: u32,
    pub channels: u32,
    /// Ordered by start.
    pub spans: Vec<Span>,
    /// Spans that did not fit the trace buffer: a trace that was cut says so.
    pub dropped: u64,
}

impl Trace {
    /// From the earliest span's start to the latest one's end; 0 without spans.
    pub fn duration_ns(&self) -> u64 {
        self.spans.iter().map(|span| span.end_ns).max().unwrap_or(0)
    }
}
