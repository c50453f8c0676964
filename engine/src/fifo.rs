//! How a connection carries data: its protocol, and the units NCCL cuts a transfer into.
//!
//! A connection's buffer has [`SLOTS`] steps, each with room for `slot_bytes` of payload. A channel works on one chunk at a time:
//! `chunk_steps` steps of the buffer. A chunk crosses in slices of `slice_steps` steps; each slice is waited for, moved and announced on
//! its own, so that the next rank begins before the whole chunk is there. NCCL 2.22 has 8 steps (`NCCL_STEPS`), and for the ring all-reduce
//! chunks of 4 and slices of 2 (`ALLREDUCE_CHUNKSTEPS`, `ALLREDUCE_SLICESTEPS` in src/include/collectives.h).

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::plan::SLOTS;
use crate::text::Text;
use crate::types::UnknownName;

/// How data and its arrival are told apart on a connection (NCCL's protocols).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum Protocol {
    /// 8-byte stores, half of each a flag: a line of 16 bytes carries 8. What arrives says so itself; no counter is waited for.
    #[serde(rename = "LL")]
    Ll,
    /// Lines of 128 bytes that carry 120, the last 8 a flag. Needs stores of a line to become visible whole.
    #[serde(rename = "LL128")]
    Ll128,
    /// Whole slots, announced by a counter.
    #[default]
    Simple,
}

impl Protocol {
    pub const ALL: [Protocol; 3] = [Protocol::Ll, Protocol::Ll128, Protocol::Simple];

    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Ll => "LL",
            Protocol::Ll128 => "LL128",
            Protocol::Simple => "Simple",
        }
    }

    /// Bytes of a line and of its payload; none where slots have no lines.
    pub const fn line(self) -> Option<(u64, u64)> {
        match self {
            Protocol::Ll => Some((16, 8)),
            Protocol::Ll128 => Some((128, 120)),
            Protocol::Simple => None,
        }
    }

    /// Bytes that cross for so many bytes of payload.
    pub const fn wire_bytes(self, payload: u64) -> u64 {
        match self.line() {
            Some((line, carries)) => payload.div_ceil(carries) * line,
            None => payload,
        }
    }

    /// Bytes that cross for a slice of so many bytes: where there are lines, an empty slice is one too.
    pub const fn slice_wire_bytes(self, payload: u64) -> u64 {
        match (self.line(), payload) {
            (Some((line, _)), 0) => line,
            _ => self.wire_bytes(payload),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        Protocol::ALL
            .into_iter()
            .find(|protocol| protocol.name().eq_ignore_ascii_case(s))
            .ok_or_else(|| UnknownName { what: "protocol", got: s.into(), known: "LL, LL128, Simple" })
    }
}

/// Of all connections of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fifo {
    pub protocol: Protocol,
    /// Steps of the buffer that a chunk takes.
    pub chunk_steps: u32,
    /// Steps of the buffer that a slice takes.
    pub slice_steps: u32,
}

impl Default for Fifo {
    /// A chunk is one step and one slice.
    fn default() -> Fifo {
        Fifo { protocol: Protocol::Simple, chunk_steps: 1, slice_steps: 1 }
    }
}

impl fmt::Display for Fifo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fifo { protocol, chunk_steps, slice_steps } = self;
        write!(f, "{protocol}, chunks of {chunk_steps} and slices of {slice_steps} steps")
    }
}

/// Steps that do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "chunks of {chunk} steps in slices of {slice}: a chunk is a whole number of slices, and both divide the {SLOTS} steps of a connection; \
     NCCL's all-reduce has chunks of 4 and slices of 2"
)]
pub struct BadSteps {
    pub chunk: u32,
    pub slice: u32,
}

impl BadSteps {
    pub fn text(&self) -> Text {
        let BadSteps { chunk, slice } = self;
        Text::new(
            format!(
                "chunk 是 {chunk} 步，slice 是 {slice} 步：一个 chunk 要由整数个 slice 组成，两者都要整除一条连接的 {SLOTS} 步；NCCL 的 \
                 all-reduce 用 4 步的 chunk 和 2 步的 slice。"
            ),
            self.to_string(),
        )
    }
}

