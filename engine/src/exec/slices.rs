//! How many elements every data step works on. The layout tells it for input and output; what a FIFO slot or a scratch chunk holds
//! follows from who filled it. One tile of the plan is walked with every wait granted in order, so the answer is known before an execution
//! and no length has to travel with the data.

use std::collections::{HashMap, VecDeque};

use crate::exec::program::{Action, Instr, Operand, Program};
use crate::plan::Buffer;
use crate::plan::layout::Layout;

/// Elements of the channel's slice that each chunk of each step works on: `[program][step][chunk]`.
pub type Slices = Vec<Vec<Vec<u64>>>;

/// Elements of a channel's slice of every chunk of a block.
pub struct SliceLens {
    /// `[channel][chunk]`
    lens: Vec<Vec<u64>>,
}

impl SliceLens {
    pub fn new(block: u64, elem_size: usize, chunks: u32, channels: u32) -> SliceLens {
        // With tiles longer than any block, tile 0 is the whole slice.
        let whole = whole_slices(block, elem_size, chunks, channels);
        let of = |channel| (0..chunks).map(|chunk| whole.span(chunk, channel, 0).len).collect();
        let lens: Vec<Vec<u64>> = (0..channels).map(of).collect();
        SliceLens { lens }
    }

    /// Of an input or output chunk counted over all blocks.
    pub fn of(&self, channel: u32, chunk: u32) -> u64 {
        let lens = &self.lens[channel as usize];
        lens[chunk as usize % lens.len()]
    }
}

/// A layout whose tile 0 is the whole slice.
pub fn whole_slices(block: u64, elem_size: usize, chunks: u32, channels: u32) -> Layout {
    Layout::new(block, elem_size, chunks, channels, 1 << 60)
}

/// Walks one tile of all programs.
///
/// # Errors
/// When operands of one step have different lengths at this size; the text names the step.
pub fn infer(programs: &[Program], lens: &SliceLens) -> Result<Slices, String> {
    let mut walk = Walk {
        lens,
        slices: programs.iter().map(|p| p.steps.iter().map(|s| vec![0; s.len as usize]).collect()).collect(),
        fifos: HashMap::new(),
        signals: HashMap::new(),
        scratch: HashMap::new(),
    };
    let mut at = vec![(0usize, 0u32); programs.len()];
    let mut progress = true;
    while std::mem::take(&mut progress) {
        for (i, program) in programs.iter().enumerate() {
            while let Some(instr) = program.steps.get(at[i].0) {
                if !walk.ready(instr) {
                    break;
                }
                walk.take(program, i, at[i].0, at[i].1)?;
                let done = at[i].1 + 1 >= instr.len.max(1);
                at[i] = if done { (at[i].0 + 1, 0) } else { (at[i].0, at[i].1 + 1) };
                progress = true;
            }
        }
    }
    // Steps of a plan that deadlocks never move anything, yet their launch has to be safe.
    for (i, program) in programs.iter().enumerate() {
        for (step, instr) in program.steps.iter().enumerate().skip(at[i].0) {
            for nth in 0..instr.len {
                walk.unreached(program, i, step, nth)?;
            }
        }
    }
    Ok(walk.slices)
}

struct Walk<'a> {
    lens: &'a SliceLens,
    slices: Slices,
    /// Lengths of the slots under way, by connection.
    fifos: HashMap<usize, VecDeque<u64>>,
    signals: HashMap<usize, u32>,
    /// What a scratch chunk holds: by rank, channel, buffer and chunk.
    scratch: HashMap<(usize, u32, u16, u32), u64>,
}

/// The lengths of one chunk's operands, which have to be one.
#[derive(Default)]
struct Agreed(Option<u64>);

impl Agreed {
    fn on(&mut self, len: u64) -> Result<(), (u64, u64)> {
        match self.0 {
            Some(have) if have != len => Err((have, len)),
            _ => {
                self.0 = Some(len);
                Ok(())
            }
        }
    }
}

