//! A [`Session`] whose ranks are processes: every process runs the same calls on a session of its own, and the results are of all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choice::{cannot, cannot_registered};
use super::communicator::Communicator;
use super::error::CommError;
use super::operation::{Operation, Scalar};
use crate::exec::cuda::ForeignStream;
use crate::exec::cuda::rank::{Call, Factor, RankBuffers, Schedule, WindowId};
use crate::exec::{
    CheckReport, ExecError, Hardware, KernelChoice, Session, SessionSpec, Timing, WrongElement,
};
use crate::fifo::Fifo;
use crate::trace::Trace;
use crate::types::Rank;

/// Longest wait for the other processes between two steps, beyond the collective's own deadline.
const STEP: Duration = Duration::from_secs(60);

/// Bytes of an output sent at a time when another rank's is asked for.
const PIECE: usize = 256 << 10;

/// One rank's share of a session of all ranks of a communicator.
#[derive(Debug)]
pub struct RankSession {
    comm: Arc<Communicator>,
    spec: SessionSpec,
    schedule: Schedule,
    buffers: RankBuffers,
    /// Of the buffers, where ranks read each other's.
    windows: Vec<WindowId>,
}

/// Prepares a plan on the communicator; every rank calls it with the same spec.
///
/// # Errors
/// As [`crate::exec::open`]; [`ExecError::Device`] when another rank failed.
pub fn open(comm: &Arc<Communicator>, spec: SessionSpec) -> Result<RankSession, ExecError> {
    prepare(comm, spec, false)
}

/// As [`open`], on buffers that are registered with all ranks: they may read each other's, by plans that [`crate::verify`] has proved
/// right.
///
/// # Errors
/// As [`open`] and [`Communicator::register`]. Refused with the verifier's reason when a plan that reads peers' buffers is not right,
/// as when a rank may finish while a peer still reads its buffer.
pub fn open_registered(comm: &Arc<Communicator>, spec: SessionSpec) -> Result<RankSession, ExecError> {
    prepare(comm, spec, true)
}

fn prepare(comm: &Arc<Communicator>, spec: SessionSpec, registered: bool) -> Result<RankSession, ExecError> {
    if matches!(spec.kernel, KernelChoice::Specialised | KernelChoice::Fused) {
        return Err(ExecError::Refused(
            "a rank of a communicator launches for itself, and the specialised kernel is one launch for all ranks; choose auto or \
             interpreter"
                .into(),
        ));
    }
    crate::exec::refuse_in_place(&spec)?;
    crate::exec::refuse_block(spec.block)?;
    if spec.fifo != Fifo::of(spec.fifo.protocol) {
        return Err(ExecError::Refused(
            "ranks of a communicator have chunks of one slice and one step; cut chunks into slices with all ranks in one launch".into(),
        ));
    }
    // Of the whole plan: a rank whose own part could run would wait for one whose part cannot.
    let why = match registered {
        true => cannot_registered(&spec.plan, spec.op, spec.in_place),
        false => cannot(&spec.plan),
    };
    if let Some(why) = why {
        return Err(ExecError::Refused(format!(
            "ranks of a communicator cannot run the plan {}: {}; choose an algorithm that sends",
            spec.plan.name, why.en
        )));
    }
    let rank = Rank(comm.rank());
    let prepared = comm.with_port(|port| {
        let schedule = port.give(&spec.plan, spec.fifo.protocol)?;
        Ok((schedule, RankBuffers::new(port, &spec, rank)?))
    });
    let (schedule, buffers) = prepared.map_err(failed)?;
    let windows = Vec::new();
    let mut session = RankSession { comm: comm.clone(), spec, schedule, buffers, windows };
    if registered {
        session.register()?;
    }
    // In a process of several ranks allocating waits for kernels, so nobody launches before all have allocated.
    session.meet()?;
    Ok(session)
}

/// A failure of a peer reaches the caller of a session as one of the device.
pub(super) fn failed(error: CommError) -> ExecError {
    match error {
        CommError::InvalidArgument(why) | CommError::InvalidUsage(why) | CommError::Unsupported(why) => {
            ExecError::Refused(why)
        }
        other => ExecError::Device { context: "the communicator failed".into(), message: other.to_string() },
    }
}

/// What a rank found, as it tells the others.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Found {
    elements: u64,
    wrong: u64,
    /// Index, expected, got.
    first: Option<(u64, String, String)>,
}

impl RankSession {
    /// Registers the buffers, so that collectives on them may read those of peers.
    fn register(&mut self) -> Result<(), ExecError> {
        for (address, bytes) in self.buffers.memories() {
            self.windows.push(self.comm.register(address, bytes).map_err(failed)?);
        }
        Ok(())
    }

    /// What this rank asks its communicator for when the communicator is to choose a plan, and the stream of the buffers.
    pub fn operation(&self) -> (Operation, ForeignStream) {
        let Call { collective, block, dtype, op, factor, input, output, .. } = self.call();
        let factor = factor.map(|factor| match factor {
            Factor::Bits(bits) => Scalar::Bits(bits),
            Factor::Device(at) => Scalar::Device(at),
        });
        let operation =
            Operation::Collective { collective, send: input, recv: output, block, dtype, op, factor };
        (operation, self.buffers.stream())
    }

