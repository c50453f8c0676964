//! Programs of one rank, laid out for a launch whose buffers are known only then.

use super::mailbox::index;
use super::windows::{self, Reach};
use super::{Call, Shape};
use crate::exec::cuda::buffers::slice_start;
use crate::exec::cuda::image::{self, Image, OutputSpan, Placed};
use crate::exec::cuda::phases::{self, Move, Phases};
use crate::exec::cuda::slices::{self, SliceLens, whole_slices};
use crate::exec::optimise::overlap::{Halves, halves};
use crate::exec::program::{self, Action, Operand, Program, canonical};
use crate::plan::layout::Layout;
use crate::plan::{Buffer, Plan};

/// Buffers of a launch, by number ([`image::Params::buffers`]).
pub const INPUT: u32 = 1;
pub const OUTPUT: u32 = 2;

/// Blocks' programs and what they need.
pub struct Laid {
    pub image: Image,
    pub blocks: u32,
    pub tiles: u64,
    pub tile_bytes: u64,
    pub longest_tile: u64,
    /// Whether the plan reads peers' buffers.
    pub fences: bool,
}

/// What of an address decides how it may be accessed.
fn low_bits(address: u64) -> u64 {
    address % 16
}

/// Scratch of one rank: where it is, and how far apart its chunks are.
#[derive(Debug, Clone, Copy)]
pub struct Scratch {
    pub base: u64,
    pub chunk_bytes: u64,
}

/// This rank's programs of a collective. `reach` where its plan reads peers' buffers.
///
/// # Errors
/// When the plan reads what is not mapped here, or exceeds what the device can count.
pub fn collective(
    shape: &Shape,
    plan: &Plan,
    call: &Call,
    scratch: Scratch,
    endpoints: &[Vec<image::Endpoint>],
    reach: Option<&Reach>,
) -> Result<Laid, String> {
    let (programs, _) = program::compile(plan)?;
    let size = call.dtype.size();
    let lens = SliceLens::new(call.block, size, plan.chunks, plan.channels);
    let slices = slices::infer(&programs, &lens)?;
    // Where nothing goes through slots or scratch, their size does not matter.
    let direct = reach.is_some() && plan.scratch.is_empty() && !uses_fifos(&programs);
    let payload = if direct { windows::TILE_BYTES } else { shape.payload(call.schedule.protocol()) };
    let layout = Layout::new(call.block, size, plan.chunks, plan.channels, payload as usize);
    let places = Places {
        shape,
        plan,
        call,
        scratch,
        reach,
        slices: whole_slices(call.block, size, plan.chunks, plan.channels),
    };
    let mut image = Image::default();
    let halves = halves(&programs);
    let own = |&i: &usize| programs[i].rank.0 == shape.rank;
    for i in (0..programs.len()).filter(own) {
        let program = &programs[i];
        refuse_foreign(program, reach.is_some())?;
        let mut phases = phases::gather(program, &slices[i], |operand| places.canonical(operand))?;
        if let Some(Halves { cuts, lag }) = &halves {
            phases.put_off(cuts[i], *lag);
        }
        renumber(&mut phases);
        let channel = program.channel.0;
        let operands = phases.phases.iter().map(|phase| {
            let of_move = |mv: &Move| {
                let dsts = mv.dsts.iter().map(|&dst| places.place(dst, channel));
                mv.srcs.iter().map(|&src| places.source(src, channel)).chain(dsts).collect()
            };
            phase.moves.iter().map(of_move).collect()
        });
        image.add(Placed {
            operands: operands.collect(),
            phases: &phases,
            endpoints: endpoints[program.channel.index()].clone(),
            spans: places.output_spans(channel),
            elem_size: size as u64,
        });
    }
    Ok(Laid {
        image,
        blocks: plan.channels,
        tiles: layout.tiles(),
        tile_bytes: payload,
        longest_tile: layout.tile_elems() * size as u64,
        fences: reach.is_some(),
    })
}

/// A rank sees its own buffers, and of its peers' those that are registered: not scratch.
fn refuse_foreign(program: &Program, registered: bool) -> Result<(), String> {
    let own = program.rank.index();
    let unseen = |src: &Operand| src.rank != own && (!registered || matches!(src.buffer, Buffer::Scratch(_)));
    match program.steps.iter().find(|instr| instr.srcs.iter().any(unseen)) {
        None => Ok(()),
        Some(instr) => Err(format!(
            "the plan's step {} reads a peer's buffer, which this communicator does not map; choose an algorithm that sends",
            instr.name
        )),
    }
}

