//! Timelines: the same structure for a measured run and for a simulated one, so that a viewer can lay them over each other.

pub mod perfetto;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::fifo::Fifo;
use crate::plan::{Plan, Program};
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
    #[serde(default, skip_serializing_if = "Crossing::is_nothing")]
    pub crossing: Crossing,
}

/// What a step did on the connections it received and sent on. Steps of a connection are counted from the start of the execution; slot
/// `step % SLOTS` is where a step lies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossing {
    /// Steps of the connection from `from` that it emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Range<u64>>,
    /// Steps of the connection to `to` that it filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Range<u64>>,
    /// Bytes it put on the connection to `to`, the flags of lines included; none where it sent nothing or nobody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_bytes: Option<u64>,
    /// Of its waiting: for a slice's credit while the data was there; none where it sent nothing or nobody told the waits apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_ns: Option<u64>,
}

impl Crossing {
    fn is_nothing(&self) -> bool {
        *self == Crossing::default()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    pub version: u32,
    pub origin: Origin,
    pub ranks: u32,
    pub channels: u32,
    /// How connections carried data; none in traces from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fifo: Option<Fifo>,
    /// Payload bytes of one step of a connection; none as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot_bytes: Option<u64>,
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

    /// Says how connections carried data, and which of their steps each span filled and emptied: every tile of a plan takes the same.
    #[must_use]
    pub fn with_fifo(mut self, plan: &Plan, fifo: Fifo, slot_bytes: usize) -> Trace {
        (self.fifo, self.slot_bytes) = (Some(fifo), Some(slot_bytes as u64));
        let steps = |chunks: Range<u64>| {
            let per_chunk = u64::from(fifo.chunk_steps);
            chunks.start * per_chunk..chunks.end * per_chunk
        };
        let places: Vec<Vec<Ends>> = plan.programs.iter().map(|p| ends(p, plan.ranks)).collect();
        let index = |span: &Span| span.rank.index() * plan.channels as usize + span.channel.index();
        for span in &mut self.spans {
            let Some(ends) = places.get(index(span)).and_then(|of| of.get(span.step as usize)) else {
                continue;
            };
            span.crossing.received = ends.received.as_ref().map(|end| steps(end.chunks(span.tile)));
            span.crossing.sent = ends.sent.as_ref().map(|end| steps(end.chunks(span.tile)));
        }
        self
    }
}

/// Where a step stands on its connections.
#[derive(Debug, Clone, Default)]
struct Ends {
    received: Option<End>,
    sent: Option<End>,
}

/// Chunks of a connection: those of a step in tile 0, and of a whole tile.
#[derive(Debug, Clone)]
struct End {
    first: Range<u64>,
    of_tile: u64,
}

impl End {
    fn chunks(&self, tile: u64) -> Range<u64> {
        let before = tile * self.of_tile;
        self.first.start + before..self.first.end + before
    }
}

fn ends(program: &Program, ranks: u32) -> Vec<Ends> {
    // Chunks so far, received from and sent to each rank.
    let mut so_far = [vec![0u64; ranks as usize], vec![0; ranks as usize]];
    let mut places: Vec<Ends> = Vec::with_capacity(program.steps.len());
    for step in &program.steps {
        let len = u64::from(step.chunk_len());
        let mut take = |way: usize, peer: Option<Rank>| {
            let counted = &mut so_far[way][peer.filter(|_| len > 0)?.index()];
            *counted += len;
            Some(End { first: *counted - len..*counted, of_tile: 0 })
        };
        let received = take(0, step.from());
        places.push(Ends { received, sent: take(1, step.to()) });
    }
    for (ends, step) in places.iter_mut().zip(&program.steps) {
        if let (Some(end), Some(from)) = (&mut ends.received, step.from()) {
            end.of_tile = so_far[0][from.index()];
        }
        if let (Some(end), Some(to)) = (&mut ends.sent, step.to()) {
            end.of_tile = so_far[1][to.index()];
        }
    }
    places
}

#[cfg(test)]
mod tests;
