//! A thread's work in one run: it drives the programs that are its own in turns.
//!
//! There are no more threads than cores: a rank that waits costs a few loads, not a switch between threads, which is what makes four
//! ranks on two cores as quick as two.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::buffers::Buffers;
use super::connection::Connection;
use super::ops::Kernels;
use super::program::Program;
use super::task::{Advance, Task};
use super::wait::{Barrier, Padded, Stopped, Waiting};
use crate::exec::Stall;
use crate::exec::slices::Slices;
use crate::fifo::Fifo;

/// What all threads of a session share while they run.
pub struct Shared<L> {
    pub programs: Vec<Program>,
    pub links: Vec<L>,
    /// How chunks are cut into slices.
    pub fifo: Fifo,
    pub slot_bytes: usize,
    /// Elements of a channel's share of every chunk of every step, where the slots do not tell.
    pub lens: Slices,
    pub buffers: Buffers,
    pub kernels: Kernels,
    /// Number of ranks to divide by at the end, when the reduction is avg.
    pub average: Option<u32>,
    /// What each rank's input is multiplied by, when the reduction has factors.
    pub factors: Option<Vec<u64>>,
    /// Whether all tasks meet between executions: a plan orders direct accesses to peers' buffers within one execution only, while
    /// one that uses FIFOs alone is ordered by them.
    pub meets: bool,
    pub deadline: Duration,
    pub waiting: Waiting,
    pub barrier: Barrier,
    pub stalls: Mutex<Vec<Stall>>,
    /// The first step whose operands did not fit together.
    pub mismatch: Mutex<Option<(String, String)>>,
    /// By program.
    pub results: Vec<Mutex<ThreadResult>>,
    /// By thread: the program it drives, for when it panics.
    pub driven: Vec<Padded<AtomicUsize>>,
}

impl<L> Shared<L> {
    pub fn threads(&self) -> usize {
        self.driven.len()
    }

    /// Programs of a thread: neighbours together, since rings connect them.
    fn share(&self, thread: usize) -> Range<usize> {
        let (programs, threads) = (self.programs.len(), self.threads());
        (thread * programs).div_ceil(threads)..((thread + 1) * programs).div_ceil(threads)
    }

    fn thread_of(&self, program: usize) -> usize {
        program * self.threads() / self.programs.len()
    }

    /// Wakes the thread of program `peer` if it is seen asleep. A sleeper that is not seen is woken by [`Waiting::settle`], which the
    /// calling thread does when it stops moving: this way a message costs no fence.
    pub fn wake_soon(&self, program: usize, peer: usize) {
        let thread = self.thread_of(peer);
        if thread != self.thread_of(program) {
            self.waiting.wake_seen(thread);
        }
    }
}

/// What one program reports of a run.
#[derive(Debug, Default)]
pub struct ThreadResult {
    /// Payload bytes sent to or read from other ranks in the last iteration.
    pub moved: u64,
    /// Program 0 only: how long each iteration took from end to end.
    pub iterations: Vec<Duration>,
    pub records: Vec<Record>,
    pub dropped: u64,
}

/// A span before it is made readable. Times since the run's epoch.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    pub step: u32,
    pub tile: u64,
    pub bytes: u64,
    pub start: Duration,
    pub waited: Duration,
    pub end: Duration,
    /// Of a step that sends: what it put on the wire, and its waiting for credits alone.
    pub wire_bytes: u64,
    pub without_credit: Duration,
}

#[derive(Debug, Clone, Copy)]
pub struct RunJob {
    pub iters: u32,
    pub epoch: Instant,
    /// Most spans each program keeps; `None` traces nothing.
    pub trace: Option<usize>,
}

/// Runs the programs of thread `thread` `job.iters` times. A run that is stopped ends early; why is in [`Shared`].
pub fn run<L: Connection>(shared: &Shared<L>, thread: usize, job: &RunJob) {
    let mut tasks: Vec<Task<'_, L>> =
        shared.share(thread).map(|index| Task::new(shared, index, job)).collect();
    let ended = drive(shared, thread, job, &mut tasks);
    shared.waiting.settle();
    debug_assert!(ended.is_ok() || shared.waiting.stopped());
    if ended.is_err() {
        let mut stalls = shared.stalls.lock().expect("nothing panics while it holds the stalls");
        stalls.extend(tasks.iter().filter_map(Task::stall));
    }
    for task in tasks {
        let mut slot = shared.results[task.index].lock().expect("nothing panics while it holds a result");
        *slot = task.result;
    }
}

fn drive<L: Connection>(
    shared: &Shared<L>,
    thread: usize,
    job: &RunJob,
    tasks: &mut [Task<'_, L>],
) -> Result<(), Stopped> {
    loop {
        let (mut left, mut moved) = (false, false);
        for task in tasks.iter_mut().filter(|task| !task.finished()) {
            shared.driven[thread].0.store(task.index, Ordering::Relaxed);
            moved |= task.advance(job)? == Advance::Moved;
            left |= !task.finished();
        }
        if !left {
            return Ok(());
        }
        if moved {
            continue;
        }
        shared.waiting.until(
            thread,
            tasks,
            |tasks| tasks.iter().any(|t| !t.finished() && t.ready()).then_some(()),
            |tasks| {
                let open = tasks.iter_mut().filter(|task| !task.finished());
                open.map(Task::deadline).min().expect("a task is left")
            },
        )?;
    }
}
