//! One program's progress. It never waits: where it cannot go on it says what for, so that one thread can drive several programs.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::buffers::Len;
use super::connection::Connection;
use super::memory::Window;
use super::ops::Factor;
use super::program::{Action, Instr, Operand, Peer, Program};
use super::run::{RunJob, Shared, ThreadResult};
use super::traced::Traced;
use super::wait::Stopped;
use crate::exec::{Stall, WaitKind};
use crate::plan::Buffer;

/// Bytes after which a task lets the others of its thread go on: what one has sent the next should find in the cache.
const QUANTUM: u64 = 64 << 10;

pub struct Task<'a, L> {
    shared: &'a Shared<L>,
    /// Of `shared.programs`.
    pub index: usize,
    program: &'a Program,
    iteration: u32,
    tile: u64,
    step: usize,
    /// Chunk of the step.
    nth: u32,
    /// Slice of the chunk.
    slice: u32,
    stage: Stage,
    /// Meetings of all tasks this one has come to.
    meetings: u64,
    /// Start of this execution, as far as it was needed.
    started: Option<Instant>,
    blocked: Option<Blocked>,
    traced: Option<Traced>,
    pub result: ThreadResult,
    srcs: Vec<Window<'a>>,
    dsts: Vec<Window<'a>>,
    factors: Vec<Factor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its input multiplied where it lies, before the program.
    Multiplied,
    /// Inside the program.
    Steps,
    /// Before avg's division.
    Divide,
    /// Before the next execution.
    End,
    Finished,
}

#[derive(Debug, Clone, Copy)]
enum Blocked {
    On(Peer, WaitKind),
    /// For all tasks to come to the meeting.
    Meeting,
}

/// How far [`Task::advance`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// It stands where it stood.
    Blocked,
    Moved,
}

impl<'a, L: Connection> Task<'a, L> {
    pub fn new(shared: &'a Shared<L>, index: usize, job: &RunJob) -> Task<'a, L> {
        let mut result = ThreadResult::default();
        if let Some(most) = job.trace {
            result.records.reserve_exact(most);
        }
        let mut task = Task {
            shared,
            index,
            program: &shared.programs[index],
            iteration: 0,
            tile: 0,
            step: 0,
            nth: 0,
            slice: 0,
            stage: if job.iters == 0 { Stage::Finished } else { Stage::Steps },
            meetings: 0,
            started: (index == 0).then_some(job.epoch),
            blocked: None,
            traced: job.trace.map(|_| Traced::default()),
            result,
            srcs: Vec::new(),
            dsts: Vec::new(),
            factors: Vec::new(),
        };
        if task.stage == Stage::Steps {
            task.begin();
        }
        task
    }

    pub fn finished(&self) -> bool {
        self.stage == Stage::Finished
    }

    /// When this execution has to be over. The clock of all but the first task starts at the first call: reading it costs as much as a
    /// small message.
    pub fn deadline(&mut self) -> Instant {
        *self.started.get_or_insert_with(Instant::now) + self.shared.deadline
    }

    /// Whether what the task was blocked on is there.
    pub fn ready(&self) -> bool {
        match self.blocked {
            None => true,
            Some(Blocked::Meeting) => self.shared.barrier.reached(self.meetings),
            Some(Blocked::On(peer, kind)) => {
                let link = self.link(peer);
                match kind {
                    WaitKind::Data => link.has_data(self.awaited()),
                    WaitKind::Credit => link.has_room(),
                    WaitKind::Signal => link.signals().any(),
                }
            }
        }
    }

    fn link(&self, peer: Peer) -> &'a L {
        &self.shared.links[peer.link]
    }

    /// Bytes of the slice that the current step receives next. For connections that do not tell it.
    fn awaited(&self) -> usize {
        if L::TELLS_LENGTH { 0 } else { self.part_of(self.expected()).len() }
    }

    /// Elements of the current chunk's tile as the layout has them.
    fn expected(&self) -> u64 {
        let share = self.shared.lens[self.index][self.step][self.nth as usize];
        self.shared.buffers.layout.of_share(share, self.tile)
    }