impl Walk<'_> {
    fn ready(&self, instr: &Instr) -> bool {
        let Some(from) = instr.from else { return true };
        match instr.action {
            Action::Wait => self.signals.get(&from.link).is_some_and(|&n| n > 0),
            _ => instr.len == 0 || self.fifos.get(&from.link).is_some_and(|f| !f.is_empty()),
        }
    }

    fn take(&mut self, program: &Program, i: usize, step: usize, nth: u32) -> Result<(), String> {
        let instr = &program.steps[step];
        match (instr.action, instr.from, instr.to) {
            (Action::Signal, _, Some(to)) => *self.signals.entry(to.link).or_default() += 1,
            (Action::Wait, Some(from), _) => *self.signals.entry(from.link).or_default() -= 1,
            _ if nth < instr.len => {
                let received = instr.from.and_then(|from| self.fifos.get_mut(&from.link)?.pop_front());
                let slice = self
                    .chunk(program, instr, nth, received)
                    .map_err(|why| named(program, step, instr, why))?;
                self.slices[i][step][nth as usize] = slice;
                if let Some(to) = instr.to {
                    self.fifos.entry(to.link).or_default().push_back(slice);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn unreached(&mut self, program: &Program, i: usize, step: usize, nth: u32) -> Result<(), String> {
        let instr = &program.steps[step];
        let slice = self.chunk(program, instr, nth, None).map_err(|why| named(program, step, instr, why))?;
        self.slices[i][step][nth as usize] = slice;
        Ok(())
    }

    fn chunk(
        &mut self,
        program: &Program,
        instr: &Instr,
        nth: u32,
        received: Option<u64>,
    ) -> Result<u64, (u64, u64)> {
        let channel = program.channel.0;
        let cell = |operand: &Operand, buffer| (operand.rank, channel, buffer, operand.start + nth);
        let mut agreed = Agreed(received);
        for operand in instr.srcs.iter().chain(instr.dsts()) {
            match operand.buffer {
                Buffer::Input | Buffer::Output => agreed.on(self.lens.of(channel, operand.start + nth))?,
                Buffer::Scratch(_) => {}
            }
        }
        for operand in &instr.srcs {
            if let Buffer::Scratch(buffer) = operand.buffer
                && let Some(&holds) = self.scratch.get(&cell(operand, buffer))
            {
                agreed.on(holds)?;
            }
        }
        // Nothing known is nothing there: an unwritten scratch chunk.
        let slice = agreed.0.unwrap_or(0);
        for dst in instr.dsts() {
            if let Buffer::Scratch(buffer) = dst.buffer {
                self.scratch.insert(cell(dst, buffer), slice);
            }
        }
        Ok(slice)
    }
}

fn named(program: &Program, step: usize, instr: &Instr, (one, other): (u64, u64)) -> String {
    format!(
        "rank {} channel {} step {step} ({}): its operands have {one} and {other} elements at this block size; a step works on the \
         same chunk of every buffer",
        program.rank, program.channel, instr.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::program::compile;
    use crate::plan::{Algorithm, Place, Plan, Range, Step, generate};
    use crate::types::{Collective, Rank};

    fn slices(plan: &Plan, block: u64) -> Result<Slices, String> {
        let (programs, _) = compile(plan).unwrap();
        infer(&programs, &SliceLens::new(block, 4, plan.chunks, plan.channels))
    }

    #[test]
    fn a_received_chunk_is_as_long_as_what_was_sent() {
        // 10 floats in 4 chunks of 4: the third has 2, the last none.
        let plan = generate(Algorithm::Ring, Collective::AllReduce, 4, 1).unwrap();
        let all = slices(&plan, 10).unwrap();
        assert_eq!(all[0].iter().flatten().copied().collect::<Vec<_>>(), [0, 2, 4, 4, 0, 2, 4]);
    }

    #[test]
    fn scratch_has_the_length_of_what_was_put_in() {
        let plan = generate(Algorithm::OneShot, Collective::AllReduce, 2, 1).unwrap();
        let all = slices(&plan, 10).unwrap();
        assert_eq!(all[1].iter().flatten().copied().collect::<Vec<_>>(), [10, 10]);
    }

    #[test]
    fn unequal_chunks_in_one_step_are_refused_by_name() {
        let mut plan = generate(Algorithm::TwoShot, Collective::AllReduce, 2, 1).unwrap();
        let copied = plan.programs[1].steps.iter().position(|s| matches!(s, Step::Copy { .. })).unwrap();
        let range = |start| Range { buffer: Buffer::Output, start, len: 1 };
        plan.programs[1].steps[copied] =
            Step::Copy { src: Place { rank: Some(Rank(0)), range: range(0) }, dst: range(1) };
        assert!(slices(&plan, 8).is_ok(), "equal chunks");
        let why = slices(&plan, 10).unwrap_err();
        assert!(why.contains("rank 1 channel 0") && why.contains("8 and 2 elements"), "{why}");
    }
}
