//! A prepared plan: what its threads are asked to do, and what they report.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::check::{self, Share};
use super::connection::Connection;
use super::hardware;
use super::run::{self, RunJob, Shared, ThreadResult};
use super::team::{Panicked, Team};
use crate::data::Exact;
use crate::exec::{self, CheckReport, ExecError, Hardware, Session, Stall, Timing};
use crate::plan::Plan;
use crate::trace::{self, Crossing, Origin, Span, Trace};
use crate::types::{DType, Factors, Rank, RedOp};

const CLOCK: &str = "monotonic clock of rank 0, channel 0, from end to end of its program";

pub struct CpuSession<L> {
    pub team: Team<Job>,
    pub shared: Arc<Shared<L>>,
    pub plan: Plan,
    pub dtype: DType,
    pub op: RedOp,
    pub factors: Factors,
    pub trace_spans: usize,
}

pub enum Job {
    /// Each thread to its core.
    Settle(Vec<usize>),
    Run(RunJob),
    Poison,
    Fill(DType, Exact),
    Check(DType, Exact, Arc<Mutex<CheckReport>>),
}

impl Job {
    pub fn work<L: Connection>(&self, shared: &Shared<L>, thread: usize) {
        let buffers = &shared.buffers;
        let share = Share { thread, threads: shared.threads() };
        let ranks = shared.programs.len() as u32 / buffers.channels();
        match self {
            Job::Settle(cores) => hardware::stay_on(cores[thread]),
            Job::Run(job) => run::run(shared, thread, job),
            Job::Poison => check::poison(buffers, ranks, share),
            Job::Fill(dtype, exact) => check::fill(buffers, *dtype, exact, ranks, share),
            Job::Check(dtype, exact, report) => check::check(buffers, *dtype, exact, ranks, share, report),
        }
    }
}

impl<L: Connection> CpuSession<L> {
    fn exact(&self, seed: u64) -> Exact {
        Exact::of(seed, self.dtype, self.op, self.plan.ranks, self.plan.collective)
            .expect("`open_unverified` checked the number of ranks")
    }

    fn panicked(&self, Panicked { thread, message }: Panicked) -> ExecError {
        let program = &self.shared.programs[self.shared.driven[thread].0.load(Ordering::Relaxed)];
        ExecError::Device {
            context: format!("rank {} channel {} panicked", program.rank, program.channel),
            message,
        }
    }

