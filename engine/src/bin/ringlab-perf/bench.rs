//! One line of the table: a plan at one size, type and reduction, timed and checked out of place and in place.

use std::time::Duration;

use ringlab_engine::exec::{
    Backend, CheckReport, ExecError, Hardware, KernelChoice, Session, SessionSpec, Timing, WrongElement,
};
use ringlab_engine::fifo::Fifo;
use ringlab_engine::plan::Plan;
use ringlab_engine::types::{Collective, DType, Factors, RedOp};

use crate::table::Cells;

/// How a plan is made ready to run.
pub type Opener = Box<dyn Fn(SessionSpec) -> Result<Box<dyn Session>, ExecError>>;

/// What stays the same over all lines.
pub struct Settings {
    pub open: Opener,
    pub backend: Backend,
    pub plan: Plan,
    pub fifo: Fifo,
    pub slot_bytes: usize,
    pub devices: Vec<u32>,
    pub deadline: Duration,
    pub iters: u32,
    pub rounds: u32,
    pub warmup: u32,
    pub checks: u32,
    pub kernel: KernelChoice,
    /// Times a round replays its executions as a CUDA graph; 0 launches each.
    pub replays: u32,
}

impl Settings {
    /// Launches `iters` executions, or replays their recording.
    fn execute(&self, session: &mut dyn Session, iters: u32, replays: u32) -> Result<Timing, ExecError> {
        if self.replays == 0 { session.run(iters) } else { session.replay(iters, replays) }
    }
}

/// Buffers at a size, as nccl-tests' `*GetCollByteCount` cuts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The larger buffer.
    pub bytes: u64,
    /// Elements of a block: the table's `count`.
    pub count: u64,
}

impl Shape {
    pub fn new(collective: Collective, ranks: u32, bytes: u64, dtype: DType) -> Shape {
        let size = dtype.size() as u64;
        let elems = bytes / size;
        let blocks = u64::from(collective.input_blocks(ranks).max(collective.output_blocks(ranks)));
        // Where the buffer holds a block per rank, blocks start on 16 bytes.
        let split = match collective {
            Collective::AllGather
            | Collective::ReduceScatter
            | Collective::AllToAll
            | Collective::Gather { .. }
            | Collective::Scatter { .. } => true,
            Collective::AllReduce
            | Collective::Broadcast { .. }
            | Collective::Reduce { .. }
            | Collective::SendRecv => false,
        };
        let count = if split { (elems / blocks) / (16 / size) * (16 / size) } else { elems };
        Shape { bytes: count * blocks * size, count }
    }
}

/// What was found for one of the two placements.
#[derive(Debug)]
pub struct Measured {
    pub cells: Cells,
    /// Microseconds per execution, in the order the rounds ran.
    pub rounds_us: Vec<f64>,
    /// Payload bytes each rank sent or read from others in one execution.
    pub moved_bytes: Vec<u64>,
    pub first_wrong: Option<WrongElement>,
    pub hardware: Hardware,
}

pub fn measure(
    settings: &Settings,
    shape: Shape,
    dtype: DType,
    op: RedOp,
    in_place: bool,
) -> Result<Measured, ExecError> {
    let spec = SessionSpec {
        plan: settings.plan.clone(),
        block: shape.count,
        dtype,
        op,
        factors: Factors::Parity,
        in_place,
        slot_bytes: settings.slot_bytes,
        fifo: settings.fifo,
        deadline: settings.deadline,
        devices: settings.devices.clone(),
        trace_spans: 0,
        kernel: settings.kernel,
    };
    let mut session = (settings.open)(spec)?;
    session.fill(0)?;
    session.run(settings.warmup)?;
    let mut rounds_us = Vec::new();
    let mut moved_bytes = Vec::new();
    for _ in 0..settings.rounds {
        let timing = settings.execute(session.as_mut(), settings.iters, settings.replays)?;
        let executions = f64::from(settings.iters) * f64::from(settings.replays.max(1));
        rounds_us.push(timing.wall.as_secs_f64() * 1e6 / executions);
        moved_bytes = timing.moved_bytes;
    }

    let mut total = CheckReport { elements: 0, wrong: 0, first_wrong: None };
    for seed in 1..=u64::from(settings.checks) {
        session.fill(seed)?;
        settings.execute(session.as_mut(), 1, 1)?;
        let report = session.check(seed)?;
        total.wrong += report.wrong;
        total.first_wrong = total.first_wrong.or(report.first_wrong);
    }

    let time_us = median(&rounds_us);
    let algbw = shape.bytes as f64 / 1e3 / time_us;
    let busbw = algbw * settings.plan.collective.busbw_factor(settings.plan.ranks);
    let wrong = (settings.checks > 0).then_some(total.wrong);
    Ok(Measured {
        cells: Cells { time_us, algbw, busbw, wrong },
        rounds_us,
        moved_bytes,
        first_wrong: total.first_wrong,
        hardware: session.describe(),
    })
}

/// The middle value, or the mean of the two middle ones. At least one value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { (sorted[half - 1] + sorted[half]) / 2.0 } else { sorted[half] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_as_nccl_tests_cuts_them() {
        let shape = |collective, bytes| Shape::new(collective, 3, bytes, DType::F32);
        assert_eq!(shape(Collective::AllReduce, 1027), Shape { bytes: 1024, count: 256 });
        assert_eq!(shape(Collective::AllGather, 1024), Shape { bytes: 84 * 3 * 4, count: 84 });
        assert_eq!(shape(Collective::ReduceScatter, 40), Shape { bytes: 0, count: 0 });
    }

    #[test]
    fn the_median_ignores_one_slow_round() {
        assert_eq!([median(&[3.0, 900.0, 1.0]), median(&[4.0, 2.0])], [3.0, 3.0]);
    }
}
