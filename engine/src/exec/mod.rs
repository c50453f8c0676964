//! Running a plan for real. Both back ends implement [`Session`], so that the benchmark, the runner and the tests drive them alike and
//! their outputs can be compared bit for bit.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod optimise;
pub mod program;
mod slices;

use std::time::Duration;

use crate::data;
use crate::fifo::Fifo;
use crate::plan::Plan;
use crate::plan::layout::MOST_ELEMENTS;
use crate::trace::Trace;
pub use crate::types::Backend;
use crate::types::{ChannelId, DType, Factors, Rank, RedOp, UnknownName};

/// Prepares a plan on a back end.
///
/// # Errors
/// [`ExecError::Refused`] when the request exceeds a limit or the back end is not there, [`ExecError::Device`] when something fails.
pub fn open(backend: Backend, spec: SessionSpec) -> Result<Box<dyn Session>, ExecError> {
    match backend {
        Backend::Cpu => cpu::open(spec),
        #[cfg(feature = "cuda")]
        Backend::Cuda => cuda::open(spec),
        #[cfg(not(feature = "cuda"))]
        Backend::Cuda => Err(ExecError::Refused(
            "this build has no CUDA back end; build with the feature `cuda` or choose the CPU back end"
                .into(),
        )),
    }
}

/// Refuses an input that is not the rank's.
fn refuse_input(rank: Rank, ranks: u32, bytes: u64, wanted: u64) -> Result<(), ExecError> {
    if rank.0 >= ranks {
        return Err(ExecError::Refused(format!("there is no rank {rank}: the session has {ranks}")));
    }
    if bytes != wanted {
        return Err(ExecError::Refused(format!("rank {rank}'s input has {wanted} bytes, not {bytes}")));
    }
    Ok(())
}

/// Refuses blocks beyond what can be counted.
pub(crate) fn refuse_block(block: u64) -> Result<(), ExecError> {
    match block <= MOST_ELEMENTS {
        true => Ok(()),
        false => Err(ExecError::Refused(format!("a block of {block} elements does not fit any memory"))),
    }
}

/// Refuses what no back end can do.
pub(crate) fn refuse_in_place(spec: &SessionSpec) -> Result<(), ExecError> {
    let collective = spec.plan.collective;
    match spec.in_place && collective.alias().is_none() {
        true => Err(ExecError::Refused(collective.no_in_place().en)),
        false => Ok(()),
    }
}

/// What every rank's input is multiplied by, as bits of the type: `None` where the reduction or the collective has no such factors.
fn factors(spec: &SessionSpec) -> Result<Option<Vec<u64>>, ExecError> {
    let SessionSpec { plan, dtype, op, factors, .. } = spec;
    if *op != RedOp::PreMulSum || !plan.collective.reduces() {
        return Ok(None);
    }
    let bits = match factors {
        Factors::Parity => {
            (0..plan.ranks).map(|rank| data::encode(*dtype, data::parity_factor(Rank(rank)))).collect()
        }
        Factors::Bits(bits) => bits.clone(),
    };
    if bits.len() != plan.ranks as usize {
        let got = bits.len();
        return Err(ExecError::Refused(format!("{got} factors for {} ranks; give one for each", plan.ranks)));
    }
    let unused = u64::MAX.checked_shl(8 * dtype.size() as u32).unwrap_or(0);
    if let Some(rank) = bits.iter().position(|bits| bits & unused != 0) {
        let (got, size) = (bits[rank], dtype.size());
        return Err(ExecError::Refused(format!(
            "rank {rank}'s factor {got:#x} is not a {dtype}; give the {size} bytes of a value, the rest zero"
        )));
    }
    Ok(Some(bits))
}

/// Refuses a check whose expected values are not those of the session's factors.
fn refuse_check(spec_factors: &Factors) -> Result<(), ExecError> {
    match spec_factors {
        Factors::Parity => Ok(()),
        Factors::Bits(_) => Err(ExecError::Refused(
            "results are exact for nccl-tests' factors (1 or 2 by rank parity) only; open the session with those to check it".into(),
        )),
    }
}

/// One plan at one size, as a caller asks for it.
#[derive(Debug, Clone)]
pub struct SessionSpec {
    pub plan: Plan,
    /// Elements of one block (see [`crate::types::Collective::input_blocks`]); 0 is allowed and moves nothing.
    pub block: u64,
    pub dtype: DType,
    pub op: RedOp,
    /// For [`RedOp::PreMulSum`] only. In place every input is multiplied where it lies before the plan starts: the other blocks of a
    /// reduce-scatter's input stay multiplied.
    pub factors: Factors,
    pub in_place: bool,
    /// Payload bytes of one step of a connection.
    pub slot_bytes: usize,
    pub fifo: Fifo,
    /// Longest one execution may take before it is stopped and reported as [`ExecError::Stalled`].
    pub deadline: Duration,
    /// Devices by rank, `rank % devices.len()`; ranks may share one. Ignored by the CPU backend.
    pub devices: Vec<u32>,
    /// Most spans a trace keeps over all ranks.
    pub trace_spans: usize,
    pub kernel: KernelChoice,
}

/// What executes a plan without tracing. A traced execution always interprets: its spans are the plan's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KernelChoice {
    /// The specialised one where there is one, else the interpreter.
    #[default]
    Auto,
    /// Carries out the plan step by step.
    Interpreter,
    /// A kernel made for plans of this kind; refused where there is none.
    Specialised,
    /// The interpreter, on programs rewritten for one launch of all ranks so that none waits for another ([`optimise`]); refused where that
    /// cannot be. [`KernelChoice::Auto`] does so where it can and no specialised kernel serves.
    Fused,
}

