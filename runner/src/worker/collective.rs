//! One plan at one size: parse, prove, fill, warm up, time, fill, run once, check every element, trace once if asked.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Duration;

use ringlab_engine::exec::{self, ExecError, KernelChoice, Session, SessionSpec};
use ringlab_engine::fifo::Fifo;
use ringlab_engine::plan::layout::{Layout, MOST_ELEMENTS};
use ringlab_engine::plan::{self, Plan, SLOTS, Step};
use ringlab_engine::verify;
use ringlab_labs::job::{Backend, CollectiveTask, JobSpec, Level, TaskResult, WrongElement, slot_bytes};

use super::sink::Sink;
use super::{Stop, report};
use crate::line::Produced;

/// A viewer draws this many and a trace of them stays below [`crate::line::MAX_ARTIFACT`].
const TRACE_SPANS: usize = 100_000;

/// Of a worker apart from buffers and connections: the program with its trace, and a thread's stack with what the allocator keeps for it.
const BASE_BYTES: u64 = 48 << 20;
const THREAD_BYTES: u64 = 3 << 20;
/// Keeps a task's result, with one time per iteration, well below [`crate::line::MAX_LINE`].
const MAX_ITERATIONS: u32 = 100_000;

/// Runs the task. Files of the result are in the working directory.
pub fn run(
    task: &CollectiveTask,
    job: &JobSpec,
    sink: &mut Sink<File>,
) -> Result<(TaskResult, Vec<Produced>), Stop> {
    report::task(task, sink)?;
    if task.warmup > MAX_ITERATIONS || task.iterations > MAX_ITERATIONS {
        return Err(Stop::job(format!(
            "Task {} asks for {} warm-up and {} timed iterations; at most {MAX_ITERATIONS} of each are run.",
            task.id, task.warmup, task.iterations
        )));
    }
    sink.progress(&task.id, "verify", 0, 1)?;
    let (plan, comm_steps) = proven_plan(task, sink)?;
    sink.progress(&task.id, "verify", 1, 1)?;

    if task.block > MOST_ELEMENTS {
        return Err(Stop::job(format!(
            "Task {} has blocks of {} elements, which fit no memory; use a smaller message.",
            task.id, task.block
        )));
    }
    let layout =
        Layout::new(task.block, task.dtype.size(), plan.chunks, plan.channels, slot_bytes(task.backend));
    report::layout(&plan, &layout, task.dtype.size(), sink)?;
    check_memory(task, &plan, job)?;
    let plan_file = keep_plan(task)?;

    let mut session = open(task, plan, job).map_err(|e| refused_or_failed(task, e))?;
    report::hardware(&session.describe(), task.ranks, sink)?;
    let failed = |e| refused_or_failed(task, e);

    session.fill(job.seed).map_err(failed)?;
    sink.progress(&task.id, "warmup", 0, task.warmup)?;
    if task.warmup > 0 {
        session.run(task.warmup).map_err(failed)?;
    }
    sink.progress(&task.id, "warmup", task.warmup, task.warmup)?;

    sink.progress(&task.id, "measure", 0, task.iterations)?;
    let mut times_us = Vec::new();
    let mut clock = String::new();
    if task.iterations > 0 {
        let timing = session.run(task.iterations).map_err(failed)?;
        times_us = if timing.iterations.is_empty() {
            vec![timing.wall.as_secs_f64() * 1e6 / f64::from(task.iterations)]
        } else {
            timing.iterations.iter().map(|t| t.as_secs_f64() * 1e6).collect()
        };
        timing.clock.clone_into(&mut clock);
        report::times(&times_us, task.iterations, &timing, sink)?;
    }
    sink.progress(&task.id, "measure", task.iterations, task.iterations)?;

    // Timed runs of an in-place reduction accumulate: fresh inputs, and exactly one run, before anything is compared.
    sink.progress(&task.id, "check", 0, 1)?;
    session.fill(job.seed).map_err(failed)?;
    let once = session.run(1).map_err(failed)?;
    report::moved(&once.moved_bytes, sink)?;
    let checked = session.check(job.seed).map_err(failed)?;
    report::checked(&checked, task.in_place, sink)?;
    sink.progress(&task.id, "check", 1, 1)?;

    let mut produced = vec![plan_file];
    let trace = if task.trace { Some(trace(task, job, session.as_mut(), sink)?) } else { None };
    produced.extend(trace.clone());
    let result = TaskResult {
        id: task.id.clone(),
        elements: checked.elements,
        wrong: checked.wrong,
        first_wrong: checked.first_wrong.map(|w| WrongElement {
            rank: w.rank.0,
            index: w.index,
            expected: w.expected,
            got: w.got,
        }),
        times_us,
        clock,
        moved_bytes: once.moved_bytes,
        comm_steps,
        trace: trace.map(|file| file.name),
    };
    Ok((result, produced))
}

