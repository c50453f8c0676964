//! Plans on threads, connected by FIFOs in shared memory: a task for each rank and channel, and a thread for each core that drives its tasks
//! in turns.
//!
//! [`open`] compiles the plan ([`program`]), allocates ([`buffers`], [`memory`]), connects ([`link`]) and starts the threads ([`team`]);
//! they run the steps ([`run`], [`task`]) with the loops of [`ops`] and wait for each other in [`wait`]. Between executions of a run all tasks meet
//! in a barrier, as kernel boundaries do on a GPU, where the plan accesses peers' buffers: it orders that within one execution only.

mod buffers;
mod check;
mod hardware;
mod link;
mod memory;
mod ops;
mod run;
mod task;
mod team;
mod wait;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use self::buffers::Buffers;
pub use self::check::POISON;
use self::check::Share;
use self::link::Link;
use self::memory::Region;
use self::ops::Kernels;
use self::run::{RunJob, Shared, ThreadResult};
use self::team::{Panicked, Team};
use self::wait::{Barrier, Padded, Waiting};
use super::program::Program;
use super::{CheckReport, ExecError, Hardware, KernelChoice, Session, SessionSpec, Stall, Timing, program};
use crate::data::Exact;
use crate::plan::Plan;
use crate::plan::layout::Layout;
use crate::trace::{self, Origin, Span, Trace};
use crate::types::{DType, Factors, Rank, RedOp};
use crate::verify::verify;

/// Most tasks of a session: ranks times channels.
pub const MAX_TASKS: u32 = 1024;

const CLOCK: &str = "monotonic clock of rank 0, channel 0, from end to end of its program";

/// Prepares a plan to run on threads of this process, once `verify` has proved it for the spec's `in_place`.
///
/// # Errors
/// [`ExecError::Refused`] with the verifier's reason, and as [`open_unverified`].
pub fn open(spec: SessionSpec) -> Result<Box<dyn Session>, ExecError> {
    verify(&spec.plan, spec.in_place)
        .map_err(|refusal| ExecError::Refused(format!("the plan is not right: {}", refusal.message().en)))?;
    // SAFETY: the verifier refuses a plan in which two accesses to the same elements are unordered.
    unsafe { open_unverified(spec) }
}

