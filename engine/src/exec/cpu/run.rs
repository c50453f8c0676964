//! One thread's execution of its program.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::buffers::{Buffers, Len};
use super::link::Link;
use super::memory::Window;
use super::ops::Kernels;
use super::program::{Action, Instr, Peer, Program};
use super::wait::{Barrier, Stopped, Waiting};
use crate::exec::{Stall, WaitKind};

/// What all threads of a session share while they run.
pub struct Shared {
    pub programs: Vec<Program>,
    pub links: Vec<Link>,
    pub buffers: Buffers,
    pub kernels: Kernels,
    /// Number of ranks to divide by at the end, when the reduction is avg.
    pub average: Option<u32>,
    pub deadline: Duration,
    pub waiting: Waiting,
    pub barrier: Barrier,
    pub stalls: Mutex<Vec<Stall>>,
    /// The first step whose operands did not fit together.
    pub mismatch: Mutex<Option<(String, String)>>,
    pub results: Vec<Mutex<ThreadResult>>,
}

/// What one thread reports of a run.
#[derive(Debug, Default)]
pub struct ThreadResult {
    /// Payload bytes sent to or read from other ranks in the last iteration.
    pub moved: u64,
    /// Thread 0 only: how long each iteration took from barrier to barrier.
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
}

#[derive(Debug, Clone, Copy)]
pub struct RunJob {
    pub iters: u32,
    pub epoch: Instant,
    /// Most spans each thread keeps; `None` traces nothing.
    pub trace: Option<usize>,
}

/// Runs thread `thread`'s program `job.iters` times. A run that is stopped ends early; why is in [`Shared`].
pub fn run(shared: &Shared, thread: usize, job: &RunJob) {
    let program = &shared.programs[thread];
    let mut thread_run = ThreadRun {
        shared,
        thread,
        program,
        deadline: job.epoch,
        tile: 0,
        step: 0,
        waited: Duration::ZERO,
        timed: job.trace.is_some(),
        result: ThreadResult::default(),
        srcs: Vec::new(),
        dsts: Vec::new(),
    };
    if let Some(most) = job.trace {
        thread_run.result.records.reserve_exact(most);
    }
    let ended = thread_run.iterations(job);
    debug_assert!(ended.is_ok() || shared.waiting.stopped());
    let mut slot = shared.results[thread].lock().expect("nothing panics while it holds a result");
    *slot = thread_run.result;
}

struct ThreadRun<'a> {
    shared: &'a Shared,
    thread: usize,
    program: &'a Program,
    deadline: Instant,
    tile: u64,
    step: u32,
    /// Time the current step has waited.
    waited: Duration,
    timed: bool,
    result: ThreadResult,
    srcs: Vec<Window<'a>>,
    dsts: Vec<Window<'a>>,
}

impl<'a> ThreadRun<'a> {
    fn iterations(&mut self, job: &RunJob) -> Result<(), Stopped> {
        let Shared { barrier, waiting, buffers, .. } = self.shared;
        let mut round = 0;
        let mut started = job.epoch;
        for _ in 0..job.iters {
            self.deadline = started + self.shared.deadline;
            self.result.moved = 0;
            for tile in 0..buffers.layout.tiles() {
                self.tile = tile;
                self.tile(job)?;
            }
            if let Some(ranks) = self.shared.average {
                // Peers may read this output directly until their programs end.
                round += 1;
                barrier.meet(waiting, self.thread, self.deadline, round)?;
                for tile in buffers.output_tiles(self.program.rank, self.program.channel.0) {
                    (self.shared.kernels.divide)(tile, ranks);
                }
            }
            // The next execution may overwrite what a peer still reads in this one: a plan orders its own steps only.
            round += 1;
            barrier.meet(waiting, self.thread, self.deadline, round)?;
            let now = Instant::now();
            if self.thread == 0 {
                self.result.iterations.push(now - started);
            }
            started = now;
        }
        Ok(())
    }

    fn tile(&mut self, job: &RunJob) -> Result<(), Stopped> {
        // A program that never waits has to end at the deadline as well.
        if self.shared.waiting.stopped() || Instant::now() >= self.deadline {
            self.shared.waiting.stop();
            return Err(Stopped);
        }
        let program = self.program;
        for (step, instr) in program.steps.iter().enumerate() {
            self.step = step as u32;
            let Some(most) = job.trace else {
                self.instr(instr)?;
                continue;
            };
            let start = job.epoch.elapsed();
            self.waited = Duration::ZERO;
            let bytes = self.instr(instr)?;
            let end = job.epoch.elapsed();
            if self.result.records.len() < most {
                let (step, tile, waited) = (self.step, self.tile, self.waited);
                self.result.records.push(Record { step, tile, bytes, start, waited, end });
            } else {
                self.result.dropped += 1;
            }
        }
        Ok(())
    }

