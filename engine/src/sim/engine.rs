//! The event loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{MAX_SPANS, SimError};
use crate::cost::SimModel;
use crate::plan::layout::Layout;
use crate::plan::{Buffer, Plan, Program, Range, SLOTS, Step, operands};
use crate::trace::Span;
use crate::types::Rank;

/// Picoseconds since the start.
type Time = u64;

struct Worker<'a> {
    program: &'a Program,
    tile: u64,
    step: usize,
    /// Chunk of the step that is next.
    part: u32,
    /// Of the step: when it was reached, how long it has waited, what it has moved.
    started: Time,
    waited: Time,
    bytes: u64,
    /// When the worker came to the current part.
    arrived: Time,
}

/// One direction of one pair on one channel. Entries are the times at which they can be seen.
#[derive(Default)]
struct Connection {
    data: VecDeque<Time>,
    credits: VecDeque<Time>,
    signals: VecDeque<Time>,
    /// Workers to look again when something arrives.
    reader: Option<usize>,
    writer: Option<usize>,
}

pub struct Engine<'a> {
    plan: &'a Plan,
    layout: Layout,
    size: u64,
    alpha: Time,
    step: Time,
    link: f64,
    injection: f64,
    local: f64,
    workers: Vec<Worker<'a>>,
    /// (channel * ranks + from) * ranks + to.
    connections: Vec<Connection>,
    /// When each rank's ways out and in, and each link, are free again.
    out: Vec<Time>,
    into: Vec<Time>,
    links: Vec<Time>,
    events: BinaryHeap<Reverse<(Time, usize)>>,
    pub spans: Vec<Span>,
    pub dropped: u64,
    pub traffic: Vec<u64>,
}

/// Rounded to whole picoseconds.
fn picos(ns: f64) -> Time {
    (ns * 1000.0).round() as Time
}