    /// Address and bytes of the memories that input and output lie in.
    pub fn memories(&self) -> Vec<(u64, u64)> {
        self.buffers.memories()
    }

    /// Waits for what is queued on the buffers' stream.
    pub fn finish(&self) -> Result<(), ExecError> {
        self.buffers.finish()
    }

    fn meet(&self) -> Result<(), ExecError> {
        self.comm.bootstrap().barrier(STEP + self.spec.deadline).map_err(failed)
    }

    /// Every rank's word, by rank.
    fn gather(&self, mine: &impl Serialize) -> Result<Vec<Value>, ExecError> {
        let broken = |why: serde_json::Error| ExecError::Device {
            context: "the ranks do not understand each other".into(),
            message: why.to_string(),
        };
        let mine = serde_json::to_vec(mine).map_err(broken)?;
        let all = self.comm.bootstrap().allgather(&mine, STEP + self.spec.deadline).map_err(failed)?;
        all.iter().map(|bytes| serde_json::from_slice(bytes).map_err(broken)).collect()
    }

    fn numbers(&self, mine: u64) -> Result<Vec<u64>, ExecError> {
        Ok(self.gather(&mine)?.iter().filter_map(Value::as_u64).collect())
    }

    fn call(&self) -> Call {
        let SessionSpec { plan, block, dtype, op, in_place, .. } = &self.spec;
        let (input, output) = self.buffers.addresses();
        Call {
            collective: plan.collective,
            schedule: self.schedule,
            block: *block,
            dtype: *dtype,
            op: *op,
            factor: self.buffers.factor(),
            input,
            output,
            in_place: *in_place,
        }
    }
}

impl Session for RankSession {
    fn fill(&mut self, seed: u64) -> Result<(), ExecError> {
        self.meet()?;
        self.buffers.fill(seed)?;
        self.meet()
    }

    fn run(&mut self, iters: u32) -> Result<Timing, ExecError> {
        let call = self.call();
        self.meet()?;
        let started = Instant::now();
        let queued = self
            .comm
            .with_port(|port| (0..iters).try_for_each(|_| port.collective(&call, self.buffers.stream())));
        let finished = self.buffers.finish();
        let own = started.elapsed();
        queued.map_err(failed)?;
        finished?;
        if let Some(error) = self.comm.async_error() {
            return Err(failed(error));
        }
        let moved = self.comm.with_port(|port| port.moved_bytes(self.spec.plan.channels)).map_err(failed)?;
        // The slowest rank's time is the collective's.
        let walls = self.numbers(u64::try_from(own.as_nanos()).unwrap_or(u64::MAX))?;
        let wall = Duration::from_nanos(walls.into_iter().max().unwrap_or(0));
        Ok(Timing {
            wall,
            iterations: vec![],
            clock: "host clock of the slowest rank, from a meeting of all ranks on",
            moved_bytes: self.numbers(moved)?,
        })
    }

    fn run_traced(&mut self) -> Result<(Timing, Trace), ExecError> {
        Err(ExecError::Refused(
            "a timeline is recorded by ranks of one process only; run without separate processes".into(),
        ))
    }

    fn check(&mut self, seed: u64) -> Result<CheckReport, ExecError> {
        let report = self.buffers.check(seed)?;
        let first = report.first_wrong.map(|wrong| (wrong.index, wrong.expected, wrong.got));
        let mine = Found { elements: report.elements, wrong: report.wrong, first };
        let mut total = CheckReport { elements: 0, wrong: 0, first_wrong: None };
        for (rank, found) in (0..).zip(self.gather(&mine)?) {
            let Ok(found) = serde_json::from_value::<Found>(found) else { continue };
            total.elements += found.elements;
            total.wrong += found.wrong;
            let wrong = found.first.map(|(index, expected, got)| WrongElement {
                rank: Rank(rank),
                index,
                expected,
                got,
            });
            total.first_wrong = total.first_wrong.or(wrong);
        }
        Ok(total)
    }

    fn output(&mut self, rank: Rank) -> Result<Vec<u8>, ExecError> {
        let own = if rank.0 == self.comm.rank() { self.buffers.output()? } else { vec![] };
        let bytes = self.buffers.output_bytes() as usize;
        let mut all = Vec::with_capacity(bytes);
        for from in (0..bytes).step_by(PIECE) {
            let piece = own.get(from..bytes.min(from + PIECE)).unwrap_or_default();
            let piece = self.comm.bootstrap().broadcast(rank, piece, STEP).map_err(failed)?;
            all.extend(piece);
        }
        Ok(all)
    }

    fn describe(&self) -> Hardware {
        self.buffers.describe()
    }
}

impl Drop for RankSession {
    fn drop(&mut self) {
        // Freeing waits for kernels of the process: all ranks have to be through with theirs. One that failed has told the others.
        let _ = self.meet();
        for window in self.windows.drain(..) {
            let _ = self.comm.deregister(window);
        }
    }
}
