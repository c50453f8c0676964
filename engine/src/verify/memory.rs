//! Every chunk of every buffer of every tile as one cell, with who wrote it and who read it from afar. Aliases of an in-place call are
//! one cell.

use super::refusal::At;
use super::value::{ValueId, Values};
use crate::plan::{Buffer, Plan};
use crate::types::{Collective, Rank};

/// Value of the owner's clock at the start of its program, when its input is there.
pub const START: u32 = 1;

#[derive(Debug, Clone, Default)]
pub struct Cell {
    pub value: Option<ValueId>,
    /// The owner's clock at its last write; 0 if there was none.
    pub written: u32,
    pub writer: Option<At>,
    /// Latest read of each rank other than the owner since the last write, with that rank's clock.
    pub reads: Vec<(At, u32)>,
    /// A user buffer, which the caller may touch again once the owner is done; scratch is the engine's.
    pub user: bool,
}

#[derive(Debug)]
pub struct Memory {
    pub cells: Vec<Cell>,
    tiles: u32,
    in_place: bool,
    collective: Collective,
    chunks: u32,
    input: u32,
    output: u32,
    /// First cell of each scratch buffer within the scratch of a rank.
    scratch: Vec<u32>,
    /// Cells of one rank.
    stride: u32,
}

impl Memory {
    /// Cells that a plan needs.
    pub fn size(plan: &Plan, tiles: u32) -> u64 {
        let blocks = plan.collective.input_blocks(plan.ranks) + plan.collective.output_blocks(plan.ranks);
        let scratch: u64 = plan.scratch.iter().map(|s| u64::from(s.chunks)).sum();
        (u64::from(blocks) * u64::from(plan.chunks) * u64::from(tiles) + scratch) * u64::from(plan.ranks)
    }

    pub fn new(plan: &Plan, tiles: u32, in_place: bool, values: &mut Values) -> Memory {
        let input = plan.collective.input_blocks(plan.ranks) * plan.chunks;
        let output = plan.collective.output_blocks(plan.ranks) * plan.chunks;
        let user = if in_place { input.max(output) } else { input + output };
        let mut scratch = Vec::new();
        let mut next = 0;
        for buffer in &plan.scratch {
            scratch.push(next);
            next += buffer.chunks;
        }
        let stride = user * tiles + next;
        let mut memory = Memory {
            cells: vec![Cell::default(); (stride * plan.ranks) as usize],
            tiles,
            in_place,
            collective: plan.collective,
            chunks: plan.chunks,
            input,
            output,
            scratch,
            stride,
        };
        for rank in 0..plan.ranks {
            for tile in 0..tiles {
                for chunk in 0..output {
                    let cell = memory.index(rank, Buffer::Output, chunk, tile);
                    memory.cells[cell].user = true;
                }
                for chunk in 0..input {
                    let cell = memory.index(rank, Buffer::Input, chunk, tile);
                    let value = values.input(rank, chunk, tile, chunk % plan.chunks);
                    memory.cells[cell] =
                        Cell { value: Some(value), written: START, user: true, ..Cell::default() };
                }
            }
        }
        memory
    }

    pub fn index(&self, rank: u32, buffer: Buffer, chunk: u32, tile: u32) -> usize {
        let user = if self.in_place { self.input.max(self.output) } else { self.input + self.output };
        let within = match buffer {
            Buffer::Scratch(i) => user * self.tiles + self.scratch[usize::from(i)] + chunk,
            Buffer::Input => (self.input_offset(rank) + chunk) * self.tiles + tile,
            Buffer::Output => (self.output_offset(rank) + chunk) * self.tiles + tile,
        };
        (rank * self.stride + within) as usize
    }

    fn input_offset(&self, rank: u32) -> u32 {
        if self.in_place { self.collective.in_place_offsets(Rank(rank)).0 * self.chunks } else { 0 }
    }

    fn output_offset(&self, rank: u32) -> u32 {
        if self.in_place { self.collective.in_place_offsets(Rank(rank)).1 * self.chunks } else { self.input }
    }
}