/// Prepares a plan to run on threads of this process.
///
/// # Safety
/// The plan must be free of data races at this size, in or out of place as the spec says: of two steps of different ranks that access
/// the same elements, one of them writing, one happens before the other through the plan's FIFOs and signals. `verify` proves this.
/// A plan may deadlock or compute nonsense: that is reported.
///
/// # Errors
/// [`ExecError::Refused`] when the plan is malformed or a limit is exceeded, [`ExecError::Device`] when memory or threads are short.
pub unsafe fn open_unverified(spec: SessionSpec) -> Result<Box<dyn Session>, ExecError> {
    let SessionSpec { plan, dtype, op, deadline, .. } = &spec;
    let (dtype, op, ranks, channels) = (*dtype, *op, plan.ranks, plan.channels);
    super::refuse_in_place(&spec)?;
    super::refuse_fifo(&spec)?;
    let (programs, links) = program::compile(plan).map_err(ExecError::Refused)?;
    Exact::new(0, dtype, op, ranks).map_err(|err| ExecError::Refused(err.to_string()))?;
    let factors = super::factors(&spec)?;
    if ranks.checked_mul(channels).is_none_or(|tasks| tasks > MAX_TASKS) {
        return Err(ExecError::Refused(format!(
            "{ranks} ranks x {channels} channels make as many tasks, more than {MAX_TASKS}; use fewer channels"
        )));
    }
    if spec.kernel == KernelChoice::Specialised {
        return Err(ExecError::Refused(
            "the CPU back end has no specialised kernels: it interprets every plan; choose auto or interpreter".into(),
        ));
    }
    if spec.slot_bytes < 16 {
        let got = spec.slot_bytes;
        return Err(ExecError::Refused(format!("a FIFO slot has 16 bytes or more, not {got}")));
    }
    if spec.block > u64::MAX / 4096 {
        return Err(ExecError::Refused(format!(
            "a block of {} elements does not fit any memory",
            spec.block
        )));
    }
    let layout = Layout::new(spec.block, dtype.size(), plan.chunks, channels, spec.slot_bytes);
    let data_links = links.carries_data.iter().filter(|&&data| data).count();
    refuse_too_large(Buffers::bytes_needed(&spec, &layout, data_links), &spec)?;

    // SAFETY: this function's caller promises a plan without races.
    let buffers = unsafe { Buffers::new(&spec, layout) }?;
    let slot_bytes = buffers.tile_bytes();
    let connect = |data: &bool| {
        let slot_bytes = if *data { slot_bytes } else { 0 };
        // SAFETY: `compile` gives each connection one producer and one consumer thread, whose accesses `Link`'s counters order.
        let slots = unsafe { Region::new(Link::bytes(slot_bytes)) };
        slots
            .map(|slots| Link::new(slots, slot_bytes))
            .ok_or_else(|| buffers::out_of_memory(slot_bytes as u64))
    };
    let tasks = programs.len();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(tasks);
    let direct = |program: &Program| {
        let own = program.rank.index();
        program.steps.iter().any(|step| step.srcs.iter().any(|src| src.rank != own))
    };
    let shared = Arc::new(Shared {
        links: links.carries_data.iter().map(connect).collect::<Result<_, _>>()?,
        meets: programs.iter().any(direct),
        programs,
        buffers,
        kernels: Kernels::of(dtype, op),
        average: (op == RedOp::Avg && plan.collective.reduces()).then_some(ranks),
        factors,
        deadline: *deadline,
        waiting: Waiting::new(threads),
        barrier: Barrier::new(tasks),
        stalls: Mutex::default(),
        mismatch: Mutex::default(),
        results: (0..tasks).map(|_| Mutex::default()).collect(),
        driven: (0..threads).map(|_| Padded::default()).collect(),
    });
    let names = (0..threads).map(|thread| format!("ringlab cpu {thread}"));
    let (worker, on_panic) = (shared.clone(), shared.clone());
    let mut team = Team::spawn(
        names,
        move |thread, job: &Job| job.work(&worker, thread),
        move || on_panic.waiting.stop(),
    )
    .map_err(|err| ExecError::Device {
        context: format!("starting {threads} threads"),
        message: err.to_string(),
    })?;
    // A thread that is woken is put where its waker runs. Two on one core hand over by sleeping, and then stay there for each wakes the
    // other: a hundred times slower. With a thread for every core there is nothing to choose, so each stays on its own.
    let cores = hardware::cores();
    if threads > 1 && threads == cores.len() {
        team.run(Job::Settle(cores)).map_err(|Panicked { message, .. }| ExecError::Device {
            context: "placing threads on cores".into(),
            message,
        })?;
    }
    let SessionSpec { plan, trace_spans, factors, .. } = spec;
    Ok(Box::new(CpuSession { team, shared, plan, dtype, op, factors, trace_spans }))
}

fn refuse_too_large(needed: Option<u64>, spec: &SessionSpec) -> Result<(), ExecError> {
    let available = hardware::available_memory();
    let fits = match (needed, available) {
        (Some(needed), Some(available)) => needed <= available,
        (needed, None) => needed.is_some(),
        (None, _) => false,
    };
    if fits {
        return Ok(());
    }
    let mib = |bytes: Option<u64>| {
        bytes.map_or("more than 2^64 bytes".into(), |b| format!("{} MiB", b.div_ceil(1 << 20)))
    };
    Err(ExecError::Refused(format!(
        "{} ranks with blocks of {} elements need {} of memory, {} are available; use a smaller size or fewer ranks",
        spec.plan.ranks,
        spec.block,
        mib(needed),
        mib(available),
    )))
}

struct CpuSession {
    team: Team<Job>,
    shared: Arc<Shared>,
    plan: Plan,
    dtype: DType,
    op: RedOp,
    factors: Factors,
    trace_spans: usize,
}

enum Job {
    /// Each thread to its core.
    Settle(Vec<usize>),
    Run(RunJob),
    Poison,
    Fill(DType, Exact),
    Check(DType, Exact, Arc<Mutex<CheckReport>>),
}

impl Job {
    fn work(&self, shared: &Shared, thread: usize) {
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

impl CpuSession {
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
        shared.links.iter().for_each(Link::drain);
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
                }
            }));
        }
        spans.sort_by_key(|span| (span.start_ns, span.rank, span.channel, span.step));
        let Hardware { backend, device, .. } = hardware::describe();
        let clock = "monotonic clock of the host".into();
        Trace {
            version: trace::VERSION,
            origin: Origin::Measured { backend: backend.into(), hardware: device, clock },
            ranks: self.plan.ranks,
            channels: self.plan.channels,
            spans,
            dropped,
        }
    }
}

impl Session for CpuSession {
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
        super::refuse_input(rank, self.plan.ranks, elements.len() as u64, bytes)?;
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
        super::refuse_check(&self.factors)?;
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
