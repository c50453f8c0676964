//! A prepared plan on its GPUs: running, tracing, filling and checking it.

use std::time::{Duration, Instant};

use super::buffers::Buffers;
use super::direct::Direct;
use super::driver::Memory;
use super::exact::exact_params;
use super::fused::Fused;
use super::graph::Graph;
use super::image::{self, Params, TraceRecord};
use super::mapped::Mapped;
use super::part::{Part, Recording};
use super::phases::Phases;
use super::timeline;
use crate::data::{self, Exact};
use crate::exec::program::Program;
use crate::exec::{
    CheckReport, ExecError, Hardware, Session, SessionSpec, Timing, WrongElement, refuse_check, refuse_input,
};
use crate::trace::{self, Origin, Trace};
use crate::types::{Rank, RedOp};

/// Outputs before a run: the CPU back end's pattern.
pub const POISON: u8 = 0xA5;

const CLOCK: &str = "globaltimer of the first rank's device, from launch to launch";

// Fields drop in order: streams and kernels before the memory they use.
pub struct CudaSession {
    pub parts: Vec<Part>,
    /// By rank.
    pub part_of: Vec<usize>,
    pub spec: SessionSpec,
    pub programs: Vec<Program>,
    pub phases: Vec<Phases>,
    /// Runs in place of the interpreter, unless traced.
    pub direct: Option<Direct>,
    /// Programs that wait for nobody, in place of the plan's, unless traced.
    pub fused: Option<Fused>,
    pub abort: Mapped<u32>,
    /// Arrivals of all blocks before an average is taken.
    pub meeting: Memory,
    /// Of a pre-multiplied sum.
    pub factors: Option<FactorTable>,
    pub stamps: Memory,
    pub stamp_capacity: u64,
    pub launches: Memory,
    /// Two words for `check`.
    pub results: Memory,
    pub buffers: Buffers,
}

/// By rank: bits of the type, here and on the first device.
pub struct FactorTable {
    pub bits: Vec<u64>,
    pub table: Memory,
}

impl CudaSession {
    fn params(&self, index: usize) -> Result<Params, ExecError> {
        let part = &self.parts[index];
        let spec = &self.spec;
        let average = spec.op == RedOp::Avg && spec.plan.collective.reduces();
        let recording = part.recording.as_ref();
        let record = |memory: fn(&Recording) -> &Memory| recording.map_or(0, |r| memory(r).address().0);
        Ok(Params {
            programs: part.programs.address().0,
            counts: part.counts.address().0,
            spans: part.spans.address().0,
            tiles: self.buffers.tiles,
            tile: self.buffers.tile_bytes,
            slot: self.buffers.step_bytes,
            slice: self.buffers.slice_bytes,
            deadline_ns: u64::try_from(spec.deadline.as_nanos()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2),
            abort: self.abort.address()?.0,
            halt: part.halt.address().0,
            stalls: part.stalls.address()?.0,
            moved: part.moved.address().0,
            stamps: if index == 0 && part.stamps { self.stamps.address().0 } else { 0 },
            launches: self.launches.address().0,
            stamp_capacity: self.stamp_capacity,
            meeting: self.meeting.address().0,
            rounds: part.rounds.address().0,
            meeting_blocks: self.programs.len() as u64,
            records: record(|r| &r.records),
            recorded: record(|r| &r.kept),
            dropped: record(|r| &r.dropped),
            records_per_block: recording.map_or(0, |r| r.per_block),
            buffers: [0; 3],
            factors: self.factors.as_ref().map_or(0, |factors| factors.table.address().0),
            factor: 0,
            average: if average { spec.plan.ranks } else { 0 },
            program_bytes: part.program_bytes,
            endpoints_per_block: part.endpoints_per_block,
            program_fits: part.program_fits.into(),
            relocates: 0,
            slices: spec.fifo.slices(),
            slice_steps: spec.fifo.slice_steps,
            fences: self.programs.iter().any(Program::reads_peers).into(),
            replicas: 1,
            lag: part.lag,
        })
    }

    /// Makes ready to stamp so many executions.
    fn prepare(&mut self, executions: u64) -> Result<Vec<Params>, ExecError> {
        if executions + 1 > self.stamp_capacity {
            self.stamp_capacity = executions + 1;
            self.stamps = Memory::zeroed(self.parts[0].stream.device(), self.stamp_capacity * 8)?;
        }
        self.launches.clear()?;
        (0..self.parts.len()).map(|i| self.params(i)).collect()
    }

    /// Launches `iters` executions back to back and waits for the last.
    fn execute(&mut self, iters: u32, traced: bool) -> Result<Timing, ExecError> {
        let params = self.prepare(iters.into())?;
        self.timed(iters.into(), traced, |session| session.queue(iters, traced, &params))
    }

