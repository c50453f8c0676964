//! A [`Session`] over communicators of one process: one thread queues every execution as one group of all ranks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::communicator::{Communicator, Part};
use super::error::CommError;
use super::id::UniqueId;
use super::operation::{Config, Operation, Scalar};
use super::session::failed;
use crate::exec::cuda::ForeignStream;
use crate::exec::cuda::rank::{Factor, RankBuffers};
use crate::exec::{CheckReport, ExecError, Hardware, Session, SessionSpec, Timing};
use crate::trace::Trace;
use crate::types::Rank;

/// All ranks of a communicator in this process, on these devices.
///
/// # Errors
/// As [`Communicator::init`].
pub fn init_all(devices: &[u32], config: &Config) -> Result<Vec<Arc<Communicator>>, CommError> {
    let id = UniqueId::create(None)?;
    let ranks = devices.len() as u32;
    let init = |(rank, device): (u32, u32)| Communicator::init(&id, ranks, rank, device, config.clone());
    let init = &init;
    // Each waits for all others.
    let formed: Vec<Result<Communicator, CommError>> = std::thread::scope(|scope| {
        let start = |(rank, device): (u32, &u32)| {
            let device = *device;
            scope.spawn(move || init((rank, device)))
        };
        let threads: Vec<_> = (0..).zip(devices).map(start).collect();
        let panicked = |_| Err(CommError::System("a thread that joins a communicator has panicked".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    formed.into_iter().map(|comm| comm.map(Arc::new)).collect()
}

/// Which streams a group's ranks queue on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Each its own, as programs have them.
    Each,
    /// All the first rank's: nothing has to be joined.
    One,
}

/// Buffers of all ranks of a communicator. What is executed is what the communicators choose: of the spec's plan, collective and ranks
/// count.
#[derive(Debug)]
pub struct GroupSession {
    comms: Vec<Arc<Communicator>>,
    spec: SessionSpec,
    streams: Streams,
    /// By rank.
    buffers: Vec<RankBuffers>,
}

/// `comms` are all ranks of a communicator, in order.
///
/// # Errors
/// As [`super::session::open`].
pub fn open(
    comms: &[Arc<Communicator>],
    spec: SessionSpec,
    streams: Streams,
) -> Result<GroupSession, ExecError> {
    if comms.len() != spec.plan.ranks as usize {
        return Err(ExecError::Refused(format!(
            "{} communicators for {} ranks; give all of one communicator",
            comms.len(),
            spec.plan.ranks
        )));
    }
    let buffers = |(rank, comm): (u32, &Arc<Communicator>)| {
        comm.with_port(|port| RankBuffers::new(port, &spec, Rank(rank))).map_err(failed)
    };
    let buffers = (0..).zip(comms).map(buffers).collect::<Result<Vec<_>, _>>()?;
    Ok(GroupSession { comms: comms.to_vec(), spec, streams, buffers })
}

impl GroupSession {
    /// What a rank calls for.
    pub fn operation(&self, rank: Rank) -> Operation {
        let SessionSpec { plan, block, dtype, op, .. } = &self.spec;
        let buffers = &self.buffers[rank.index()];
        let (send, recv) = buffers.addresses();
        let factor = buffers.factor().map(|factor| match factor {
            Factor::Bits(bits) => Scalar::Bits(bits),
            Factor::Device(at) => Scalar::Device(at),
        });
        let (block, dtype, op) = (*block, *dtype, *op);
        Operation::Collective { collective: plan.collective, send, recv, block, dtype, op, factor }
    }

    pub fn stream(&self, rank: Rank) -> ForeignStream {
        match self.streams {
            Streams::Each => self.buffers[rank.index()].stream(),
            Streams::One => self.buffers[0].stream(),
        }
    }

    /// Waits for everything queued on the ranks' streams.
    pub fn finish(&self) -> Result<(), ExecError> {
        let finished = self.buffers.iter().map(RankBuffers::finish).fold(Ok(()), Result::and);
        let error = self.comms.iter().find_map(|comm| comm.async_error());
        finished.and(error.map_or(Ok(()), |error| Err(failed(error))))
    }

    /// Queues so many executions, each a group.
    fn queue(&self, executions: u32) -> Result<(), ExecError> {
        let ranks = || (0..self.spec.plan.ranks).map(Rank);
        let ops: Vec<[Operation; 1]> = ranks().map(|rank| [self.operation(rank)]).collect();
        let part = |rank: Rank| Part {
            comm: &self.comms[rank.index()],
            ops: &ops[rank.index()],
            stream: self.stream(rank),
        };
        let parts: Vec<Part<'_>> = ranks().map(part).collect();
        let queue = |_| Communicator::enqueue_group(&parts).map(drop).map_err(|why| failed(why.error));
        (0..executions).try_for_each(queue)
    }

    fn timing(&self, wall: Duration) -> Timing {
        Timing {
            wall,
            iterations: vec![],
            clock: "host clock, from before the first group to after the last rank",
            // One launch moves all ranks' data; no rank sends.
            moved_bytes: vec![],
        }
    }
}

impl Session for GroupSession {
    fn fill(&mut self, seed: u64) -> Result<(), ExecError> {
        self.buffers.iter().try_for_each(|buffers| buffers.fill(seed))
    }

    fn run(&mut self, iters: u32) -> Result<Timing, ExecError> {
        let started = Instant::now();
        let queued = self.queue(iters);
        let finished = self.finish();
        let wall = started.elapsed();
        queued.and(finished)?;
        Ok(self.timing(wall))
    }

    fn replay(&mut self, iters: u32, replays: u32) -> Result<Timing, ExecError> {
        let wall = RankBuffers::replay(&self.buffers, replays, || self.queue(iters))?;
        self.finish()?;
        Ok(self.timing(wall))
    }

    fn run_traced(&mut self) -> Result<(Timing, Trace), ExecError> {
        Err(ExecError::Refused(
            "a timeline is recorded by sessions of one plan only; run without --threads".into(),
        ))
    }

    fn check(&mut self, seed: u64) -> Result<CheckReport, ExecError> {
        let mut total = CheckReport { elements: 0, wrong: 0, first_wrong: None };
        for buffers in &self.buffers {
            let report = buffers.check(seed)?;
            total.elements += report.elements;
            total.wrong += report.wrong;
            total.first_wrong = total.first_wrong.or(report.first_wrong);
        }
        Ok(total)
    }

    fn output(&mut self, rank: Rank) -> Result<Vec<u8>, ExecError> {
        self.buffers[rank.index()].output()
    }

    fn describe(&self) -> Hardware {
        let device = self.comms[0].device();
        let apart = self.comms.iter().any(|comm| comm.device() != device);
        let factors = self.buffers[0].factor().is_some();
        Hardware {
            kernel: if apart || factors { "interpreter" } else { "direct" },
            ..self.buffers[0].describe()
        }
    }
}