    /// Where the current slice lies in a tile of so many elements, in bytes.
    fn part_of(&self, elems: u64) -> Range<usize> {
        let Shared { fifo, slot_bytes, buffers, .. } = self.shared;
        let part = fifo.slice_of(*slot_bytes, elems * buffers.elem_size as u64, self.slice);
        part.start as usize..part.end as usize
    }

    /// Goes on until it is blocked, has moved [`QUANTUM`] bytes, or is finished.
    pub fn advance(&mut self, job: &RunJob) -> Result<Advance, Stopped> {
        let mut advance = Advance::Blocked;
        let mut bytes = 0;
        self.blocked = None;
        while self.stage != Stage::Finished && bytes < QUANTUM {
            let done = match self.stage {
                Stage::Steps => self.chunk_or_step(job)?,
                Stage::Multiplied | Stage::Divide | Stage::End => self.leave_meeting(job)?,
                Stage::Finished => break,
            };
            match done {
                Some(moved) => bytes += moved,
                None => break,
            }
            advance = Advance::Moved;
        }
        Ok(advance)
    }

    /// `None` when blocked, else the payload bytes worked on.
    fn chunk_or_step(&mut self, job: &RunJob) -> Result<Option<u64>, Stopped> {
        let program = self.program;
        let Some(instr) = program.steps.get(self.step) else {
            self.leave_tile()?;
            return Ok(Some(0));
        };
        if let Some(traced) = &mut self.traced {
            traced.tried(job.epoch.elapsed());
        }
        let done = self.attempt(instr)?;
        match (&mut self.traced, done) {
            (Some(traced), None) => {
                let for_credit = matches!(self.blocked, Some(Blocked::On(_, WaitKind::Credit)));
                traced.blocked(job.epoch.elapsed(), for_credit);
            }
            (Some(traced), Some(bytes)) => traced.moved(bytes),
            (None, _) => {}
        }
        if done.is_some() && self.was_last_slice(instr) {
            self.nth += 1;
            if self.nth >= instr.len {
                self.record(job);
                (self.step, self.nth) = (self.step + 1, 0);
            }
        }
        Ok(done)
    }

    /// Whether what was done is all of the chunk; if not, the next slice is to come.
    fn was_last_slice(&mut self, instr: &Instr) -> bool {
        if !L::SLICED || !instr.moves_data() || (instr.from.is_none() && instr.to.is_none()) {
            return true;
        }
        self.slice += 1;
        let last = self.slice == self.shared.fifo.slices();
        if last {
            self.slice = 0;
        }
        last
    }

    fn record(&mut self, job: &RunJob) {
        let (Some(traced), Some(most)) = (&mut self.traced, job.trace) else { return };
        let record = traced.finish(self.step as u32, self.tile, job.epoch.elapsed());
        if self.result.records.len() < most {
            self.result.records.push(record);
        } else {
            self.result.dropped += 1;
        }
    }

    fn leave_tile(&mut self) -> Result<(), Stopped> {
        (self.tile, self.step) = (self.tile + 1, 0);
        let more = self.tile < self.shared.buffers.layout.tiles();
        // A program that never waits has to end at the deadline as well.
        if self.shared.waiting.stopped() || (more && Instant::now() >= self.deadline()) {
            self.shared.waiting.stop();
            return Err(Stopped);
        }
        if !more {
            self.leave_program();
        }
        Ok(())
    }

    /// Starts an execution.
    fn begin(&mut self) {
        let Shared { buffers, factors, kernels, .. } = self.shared;
        (self.tile, self.stage) = (0, Stage::Steps);
        if buffers.layout.tiles() == 0 {
            self.leave_program();
        } else if let Some(factors) = factors
            && buffers.in_place()
        {
            // A plan for shared memory may take its input for its output: no read tells whether it is of either.
            let rank = self.program.rank;
            for tile in buffers.input_tiles(rank, self.program.channel.0) {
                (kernels.scale)(tile, factors[rank.index()]);
            }
            // Peers may read this input directly.
            self.stage = Stage::Multiplied;
            self.come_to_meeting();
        }
    }

