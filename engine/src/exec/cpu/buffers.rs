//! The buffers of all ranks: where a chunk's tile lies in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use super::memory::{ALIGN, Region, Window};
use super::program::Operand;
use crate::exec::{ExecError, SessionSpec};
use crate::plan::layout::Layout;
use crate::plan::{Buffer, Plan};
use crate::types::{Collective, Rank};

pub struct Buffers {
    pub layout: Layout,
    pub collective: Collective,
    pub elem_size: usize,
    chunks: u32,
    channels: u32,
    in_place: bool,
    /// Elements of a rank's input and output.
    pub input_elems: u64,
    pub output_elems: u64,
    ranks: Vec<RankBuffers>,
    /// Bytes of the largest tile, rounded up to whole cache lines: a scratch chunk.
    tile_bytes: usize,
}

struct RankBuffers {
    /// Out of place: the input. In place: the larger buffer, in which the other lies.
    main: Region,
    /// Out of place only.
    output: Option<Region>,
    /// By scratch buffer.
    scratch: Vec<Scratch>,
}

/// One tile per chunk and channel.
struct Scratch {
    region: Region,
    chunks: u32,
    /// Elements of the tile each chunk holds: ordered, like the bytes, by the plan.
    lens: Vec<AtomicU64>,
}

/// What one chunk's tile of an operand is.
pub struct Tile<'a> {
    /// As long as the tile; for a scratch chunk that is written, as long as the largest tile.
    pub window: Window<'a>,
    pub len: Len<'a>,
}

pub enum Len<'a> {
    /// The layout gives it.
    Fixed(u64),
    /// A scratch chunk holds whatever was put in last.
    Scratch(&'a AtomicU64),
}

impl Buffers {
    /// Bytes everything but connections will take: refused before it is allocated.
    pub fn bytes_needed(spec: &SessionSpec, layout: &Layout) -> Option<u64> {
        let Plan { collective, ranks, channels, ref scratch, .. } = spec.plan;
        let size = spec.dtype.size() as u64;
        let tile = (layout.tile_elems() * size).next_multiple_of(ALIGN as u64);
        let input = spec.block.checked_mul(u64::from(collective.input_blocks(ranks)))?;
        let output = spec.block.checked_mul(u64::from(collective.output_blocks(ranks)))?;
        let user = if spec.in_place { input.max(output) } else { input.checked_add(output)? };
        let scratch_chunks: u64 = scratch.iter().map(|s| u64::from(s.chunks)).sum();
        let per_rank = user
            .checked_mul(size)?
            .checked_add(scratch_chunks.checked_mul(u64::from(channels))?.checked_mul(tile)?)?;
        per_rank.checked_mul(u64::from(ranks))
    }

    /// # Safety
    /// As [`Region::new`], for every access the plan makes to these buffers.
    pub unsafe fn new(spec: &SessionSpec, layout: Layout) -> Result<Buffers, ExecError> {
        let plan = &spec.plan;
        let size = spec.dtype.size();
        let input_elems = spec.block * u64::from(plan.collective.input_blocks(plan.ranks));
        let output_elems = spec.block * u64::from(plan.collective.output_blocks(plan.ranks));
        let tile_bytes = (layout.tile_elems() as usize * size).next_multiple_of(ALIGN);
        let allocate = |bytes: u64| {
            // SAFETY: the caller's promise.
            unsafe { Region::new(bytes as usize) }.ok_or_else(|| out_of_memory(bytes))
        };
        let mut ranks = Vec::with_capacity(plan.ranks as usize);
        for _ in 0..plan.ranks {
            let (main, output) = if spec.in_place {
                (allocate(input_elems.max(output_elems) * size as u64)?, None)
            } else {
                (allocate(input_elems * size as u64)?, Some(allocate(output_elems * size as u64)?))
            };
            let mut scratch = Vec::with_capacity(plan.scratch.len());
            for buffer in &plan.scratch {
                let tiles = buffer.chunks as usize * plan.channels as usize;
                let region = allocate((tiles * tile_bytes) as u64)?;
                let lens = (0..tiles).map(|_| AtomicU64::new(0)).collect();
                scratch.push(Scratch { region, chunks: buffer.chunks, lens });
            }
            ranks.push(RankBuffers { main, output, scratch });
        }
        Ok(Buffers {
            layout,
            collective: plan.collective,
            elem_size: size,
            chunks: plan.chunks,
            channels: plan.channels,
            in_place: spec.in_place,
            input_elems,
            output_elems,
            ranks,
            tile_bytes,
        })
    }