    /// Runs the plan; afterwards the session is ready for the next run, whatever happened.
    fn execute(
        &mut self,
        iters: u32,
        trace: Option<usize>,
    ) -> Result<(Duration, Vec<ThreadResult>), ExecError> {
        let shared = self.shared.clone();
        shared.barrier.reset();
        let epoch = Instant::now();
        let ended = self.team.run(Job::Run(RunJob { iters, epoch, trace }));
        let wall = epoch.elapsed();

        let take = |result: &Mutex<ThreadResult>| {
            std::mem::take(&mut *result.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let results: Vec<ThreadResult> = shared.results.iter().map(take).collect();
        let mut stalls = std::mem::take(&mut *shared.stalls.lock().unwrap_or_else(PoisonError::into_inner));
        let mismatch = shared.mismatch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if ended.is_ok() && !shared.waiting.stopped() {
            return Ok((wall, results));
        }
        shared.waiting.reset();
        shared.links.iter().for_each(L::drain);
        if let Err(panicked) = ended {
            return Err(self.panicked(panicked));
        }
        if let Some((context, message)) = mismatch {
            return Err(ExecError::Device { context, message });
        }
        stalls.sort_by_key(|stall: &Stall| (stall.rank, stall.channel));
        Err(ExecError::Stalled { deadline: shared.deadline, stalls })
    }

    fn timing(&self, wall: Duration, results: &mut [ThreadResult]) -> Timing {
        let per_rank = results.chunks(self.plan.channels as usize);
        Timing {
            wall,
            moved_bytes: per_rank.map(|threads| threads.iter().map(|t| t.moved).sum()).collect(),
            iterations: std::mem::take(&mut results[0].iterations),
            clock: CLOCK,
        }
    }

    fn trace(&self, results: Vec<ThreadResult>) -> Trace {
        let dropped = results.iter().map(|r| r.dropped).sum();
        let begin =
            results.iter().filter_map(|r| r.records.first()).map(|r| r.start).min().unwrap_or_default();
        let since = |at: Duration| (at.saturating_sub(begin)).as_nanos() as u64;
        let mut spans = Vec::new();
        for (program, result) in self.shared.programs.iter().zip(results) {
            spans.extend(result.records.iter().map(|record| {
                let instr = &program.steps[record.step as usize];
                let sends = instr.to.is_some() && instr.moves_data();
                Span {
                    rank: program.rank,
                    channel: program.channel,
                    tile: record.tile,
                    step: record.step,
                    op: instr.name.into(),
                    from: instr.from.map(|peer| peer.rank),
                    to: instr.to.map(|peer| peer.rank),
                    bytes: record.bytes,
                    start_ns: since(record.start),
                    ready_ns: since(record.start + record.waited),
                    end_ns: since(record.end),
                    crossing: Crossing {
                        wire_bytes: sends.then_some(record.wire_bytes),
                        credit_ns: sends.then_some(record.without_credit.as_nanos() as u64),
                        ..Crossing::default()
                    },
                }
            }));
        }
        spans.sort_by_key(|span| (span.start_ns, span.rank, span.channel, span.step));
        let Hardware { backend, device, .. } = hardware::describe();
        let clock = "monotonic clock of the host".into();
        let trace = Trace {
            version: trace::VERSION,
            origin: Origin::Measured { backend: backend.into(), hardware: device, clock },
            ranks: self.plan.ranks,
            channels: self.plan.channels,
            fifo: None,
            slot_bytes: None,
            spans,
            dropped,
        };
        trace.with_fifo(&self.plan, self.shared.fifo, self.shared.slot_bytes)
    }
}

impl<L: Connection> Session for CpuSession<L> {
    fn fill(&mut self, seed: u64) -> Result<(), ExecError> {
        let fill = Job::Fill(self.dtype, self.exact(seed));
        self.team
            .run(Job::Poison)
            .and_then(|()| self.team.run(fill))
            .map_err(|panicked| self.panicked(panicked))
    }

    fn write_input(&mut self, rank: Rank, elements: &[u8]) -> Result<(), ExecError> {
        let buffers = &self.shared.buffers;
        let bytes = buffers.input_elems * self.dtype.size() as u64;
        exec::refuse_input(rank, self.plan.ranks, elements.len() as u64, bytes)?;
        buffers.input(rank, 0, buffers.input_elems).write(elements);
        Ok(())
    }

    fn run(&mut self, iters: u32) -> Result<Timing, ExecError> {
        let (wall, mut results) = self.execute(iters, None)?;
        Ok(self.timing(wall, &mut results))
    }

    fn run_traced(&mut self) -> Result<(Timing, Trace), ExecError> {
        let (wall, mut results) = self.execute(1, Some(self.trace_spans / self.shared.programs.len()))?;
        Ok((self.timing(wall, &mut results), self.trace(results)))
    }

    fn check(&mut self, seed: u64) -> Result<CheckReport, ExecError> {
        exec::refuse_check(&self.factors)?;
        let report = Arc::new(Mutex::new(check::empty()));
        let job = Job::Check(self.dtype, self.exact(seed), report.clone());
        self.team.run(job).map_err(|panicked| self.panicked(panicked))?;
        let report = report.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(report.clone())
    }

    fn output(&mut self, rank: Rank) -> Result<Vec<u8>, ExecError> {
        if rank.0 >= self.plan.ranks {
            return Err(ExecError::Refused(format!(
                "there is no rank {rank}: the session has {}",
                self.plan.ranks
            )));
        }
        let window = self.shared.buffers.output(rank, 0, self.shared.buffers.output_elems);
        let mut bytes = vec![0; window.bytes()];
        window.read(&mut bytes);
        Ok(bytes)
    }

    fn describe(&self) -> Hardware {
        hardware::describe()
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::Lines;
    use super::*;
    use crate::exec::{KernelChoice, SessionSpec};
    use crate::fifo::{Fifo, Protocol};
    use crate::plan::{Algorithm, generate};
    use crate::types::Collective;

    /// Tiles of several lengths leave old lines behind short messages; flags recur behind all of them.
    #[test]
    fn executions_across_the_recurrence_of_flags_are_exact() {
        for protocol in [Protocol::Ll, Protocol::Ll128] {
            for (chunk_steps, slice_steps) in [(1, 1), (4, 2)] {
                let spec = SessionSpec {
                    plan: generate(Algorithm::Ring, Collective::AllReduce, 3, 1).unwrap(),
                    block: 1009,
                    dtype: DType::F32,
                    op: RedOp::Sum,
                    factors: Factors::Parity,
                    in_place: true,
                    slot_bytes: 256,
                    fifo: Fifo { protocol, chunk_steps, slice_steps },
                    deadline: Duration::from_secs(60),
                    devices: vec![],
                    trace_spans: 0,
                    kernel: KernelChoice::Auto,
                };
                // SAFETY: a generated ring accesses its own buffers only.
                let mut session = unsafe { super::super::session::<Lines>(spec) }.unwrap();
                for around in [1u64 << 32, 1 << 33] {
                    // An execution first, whose lines the later ones must not take for theirs.
                    for start in [around - (1 << 32), around - 16, around] {
                        let moved = session.shared.links[0].counters().1;
                        session.shared.links.iter().for_each(|link| link.start_at(start.max(moved)));
                        session.fill(start).unwrap();
                        session.run(1).unwrap();
                        let report = session.check(start).unwrap();
                        assert_eq!((report.wrong, report.first_wrong), (0, None), "{protocol} from {start}");
                    }
                }
            }
        }
    }
}
