//! Executes one channel symbolically. No step chooses among several partners, so the order of execution changes neither the values nor
//! whether it stops; vector clocks tell which accesses could have come in another order on real hardware.

use std::collections::VecDeque;

use super::TILES;
use super::memory::{Memory, START};
use super::refusal::{At, Refusal, RefusalKind, Waiting, WaitingFor};
use super::value::{ValueId, Values};
use crate::plan::{Buffer, Place, Plan, Range, Step, operands};
use crate::types::{ChannelId, Rank};

#[derive(Debug)]
struct Process {
    tile: u32,
    step: u32,
    /// Chunk of the step's ranges that is next.
    part: u32,
    clock: Vec<u32>,
    /// Transfers that had to happen one after the other before this point.
    depth: u32,
}

/// What orders the receiver after the sender.
#[derive(Debug, Clone)]
struct Stamp {
    clock: Vec<u32>,
    depth: u32,
}

#[derive(Debug, Default)]
struct Connection {
    data: VecDeque<(ValueId, Stamp)>,
    signals: VecDeque<Stamp>,
}

/// What one try to go on came to.
enum Progress {
    Done,
    Blocked(WaitingFor),
}

pub struct Machine<'a> {
    plan: &'a Plan,
    /// Chunks that a connection holds.
    credits: usize,
    channel: ChannelId,
    pub values: Values,
    pub memory: Memory,
    processes: Vec<Process>,
    /// From rank * ranks + to rank.
    connections: Vec<Connection>,
    /// Depth at which a cell was written.
    depths: Vec<u32>,
    /// Longest chain of transfers of one tile.
    pub longest_chain: u32,
}

