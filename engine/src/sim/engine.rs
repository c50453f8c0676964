//! The event loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::SimError;
use crate::cost::SimModel;
use crate::fifo::Fifo;
use crate::plan::layout::Layout;
use crate::plan::{Buffer, Place, Plan, Program, Range, SLOTS, Step, operands};
use crate::trace::{Crossing, Span};
use crate::types::Rank;

/// Picoseconds since the start.
type Time = u64;

struct Worker<'a> {
    program: &'a Program,
    tile: u64,
    step: usize,
    /// Chunk of the step that is next, and slice of the chunk.
    part: u32,
    slice: u32,
    /// Of the step: when it was reached, how long it has waited in all and for credits alone, what it has moved, what it has sent.
    started: Time,
    waited: Time,
    without_credit: Time,
    bytes: u64,
    wire_bytes: u64,
    /// When the worker came to the current part.
    arrived: Time,
}

/// One direction of one pair on one channel. Entries are the times at which they can be seen: of slices that came, with the elements of
/// their whole tile, of steps that are free for a slice, of signals.
#[derive(Default)]
struct Connection {
    data: VecDeque<(Time, u64)>,
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
    fifo: Fifo,
    slot_bytes: usize,
    alpha: Time,
    /// Of data on connections, and of their credits.
    fifo_alpha: Time,
    step: Time,
    link: f64,
    injection: f64,
    local: f64,
    line: f64,
    workers: Vec<Worker<'a>>,
    /// (channel * ranks + from) * ranks + to.
    connections: Vec<Connection>,
    /// Elements that each chunk of scratch holds: by rank, channel, buffer and chunk.
    scratch: Vec<u64>,
    /// First chunk of each scratch buffer within those of a rank and channel, and how many those are.
    scratch_starts: Vec<usize>,
    scratch_chunks: usize,
    /// When each rank's ways out and in, and each link, are free again.
    out: Vec<Time>,
    into: Vec<Time>,
    links: Vec<Time>,
    events: BinaryHeap<Reverse<(Time, usize)>>,
    /// Of the last step.
    pub end: Time,
    keeps: usize,
    pub spans: Vec<Span>,
    pub dropped: u64,
    pub traffic: Vec<u64>,
}

/// Rounded to whole picoseconds.
fn picos(ns: f64) -> Time {
    (ns * 1000.0).round() as Time
}

impl<'a> Engine<'a> {
    /// `layout` has tiles of a chunk of `fifo`, with steps of `slot_bytes`. Keeps at most `keeps` spans.
    pub fn new(
        plan: &'a Plan,
        model: &SimModel,
        layout: Layout,
        size: u64,
        (fifo, slot_bytes): (Fifo, usize),
        keeps: usize,
    ) -> Engine<'a> {
        let ranks = plan.ranks as usize;
        let slices = (SLOTS / fifo.slice_steps) as usize;
        let connection = || Connection { credits: vec![0; slices].into(), ..Connection::default() };
        let worker = |program| Worker {
            program,
            tile: 0,
            step: 0,
            part: 0,
            slice: 0,
            started: 0,
            waited: 0,
            without_credit: 0,
            bytes: 0,
            wire_bytes: 0,
            arrived: 0,
        };
        let mut scratch_chunks = 0;
        let scratch_starts = plan.scratch.iter().map(|buffer| {
            let start = scratch_chunks;
            scratch_chunks += buffer.chunks as usize;
            start
        });
        let scratch_starts = scratch_starts.collect();
        Engine {
            plan,
            layout,
            size,
            fifo,
            slot_bytes,
            alpha: picos(model.alpha_ns),
            fifo_alpha: picos(model.alpha(fifo.protocol)),
            step: picos(model.step_ns),
            link: model.link_gbps,
            injection: model.injection_gbps,
            local: model.local_gbps,
            line: model.line_gbps(fifo.protocol),
            workers: plan.programs.iter().map(worker).collect(),
            connections: (0..ranks * ranks * plan.channels as usize).map(|_| connection()).collect(),
            scratch: vec![0; plan.programs.len() * scratch_chunks],
            scratch_starts,
            scratch_chunks,
            out: vec![0; ranks],
            into: vec![0; ranks],
            links: vec![0; ranks * ranks],
            events: BinaryHeap::new(),
            end: 0,
            keeps,
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
        // When the data was there, and when the credit.
        let (mut data_at, mut credit_at) = (0, 0);
        if let Some(from) = step.from() {
            let connection = self.connection(worker, from, me);
            let first = match moves {
                true => connection.data.front().map(|(at, _)| *at),
                false => connection.signals.front().copied(),
            };
            match first {
                None => {
                    connection.reader = Some(worker);
                    return;
                }
                Some(at) => (data_at, ready) = (at, ready.max(at)),
            }
        }
        if let (Some(to), true) = (step.to(), moves) {
            let connection = self.connection(worker, me, to);
            match connection.credits.front() {
                None => {
                    connection.writer = Some(worker);
                    return;
                }
                Some(&at) => (credit_at, ready) = (at, ready.max(at)),
            }
        }
        if ready > now {
            // Transfers queue in the order of time.
            self.events.push(Reverse((ready, worker)));
            return;
        }
        let arrived = self.workers[worker].arrived;
        self.workers[worker].waited += now - arrived;
        self.workers[worker].without_credit += credit_at.saturating_sub(arrived.max(data_at));
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
        let received = step.from().and_then(|from| self.connection(worker, from, me).data.pop_front());
        let elements = match (received, places.first()) {
            (Some((_, elements)), _) => elements,
            (None, Some(place)) => self.elements(worker, place),
            (None, None) => unreachable!("a step that moves data receives or reads it"),
        };
        if let Some(dst) = dst
            && let Some(holds) = self.scratch_chunk(worker, me, dst)
        {
            self.scratch[holds] = elements;
        }
        let crosses = step.from().is_some() || step.to().is_some();
        let tile_bytes = elements * self.size;
        let bytes = if crosses {
            let part = self.fifo.slice_of(self.slot_bytes, tile_bytes, self.workers[worker].slice);
            part.end - part.start
        } else {
            tile_bytes
        };
        let on_wire = self.fifo.protocol.slice_wire_bytes(bytes);
        let begin = now + self.step;
        let own = places.iter().filter(|p| p.rank.is_none()).count() + usize::from(dst.is_some());
        let mut end = begin + picos(own as f64 * bytes as f64 / self.local);
        if self.fifo.protocol.line().is_some() {
            let ends = u32::from(step.from().is_some()) + u32::from(step.to().is_some());
            end += picos(f64::from(ends) * on_wire as f64 / self.line);
        }
        for peer in places.iter().filter_map(|p| p.rank) {
            // The request goes there and the data comes back: one alpha in all, as for a send.
            end = end.max(self.wire(begin, peer, me, bytes, bytes) + self.alpha);
        }
        if let Some(to) = step.to() {
            end = end.max(self.wire(begin, me, to, bytes, on_wire));
            self.workers[worker].wire_bytes += on_wire;
            let at = end + self.fifo_alpha;
            let connection = self.connection(worker, me, to);
            connection.credits.pop_front();
            connection.data.push_back((at, elements));
            if let Some(reader) = connection.reader.take() {
                self.events.push(Reverse((at, reader)));
            }
        }
        if let Some(from) = step.from() {
            let at = end + self.fifo_alpha;
            let connection = self.connection(worker, from, me);
            connection.credits.push_back(at);
            if let Some(writer) = connection.writer.take() {
                self.events.push(Reverse((at, writer)));
            }
        }
        self.workers[worker].bytes += bytes;
        end
    }

