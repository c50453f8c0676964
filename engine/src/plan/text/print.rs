//! The canonical explicit form: one block per rank, or per rank and channel where channels differ; `parse` gives the same plan back.

use std::fmt::{self, Write};

use crate::plan::{Place, Plan, Program, Step};
use crate::types::Rank;

/// Writes a plan that passes [`Plan::check`] in the plan language.
pub fn print(plan: &Plan) -> String {
    let mut out = String::new();
    write_plan(plan, &mut out).expect("writing to a String cannot fail");
    out
}

fn write_plan(plan: &Plan, out: &mut String) -> fmt::Result {
    writeln!(out, "plan {} v{}", plan.name, plan.version)?;
    match plan.collective.root() {
        Some(root) => writeln!(out, "collective {} root {root}", plan.collective.name())?,
        None => writeln!(out, "collective {}", plan.collective.name())?,
    }
    writeln!(out, "ranks {}\nchannels {}\nchunks {}", plan.ranks, plan.channels, plan.chunks)?;
    for scratch in &plan.scratch {
        writeln!(out, "scratch {} {}", scratch.name, scratch.chunks)?;
    }
    for programs in plan.programs.chunks(plan.channels as usize) {
        let alike = programs.windows(2).all(|pair| pair[0].steps == pair[1].steps);
        for program in if alike { &programs[..1] } else { programs } {
            write_program(plan, program, alike, out)?;
        }
    }
    Ok(())
}

fn write_program(plan: &Plan, program: &Program, all_channels: bool, out: &mut String) -> fmt::Result {
    // A block needs a step; a program without any needs no block.
    if program.steps.is_empty() {
        return Ok(());
    }
    write!(out, "\nrank {}", program.rank)?;
    if !all_channels {
        write!(out, " channel {}", program.channel)?;
    }
    writeln!(out, ":")?;
    for step in &program.steps {
        writeln!(out, "  {}", step_text(plan, step))?;
    }
    Ok(())
}

/// One step as the plan language writes it.
pub(crate) fn step_text(plan: &Plan, step: &Step) -> String {
    let range = |range| plan.range_text(range);
    let place = |place: &Place| match place.rank {
        None => range(place.range),
        Some(Rank(of)) => format!("{} of {of}", range(place.range)),
    };
    let name = step.name();
    match step {
        Step::Send { to, src } => format!("{name} {} to {to}", range(*src)),
        Step::Recv { from, dst } => format!("{name} from {from} into {}", range(*dst)),
        Step::RecvReduceCopy { from, src, dst } => {
            format!("{name} from {from} with {} into {}", range(*src), range(*dst))
        }
        Step::RecvReduceSend { from, src, to } => {
            format!("{name} from {from} with {} to {to}", range(*src))
        }
        Step::RecvReduceCopySend { from, src, dst, to } => {
            format!("{name} from {from} with {} into {} to {to}", range(*src), range(*dst))
        }
        Step::RecvCopySend { from, dst, to } => format!("{name} from {from} into {} to {to}", range(*dst)),
        Step::Copy { src, dst } => format!("{name} {} into {}", place(src), range(*dst)),
        Step::Reduce { srcs, dst } => {
            let srcs: Vec<String> = srcs.iter().map(place).collect();
            format!("{name} {} into {}", srcs.join(", "), range(*dst))
        }
        Step::Signal { to } => format!("{name} to {to}"),
        Step::Wait { from } => format!("{name} from {from}"),
    }
}