    /// Returns the payload bytes the step worked on.
    fn instr(&mut self, instr: &Instr) -> Result<u64, Stopped> {
        match (instr.action, instr.from, instr.to) {
            (Action::Signal, _, Some(to)) => {
                self.shared.links[to.link].signal();
                self.shared.waiting.wake(to.thread);
                Ok(0)
            }
            (Action::Wait, Some(from), _) => {
                let link = &self.shared.links[from.link];
                self.wait(from, WaitKind::Signal, || link.try_wait().then_some(()))?;
                Ok(0)
            }
            (Action::Signal | Action::Wait, ..) => {
                unreachable!("`compile` gives every signal and wait its peer")
            }
            (Action::Move | Action::Fold, ..) => {
                let mut bytes = 0;
                for nth in 0..instr.len {
                    bytes += self.chunk(instr, nth)?;
                }
                Ok(bytes)
            }
        }
    }

    /// One chunk's tile of a data step: everything it needs is waited for first, then it moves, then slots change hands.
    fn chunk(&mut self, instr: &Instr, nth: u32) -> Result<u64, Stopped> {
        let shared = self.shared;
        let channel = self.program.channel.0;
        // The vectors live in `self` so that a step allocates nothing.
        let mut srcs = std::mem::take(&mut self.srcs);
        let mut dsts = std::mem::take(&mut self.dsts);
        srcs.clear();
        dsts.clear();
        let mut agreed = Agreed::default();

        if let Some(from) = instr.from {
            let link = &shared.links[from.link];
            let (window, len) = self.wait(from, WaitKind::Data, || link.try_peek())?;
            srcs.push(window);
            agreed.on(len);
        }
        let mut read_from_peers = 0;
        for &src in &instr.srcs {
            let tile = shared.buffers.tile(src, nth, channel, self.tile);
            agreed.on(tile.read_len());
            srcs.push(tile.window);
            read_from_peers += u64::from(src.rank != self.program.rank.index());
        }
        if let Some(dst) = instr.dst {
            let tile = shared.buffers.tile(dst, nth, channel, self.tile);
            match tile.len {
                Len::Fixed(len) => agreed.on(len),
                // Only now is the length known, as every data step has an operand.
                Len::Scratch(cell) => cell.store(agreed.elems.unwrap_or(0), Ordering::Relaxed),
            }
            dsts.push(tile.window);
        }
        if let Some(to) = instr.to {
            let link = &shared.links[to.link];
            dsts.push(self.wait(to, WaitKind::Credit, || link.try_reserve())?);
        }
        let elems = agreed.elems.unwrap_or(0);
        if let Some(other) = agreed.other {
            return Err(self.mismatch(instr, elems, other));
        }

        let bytes = elems as usize * shared.buffers.elem_size;
        cut(&mut srcs, bytes);
        cut(&mut dsts, bytes);
        match instr.action {
            Action::Fold => (shared.kernels.fold)(&mut dsts, &srcs),
            _ => dsts.iter().for_each(|&dst| srcs[0].copy_to(dst)),
        }

        if let Some(from) = instr.from {
            shared.links[from.link].free();
            shared.waiting.wake(from.thread);
        }
        let mut moved = read_from_peers;
        if let Some(to) = instr.to {
            shared.links[to.link].post(elems);
            shared.waiting.wake(to.thread);
            moved += u64::from(to.rank != self.program.rank);
        }
        self.result.moved += moved * bytes as u64;
        (self.srcs, self.dsts) = (srcs, dsts);
        Ok(bytes as u64)
    }

    fn wait<T>(
        &mut self,
        peer: Peer,
        kind: WaitKind,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Result<T, Stopped> {
        if let Some(got) = attempt() {
            return Ok(got);
        }
        let start = self.timed.then(Instant::now);
        let got = self.shared.waiting.until(self.thread, self.deadline, attempt);
        if let Some(start) = start {
            self.waited += start.elapsed();
        }
        got.inspect_err(|_| {
            let link = &self.shared.links[peer.link];
            let (head, tail) = match kind {
                WaitKind::Signal => link.signal_counters(),
                WaitKind::Data | WaitKind::Credit => link.counters(),
            };
            let mut stalls = self.shared.stalls.lock().expect("nothing panics while it holds the stalls");
            stalls.push(Stall {
                rank: self.program.rank,
                channel: self.program.channel,
                peer: peer.rank,
                step: self.step,
                tile: self.tile,
                waiting_for: kind,
                head,
                tail,
            });
        })
    }

    /// Stops the run because operands of one step have different lengths: a plan that was not verified moves between unequal chunks.
    fn mismatch(&self, instr: &Instr, elems: u64, other: u64) -> Stopped {
        let (rank, channel) = (self.program.rank, self.program.channel);
        let context =
            format!("rank {rank} channel {channel} step {} ({}) tile {}", self.step, instr.name, self.tile);
        let message = format!(
            "its operands have {elems} and {other} elements at this block size; a step works on the same chunk of every buffer"
        );
        let mut first = self.shared.mismatch.lock().expect("nothing panics while it holds the mismatch");
        first.get_or_insert((context, message));
        self.shared.waiting.stop();
        Stopped
    }
}

/// Elements of the operands of one chunk's tile: all the same in a verified plan.
#[derive(Default)]
struct Agreed {
    elems: Option<u64>,
    /// The length of an operand that disagrees.
    other: Option<u64>,
}

impl Agreed {
    fn on(&mut self, len: u64) {
        if *self.elems.get_or_insert(len) != len {
            self.other = Some(len);
        }
    }
}

fn cut(windows: &mut [Window<'_>], bytes: usize) {
    for window in windows {
        *window = window.first(bytes);
    }
}