    /// Elements of the worker's current part of a place: those of its chunk, or what was put into scratch.
    fn elements(&self, worker: usize, place: &Place) -> u64 {
        let Worker { tile, part, program, .. } = &self.workers[worker];
        match self.scratch_chunk(worker, place.rank.unwrap_or(program.rank), place.range) {
            Some(holds) => self.scratch[holds],
            None => {
                let chunk = (place.range.start + part) % self.plan.chunks;
                self.layout.span(chunk, program.channel.0, *tile).len
            }
        }
    }

    /// Where the length of the worker's current part of a range of `owner` is kept, if that is scratch.
    fn scratch_chunk(&self, worker: usize, owner: Rank, range: Range) -> Option<usize> {
        let Buffer::Scratch(buffer) = range.buffer else { return None };
        let Worker { part, program, .. } = &self.workers[worker];
        let of_program = owner.index() * self.plan.channels as usize + program.channel.index();
        let chunk = self.scratch_starts[usize::from(buffer)] + (range.start + part) as usize;
        Some(of_program * self.scratch_chunks + chunk)
    }

    /// Puts `payload`, as `bytes` with the flags of lines, on the sender's way out, the link and the receiver's way in, each a queue of its
    /// own; the last byte is through when the slowest of them has it through. Waiting for one does not block another, as with packets of
    /// many transfers interleaved.
    fn wire(&mut self, now: Time, from: Rank, to: Rank, payload: u64, bytes: u64) -> Time {
        let link = from.index() * self.plan.ranks as usize + to.index();
        self.traffic[link] += payload;
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

    /// Ends the slice, and the chunk, the step and the tile where they are over.
    fn next(&mut self, end: Time, worker: usize, step: &Step) {
        self.end = self.end.max(end);
        let crosses = step.chunk_len() > 0 && (step.from().is_some() || step.to().is_some());
        let slices = if crosses { self.fifo.slices() } else { 1 };
        let state = &mut self.workers[worker];
        state.arrived = end;
        state.slice += 1;
        if state.slice == slices {
            (state.slice, state.part) = (0, state.part + 1);
        }
        if state.slice == 0 && state.part >= step.chunk_len() {
            if self.spans.len() < self.keeps {
                self.spans.push(span(state, step, end));
            } else {
                self.dropped += 1;
            }
            (state.part, state.waited, state.bytes, state.started) = (0, 0, 0, end);
            (state.without_credit, state.wire_bytes) = (0, 0);
            state.step += 1;
            if state.step == state.program.steps.len() {
                (state.step, state.tile) = (0, state.tile + 1);
            }
        }
        if !self.finished(worker) {
            self.events.push(Reverse((end, worker)));
        }
    }
}

fn span(state: &Worker<'_>, step: &Step, end: Time) -> Span {
    let sends = step.to().is_some() && step.chunk_len() > 0;
    Span {
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
        crossing: Crossing {
            wire_bytes: sends.then_some(state.wire_bytes),
            credit_ns: sends.then_some(state.without_credit / 1000),
            ..Crossing::default()
        },
    }
}
