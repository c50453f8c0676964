//! Buffers of one rank for measuring and checking: filled and compared on the device, as a session's.

use std::time::{Duration, Instant};

use super::{Factor, Port};
use crate::data::{self, Exact};
use crate::exec::cuda::driver::{Memory, Stream};
use crate::exec::cuda::exact::exact_params;
use crate::exec::cuda::foreign::ForeignStream;
use crate::exec::cuda::graph::Graph;
use crate::exec::cuda::ipc::OWN_PIECE;
use crate::exec::cuda::kernels::Kernels;
use crate::exec::cuda::session::POISON;
use crate::exec::{CheckReport, ExecError, Hardware, SessionSpec, WrongElement, refuse_check};
use crate::types::Rank;

pub struct RankBuffers {
    rank: Rank,
    spec: SessionSpec,
    factor: Option<Factor>,
    kernels: Kernels,
    stream: Stream,
    main: Memory,
    other: Option<Memory>,
    /// Two words for `check`.
    results: Memory,
    device: String,
    driver: String,
}

impl std::fmt::Debug for RankBuffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RankBuffers")
            .field("rank", &self.rank)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl RankBuffers {
    /// # Errors
    /// Refused when they do not fit the device.
    pub fn new(port: &Port, spec: &SessionSpec, rank: Rank) -> Result<RankBuffers, ExecError> {
        let (device, info, scope) = port.device();
        let ranks = spec.plan.ranks;
        Exact::new(0, spec.dtype, spec.op, ranks).map_err(|why| ExecError::Refused(why.to_string()))?;
        let factor = crate::exec::factors(spec)?.map(|factors| Factor::Bits(factors[rank.index()]));
        let (input, output) = (input_bytes(spec), output_bytes(spec));
        let main = if spec.in_place { input.max(output) } else { input };
        let need = u128::from(main) + if spec.in_place { 0 } else { u128::from(output) };
        let (free, _) = device.memory()?;
        if need > u128::from(free) {
            return Err(ExecError::Refused(format!(
                "rank {rank}'s buffers need {} MiB, {} MiB of its device are free; use a smaller size or fewer ranks",
                need.div_ceil(1 << 20),
                free >> 20
            )));
        }
        Ok(RankBuffers {
            rank,
            factor,
            kernels: Kernels::load(device, info, spec.dtype, spec.op, spec.fifo.protocol, scope)?,
            stream: Stream::new(device)?,
            // Large enough to be shared with other processes.
            main: Memory::zeroed(device, main.max(OWN_PIECE))?,
            other: if spec.in_place { None } else { Some(Memory::zeroed(device, output.max(OWN_PIECE))?) },
            results: Memory::zeroed(device, 16)?,
            device: info.name.clone(),
            driver: info.driver.clone(),
            spec: spec.clone(),
        })
    }

    /// Of this rank's input, for a pre-multiplied sum.
    pub fn factor(&self) -> Option<Factor> {
        self.factor
    }

    pub fn stream(&self) -> ForeignStream {
        (&self.stream).into()
    }

    pub fn finish(&self) -> Result<(), ExecError> {
        self.stream.finish()
    }

    /// Records what `queue` puts on the streams of all these into one graph, and runs it so many times. Returns what the runs took.
    pub fn replay(
        all: &[RankBuffers],
        replays: u32,
        queue: impl FnOnce() -> Result<(), ExecError>,
    ) -> Result<Duration, ExecError> {
        let Some((first, others)) = all.split_first() else { return queue().map(|()| Duration::ZERO) };
        let graph = Graph::record(&first.stream, || {
            // A stream that waits for a recorded one is recorded too, and has to end where the first one does.
            first.stream.mark()?;
            others.iter().try_for_each(|other| other.stream.wait_for(&first.stream))?;
            queue()?;
            for other in others {
                other.stream.mark()?;
                first.stream.wait_for(&other.stream)?;
            }
            Ok(())
        })?;
        first.stream.device().bind()?;
        let started = Instant::now();
        let queued = (0..replays).try_for_each(|_| graph.queue(&first.stream));
        let finished = first.stream.finish();
        queued.and(finished)?;
        Ok(started.elapsed())
    }

    /// Bytes from the start of the one memory to the input and to the output, in place.
    fn offsets(&self) -> (u64, u64) {
        let (input, output) = match self.spec.in_place {
            true => self.spec.plan.collective.in_place_offsets(self.rank),
            false => (0, 0),
        };
        let block = self.spec.block * self.spec.dtype.size() as u64;
        (u64::from(input) * block, u64::from(output) * block)
    }

    fn input(&self) -> (&Memory, u64) {
        (&self.main, self.offsets().0)
    }

    fn output_part(&self) -> (&Memory, u64) {
        (self.other.as_ref().unwrap_or(&self.main), self.offsets().1)
    }

    /// Of the input and the output.
    pub fn addresses(&self) -> (u64, u64) {
        let at = |(memory, offset): (&Memory, u64)| memory.address().0 + offset;
        (at(self.input()), at(self.output_part()))
    }

    /// Address and bytes of the memories that the input and the output lie in; as large on all ranks.
    pub fn memories(&self) -> Vec<(u64, u64)> {
        let (input, output) = (input_bytes(&self.spec), output_bytes(&self.spec));
        let main = if self.spec.in_place { input.max(output) } else { input };
        let other = self.other.as_ref().map(|other| (other.address().0, output.max(OWN_PIECE)));
        [(self.main.address().0, main.max(OWN_PIECE))].into_iter().chain(other).collect()
    }

    /// Poison in the output, exact data in the input.
    pub fn fill(&self, seed: u64) -> Result<(), ExecError> {
        let (output, at) = self.output_part();
        output.set(at, output_bytes(&self.spec), POISON)?;
        let (input, at) = self.input();
        let exact = exact_params(&self.spec, seed, self.rank);
        let elements = input_bytes(&self.spec) / self.spec.dtype.size() as u64;
        self.kernels.fill(&self.stream, &exact, input.address().plus(at), elements)?;
        self.stream.finish()
    }

    /// Compares the output and, out of place, that the input is as it was.
    pub fn check(&self, seed: u64) -> Result<CheckReport, ExecError> {
        refuse_check(&self.spec.factors)?;
        let mut report = CheckReport { elements: 0, wrong: 0, first_wrong: None };
        let collective = self.spec.plan.collective;
        if collective.has_output(self.rank) {
            self.compare(seed, self.output_part(), output_bytes(&self.spec), false, &mut report)?;
        }
        if !self.spec.in_place {
            self.compare(seed, self.input(), input_bytes(&self.spec), true, &mut report)?;
        }
        Ok(report)
    }

    fn compare(
        &self,
        seed: u64,
        (memory, offset): (&Memory, u64),
        bytes: u64,
        input: bool,
        report: &mut CheckReport,
    ) -> Result<(), ExecError> {
        let SessionSpec { plan, block, dtype, op, .. } = &self.spec;
        let size = dtype.size() as u64;
        self.results.write(0, bytemuck::cast_slice(&[0u64, u64::MAX]))?;
        let exact = exact_params(&self.spec, seed, self.rank);
        let at = memory.address().plus(offset);
        self.kernels.check(&self.stream, &exact, at, bytes / size, input, self.results.address())?;
        self.stream.finish()?;
        let found = self.results.values::<u64>(2)?;
        report.elements += bytes / size;
        report.wrong += found[0];
        if found[0] == 0 || report.first_wrong.is_some() {
            return Ok(());
        }
        let mut bits = [0; 8];
        memory.read(offset + found[1] * size, &mut bits[..size as usize])?;
        let expected = Exact::of(seed, *dtype, *op, plan.ranks, plan.collective)
            .map_err(|why| ExecError::Refused(why.to_string()))?;
        let want = match input {
            true => expected.input(self.rank, found[1]),
            false => expected.expected(plan.collective, self.rank, found[1], *block),
        };
        report.first_wrong = Some(WrongElement {
            rank: self.rank,
            index: found[1],
            expected: data::show(*dtype, want),
            got: data::show(*dtype, u64::from_le_bytes(bits)),
        });
        Ok(())
    }

    pub fn output_bytes(&self) -> u64 {
        output_bytes(&self.spec)
    }

    pub fn output(&self) -> Result<Vec<u8>, ExecError> {
        let (memory, offset) = self.output_part();
        let mut bytes = vec![0; output_bytes(&self.spec) as usize];
        memory.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    pub fn describe(&self) -> Hardware {
        Hardware {
            backend: "cuda",
            device: self.device.clone(),
            driver: self.driver.clone(),
            devices: 1,
            kernel: "interpreter",
        }
    }
}

fn input_bytes(spec: &SessionSpec) -> u64 {
    spec.block * u64::from(spec.plan.collective.input_blocks(spec.plan.ranks)) * spec.dtype.size() as u64
}

fn output_bytes(spec: &SessionSpec) -> u64 {
    spec.block * u64::from(spec.plan.collective.output_blocks(spec.plan.ranks)) * spec.dtype.size() as u64
}