impl<'a> Engine<'a> {
    pub fn new(plan: &'a Plan, model: &SimModel, layout: Layout, size: u64) -> Engine<'a> {
        let ranks = plan.ranks as usize;
        let connection = || Connection { credits: vec![0; SLOTS as usize].into(), ..Connection::default() };
        let worker = |program| Worker {
            program,
            tile: 0,
            step: 0,
            part: 0,
            started: 0,
            waited: 0,
            bytes: 0,
            arrived: 0,
        };
        Engine {
            plan,
            layout,
            size,
            alpha: picos(model.alpha_ns),
            step: picos(model.step_ns),
            link: model.link_gbps,
            injection: model.injection_gbps,
            local: model.local_gbps,
            workers: plan.programs.iter().map(worker).collect(),
            connections: (0..ranks * ranks * plan.channels as usize).map(|_| connection()).collect(),
            out: vec![0; ranks],
            into: vec![0; ranks],
            links: vec![0; ranks * ranks],
            events: BinaryHeap::new(),
            spans: Vec::new(),
            dropped: 0,
            traffic: vec![0; ranks * ranks],
        }
    }

    pub fn run(&mut self) -> Result<(), SimError> {
        for worker in 0..self.workers.len() {
            if !self.finished(worker) {
                self.events.push(Reverse((0, worker)));
            }
        }
        while let Some(Reverse((now, worker))) = self.events.pop() {
            self.advance(now, worker);
        }
        match (0..self.workers.len()).all(|w| self.finished(w)) {
            true => Ok(()),
            false => Err(SimError::Stopped),
        }
    }

    fn finished(&self, worker: usize) -> bool {
        let worker = &self.workers[worker];
        worker.tile == self.layout.tiles() || worker.program.steps.is_empty()
    }

    fn connection(&mut self, worker: usize, from: Rank, to: Rank) -> &mut Connection {
        let channel = self.workers[worker].program.channel.index();
        let ranks = self.plan.ranks as usize;
        &mut self.connections[(channel * ranks + from.index()) * ranks + to.index()]
    }

    /// Tries the worker's next part at `now`. A worker has one event in the queue, or is registered where it waits.
    fn advance(&mut self, now: Time, worker: usize) {
        let me = self.workers[worker].program.rank;
        let step = &self.workers[worker].program.steps[self.workers[worker].step];
        let moves = step.chunk_len() > 0;
        let mut ready = now;
        if let Some(from) = step.from() {
            let connection = self.connection(worker, from, me);
            let queue = if moves { &connection.data } else { &connection.signals };
            match queue.front() {
                None => {
                    connection.reader = Some(worker);
                    return;
                }
                Some(&at) => ready = ready.max(at),
            }
        }
        if let (Some(to), true) = (step.to(), moves) {
            let connection = self.connection(worker, me, to);
            match connection.credits.front() {
                None => {
                    connection.writer = Some(worker);
                    return;
                }
                Some(&at) => ready = ready.max(at),
            }
        }
        if ready > now {
            // Transfers queue in the order of time.
            self.events.push(Reverse((ready, worker)));
            return;
        }
        self.workers[worker].waited += now - self.workers[worker].arrived;
        let end = if moves { self.transfer(now, worker, step) } else { self.semaphore(now, worker, step) };
        self.next(end, worker, step);
    }

    fn semaphore(&mut self, now: Time, worker: usize, step: &Step) -> Time {
        let me = self.workers[worker].program.rank;
        let end = now + self.step;
        match step {
            Step::Signal { to } => {
                let at = end + self.alpha;
                let connection = self.connection(worker, me, *to);
                connection.signals.push_back(at);
                if let Some(reader) = connection.reader.take() {
                    self.events.push(Reverse((at, reader)));
                }
            }
            Step::Wait { from } => {
                self.connection(worker, *from, me).signals.pop_front();
            }
            _ => unreachable!("only signals and waits move no chunk"),
        }
        end
    }

    fn transfer(&mut self, now: Time, worker: usize, step: &Step) -> Time {
        let me = self.workers[worker].program.rank;
        let (places, dst) = operands(step);
        let bytes = self.part_bytes(worker, places.iter().map(|p| p.range).chain(dst));
        let begin = now + self.step;
        let own = places.iter().filter(|p| p.rank.is_none()).count() + usize::from(dst.is_some());
        let mut end = begin + picos(own as f64 * bytes as f64 / self.local);
        for peer in places.iter().filter_map(|p| p.rank) {
            // The request goes there and the data comes back: one alpha in all, as for a send.
            end = end.max(self.wire(begin, peer, me, bytes) + self.alpha);
        }
        if let Some(to) = step.to() {
            end = end.max(self.wire(begin, me, to, bytes));
            let at = end + self.alpha;
            let connection = self.connection(worker, me, to);
            connection.credits.pop_front();
            connection.data.push_back(at);
            if let Some(reader) = connection.reader.take() {
                self.events.push(Reverse((at, reader)));
            }
        }
        if let Some(from) = step.from() {
            let at = end + self.alpha;
            let connection = self.connection(worker, from, me);
            connection.data.pop_front();
            connection.credits.push_back(at);
            if let Some(writer) = connection.writer.take() {
                self.events.push(Reverse((at, writer)));
            }
        }
        self.workers[worker].bytes += bytes;
        end
    }

    /// Bytes of the current part: those of its chunk, or a whole tile where all is scratch.
    fn part_bytes(&self, worker: usize, mut ranges: impl Iterator<Item = Range>) -> u64 {
        let Worker { tile, part, program, .. } = &self.workers[worker];
        let elements = match ranges.find(|r| !matches!(r.buffer, Buffer::Scratch(_))) {
            Some(range) => {
                let chunk = (range.start + part) % self.plan.chunks;
                self.layout.span(chunk, program.channel.0, *tile).len
            }
            None => self.layout.tile_elems(),
        };
        elements * self.size
    }

    /// Puts `bytes` on the sender's way out, the link and the receiver's way in, each a queue of its own; the last byte is through when
    /// the slowest of them has it through. Waiting for one does not block another, as with packets of many transfers interleaved.
    fn wire(&mut self, now: Time, from: Rank, to: Rank, bytes: u64) -> Time {
        let link = from.index() * self.plan.ranks as usize + to.index();
        self.traffic[link] += bytes;
        let (injection, on_link) = (picos(bytes as f64 / self.injection), picos(bytes as f64 / self.link));
        let queues = [
            (&mut self.out[from.index()], injection),
            (&mut self.into[to.index()], injection),
            (&mut self.links[link], on_link),
        ];
        let mut end = now;
        for (free, takes) in queues {
            *free = now.max(*free) + takes;
            end = end.max(*free);
        }
        end
    }

    /// Ends the part, and the step and the tile where they are over.
    fn next(&mut self, end: Time, worker: usize, step: &Step) {
        let state = &mut self.workers[worker];
        state.part += 1;
        state.arrived = end;
        if state.part >= step.chunk_len() {
            let span = Span {
                rank: state.program.rank,
                channel: state.program.channel,
                tile: state.tile,
                step: u32::try_from(state.step).expect("a program is far shorter than 2^32 steps"),
                op: step.name().into(),
                from: step.from(),
                to: step.to(),
                bytes: state.bytes,
                start_ns: state.started / 1000,
                ready_ns: (state.started + state.waited) / 1000,
                end_ns: end / 1000,
            };
            (state.part, state.waited, state.bytes, state.started) = (0, 0, 0, end);
            state.step += 1;
            if state.step == state.program.steps.len() {
                (state.step, state.tile) = (0, state.tile + 1);
            }
            if self.spans.len() < MAX_SPANS {
                self.spans.push(span);
            } else {
                self.dropped += 1;
            }
        }
        if !self.finished(worker) {
            self.events.push(Reverse((end, worker)));
        }
    }
}
