//! `--random`: operations drawn from a seed, each checked element by element. One that fails is named by the command that repeats it.

use std::time::Duration;

use ringlab_engine::data::mix;
use ringlab_engine::exec::{self, Backend, CheckReport, ExecError, KernelChoice, SessionSpec};
use ringlab_engine::fifo::{Fifo, Protocol};
use ringlab_engine::plan::{Algorithm, Plan, generate};
use ringlab_engine::types::{Collective, DType, Factors, Rank, RedOp};
use ringlab_engine::verify::verify_with;

/// Most ranks, channels and elements of a block.
const RANKS: u64 = 8;
const CHANNELS: u64 = 8;
const BLOCK: u64 = 1 << 20;
/// Most elements of a block where a tile has only a few: each takes a step.
const BLOCK_OF_SMALL_TILES: u64 = 3000;

/// A stream of numbers that a seed determines.
struct Draw(u64);

impl Draw {
    /// 0 to `below` - 1.
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0) % below
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Steps of chunk and slice that fit together.
const STEPS: [(u32, u32); 10] =
    [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4), (8, 1), (8, 2), (8, 4), (8, 8)];

/// Any protocol, and any cut with which the plan is right: some send so far ahead that long chunks leave no room.
fn drawn_fifo(draw: &mut Draw, plan: &Plan, in_place: bool) -> Fifo {
    let protocol = draw.of(&Protocol::ALL);
    let (chunk_steps, slice_steps) = if draw.one_in(2) { (1, 1) } else { draw.of(&STEPS) };
    let fifo = Fifo { protocol, chunk_steps, slice_steps };
    if verify_with(plan, in_place, fifo).is_ok() { fifo } else { Fifo::of(protocol) }
}

/// How the executions of an operation are asked for.
#[derive(Debug, Clone, Copy)]
enum How {
    Launched(u32),
    Replayed(u32, u32),
    Traced,
}

/// One operation: the same for the same seed and back end.
struct Operation {
    spec: SessionSpec,
    how: How,
}

impl Operation {
    fn drawn(backend: Backend, devices: &[u32], deadline: Duration, seed: u64) -> Operation {
        let mut draw = Draw(mix(seed));
        let plan = loop {
            let ranks = 1 + draw.below(RANKS) as u32;
            let channels = 1 + draw.below(CHANNELS) as u32;
            let root = Rank(draw.below(ranks.into()) as u32);
            let collective = draw.of(&Collective::all(root));
            // Not every algorithm has a plan for every collective and number of ranks.
            if let Ok(plan) = generate(draw.of(&Algorithm::ALL), collective, ranks, channels) {
                break plan;
            }
        };
        let slot_bytes = draw.of(&[16, 100, 512, 4096, 64 << 10, 512 << 10]);
        let most = if slot_bytes <= 100 { BLOCK_OF_SMALL_TILES } else { BLOCK };
        // Short blocks as often as long ones.
        let scale = draw.below(u64::from(most.ilog2()) + 1);
        let block = draw.below(2 << scale).min(most);
        let in_place = plan.collective.alias().is_some() && draw.one_in(2);
        let kernel = draw.of(&[KernelChoice::Auto, KernelChoice::Interpreter]);
        let once = in_place;
        let how = match draw.below(10) {
            0 => How::Traced,
            1 | 2 if backend == Backend::Cuda && devices.len() == 1 => match once {
                true => How::Replayed(1, 1),
                false => How::Replayed(1 + draw.below(3) as u32, 1 + draw.below(3) as u32),
            },
            // In place a second execution would start from the first one's result.
            _ => How::Launched(if once { 1 } else { 1 + draw.below(3) as u32 }),
        };
        let (dtype, op) = (draw.of(&DType::ALL), draw.of(&RedOp::ALL));
        let fifo = drawn_fifo(&mut draw, &plan, in_place);
        let spec = SessionSpec {
            plan,
            block,
            dtype,
            op,
            factors: Factors::Parity,
            in_place,
            slot_bytes,
            fifo,
            deadline,
            devices: devices.to_vec(),
            trace_spans: 10_000,
            kernel,
        };
        Operation { spec, how }
    }

    fn executed(&self, backend: Backend, seed: u64) -> Result<CheckReport, ExecError> {
        let mut session = exec::open(backend, self.spec.clone())?;
        session.fill(seed)?;
        match self.how {
            How::Launched(iters) => drop(session.run(iters)?),
            How::Replayed(iters, replays) => drop(session.replay(iters, replays)?),
            How::Traced => drop(session.run_traced()?),
        }
        session.check(seed)
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SessionSpec { plan, block, dtype, op, in_place, slot_bytes, fifo, kernel, .. } = &self.spec;
        write!(
            f,
            "{} {:?}, {} ranks, {} channels, blocks of {block} {dtype}, {op}, {}, slots of {slot_bytes}, {} in chunks of \
             {} and slices of {} steps, kernel {}, {:?}",
            plan.name,
            plan.collective,
            plan.ranks,
            plan.channels,
            if *in_place { "in place" } else { "out of place" },
            fifo.protocol,
            fifo.chunk_steps,
            fifo.slice_steps,
            kernel.name(),
            self.how,
        )
    }
}

/// Runs `count` operations, the n-th from `seed + n`, and returns how many elements were wrong in the first that failed.
///
/// # Errors
/// The first operation that could not be executed, with the command that repeats it.
pub fn run(
    backend: Backend,
    devices: &[u32],
    deadline: Duration,
    count: u64,
    seed: u64,
) -> Result<u64, String> {
    println!(
        "# ringlab-perf {} backend {backend}: {count} random operations from seed {seed}",
        env!("CARGO_PKG_VERSION")
    );
    let mut elements = 0;
    for nth in 0..count {
        let seed = seed.wrapping_add(nth);
        let operation = Operation::drawn(backend, devices, deadline, seed);
        let repeat = || {
            format!("operation {nth}: {operation}\nrepeat with --backend {backend} --random 1 --seed {seed}")
        };
        let report = operation.executed(backend, seed).map_err(|why| format!("{why}\n{}", repeat()))?;
        if let Some(w) = report.first_wrong {
            eprintln!(
                "{} of {} elements are wrong, the first at rank {} element {}: expected {}, got {}\n{}",
                report.wrong,
                report.elements,
                w.rank,
                w.index,
                w.expected,
                w.got,
                repeat()
            );
            return Ok(report.wrong);
        }
        elements += report.elements;
        if (nth + 1) % 1000 == 0 {
            println!("# {} operations, {elements} elements right", nth + 1);
        }
    }
    println!("# {count} operations concluded: {elements} elements, 0 wrong");
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_operation() {
        let drawn = |seed| Operation::drawn(Backend::Cuda, &[0], Duration::from_secs(1), seed).to_string();
        assert_eq!(drawn(7), drawn(7));
        let all: std::collections::BTreeSet<_> = (0..1000).map(drawn).collect();
        assert!(all.len() > 990, "{}", all.len());
    }

    #[test]
    fn random_operations_on_the_cpu_are_all_right() {
        assert_eq!(run(Backend::Cpu, &[], Duration::from_secs(60), 40, 1), Ok(0));
    }
}