    pub fn in_place(&self) -> bool {
        self.in_place
    }

    /// `len` elements of a rank's input from `from`.
    pub fn input(&self, rank: Rank, from: u64, len: u64) -> Window<'_> {
        let base = self.in_place_offsets(rank).0;
        self.elements(&self.ranks[rank.index()].main, base + from, len)
    }

    /// `len` elements of a rank's output from `from`.
    pub fn output(&self, rank: Rank, from: u64, len: u64) -> Window<'_> {
        let buffers = &self.ranks[rank.index()];
        let base = self.in_place_offsets(rank).1;
        self.elements(buffers.output.as_ref().unwrap_or(&buffers.main), base + from, len)
    }

    /// Elements from the start of a rank's memory to its input and its output.
    fn in_place_offsets(&self, rank: Rank) -> (u64, u64) {
        if !self.in_place {
            return (0, 0);
        }
        let (input, output) = self.collective.in_place_offsets(rank);
        (u64::from(input) * self.layout.block(), u64::from(output) * self.layout.block())
    }

    fn elements<'a>(&self, region: &'a Region, from: u64, len: u64) -> Window<'a> {
        region.window(from as usize * self.elem_size, len as usize * self.elem_size)
    }

    /// Tile `tile` of the operand's `nth` chunk on a channel.
    pub fn tile(&self, operand: Operand, nth: u32, channel: u32, tile: u64) -> Tile<'_> {
        let chunk = operand.start + nth;
        let rank = Rank(operand.rank as u32);
        let span = || {
            let span = self.layout.span(chunk % self.chunks, channel, tile);
            (u64::from(chunk / self.chunks) * self.layout.block() + span.offset, span.len)
        };
        match operand.buffer {
            Buffer::Input => {
                let (from, len) = span();
                Tile { window: self.input(rank, from, len), len: Len::Fixed(len) }
            }
            Buffer::Output => {
                let (from, len) = span();
                Tile { window: self.output(rank, from, len), len: Len::Fixed(len) }
            }
            Buffer::Scratch(index) => {
                let scratch = &self.ranks[operand.rank].scratch[usize::from(index)];
                let cell = (channel * scratch.chunks + chunk) as usize;
                let window = scratch.region.window(cell * self.tile_bytes, self.tile_bytes);
                Tile { window, len: Len::Scratch(&scratch.lens[cell]) }
            }
        }
    }

    /// Every tile of a rank's output on a channel; none where the collective gives the rank no output.
    pub fn output_tiles(&self, rank: Rank, channel: u32) -> impl Iterator<Item = Window<'_>> {
        let elems = if self.collective.has_output(rank) { self.output_elems } else { 0 };
        self.spans(elems, channel).map(move |(from, len)| self.output(rank, from, len))
    }

    /// Every tile of a rank's input on a channel.
    pub fn input_tiles(&self, rank: Rank, channel: u32) -> impl Iterator<Item = Window<'_>> {
        self.spans(self.input_elems, channel).map(move |(from, len)| self.input(rank, from, len))
    }

    /// First element and length of every tile of a channel in a buffer of so many elements.
    fn spans(&self, elems: u64, channel: u32) -> impl Iterator<Item = (u64, u64)> {
        let blocks = elems.checked_div(self.layout.block()).unwrap_or(0);
        (0..blocks).flat_map(move |block| {
            (0..self.chunks).flat_map(move |chunk| {
                (0..self.layout.tiles()).map(move |tile| {
                    let span = self.layout.span(chunk, channel, tile);
                    (block * self.layout.block() + span.offset, span.len)
                })
            })
        })
    }

    pub fn channels(&self) -> u32 {
        self.channels
    }
}

pub fn out_of_memory(bytes: u64) -> ExecError {
    ExecError::Device {
        context: "memory".into(),
        message: format!("an allocation of {bytes} bytes failed; use a smaller size or fewer ranks"),
    }
}

impl Tile<'_> {
    /// Elements to read.
    pub fn read_len(&self) -> u64 {
        match self.len {
            Len::Fixed(len) => len,
            Len::Scratch(len) => len.load(Ordering::Relaxed),
        }
    }
}