/// The task's plan, parsed and proved, and its communication steps.
fn proven_plan(task: &CollectiveTask, sink: &mut Sink<File>) -> Result<(Plan, u32), Stop> {
    let parsed = plan::text::parse(&task.plan)
        .map_err(|e| Stop::job(format!("Task {}: the plan cannot be read: {e}", task.id)))?;
    let plan = parsed.plan;
    if (plan.collective, plan.ranks) != (task.collective, task.ranks) {
        return Err(Stop::job(format!(
            "Task {} asks for {} on {} ranks, but its plan is one of {} on {} ranks.",
            task.id,
            task.collective.name(),
            task.ranks,
            plan.collective.name(),
            plan.ranks
        )));
    }
    let proof = verify::verify(&plan, task.in_place).map_err(|refusal| {
        let reason = refusal.message_in(&parsed.lines).en;
        Stop::job(format!("Task {}: the plan is refused: {reason}", task.id))
    })?;
    report::proof(&plan, &proof, task, sink)?;
    let comm_steps = plan.programs.iter().map(|p| p.steps.iter().filter(|s| communicates(s)).count()).max();
    let comm_steps = comm_steps.unwrap_or(0) as u32;
    let message = format!("A rank executes {comm_steps} communication steps per channel and tile.");
    sink.log(Level::Info, "engine", message)?;
    Ok((plan, comm_steps))
}

/// Whether a step moves data between ranks. One that receives and sends is one step; the verifier's
/// `longest_chain` is another figure.
fn communicates(step: &Step) -> bool {
    match step {
        Step::Signal { .. } | Step::Wait { .. } => false,
        Step::Copy { src, .. } => src.rank.is_some(),
        Step::Reduce { srcs, .. } => srcs.iter().any(|src| src.rank.is_some()),
        _ => true,
    }
}

/// Refuses a job whose buffers alone exceed its memory limit, with the figures, before anything is allocated.
fn check_memory(task: &CollectiveTask, plan: &Plan, job: &JobSpec) -> Result<(), Stop> {
    if task.backend != Backend::Cpu {
        // Buffers live in the GPU's memory: the engine refuses what does not fit there.
        return Ok(());
    }
    let (input, output) =
        (task.collective.input_blocks(task.ranks), task.collective.output_blocks(task.ranks));
    let blocks = if task.in_place { input.max(output) } else { input + output };
    let buffers =
        u128::from(task.block) * task.dtype.size() as u128 * u128::from(blocks) * u128::from(task.ranks);
    let connections: BTreeSet<_> = plan
        .programs
        .iter()
        .flat_map(|program| program.steps.iter().map(move |step| (program, step)))
        .filter(|(_, step)| !matches!(step, Step::Signal { .. }))
        .filter_map(|(program, step)| Some((program.rank, program.channel, step.to()?)))
        .collect();
    let slots = connections.len() as u128 * u128::from(SLOTS) * slot_bytes(task.backend) as u128;
    let rest = u128::from(BASE_BYTES) + plan.programs.len() as u128 * u128::from(THREAD_BYTES);
    let need = u64::try_from(buffers + slots + rest).unwrap_or(u64::MAX);
    if need > job.limits.memory_bytes {
        return Err(Stop::limit(format!(
            "Task {} needs {} ({} for the buffers of {} ranks, {} for {} connections, {} for {} threads and the program), more than the \
             job's limit of {}. Choose a smaller size or fewer ranks.",
            task.id,
            report::bytes(need),
            report::bytes(u64::try_from(buffers).unwrap_or(u64::MAX)),
            task.ranks,
            report::bytes(u64::try_from(slots).unwrap_or(u64::MAX)),
            connections.len(),
            report::bytes(rest as u64),
            plan.programs.len(),
            report::bytes(job.limits.memory_bytes)
        )));
    }
    Ok(())
}