    /// Queues `executions` executions, waits for the last and says what they took.
    fn timed(
        &mut self,
        executions: u64,
        traced: bool,
        queue: impl FnOnce(&Self) -> Result<(), ExecError>,
    ) -> Result<Timing, ExecError> {
        let started = Instant::now();
        let queued = queue(self).and_then(|()| self.stamp_end());
        // Whatever was queued has to end before anything else is touched.
        let finished = self.parts.iter().map(|part| part.stream.finish()).fold(Ok(()), Result::and);
        let wall = started.elapsed();
        queued.and(finished)?;
        if self.abort.read()[0] != 0 {
            return Err(self.stalled()?);
        }
        let stamped = if self.waits_for_nobody(traced) || self.parts[0].stamps { executions + 1 } else { 0 };
        let stamps = self.stamps.values::<u64>(stamped as usize)?;
        let between = |pair: &[u64]| Duration::from_nanos(pair[1].saturating_sub(pair[0]));
        Ok(Timing {
            wall,
            iterations: stamps.windows(2).map(between).collect(),
            clock: CLOCK,
            moved_bytes: if self.waits_for_nobody(traced) { self.planned() } else { self.moved()? },
        })
    }

    /// What executes in place of the interpreter.
    fn waits_for_nobody(&self, traced: bool) -> bool {
        !traced && (self.direct.is_some() || self.fused.is_some())
    }

    fn direct(&self, traced: bool) -> Option<&Direct> {
        self.direct.as_ref().filter(|_| !traced)
    }

    /// What a device queues from here on starts after what the others have queued.
    fn align(&self) -> Result<(), ExecError> {
        if self.parts.len() == 1 {
            return Ok(());
        }
        for part in &self.parts {
            part.stream.mark()?;
        }
        for (i, part) in self.parts.iter().enumerate() {
            for (_, other) in self.parts.iter().enumerate().filter(|(j, _)| *j != i) {
                part.stream.wait_for(&other.stream)?;
            }
        }
        Ok(())
    }

    /// In place: multiplies every input by its factor.
    fn multiply(&self, factors: &[u64]) -> Result<(), ExecError> {
        for rank in self.ranks() {
            let part = &self.parts[self.part_of[rank.index()]];
            let (memory, offset) = self.buffers.input(rank);
            let at = memory.address().plus(offset);
            part.kernels.scale(&part.stream, at, self.buffers.input_elems, factors[rank.index()])?;
        }
        // Peers may read the inputs directly.
        self.align()
    }

    fn queue(&self, iters: u32, traced: bool, params: &[Params]) -> Result<(), ExecError> {
        if let Some(direct) = self.direct(traced) {
            let stream = &self.parts[0].stream;
            let launch = direct.stamped(self.stamps.address(), self.launches.address(), self.stamp_capacity);
            stream.device().bind()?;
            return (0..iters).try_for_each(|_| launch.queue(stream));
        }
        if let Some(fused) = self.fused.as_ref().filter(|_| !traced) {
            let params = Params { stamps: self.stamps.address().0, ..params[0] };
            return (0..iters).try_for_each(|_| fused.queue(&self.parts[0], &params));
        }
        for iter in 0..iters {
            if iter > 0 {
                // A plan orders accesses to peers' buffers within one execution only.
                self.align()?;
            }
            if let Some(factors) = self.factors.as_ref().filter(|_| self.spec.in_place) {
                self.multiply(&factors.bits)?;
            }
            for (part, params) in self.parts.iter().zip(params) {
                let stamper = u32::from(params.stamps != 0);
                let grid = (part.local.len() as u32 + stamper, part.threads);
                part.kernels.run_plan(&part.stream, traced, grid, part.shared_bytes, params)?;
            }
        }
        Ok(())
    }

    /// Stamps the end of the last execution.
    fn stamp_end(&self) -> Result<(), ExecError> {
        let first = &self.parts[0];
        if !first.stamps && !self.waits_for_nobody(false) {
            return Ok(());
        }
        first.kernels.stamp(
            &first.stream,
            self.stamps.address(),
            self.launches.address(),
            self.stamp_capacity,
        )
    }

    /// Payload bytes by rank, as the blocks counted them in the last execution.
    fn moved(&self) -> Result<Vec<u64>, ExecError> {
        let mut moved = vec![0; self.spec.plan.ranks as usize];
        for part in &self.parts {
            for (&program, bytes) in part.local.iter().zip(part.moved.values::<u64>(part.local.len())?) {
                moved[self.programs[program].rank.index()] += bytes;
            }
        }
        Ok(moved)
    }

