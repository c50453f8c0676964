//! Plans on threads, connected by FIFOs in shared memory: a task for each rank and channel, and a thread for each core that drives its tasks
//! in turns.
//!
//! [`open`] compiles the plan ([`program`]), allocates ([`buffers`], [`memory`]), connects ([`connection`]: [`link`] or [`lines`]) and
//! starts the threads ([`team`]); they run the steps ([`run`], [`task`]) with the loops of [`ops`] and wait for each other in [`wait`]. Between executions of a run all tasks meet
//! in a barrier, as kernel boundaries do on a GPU, where the plan accesses peers' buffers: it orders that within one execution only.

mod buffers;
mod check;
mod connection;
mod hardware;
#[cfg(test)]
mod large;
mod lines;
mod link;
mod memory;
mod ops;
mod run;
mod session;
mod signals;
mod task;
mod team;
mod traced;
mod wait;

use std::sync::{Arc, Mutex};

use self::buffers::Buffers;
pub use self::check::POISON;
use self::connection::{Connection, Shape};
use self::lines::Lines;
use self::link::Link;
use self::memory::ALIGN;
use self::ops::Kernels;
use self::run::Shared;
use self::session::{CpuSession, Job};
use self::team::{Panicked, Team};
use self::wait::{Barrier, Padded, Waiting};
use super::program::{Links, Program};
use super::slices::{self, SliceLens};
use super::{ExecError, KernelChoice, Session, SessionSpec, program};
use crate::data::Exact;
use crate::fifo::{Fifo, Protocol};
use crate::plan::layout::Layout;
use crate::types::RedOp;
use crate::verify::verify_with;

/// Most tasks of a session: ranks times channels.
pub const MAX_TASKS: u32 = 1024;

/// Most payload bytes of a slot: a connection of eight is then within 64 bits however it is laid out.
pub const MAX_SLOT_BYTES: usize = 1 << 40;

/// Prepares a plan to run on threads of this process, once `verify` has proved it for the spec's `in_place` and chunks.
///
/// # Errors
/// [`ExecError::Refused`] with the verifier's reason, and as [`open_unverified`].
pub fn open(spec: SessionSpec) -> Result<Box<dyn Session>, ExecError> {
    verify_with(&spec.plan, spec.in_place, spec.fifo)
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
    const WHOLE: Fifo = Fifo::of(Protocol::Simple);
    super::refuse_in_place(&spec)?;
    spec.fifo.check().map_err(|why| ExecError::Refused(why.to_string()))?;
    // SAFETY: this function's caller promises a plan without races.
    unsafe {
        match spec.fifo {
            WHOLE => prepare::<Link<false>>(spec),
            Fifo { protocol: Protocol::Simple, .. } => prepare::<Link<true>>(spec),
            Fifo { protocol: Protocol::Ll | Protocol::Ll128, .. } => prepare::<Lines>(spec),
        }
    }
}

/// # Safety
/// As [`open_unverified`].
unsafe fn prepare<L: Connection>(spec: SessionSpec) -> Result<Box<dyn Session>, ExecError> {
    // SAFETY: the caller's promise.
    Ok(Box::new(unsafe { session::<L>(spec) }?))
}

/// # Safety
/// As [`open_unverified`].
unsafe fn session<L: Connection>(spec: SessionSpec) -> Result<CpuSession<L>, ExecError> {
    let SessionSpec { plan, dtype, op, deadline, .. } = &spec;
    let (dtype, op, ranks, channels) = (*dtype, *op, plan.ranks, plan.channels);
    let (programs, links) = program::compile(plan).map_err(ExecError::Refused)?;
    Exact::new(0, dtype, op, ranks).map_err(|err| ExecError::Refused(err.to_string()))?;
    let factors = super::factors(&spec)?;
    if ranks.checked_mul(channels).is_none_or(|tasks| tasks > MAX_TASKS) {
        return Err(ExecError::Refused(format!(
            "{ranks} ranks x {channels} channels make as many tasks, more than {MAX_TASKS}; use fewer channels"
        )));
    }
    if matches!(spec.kernel, KernelChoice::Specialised | KernelChoice::Fused) {
        return Err(ExecError::Refused(
            "the CPU back end has no specialised kernels: it interprets every plan; choose auto or interpreter".into(),
        ));
    }
    if !(16..=MAX_SLOT_BYTES).contains(&spec.slot_bytes) {
        let got = spec.slot_bytes;
        return Err(ExecError::Refused(format!("a FIFO slot has 16 to {MAX_SLOT_BYTES} bytes, not {got}")));
    }
    super::refuse_block(spec.block)?;
    let tile_bytes = spec.fifo.chunk_bytes(spec.slot_bytes);
    let layout = Layout::new(spec.block, dtype.size(), plan.chunks, channels, tile_bytes);
    let lens = match L::TELLS_LENGTH {
        true => Vec::new(),
        false => {
            let lens = SliceLens::new(spec.block, dtype.size(), plan.chunks, channels);
            slices::infer(&programs, &lens).map_err(ExecError::Refused)?
        }
    };
    refuse_too_large(bytes_needed::<L>(&spec, &layout, &links), &spec)?;

    // SAFETY: this function's caller promises a plan without races.
    let buffers = unsafe { Buffers::new(&spec, layout) }?;
    let connect = |data: &bool| {
        let shape = shape(&spec, &buffers.layout, *data);
        L::new(shape).ok_or_else(|| buffers::out_of_memory(L::bytes(shape).map_or(u64::MAX, |b| b as u64)))
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
        fifo: spec.fifo,
        slot_bytes: spec.slot_bytes,
        lens,
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
    Ok(CpuSession { team, shared, plan, dtype, op, factors, trace_spans })
}

/// What the connections of a session hold: those that carry `data`, and those that only signals travel on.
fn shape(spec: &SessionSpec, layout: &Layout, data: bool) -> Shape {
    let slice = spec.fifo.slice_bytes(spec.slot_bytes).next_multiple_of(ALIGN);
    let tile = (layout.tile_elems() as usize * spec.dtype.size()).next_multiple_of(ALIGN);
    let payload = if data { slice.min(tile) } else { 0 };
    Shape { protocol: spec.fifo.protocol, steps: spec.fifo.slice_steps, payload }
}

fn bytes_needed<L: Connection>(spec: &SessionSpec, layout: &Layout, links: &Links) -> Option<u64> {
    let connections = links.carries_data.iter().map(|data| L::bytes(shape(spec, layout, *data)));
    let connections = connections.sum::<Option<usize>>()?;
    Buffers::bytes_needed(spec, layout)?.checked_add(connections as u64)
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