impl Fifo {
    pub const fn of(protocol: Protocol) -> Fifo {
        Fifo { protocol, chunk_steps: 1, slice_steps: 1 }
    }

    /// # Errors
    /// When a slice could wrap around the end of the buffer, or a chunk has no whole number of slices.
    pub const fn check(&self) -> Result<(), BadSteps> {
        let Fifo { chunk_steps: chunk, slice_steps: slice, .. } = *self;
        if chunk == 0 || slice == 0 || !chunk.is_multiple_of(slice) || !SLOTS.is_multiple_of(chunk) {
            return Err(BadSteps { chunk, slice });
        }
        Ok(())
    }

    /// Slices of a chunk.
    pub const fn slices(&self) -> u32 {
        self.chunk_steps / self.slice_steps
    }

    /// Whole chunks that a connection holds.
    pub const fn credits(&self) -> u32 {
        SLOTS / self.chunk_steps
    }

    /// Payload bytes of a chunk: what a channel works on at a time. Cuts fall on 16-byte multiples.
    pub const fn chunk_bytes(&self, slot_bytes: usize) -> usize {
        slot_bytes / 16 * 16 * self.chunk_steps as usize
    }

    /// Payload bytes of a slice, but for the last of a tile.
    pub const fn slice_bytes(&self, slot_bytes: usize) -> usize {
        slot_bytes / 16 * 16 * self.slice_steps as usize
    }

    /// The part of a tile of `tile` bytes that slice `slice` is: empty where the tile ends before it.
    pub fn slice_of(&self, slot_bytes: usize, tile: u64, slice: u32) -> Range<u64> {
        let slice_bytes = self.slice_bytes(slot_bytes) as u64;
        let from = (u64::from(slice) * slice_bytes).min(tile);
        from..(from + slice_bytes).min(tile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cost_what_nccl_says() {
        let wire = |protocol: Protocol| [1, 120, 960].map(|bytes| protocol.wire_bytes(bytes));
        assert_eq!(wire(Protocol::Simple), [1, 120, 960]);
        assert_eq!(wire(Protocol::Ll), [16, 240, 1920]);
        assert_eq!(wire(Protocol::Ll128), [128, 128, 1024]);
        let slices = |bytes| Protocol::ALL.map(|protocol| protocol.slice_wire_bytes(bytes));
        assert_eq!((slices(0), slices(9)), ([16, 128, 0], [32, 128, 9]));
    }

    #[test]
    fn steps_that_do_not_fit_are_refused() {
        let fifo = |chunk_steps, slice_steps| Fifo { protocol: Protocol::Simple, chunk_steps, slice_steps };
        for (chunk, slice) in [(1, 1), (4, 2), (8, 8), (8, 1), (2, 2)] {
            assert_eq!(fifo(chunk, slice).check(), Ok(()));
        }
        for (chunk, slice) in [(0, 1), (1, 0), (3, 1), (2, 4), (16, 2)] {
            assert_eq!(fifo(chunk, slice).check(), Err(BadSteps { chunk, slice }));
        }
        assert_eq!((fifo(4, 2).slices(), fifo(4, 2).credits()), (2, 2));
    }

    #[test]
    fn slices_cover_a_tile_in_order_and_the_last_may_be_empty() {
        let fifo = Fifo { protocol: Protocol::Simple, chunk_steps: 4, slice_steps: 1 };
        let of = |tile| (0..fifo.slices()).map(|slice| fifo.slice_of(100, tile, slice)).collect::<Vec<_>>();
        assert_eq!(fifo.chunk_bytes(100), 384);
        assert_eq!(of(384), [0..96, 96..192, 192..288, 288..384]);
        assert_eq!(of(100), [0..96, 96..100, 100..100, 100..100]);
        assert_eq!(of(0), [0..0, 0..0, 0..0, 0..0]);
    }
}
