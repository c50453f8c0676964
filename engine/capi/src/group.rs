//! `ncclGroupStart` and `ncclGroupEnd`: calls of one thread collected and carried out together. Communicators that form, split, finalise
//! or leave in one group do so at the same time, each in a thread of its own, since they wait for each other; then every
//! communicator's operations are queued as one list.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ringlab_engine::comm::Operation;

use crate::abi::{CudaStream, IN_PROGRESS, NcclComm, NcclResult, SUCCESS};
use crate::comms::Comm;
use crate::cuda;
use crate::engine::{self, Share};
use crate::fault::{Fault, from_panic};

/// Something that waits for other ranks.
pub struct Job {
    pub comm: Arc<Comm>,
    pub run: Box<dyn FnOnce() -> Result<(), Fault> + Send>,
    /// Where the caller keeps the handle of a communicator that is to form; set to null when it does not.
    pub slot: Option<Slot>,
    /// Goes on after the call has answered "in progress".
    pub background: bool,
}

/// A place of the caller's for a handle, valid until the group ends.
pub struct Slot(pub *mut NcclComm);

impl Slot {
    pub fn set(&self, handle: NcclComm) {
        // SAFETY: checked not to be null by whoever made it; the interface wants it valid until the group ends, and only the caller's
        // thread comes here.
        unsafe { self.0.write(handle) };
    }
}

/// One communicator's operations of a group.
#[derive(Debug)]
struct Work {
    comm: Arc<Comm>,
    ops: Vec<Operation>,
    /// In the order of their first use; the first carries the operations.
    streams: Vec<CudaStream>,
}

#[derive(Default)]
struct Group {
    depth: u32,
    fault: Option<Fault>,
    jobs: Vec<Job>,
    work: Vec<Work>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

pub fn start() {
    GROUP.with_borrow_mut(|group| group.depth += 1);
}

/// Whether this thread is within a group.
pub fn is_open() -> bool {
    GROUP.with_borrow(|group| group.depth > 0)
}

/// A call within a group failed: so does the group.
pub fn spoil(fault: &Fault) {
    GROUP.with_borrow_mut(|group| {
        if group.depth > 0 && group.fault.is_none() {
            group.fault = Some(fault.clone());
        }
    });
}

pub fn add_job(job: Job) {
    GROUP.with_borrow_mut(|group| group.jobs.push(job));
}

pub fn add_operation(comm: &Arc<Comm>, operation: Operation, stream: CudaStream) {
    GROUP.with_borrow_mut(|group| {
        let at = group.work.iter().position(|work| Arc::ptr_eq(&work.comm, comm));
        let at = at.unwrap_or_else(|| {
            group.work.push(Work { comm: comm.clone(), ops: vec![], streams: vec![] });
            group.work.len() - 1
        });
        let work = &mut group.work[at];
        work.ops.push(operation);
        if !work.streams.contains(&stream) {
            work.streams.push(stream);
        }
    });
}

/// # Errors
/// The first fault of a call within the group, in which case nothing of it is done, or of carrying it out.
pub fn end() -> Result<NcclResult, Fault> {
    match close()? {
        None => Ok(SUCCESS),
        Some(group) => carry_out(group.jobs, group.work),
    }
}

/// Ends a group without carrying anything out; communicators that were to form in it do not. Microseconds that its operations would take,
/// after the outermost group.
///
/// # Errors
/// As [`end`], or when an operation's time is not known.
pub fn simulate() -> Result<Option<f64>, Fault> {
    let Some(group) = close()? else { return Ok(None) };
    abandon(group.jobs, &Fault::usage("the group was only simulated"));
    // A communicator's operations follow each other; different communicators' run at the same time, as far as the device has room.
    let mut longest = 0.0_f64;
    for work in group.work {
        let line = work.comm.line()?;
        let times = work.ops.iter().map(|op| line.predicted_us(op)).collect::<Result<Vec<f64>, _>>();
        let times = times.map_err(Fault::from).inspect_err(|fault| work.comm.note(fault))?;
        longest = longest.max(times.iter().sum());
    }
    Ok(Some(longest))
}

/// The outermost group, ready to be carried out.
fn close() -> Result<Option<Group>, Fault> {
    let group = GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            return Err(Fault::usage("no group is open in this thread; call ncclGroupStart first"));
        }
        group.depth -= 1;
        Ok((group.depth == 0).then(|| std::mem::take(group)))
    })?;
    match group {
        Some(Group { fault: Some(fault), jobs, .. }) => {
            abandon(jobs, &fault);
            Err(fault)
        }
        group => Ok(group),
    }
}