    fn leave_program(&mut self) {
        self.stage = if self.shared.average.is_some() { Stage::Divide } else { Stage::End };
        self.come_to_meeting();
    }

    fn come_to_meeting(&mut self) {
        if self.shared.meets {
            self.meetings += 1;
            if self.shared.barrier.arrive(self.meetings) {
                self.shared.waiting.wake_all();
            }
        }
    }

    fn leave_meeting(&mut self, job: &RunJob) -> Result<Option<u64>, Stopped> {
        if self.shared.meets && !self.shared.barrier.reached(self.meetings) {
            self.blocked = Some(Blocked::Meeting);
            return Ok(None);
        }
        if self.stage == Stage::Multiplied {
            self.stage = Stage::Steps;
            return Ok(Some(0));
        }
        let Shared { buffers, average, .. } = self.shared;
        if let (Stage::Divide, Some(ranks)) = (self.stage, *average) {
            for tile in buffers.output_tiles(self.program.rank, self.program.channel.0) {
                (self.shared.kernels.divide)(tile, ranks);
            }
            self.stage = Stage::End;
            self.come_to_meeting();
            return Ok(Some(0));
        }
        if self.index == 0 {
            let (now, deadline) = (Instant::now(), self.deadline());
            self.result.iterations.push(now - self.started.replace(now).unwrap_or(now));
            if now >= deadline {
                self.shared.waiting.stop();
                return Err(Stopped);
            }
        } else {
            self.started = None;
        }
        self.iteration += 1;
        if self.iteration == job.iters {
            self.stage = Stage::Finished;
            return Ok(Some(0));
        }
        self.result.moved = 0;
        self.begin();
        Ok(Some(0))
    }

    /// One slice of a chunk of a data step, or a whole step of another kind; `None` when blocked, with nothing changed.
    fn attempt(&mut self, instr: &'a Instr) -> Result<Option<u64>, Stopped> {
        match (instr.action, instr.from, instr.to) {
            (Action::Signal, _, Some(to)) => {
                self.link(to).signals().give();
                self.shared.wake_soon(self.index, to.thread);
                Ok(Some(0))
            }
            (Action::Wait, Some(from), _) if self.link(from).signals().try_take() => Ok(Some(0)),
            (Action::Wait, Some(from), _) => Ok(self.block(from, WaitKind::Signal)),
            (Action::Signal | Action::Wait, ..) => {
                unreachable!("`compile` gives every signal and wait its peer")
            }
            (Action::Move | Action::Fold, ..) => self.chunk(instr),
        }
    }

    fn block<T>(&mut self, peer: Peer, kind: WaitKind) -> Option<T> {
        self.blocked = Some(Blocked::On(peer, kind));
        None
    }