fn uses_fifos(programs: &[Program]) -> bool {
    let fifo = |instr: &program::Instr| {
        matches!(instr.action, Action::Move | Action::Fold) && (instr.from.is_some() || instr.to.is_some())
    };
    programs.iter().flat_map(|program| &program.steps).any(fifo)
}

/// From the program's own numbers to the table's.
fn renumber(phases: &mut Phases) {
    let table: Vec<u16> = phases.endpoints.iter().map(|e| index(e.role, e.peer.0)).collect();
    let to = |number: &mut u16| *number = table[usize::from(*number)];
    for phase in &mut phases.phases {
        phase.waits.iter_mut().for_each(|wait| to(&mut wait.endpoint));
        phase.posts.iter_mut().for_each(to);
        for mv in &mut phase.moves {
            mv.recv.as_mut().into_iter().chain(mv.send.as_mut()).for_each(to);
        }
    }
}

struct Places<'a> {
    shape: &'a Shape,
    plan: &'a Plan,
    call: &'a Call,
    scratch: Scratch,
    reach: Option<&'a Reach>,
    slices: Layout,
}

impl Places<'_> {
    fn canonical(&self, operand: Operand) -> Operand {
        if self.call.in_place { canonical(self.plan.collective, self.plan.chunks, operand) } else { operand }
    }

    fn place(&self, operand: Operand, channel: u32) -> image::Operand {
        if let Some(address) = self.registered(operand) {
            let base = address + self.offset(operand.start, channel);
            return image::Operand { base, advances: 1, buffer: image::ABSOLUTE };
        }
        let (buffer, address) = match operand.buffer {
            Buffer::Input => (INPUT, self.call.input),
            Buffer::Output => (OUTPUT, self.call.output),
            Buffer::Scratch(which) => {
                let before: u32 = self.plan.scratch[..usize::from(which)].iter().map(|s| s.chunks).sum();
                let all: u32 = self.plan.scratch.iter().map(|s| s.chunks).sum();
                let cell = u64::from(channel * all + before + operand.start);
                let base = self.scratch.base + cell * self.scratch.chunk_bytes;
                return image::Operand { base, advances: 0, buffer: image::ABSOLUTE };
            }
        };
        image::Operand { base: low_bits(address) + self.offset(operand.start, channel), advances: 1, buffer }
    }

    /// Where an input or output starts that is known now.
    fn registered(&self, operand: Operand) -> Option<u64> {
        let reach = self.reach?;
        match operand.buffer {
            Buffer::Input => reach.inputs.get(operand.rank).copied(),
            Buffer::Output => reach.outputs.get(operand.rank).copied(),
            Buffer::Scratch(_) => None,
        }
    }

    fn source(&self, operand: Operand, channel: u32) -> image::Operand {
        let mut placed = self.place(operand, channel);
        // In place the input has been multiplied before. A rank reads its own input only, so its factor is the only one.
        if self.call.factor().is_some() && !self.call.in_place && operand.buffer == Buffer::Input {
            placed.advances = 2;
        }
        placed
    }

    fn offset(&self, chunk: u32, channel: u32) -> u64 {
        let elem = slice_start(&self.slices, self.call.block, self.plan.chunks, chunk, channel);
        elem * self.call.dtype.size() as u64
    }

    fn output_spans(&self, channel: u32) -> Vec<OutputSpan> {
        // A rank to which the collective gives no output may have passed no buffer for it.
        let collective = self.plan.collective;
        let given = collective.has_output(crate::types::Rank(self.shape.rank));
        let blocks = if given { collective.output_blocks(self.shape.ranks) } else { 0 };
        let size = self.call.dtype.size() as u64;
        let span = |chunk: u32| OutputSpan {
            base: low_bits(self.call.output) + self.offset(chunk, channel),
            bytes: self.slices.span(chunk % self.plan.chunks, channel, 0).len * size,
            buffer: OUTPUT.into(),
        };
        (0..blocks * self.plan.chunks).map(span).filter(|span| span.bytes > 0).collect()
    }
}
