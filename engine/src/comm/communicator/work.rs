//! What was queued, as a handle: asked for, waited for by the host or by other streams (PyTorch's `Work`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Communicator, Shared};
use crate::comm::error::CommError;
use crate::comm::operation::Operation;
use crate::exec::cuda::ForeignStream;
use crate::exec::cuda::rank::{Mark, Port};

/// How long the host looks without a pause before it begins to sleep between looks, and for how long it sleeps at most.
const SPIN: Duration = Duration::from_micros(100);
const NAP: Duration = Duration::from_millis(1);

/// One group of a rank's operations on the device's queue. Dropping it costs nothing and changes nothing.
#[derive(Debug)]
pub struct Work {
    shared: Arc<Shared>,
    /// In the flight record.
    sequences: Vec<u64>,
    queued: Queued,
    /// It was seen to have ended well: what happens later does not change that.
    done: AtomicBool,
}

#[derive(Debug)]
pub(super) enum Queued {
    /// There was nothing to do.
    Nothing,
    At(Mark),
    /// Into a graph: it runs when the graph does.
    Recorded,
}

impl Queued {
    pub(super) fn behind(port: &Port, captures: bool) -> Queued {
        if captures { Queued::Recorded } else { port.mark().map_or(Queued::Nothing, Queued::At) }
    }
}

impl Work {
    pub(super) fn new(shared: &Arc<Shared>, sequences: Vec<u64>, queued: Queued) -> Work {
        Work { shared: shared.clone(), sequences, queued, done: AtomicBool::new(false) }
    }

    /// Whether it has ended: buffers hold the result, and may be used again.
    ///
    /// # Errors
    /// The communicator's failure, unless this had been seen to end before. [`CommError::InvalidUsage`] for what was recorded into a
    /// graph.
    pub fn is_done(&self) -> Result<bool, CommError> {
        // Relaxed: it only ever rises, and the driver orders the data.
        if self.done.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let passed = match &self.queued {
            Queued::Nothing => true,
            Queued::At(mark) => mark.has_passed()?,
            Queued::Recorded => return Err(recorded()),
        };
        // After the event: a kernel that was stopped has ended as well, and stopped ones raise the abort word first.
        self.shared.healthy()?;
        if passed {
            self.done.store(true, Ordering::Relaxed);
            self.sequences.iter().for_each(|sequence| self.shared.recorder.done(*sequence));
        }
        Ok(passed)
    }

    /// Waits on the host until it has ended.
    ///
    /// # Errors
    /// [`CommError::Timeout`] after this time, which ends nothing: it can be waited for again. Else as [`Work::is_done`].
    pub fn wait(&self, deadline: Duration) -> Result<(), CommError> {
        let began = Instant::now();
        let mut nap = NAP / 32;
        loop {
            if self.is_done()? {
                return Ok(());
            }
            let waited = began.elapsed();
            if waited >= deadline {
                return Err(CommError::Timeout(format!(
                    "rank {}: {} had not ended after {} ms; the flight record says how far each call came",
                    self.shared.rank,
                    self.name(),
                    deadline.as_millis()
                )));
            }
            if waited < SPIN {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(nap.min(deadline - waited));
                nap = (nap * 2).min(NAP);
            }
        }
    }

    /// What this stream of the rank's device queues from now on starts after it. The host does not wait.
    ///
    /// # Errors
    /// When the driver refuses, or as [`Work::is_done`] for what was recorded into a graph: there the streams' own order counts.
    pub fn block(&self, stream: ForeignStream) -> Result<(), CommError> {
        match &self.queued {
            Queued::Nothing => Ok(()),
            Queued::At(mark) => Ok(mark.block(stream)?),
            Queued::Recorded => Err(recorded()),
        }
    }

    fn name(&self) -> String {
        match self.sequences[..] {
            [] => "an empty group".into(),
            [only] => format!("call #{only}"),
            [first, .., last] => format!("calls #{first} to #{last}"),
        }
    }
}

fn recorded() -> CommError {
    CommError::InvalidUsage(
        "this was recorded into a graph and runs whenever the graph is launched; wait for the stream of that launch".into(),
    )
}

impl Communicator {
    /// A barrier on the device: what comes behind it on this stream starts when every rank's stream has come to its barrier. Returns before
    /// that.
    ///
    /// # Errors
    /// As [`Communicator::enqueue`].
    pub fn barrier(&self, stream: ForeignStream) -> Result<Work, CommError> {
        self.enqueue(&[Operation::Barrier], stream)
    }

    /// A barrier of the hosts: returns when every rank has called it, whatever their devices do. From one thread at a time.
    ///
    /// # Errors
    /// [`CommError::Timeout`] names the ranks that have not called it; else the failure of the communicator.
    pub fn host_barrier(&self, deadline: Duration) -> Result<(), CommError> {
        self.shared.alive()?;
        self.shared.bootstrap.barrier(deadline)
    }
}
