//! What this library needs of the engine: one rank of a communicator.

use std::fmt::Debug;

use ringlab_engine::comm::{CommError, Communicator, Config, Operation, Part, UniqueId};
use ringlab_engine::exec::cuda::ForeignStream;

use crate::abi::CudaStream;

/// One rank of a communicator that has formed. Dropping it leaves.
pub trait Line: Debug + Send + Sync {
    fn ranks(&self) -> u32;
    fn rank(&self) -> u32;
    fn device(&self) -> u32;
    fn enqueue(&self, ops: &[Operation], stream: CudaStream) -> Result<(), CommError>;
    /// Itself, where several can be queued as one group.
    fn communicator(&self) -> Option<&Communicator> {
        None
    }
    /// Microseconds that an operation would take by the tuner's profile.
    fn predicted_us(&self, op: &Operation) -> Result<f64, CommError>;
    fn split(&self, color: Option<u32>, key: i32, config: Config)
    -> Result<Option<Box<dyn Line>>, CommError>;
    fn finalize(&self) -> Result<(), CommError>;
    fn abort(&self, why: &str);
    fn async_error(&self) -> Option<CommError>;
}

/// Joins a communicator; returns when all ranks have.
pub fn init(
    id: &UniqueId,
    ranks: u32,
    rank: u32,
    device: u32,
    config: Config,
) -> Result<Box<dyn Line>, CommError> {
    Ok(Box::new(Communicator::init(id, ranks, rank, device, config)?))
}

/// One rank's share of a group.
pub struct Share<'a> {
    pub line: &'a dyn Line,
    pub ops: &'a [Operation],
    pub stream: CudaStream,
}

impl<'a> Share<'a> {
    fn part(&self) -> Option<Part<'a>> {
        let comm = self.line.communicator()?;
        Some(Part { comm, ops: self.ops, stream: ForeignStream(self.stream) })
    }
}

/// Queues several ranks' operations. Nothing waits for another rank before all are queued.
///
/// # Errors
/// Which share failed, by its number, and why.
pub fn enqueue_group(shares: &[Share<'_>]) -> Result<(), (usize, CommError)> {
    if shares.len() > 1
        && let Some(parts) = shares.iter().map(Share::part).collect::<Option<Vec<_>>>()
    {
        return Communicator::enqueue_group(&parts).map(drop).map_err(|failed| (failed.part, failed.error));
    }
    let mut all = shares.iter().enumerate();
    all.try_for_each(|(nth, share)| share.line.enqueue(share.ops, share.stream).map_err(|error| (nth, error)))
}

impl Line for Communicator {
    fn ranks(&self) -> u32 {
        self.ranks()
    }

    fn rank(&self) -> u32 {
        self.rank()
    }

    fn device(&self) -> u32 {
        self.device()
    }

    fn enqueue(&self, ops: &[Operation], stream: CudaStream) -> Result<(), CommError> {
        self.enqueue(ops, ForeignStream(stream)).map(drop)
    }

    fn communicator(&self) -> Option<&Communicator> {
        Some(self)
    }

    fn predicted_us(&self, op: &Operation) -> Result<f64, CommError> {
        self.predicted_us(op)
    }

    fn split(
        &self,
        color: Option<u32>,
        key: i32,
        config: Config,
    ) -> Result<Option<Box<dyn Line>>, CommError> {
        Ok(self.split(color, key, config)?.map(|new| Box::new(new) as Box<dyn Line>))
    }

    fn finalize(&self) -> Result<(), CommError> {
        self.finalize()
    }

    fn abort(&self, why: &str) {
        self.abort(why);
    }

    fn async_error(&self) -> Option<CommError> {
        self.async_error()
    }
}