    /// Payload bytes by rank, as the plan has them: what [`CudaSession::moved`] finds when the plan is interpreted.
    fn planned(&self) -> Vec<u64> {
        let size = self.spec.dtype.size() as u64;
        let mut moved = vec![0; self.spec.plan.ranks as usize];
        for (program, phases) in self.programs.iter().zip(&self.phases) {
            let moves = phases.phases.iter().flat_map(|phase| &phase.moves);
            moved[program.rank.index()] +=
                moves.map(|mv| u64::from(mv.crossings) * mv.slice * size).sum::<u64>();
        }
        moved
    }

    /// Collects what the stopped waits left and makes the session ready for the next run.
    fn stalled(&mut self) -> Result<ExecError, ExecError> {
        let mut stalls = Vec::new();
        for part in &self.parts {
            let records = part.stalls.read();
            stalls.extend(
                part.local
                    .iter()
                    .zip(&records)
                    .filter_map(|(&i, left)| timeline::stall(&self.programs[i], left)),
            );
            part.stalls.clear();
            part.rounds.clear()?;
            part.counts.clear()?;
            part.halt.clear()?;
        }
        self.meeting.clear()?;
        self.buffers.reset_counters()?;
        self.abort.clear();
        stalls.sort_by_key(|stall| (stall.rank, stall.channel));
        Ok(ExecError::Stalled { deadline: self.spec.deadline, stalls })
    }

    fn exact(&self, seed: u64, rank: Rank) -> image::Exact {
        exact_params(&self.spec, seed, rank)
    }

    fn expectation(&self, seed: u64) -> Exact {
        let SessionSpec { plan, dtype, op, .. } = &self.spec;
        Exact::of(seed, *dtype, *op, plan.ranks, plan.collective).expect("`open` checked the number of ranks")
    }

    fn output_bytes(&self) -> u64 {
        self.buffers.output_elems * self.spec.dtype.size() as u64
    }

    fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.spec.plan.ranks).map(Rank)
    }

    /// Compares one buffer and adds to the report.
    fn check_buffer(
        &self,
        seed: u64,
        rank: Rank,
        input: bool,
        report: &mut CheckReport,
    ) -> Result<(), ExecError> {
        let part = &self.parts[self.part_of[rank.index()]];
        let ((memory, offset), elements) = if input {
            (self.buffers.input(rank), self.buffers.input_elems)
        } else {
            (self.buffers.output(rank), self.buffers.output_elems)
        };
        // Peers can reach the first device's memory, or are on it.
        self.results.write(0, bytemuck::cast_slice(&[0u64, u64::MAX]))?;
        let (exact, at) = (self.exact(seed, rank), memory.address().plus(offset));
        part.kernels.check(&part.stream, &exact, at, elements, input, self.results.address())?;
        part.stream.finish()?;
        let found = self.results.values::<u64>(2)?;
        report.elements += elements;
        report.wrong += found[0];
        if found[0] == 0 || report.first_wrong.is_some() {
            return Ok(());
        }
        let (index, size) = (found[1], self.spec.dtype.size());
        let mut bits = [0; 8];
        memory.read(offset + index * size as u64, &mut bits[..size])?;
        let expectation = self.expectation(seed);
        let collective = self.spec.plan.collective;
        let (want, note) = if input {
            (expectation.input(rank, index), " (the input, unchanged)")
        } else {
            (expectation.expected(collective, rank, index, self.spec.block), "")
        };
        let show = |bits| data::show(self.spec.dtype, bits);
        report.first_wrong = Some(WrongElement {
            rank,
            index,
            expected: format!("{}{note}", show(want)),
            got: show(u64::from_le_bytes(bits)),
        });
        Ok(())
    }

    fn trace(&self) -> Result<Trace, ExecError> {
        let most = self.spec.trace_spans / self.programs.len();
        let size = self.spec.dtype.size() as u64;
        let (mut spans, mut dropped) = (Vec::new(), 0);
        for part in &self.parts {
            let Some(recording) = &part.recording else { continue };
            let blocks = part.local.len();
            let records: Vec<TraceRecord> =
                recording.records.values(blocks * recording.per_block as usize)?;
            let kept = recording.kept.values::<u64>(blocks)?;
            dropped += recording.dropped.values::<u64>(blocks)?.iter().sum::<u64>();
            for (b, &i) in part.local.iter().enumerate() {
                let from = b * recording.per_block as usize;
                let records = &records[from..from + kept[b] as usize];
                let tile = (self.buffers.tile_bytes, size);
                dropped +=
                    timeline::spans(&self.programs[i], &self.phases[i], records, tile, most, &mut spans);
            }
        }
        timeline::relative(&mut spans);
        let Hardware { backend, device, kernel, .. } = self.describe();
        let hardware = match kernel {
            "interpreter" => device,
            _ => format!("{device}, traced with the plan's own steps; untraced executions use the {kernel}"),
        };
        let clock = match self.parts.len() {
            1 => "globaltimer of the device",
            _ => "globaltimer of each device; those of different devices are not aligned",
        };
        let trace = Trace {
            version: trace::VERSION,
            origin: Origin::Measured { backend: backend.into(), hardware, clock: clock.into() },
            ranks: self.spec.plan.ranks,
            channels: self.spec.plan.channels,
            fifo: None,
            slot_bytes: None,
            spans,
            dropped,
        };
        Ok(trace.with_fifo(&self.spec.plan, self.spec.fifo, self.spec.slot_bytes))
    }
}