fn abandon(jobs: Vec<Job>, fault: &Fault) {
    for job in jobs {
        if let Some(slot) = job.slot {
            slot.set(std::ptr::null_mut());
            job.comm.formed(Err(fault.clone()));
            // Its handle was given to nobody who could keep it.
            let _ = job.comm.remove();
        }
    }
}

fn carry_out(jobs: Vec<Job>, work: Vec<Work>) -> Result<NcclResult, Fault> {
    let background = jobs.iter().any(|job| job.background);
    if background {
        in_background(jobs)?;
        // Operations of a communicator that forms in this very group were refused as they were called.
        queue(work)?;
        return Ok(IN_PROGRESS);
    }
    together(jobs)?;
    queue(work)?;
    Ok(SUCCESS)
}

fn together(jobs: Vec<Job>) -> Result<(), Fault> {
    let mut slots = Vec::with_capacity(jobs.len());
    let mut runs = Vec::with_capacity(jobs.len());
    for job in jobs {
        slots.push((job.comm, job.slot));
        runs.push(job.run);
    }
    let outcomes: Vec<Result<(), Fault>> = if runs.len() == 1 {
        runs.into_iter().map(|run| run()).collect()
    } else {
        std::thread::scope(|scope| {
            let threads: Vec<_> = runs.into_iter().map(|run| scope.spawn(run)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| Err(from_panic(panic.as_ref()))))
                .collect()
        })
    };
    let mut first = Ok(());
    for ((comm, slot), outcome) in slots.into_iter().zip(outcomes) {
        if let (Err(fault), Some(slot)) = (&outcome, &slot) {
            slot.set(std::ptr::null_mut());
            let _ = comm.remove();
            comm.note(fault);
        }
        first = first.and(outcome);
    }
    first
}

/// The communicators tell their state through `ncclCommGetAsyncError`.
fn in_background(jobs: Vec<Job>) -> Result<(), Fault> {
    for job in jobs {
        let comm = job.comm.clone();
        let run = job.run;
        std::thread::Builder::new()
            .name("ringlab-group".into())
            .spawn(move || {
                let outcome = catch_unwind(AssertUnwindSafe(run));
                if let Err(panic) = outcome {
                    job.comm.broke(from_panic(panic.as_ref()));
                }
            })
            .map_err(|why| {
                let fault =
                    Fault { code: crate::abi::SYSTEM_ERROR, text: format!("cannot start a thread: {why}") };
                comm.formed(Err(fault.clone()));
                fault
            })?;
    }
    Ok(())
}

/// Queues the operations of all communicators of the group; none of them waits for another before all are queued.
fn queue(work: Vec<Work>) -> Result<(), Fault> {
    let mut ready = Vec::with_capacity(work.len());
    for work in &work {
        ready.push((work, work.comm.line().inspect_err(|fault| work.comm.note(fault))?));
    }
    // Sends and receives of a rank must be able to wait for each other, so all go to one stream that the others join.
    let mut joined = Vec::new();
    for (work, line) in &ready {
        let (first, others) = work.streams.split_first().expect("an operation brings its stream");
        if !others.is_empty() {
            let begun = cuda::Joined::begin(line.device(), *first, others);
            joined.push((work, begun.inspect_err(|fault| work.comm.note(fault))?));
        }
    }
    let mut shares = Vec::with_capacity(ready.len());
    for (work, line) in &ready {
        shares.push(Share { line: line.as_ref(), ops: &work.ops, stream: work.streams[0] });
    }
    engine::enqueue_group(&shares).map_err(|(nth, error)| {
        let fault = Fault::from(error);
        work[nth].comm.note(&fault);
        fault
    })?;
    joined.into_iter().try_for_each(|(work, joined)| joined.end().inspect_err(|fault| work.comm.note(fault)))
}

#[cfg(test)]
mod tests;