    /// One chunk's tile of a data step, or the next slice of it: everything it needs has to be there first, then it moves, then slots
    /// change hands.
    fn chunk(&mut self, instr: &Instr) -> Result<Option<u64>, Stopped> {
        let shared = self.shared;
        let channel = self.program.channel.0;
        let mut agreed = Agreed::default();
        // The vectors live in `self` so that a step allocates nothing.
        self.srcs.clear();
        self.dsts.clear();
        if let Some(from) = instr.from {
            let Some((window, len)) = self.link(from).try_peek(self.awaited()) else {
                return Ok(self.block(from, WaitKind::Data));
            };
            self.srcs.push(window);
            agreed.on(if L::TELLS_LENGTH { len } else { self.expected() });
        }
        let slot = match instr.to {
            None => None,
            Some(to) => match self.link(to).try_reserve() {
                None => return Ok(self.block(to, WaitKind::Credit)),
                reserved => reserved,
            },
        };
        let mut read_from_peers = 0;
        for &src in &instr.srcs {
            let tile = shared.buffers.tile(src, self.nth, channel, self.tile);
            agreed.on(tile.read_len());
            self.srcs.push(tile.window);
            read_from_peers += u64::from(src.rank != self.program.rank.index());
        }
        if let Some(dst) = instr.dst {
            let tile = shared.buffers.tile(dst, self.nth, channel, self.tile);
            match tile.len {
                Len::Fixed(len) => agreed.on(len),
                // Only now is the length known, as every data step has an operand.
                Len::Scratch(cell) => cell.store(agreed.elems.unwrap_or(0), Ordering::Relaxed),
            }
            self.dsts.push(tile.window);
        }
        self.dsts.extend(slot);
        let elems = agreed.elems.unwrap_or(0);
        if let Some(other) = agreed.other {
            return Err(self.mismatch(instr, elems, other));
        }

        let bytes = if L::SLICED && (instr.from.is_some() || instr.to.is_some()) {
            self.cut_slice(instr, elems)
        } else {
            let bytes = elems as usize * shared.buffers.elem_size;
            cut(&mut self.srcs, 0..bytes);
            cut(&mut self.dsts, 0..bytes);
            bytes
        };
        match instr.action {
            _ if self.scaled(instr) => {
                (shared.kernels.fold_scaled)(&mut self.dsts, &self.srcs, &self.factors);
            }
            Action::Fold => (shared.kernels.fold)(&mut self.dsts, &self.srcs),
            _ => self.dsts.iter().for_each(|&dst| self.srcs[0].copy_to(dst)),
        }

        if let Some(from) = instr.from {
            self.link(from).free();
            shared.wake_soon(self.index, from.thread);
        }
        let mut moved = read_from_peers;
        if let Some(to) = instr.to {
            self.link(to).post(bytes, elems);
            shared.wake_soon(self.index, to.thread);
            moved += u64::from(to.rank != self.program.rank);
            if let Some(traced) = &mut self.traced {
                traced.sent(shared.fifo.protocol.slice_wire_bytes(bytes as u64));
            }
        }
        self.result.moved += moved * bytes as u64;
        Ok(Some(bytes as u64))
    }

    /// Leaves of every operand what the current slice is of a tile of `elems` elements, and says how many bytes that are. A received or
    /// reserved slot holds the slice alone: the first source, and the last destination.
    fn cut_slice(&mut self, instr: &Instr, elems: u64) -> usize {
        let part = self.part_of(elems);
        let (bytes, own_dsts) = (part.len(), usize::from(instr.dst.is_some()));
        let (received, srcs) = self.srcs.split_at_mut(usize::from(instr.from.is_some()));
        let (dsts, reserved) = self.dsts.split_at_mut(own_dsts);
        cut(received, 0..bytes);
        cut(reserved, 0..bytes);
        cut(srcs, part.clone());
        cut(dsts, part);
        bytes
    }

    /// Whether a source has to be multiplied on its way: if so, `self.factors` says by what.
    fn scaled(&mut self, instr: &Instr) -> bool {
        let Some(by_rank) = self.shared.factors.as_ref().filter(|_| !self.shared.buffers.in_place()) else {
            return false;
        };
        self.factors.clear();
        self.factors.extend(instr.from.map(|_| None));
        let of = |src: &Operand| (src.buffer == Buffer::Input).then(|| by_rank[src.rank]);
        self.factors.extend(instr.srcs.iter().map(of));
        self.factors.iter().any(Option::is_some)
    }

    /// What the task waits for, when the run was stopped meanwhile.
    pub fn stall(&self) -> Option<Stall> {
        let Some(Blocked::On(peer, waiting_for)) = self.blocked else { return None };
        let link = self.link(peer);
        let (head, tail) = match waiting_for {
            WaitKind::Signal => link.signals().counters(),
            WaitKind::Data | WaitKind::Credit => link.counters(),
        };
        Some(Stall {
            rank: self.program.rank,
            channel: self.program.channel,
            peer: peer.rank,
            step: self.step as u32,
            tile: self.tile,
            waiting_for,
            head,
            tail,
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

fn cut(windows: &mut [Window<'_>], part: Range<usize>) {
    for window in windows {
        *window = window.part(part.start, part.len());
    }
}