impl Session for CudaSession {
    fn fill(&mut self, seed: u64) -> Result<(), ExecError> {
        // In place the inputs lie in the outputs' memory: poison first.
        for rank in self.ranks() {
            let (memory, offset) = self.buffers.output(rank);
            memory.set(offset, self.output_bytes(), POISON)?;
        }
        for rank in self.ranks() {
            let part = &self.parts[self.part_of[rank.index()]];
            let (memory, offset) = self.buffers.input(rank);
            let (exact, at) = (self.exact(seed, rank), memory.address().plus(offset));
            part.kernels.fill(&part.stream, &exact, at, self.buffers.input_elems)?;
        }
        self.parts.iter().try_for_each(|part| part.stream.finish())
    }

    fn write_input(&mut self, rank: Rank, elements: &[u8]) -> Result<(), ExecError> {
        let wanted = self.buffers.input_elems * self.spec.dtype.size() as u64;
        refuse_input(rank, self.spec.plan.ranks, elements.len() as u64, wanted)?;
        let (memory, offset) = self.buffers.input(rank);
        memory.write(offset, elements)
    }

    fn run(&mut self, iters: u32) -> Result<Timing, ExecError> {
        self.execute(iters, false)
    }

    fn replay(&mut self, iters: u32, replays: u32) -> Result<Timing, ExecError> {
        if self.parts.len() > 1 {
            return Err(ExecError::Refused(format!(
                "a CUDA graph is recorded for one device, and the ranks are on {}; put them on one or run without graphs",
                self.parts.len()
            )));
        }
        let executions = u64::from(iters) * u64::from(replays);
        let params = self.prepare(executions)?;
        // Neither kernel is told how often it has run: counters and the number of stamps are in device memory.
        let graph = Graph::record(&self.parts[0].stream, || self.queue(iters, false, &params))?;
        self.timed(executions, false, |session| {
            let stream = &session.parts[0].stream;
            stream.device().bind()?;
            (0..replays).try_for_each(|_| graph.queue(stream))
        })
    }

    fn run_traced(&mut self) -> Result<(Timing, Trace), ExecError> {
        let most = (self.spec.trace_spans / self.programs.len()) as u64;
        let phases = self.phases.iter().map(|p| p.phases.len() as u64).max().unwrap_or(0);
        let per_block = most.min(phases.saturating_mul(self.buffers.tiles)).max(1);
        self.parts.iter_mut().try_for_each(|part| part.start_recording(&self.spec, per_block))?;
        let timing = self.execute(1, true)?;
        Ok((timing, self.trace()?))
    }

    fn check(&mut self, seed: u64) -> Result<CheckReport, ExecError> {
        refuse_check(&self.spec.factors)?;
        let mut report = CheckReport { elements: 0, wrong: 0, first_wrong: None };
        for rank in self.ranks().filter(|rank| self.spec.plan.collective.has_output(*rank)) {
            self.check_buffer(seed, rank, false, &mut report)?;
        }
        if !self.spec.in_place {
            for rank in self.ranks() {
                self.check_buffer(seed, rank, true, &mut report)?;
            }
        }
        Ok(report)
    }

    fn output(&mut self, rank: Rank) -> Result<Vec<u8>, ExecError> {
        if rank.0 >= self.spec.plan.ranks {
            return Err(ExecError::Refused(format!(
                "there is no rank {rank}: the session has {}",
                self.spec.plan.ranks
            )));
        }
        let (memory, offset) = self.buffers.output(rank);
        let mut bytes = vec![0; self.output_bytes() as usize];
        memory.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    fn describe(&self) -> Hardware {
        let info = &self.parts[0].info;
        Hardware {
            backend: "cuda",
            device: info.name.clone(),
            driver: info.driver.clone(),
            devices: self.parts.len() as u32,
            kernel: match (&self.direct, &self.fused) {
                (Some(_), _) => "direct",
                (None, Some(_)) => "interpreter of fused programs",
                (None, None) => "interpreter",
            },
        }
    }
}