fn open(task: &CollectiveTask, plan: Plan, job: &JobSpec) -> Result<Box<dyn Session>, ExecError> {
    let spec = SessionSpec {
        plan,
        block: task.block,
        dtype: task.dtype,
        op: task.op,
        factors: ringlab_engine::types::Factors::Parity,
        in_place: task.in_place,
        slot_bytes: slot_bytes(task.backend),
        fifo: Fifo::default(),
        deadline: Duration::from_millis(job.limits.collective_ms),
        devices: devices(task.backend)?,
        trace_spans: if task.trace { TRACE_SPANS } else { 0 },
        // A lab is about the plan's own steps, and its trace and its timings are to be of the same execution.
        kernel: KernelChoice::Interpreter,
    };
    exec::open(task.backend, spec)
}

/// All GPUs that this process may see: ranks are dealt out over them.
fn devices(backend: Backend) -> Result<Vec<u32>, ExecError> {
    match backend {
        Backend::Cpu => Ok(Vec::new()),
        #[cfg(feature = "cuda")]
        Backend::Cuda => Ok(exec::cuda::devices()?.iter().map(|device| device.ordinal).collect()),
        #[cfg(not(feature = "cuda"))]
        Backend::Cuda => Err(ExecError::Refused("this runner was built without the feature `cuda`".into())),
    }
}

fn keep_plan(task: &CollectiveTask) -> Result<Produced, Stop> {
    let name = format!("plan-{}.txt", task.id);
    std::fs::write(&name, &task.plan)?;
    Ok(Produced { name, media_type: "text/plain; charset=utf-8".into() })
}

fn trace(
    task: &CollectiveTask,
    job: &JobSpec,
    session: &mut dyn Session,
    sink: &mut Sink<File>,
) -> Result<Produced, Stop> {
    let failed = |e| refused_or_failed(task, e);
    sink.progress(&task.id, "trace", 0, 1)?;
    // Fresh inputs: a reduction in place that keeps accumulating would run into infinities, which are slower on some processors.
    session.fill(job.seed).map_err(failed)?;
    let (timing, trace) = session.run_traced().map_err(failed)?;
    let name = format!("trace-{}.json", task.id);
    let mut file = BufWriter::new(File::create(&name)?);
    serde_json::to_writer(&mut file, &trace).map_err(std::io::Error::from)?;
    file.flush()?;
    sink.log(
        Level::Info,
        "engine",
        format!(
            "Traced one execution: {} spans, {} dropped, {:.2} us with tracing on.",
            trace.spans.len(),
            trace.dropped,
            timing.wall.as_secs_f64() * 1e6
        ),
    )?;
    sink.progress(&task.id, "trace", 1, 1)?;
    Ok(Produced { name, media_type: "application/json".into() })
}

fn refused_or_failed(task: &CollectiveTask, error: ExecError) -> Stop {
    let message = format!("Task {}: {error}", task.id);
    match error {
        ExecError::Refused(_) | ExecError::Stalled { .. } => Stop::job(message),
        ExecError::Device { .. } => Stop::runner(message),
    }
}