impl KernelChoice {
    pub const ALL: [KernelChoice; 4] =
        [KernelChoice::Auto, KernelChoice::Interpreter, KernelChoice::Specialised, KernelChoice::Fused];

    pub const fn name(self) -> &'static str {
        match self {
            KernelChoice::Auto => "auto",
            KernelChoice::Interpreter => "interpreter",
            KernelChoice::Specialised => "specialised",
            KernelChoice::Fused => "fused",
        }
    }
}

impl std::str::FromStr for KernelChoice {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        KernelChoice::ALL.into_iter().find(|k| k.name() == s).ok_or_else(|| UnknownName {
            what: "kernel",
            got: s.into(),
            known: "auto, interpreter, specialised, fused",
        })
    }
}

/// A prepared plan: buffers allocated, connections made, kernels loaded. Dropping it frees everything.
pub trait Session: Send {
    /// Fills every rank's input with the exact inputs of [`crate::data`] for this seed and its output with a poison pattern.
    fn fill(&mut self, seed: u64) -> Result<(), ExecError>;

    /// Replaces a rank's whole input, little-endian elements; in place the rest of the rank's memory stays as it is. What an execution
    /// then gives is not what [`Session::check`] expects.
    ///
    /// # Errors
    /// Refused when there is no such rank, when the length is not the input's, or by sessions whose inputs are filled by seed only.
    fn write_input(&mut self, rank: Rank, elements: &[u8]) -> Result<(), ExecError> {
        Err(ExecError::Refused(format!(
            "rank {rank}'s input cannot be replaced by {} bytes: this session's inputs are filled by seed only",
            elements.len()
        )))
    }

    /// Executes the collective `iters` times back to back without tracing. In-place runs of a reduction accumulate: fill again before
    /// checking.
    fn run(&mut self, iters: u32) -> Result<Timing, ExecError>;

    /// Records the launches of `iters` executions once, as a CUDA graph, and has the device run them `replays` times. The timing's
    /// iterations are those of all replays.
    ///
    /// # Errors
    /// Refused by a back end or a session that has no graphs, else as [`Session::run`].
    fn replay(&mut self, iters: u32, replays: u32) -> Result<Timing, ExecError> {
        Err(ExecError::Refused(format!(
            "{iters} executions cannot be replayed {replays} times as a CUDA graph: the {} back end has no graphs; run them instead",
            self.describe().backend
        )))
    }

    /// Executes once with tracing on.
    fn run_traced(&mut self) -> Result<(Timing, Trace), ExecError>;

    /// Compares every element of every rank's output (and, out of place, that the input is unchanged) with the expected values for
    /// this seed after exactly one execution since `fill`.
    fn check(&mut self, seed: u64) -> Result<CheckReport, ExecError>;

    /// Copy of a rank's whole output, little-endian elements.
    fn output(&mut self, rank: Rank) -> Result<Vec<u8>, ExecError>;

    /// `cpu` or `cuda`, and what it ran on, for reports.
    fn describe(&self) -> Hardware;
}

#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// Host wall clock from before the first launch to after the last rank has finished.
    pub wall: Duration,
    /// One value per iteration where the backend can tell them apart (it then says how in `clock`), else empty.
    pub iterations: Vec<Duration>,
    pub clock: &'static str,
    /// Payload bytes each rank sent to or read from other ranks during one execution, counted by the executor as it moved them. Those
    /// of a specialised kernel are the plan's, summed over its steps: the kernel has the plan's result, not its steps.
    pub moved_bytes: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    pub elements: u64,
    pub wrong: u64,
    pub first_wrong: Option<WrongElement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongElement {
    pub rank: Rank,
    pub index: u64,
    /// Printed values, exact.
    pub expected: String,
    pub got: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    pub backend: &'static str,
    pub device: String,
    /// Driver version for a GPU, kernel release for a CPU.
    pub driver: String,
    pub devices: u32,
    /// What carries out an execution without tracing: `interpreter`, or the name of a specialised kernel.
    pub kernel: &'static str,
}

/// What a stopped wait was waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    Data,
    Credit,
    Signal,
}

/// Record a stopped rank leaves: who waited where, for whom, and the counters it saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    pub rank: Rank,
    pub channel: ChannelId,
    pub peer: Rank,
    pub step: u32,
    pub tile: u64,
    pub waiting_for: WaitKind,
    /// Steps the consumer of the connection has freed, and the producer has filled, when the wait was stopped. For a signal: those
    /// taken, and those given.
    pub head: u64,
    pub tail: u64,
}

impl std::fmt::Display for Stall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.waiting_for {
            WaitKind::Data => "data",
            WaitKind::Credit => "a free slot",
            WaitKind::Signal => "a signal",
        };
        write!(
            f,
            "rank {} channel {} step {} tile {} waited for {what} of rank {} (head {}, tail {})",
            self.rank, self.channel, self.step, self.tile, self.peer, self.head, self.tail
        )
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The request cannot run here; the text says which limit, with the figures, and what to change.
    #[error("{0}")]
    Refused(String),
    #[error("the collective did not finish within {} ms and was stopped; {}", deadline.as_millis(), list(stalls))]
    Stalled { deadline: Duration, stalls: Vec<Stall> },
    #[error("{context}: {message}")]
    Device { context: String, message: String },
}

fn list(stalls: &[Stall]) -> String {
    match stalls {
        [] => {
            "no rank was waiting for another: it was slow, not stuck; use a longer deadline or a smaller size"
                .into()
        }
        _ => stalls.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    }
}