impl<'a> Machine<'a> {
    pub fn new(plan: &'a Plan, channel: ChannelId, in_place: bool, credits: u32) -> Machine<'a> {
        let mut values = Values::default();
        let memory = Memory::new(plan, TILES, in_place, &mut values);
        let ranks = plan.ranks as usize;
        let process = |rank: usize| {
            let mut clock = vec![0; ranks];
            clock[rank] = START;
            Process { tile: 0, step: 0, part: 0, clock, depth: 0 }
        };
        Machine {
            depths: vec![0; memory.cells.len()],
            plan,
            credits: credits as usize,
            channel,
            values,
            memory,
            processes: (0..ranks).map(process).collect(),
            connections: (0..ranks * ranks).map(|_| Connection::default()).collect(),
            longest_chain: 0,
        }
    }

    /// Runs all tiles. Ranks take turns, one chunk of one step each, so that the earliest mistake is found first.
    pub fn run(&mut self) -> Result<(), Refusal> {
        loop {
            let mut waits = vec![None; self.processes.len()];
            let (mut moved, mut running) = (false, false);
            for rank in 0..self.plan.ranks {
                if self.processes[rank as usize].tile == TILES {
                    continue;
                }
                running = true;
                match self.advance(rank)? {
                    Progress::Done => moved = true,
                    Progress::Blocked(on) => waits[rank as usize] = Some(on),
                }
            }
            if !running {
                return Ok(());
            }
            if !moved {
                return Err(self.deadlock(&waits));
            }
        }
    }

    fn at(&self, rank: u32) -> At {
        let process = &self.processes[rank as usize];
        At { rank: Rank(rank), channel: self.channel, step: process.step, tile: process.tile }
    }

    fn connection(&mut self, from: Rank, to: Rank) -> &mut Connection {
        &mut self.connections[from.index() * self.plan.ranks as usize + to.index()]
    }

    fn advance(&mut self, rank: u32) -> Result<Progress, Refusal> {
        let plan = self.plan;
        let steps = &plan.program(Rank(rank), self.channel).steps;
        let Some(step) = steps.get(self.processes[rank as usize].step as usize) else {
            self.next_tile(rank);
            return Ok(Progress::Done);
        };
        if let Some(on) = self.blocked(rank, step) {
            return Ok(Progress::Blocked(on));
        }
        let me = Rank(rank);
        self.processes[rank as usize].clock[rank as usize] += 1;
        match step {
            Step::Signal { to } => {
                let stamp = self.stamp(rank);
                self.connection(me, *to).signals.push_back(stamp);
            }
            Step::Wait { from } => {
                let stamp = self.connection(*from, me).signals.pop_front().expect("not blocked");
                self.join(rank, &stamp, 0);
            }
            _ => self.transfer(rank, step)?,
        }
        let process = &mut self.processes[rank as usize];
        process.part += 1;
        if process.part >= step.chunk_len() {
            process.part = 0;
            process.step += 1;
        }
        if process.step as usize == steps.len() {
            self.next_tile(rank);
        }
        Ok(Progress::Done)
    }

    fn next_tile(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        if process.tile == 0 {
            self.longest_chain = self.longest_chain.max(process.depth);
        }
        process.step = 0;
        process.tile += 1;
    }

    fn blocked(&mut self, rank: u32, step: &Step) -> Option<WaitingFor> {
        let me = Rank(rank);
        if let Step::Wait { from } = step {
            return self.connection(*from, me).signals.is_empty().then_some(WaitingFor::Signal(*from));
        }
        if matches!(step, Step::Signal { .. }) {
            return None;
        }
        if let Some(from) = step.from()
            && self.connection(from, me).data.is_empty()
        {
            return Some(WaitingFor::Data(from));
        }
        let (to, credits) = (step.to()?, self.credits);
        (self.connection(me, to).data.len() >= credits).then_some(WaitingFor::Slot(to))
    }

    fn stamp(&self, rank: u32) -> Stamp {
        let process = &self.processes[rank as usize];
        Stamp { clock: process.clock.clone(), depth: process.depth }
    }

    /// Everything before the stamp is now before this rank. `hop` 1: it took a transfer to get here.
    fn join(&mut self, rank: u32, stamp: &Stamp, hop: u32) {
        let process = &mut self.processes[rank as usize];
        for (mine, theirs) in process.clock.iter_mut().zip(&stamp.clock) {
            *mine = (*mine).max(*theirs);
        }
        process.depth = process.depth.max(stamp.depth + hop);
    }

    /// One chunk of a step that moves data.
    fn transfer(&mut self, rank: u32, step: &Step) -> Result<(), Refusal> {
        let (at, part) = (self.at(rank), self.processes[rank as usize].part);
        let (places, dst) = operands(step);
        if let Step::Copy { src: Place { rank: None, range }, dst } = step
            && self.cell(at, *range, part) == self.cell(at, *dst, part)
        {
            // In place, input onto output: nothing to do, and no executor touches the memory.
            self.read(at, places[0], part)?;
            return Ok(());
        }
        let mut values = Vec::with_capacity(places.len() + 1);
        if let Some(from) = step.from() {
            let (value, stamp) = self.connection(from, Rank(rank)).data.pop_front().expect("not blocked");
            self.join(rank, &stamp, 1);
            values.push(value);
        }
        for place in &places {
            values.push(self.read(at, *place, part)?);
        }
        let dst_shape = dst.and_then(|dst| self.shape(dst, part));
        let shapes = values.iter().map(|v| self.values.shape(*v)).chain(dst_shape);
        let shapes: Vec<u32> = shapes.collect();
        if let Some(other) = shapes.iter().find(|s| **s != shapes[0]) {
            return Err(Refusal::at(at, RefusalKind::MixedChunks { a: shapes[0], b: *other }));
        }
        let value = self.values.made(at, &values).map_err(|_| Refusal::too_large())?;
        if let Some(dst) = dst {
            self.write(at, dst, part, value)?;
        }
        if let Some(to) = step.to() {
            let stamp = self.stamp(rank);
            self.connection(Rank(rank), to).data.push_back((value, stamp));
        }
        Ok(())
    }

    fn cell(&self, at: At, range: Range, part: u32) -> usize {
        self.memory.index(at.rank.0, range.buffer, range.start + part, at.tile)
    }

    /// Which chunk of its block part `part` of a range is; scratch takes any.
    fn shape(&self, range: Range, part: u32) -> Option<u32> {
        match range.buffer {
            Buffer::Scratch(_) => None,
            _ => Some((range.start + part) % self.plan.chunks),
        }
    }

    fn read(&mut self, at: At, place: Place, part: u32) -> Result<ValueId, Refusal> {
        let owner = place.rank.unwrap_or(at.rank);
        let range = Range { start: place.range.start + part, len: 1, ..place.range };
        let index = self.memory.index(owner.0, range.buffer, range.start, at.tile);
        let cell = &mut self.memory.cells[index];
        if owner != at.rank {
            let process = &mut self.processes[at.rank.index()];
            if cell.written > process.clock[owner.index()] {
                let writer = cell.writer;
                return Err(Refusal::at(at, RefusalKind::ReadRace { owner, range, writer }));
            }
            cell.reads.retain(|(reader, _)| reader.rank != at.rank);
            cell.reads.push((at, process.clock[at.rank.index()]));
            process.depth = process.depth.max(self.depths[index] + 1);
        }
        cell.value.ok_or_else(|| Refusal::at(at, RefusalKind::ReadUnwritten { owner, range }))
    }

    fn write(&mut self, at: At, dst: Range, part: u32, value: ValueId) -> Result<(), Refusal> {
        let range = Range { start: dst.start + part, len: 1, ..dst };
        let index = self.memory.index(at.rank.0, range.buffer, range.start, at.tile);
        let cell = &mut self.memory.cells[index];
        let process = &self.processes[at.rank.index()];
        if let Some((reader, _)) = cell.reads.iter().find(|(r, time)| process.clock[r.rank.index()] < *time) {
            return Err(Refusal::at(at, RefusalKind::WriteRace { range, reader: *reader }));
        }
        cell.reads.clear();
        cell.value = Some(value);
        cell.written = process.clock[at.rank.index()];
        cell.writer = Some(at);
        self.depths[index] = process.depth;
        Ok(())
    }

    /// After the last step of a rank its caller may overwrite its buffers: all reads by peers must be known to be over.
    pub fn nobody_left_early(&self) -> Result<(), Refusal> {
        let stride = self.memory.cells.len() / self.plan.ranks as usize;
        for (cell, i) in self.memory.cells.iter().zip(0..).filter(|(cell, _)| cell.user) {
            let owner = i / stride;
            let clock = &self.processes[owner].clock;
            if let Some((reader, _)) = cell.reads.iter().find(|(r, time)| clock[r.rank.index()] < *time) {
                let owner = Rank(u32::try_from(owner).expect("at most 64 ranks"));
                return Err(Refusal::at(*reader, RefusalKind::LeftEarly { owner }));
            }
        }
        Ok(())
    }

    /// Every stopped rank waits for exactly one other, which is stopped too; following them leads into a cycle. Reports the shortest.
    fn deadlock(&self, waits: &[Option<WaitingFor>]) -> Refusal {
        let mut best: Option<Vec<Waiting>> = None;
        for start in 0..self.plan.ranks {
            let mut cycle = Vec::new();
            let mut rank = start;
            while let Some(on) = waits[rank as usize] {
                cycle.push(Waiting { at: self.at(rank), on });
                rank = on.peer().0;
                if rank == start || cycle.len() > waits.len() {
                    break;
                }
            }
            let closed = rank == start && !cycle.is_empty();
            if closed && best.as_ref().is_none_or(|best| cycle.len() < best.len()) {
                best = Some(cycle);
            }
        }
        let cycle =
            best.expect("sends and receives match, so a rank that stopped waits for one that stopped");
        Refusal::at(cycle[0].at, RefusalKind::Deadlock { cycle })
    }
}
