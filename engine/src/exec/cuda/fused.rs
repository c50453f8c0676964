//! A plan's programs rewritten for one launch of all ranks ([`optimise`]), where none waits for another any more: blocks then need not run
//! together, and several share the tiles of a program.

use std::sync::Arc;

use ringlab_kernels::FUSED_THREADS;

use super::buffers::Buffers;
use super::driver::{Function, Memory};
use super::image::{Image, Params};
use super::kernels::{self, RankLaunch};
use super::open::placed;
use super::part::Part;
use super::phases::{self, Phases};
use super::slices::{self, SliceLens};
use crate::exec::optimise::{self, Freedom};
use crate::exec::program::Program;
use crate::exec::{ExecError, SessionSpec};
use crate::plan::layout::Layout;
use crate::types::RedOp;

/// Threads of a block with short tiles.
const FEW_THREADS: u32 = 256;
const SHORT_TILE: u64 = 8 << 10;

/// Bytes of a tile: blocks come back for more, so that those which are faster do more.
const TILE: std::ops::RangeInclusive<u64> = 4 << 10..=64 << 10;

/// Shared memory a block may use without asking for more.
const SHARED_BYTES: u32 = 40 << 10;

pub struct Fused {
    function: Arc<Function>,
    programs: Memory,
    program_bytes: u32,
    blocks: u32,
    replicas: u32,
    threads: u32,
    tile: u64,
    tiles: u64,
}

impl Fused {
    /// `None` where programs still wait for each other, or where something else needs them as they are: an average, which comes behind
    /// a meeting of all blocks, or inputs that are multiplied where they lie.
    pub fn new(
        spec: &SessionSpec,
        plain: &[Program],
        part: &Part,
        buffers: &Buffers,
    ) -> Result<Option<Fused>, ExecError> {
        let reduces = spec.plan.collective.reduces();
        if reduces && (spec.op == RedOp::Avg || (spec.op == RedOp::PreMulSum && spec.in_place)) {
            return Ok(None);
        }
        let canonical = |operand| buffers.canonical(operand);
        let (programs, freedom) = optimise::fused(plain.to_vec(), buffers.tiles, canonical);
        if freedom != Freedom::Free {
            return Ok(None);
        }
        let (plan, size) = (&spec.plan, spec.dtype.size());
        let lens = SliceLens::new(spec.block, size, plan.chunks, plan.channels);
        let lengths = slices::infer(&programs, &lens).map_err(ExecError::Refused)?;
        let gather =
            |(program, lengths): (&Program, &Vec<Vec<u64>>)| phases::gather(program, lengths, canonical);
        let phases: Vec<Phases> = programs
            .iter()
            .zip(&lengths)
            .map(gather)
            .collect::<Result<_, _>>()
            .map_err(ExecError::Refused)?;
        let mut image = Image::default();
        let scales = spec.op == RedOp::PreMulSum && reduces;
        for (program, phases) in programs.iter().zip(&phases) {
            image.add(placed(program, phases, buffers, scales, size as u64));
        }
        if image.program_bytes() > SHARED_BYTES {
            return Ok(None);
        }
        let longest = phases.iter().flat_map(|p| &p.phases).flat_map(|p| &p.moves).map(|m| m.slice).max();
        let longest = longest.unwrap_or(0) * size as u64;
        let blocks = programs.len() as u32;
        let function = kernels::fused(part.stream.device(), &part.info, spec.dtype, spec.op)?;
        let fits = kernels::resident_per_multiprocessor(&function, FUSED_THREADS, image.program_bytes())?
            * part.info.multiprocessors;
        let share = longest.div_ceil(u64::from((fits / blocks).max(1))).next_multiple_of(16);
        let tile = share.clamp(*TILE.start(), *TILE.end());
        let tiles = Layout::new(spec.block, size, plan.chunks, plan.channels, tile as usize).tiles();
        Ok(Some(Fused {
            function,
            programs: Memory::holding(part.stream.device(), &image.words())?,
            program_bytes: image.program_bytes(),
            blocks,
            replicas: u64::from((fits / blocks).max(1)).min(tiles).max(1) as u32,
            threads: if tile.min(longest) < SHORT_TILE { FEW_THREADS } else { FUSED_THREADS },
            tile,
            tiles,
        }))
    }

    /// `plain`: what the plan's own programs are launched with.
    pub fn queue(&self, part: &Part, plain: &Params) -> Result<(), ExecError> {
        let params = Params {
            programs: self.programs.address().0,
            tiles: self.tiles,
            tile: self.tile,
            program_bytes: self.program_bytes,
            replicas: self.replicas,
            ..*plain
        };
        let stamper = u32::from(plain.stamps != 0);
        let size = RankLaunch {
            blocks: self.blocks * self.replicas + stamper,
            threads: self.threads,
            shared_bytes: self.program_bytes,
        };
        part.stream.device().bind()?;
        kernels::run_fused(&self.function, size, (&part.stream).into(), &params)
    }
}
