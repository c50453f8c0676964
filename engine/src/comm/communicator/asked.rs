//! What a rank asks for and what of it is launched: the same, unless it does something wrong on purpose.

use std::borrow::Cow;

use rustix::process::{Signal, getpid, kill_process};

use super::Shared;
use crate::comm::debug::log;
use crate::comm::error::CommError;
use crate::comm::operation::Operation;
use crate::plan::layout::MOST_ELEMENTS;

/// One rank's operations of a group, taken down in the flight record.
pub(super) struct Asked<'a> {
    pub all: Cow<'a, [Operation]>,
    pub launched: Cow<'a, [Operation]>,
    /// Numbers of `launched` in the flight record.
    pub sequences: Vec<u64>,
}

impl Shared {
    /// Comes late, asks for something else, or does not come back, where that was wished for.
    ///
    /// # Errors
    /// The communicator's failure while it waited, or a fault that cannot be done.
    pub(super) fn ask<'a>(&self, ops: &'a [Operation]) -> Result<Asked<'a>, CommError> {
        let recorder = &self.recorder;
        if self.faults.is_empty() {
            let sequences = ops.iter().map(|op| recorder.enqueued(op)).collect();
            return Ok(Asked { all: ops.into(), launched: ops.into(), sequences });
        }
        let effects =
            (recorder.next()..).zip(ops).map(|(number, op)| self.faults.effects(number, op, self.ranks));
        let effects = effects.collect::<Result<Vec<_>, _>>()?;
        for effect in &effects {
            if let Some(note) = &effect.note {
                log!(Warn, Coll, "rank {}: on purpose: {note} at {:?}", self.rank, effect.operation);
            }
            if let Some(failure) = self.bootstrap.state().wait_failure(effect.wait) {
                return Err(failure.error);
            }
            if effect.kill {
                kill_process(getpid(), Signal::KILL)
                    .map_err(|why| CommError::System(format!("this process cannot be killed: {why}")))?;
            }
        }
        if effects.iter().any(|effect| effect.starve)
            && let Some(port) = self.port().as_mut()
        {
            port.starve_senders()?;
        }
        let mut asked = Asked { all: vec![].into(), launched: vec![].into(), sequences: vec![] };
        for effect in effects {
            let sequence = recorder.enqueued(&effect.operation);
            if let Some(note) = &effect.note {
                recorder.injected(sequence, note);
            }
            asked.all.to_mut().push(effect.operation);
            if !effect.dropped {
                asked.launched.to_mut().push(effect.operation);
                asked.sequences.push(sequence);
            }
        }
        Ok(asked)
    }
}

/// Refuses a count whose bytes cannot be told.
pub(super) fn refuse_count(count: u64) -> Result<(), CommError> {
    if count <= MOST_ELEMENTS {
        return Ok(());
    }
    Err(CommError::InvalidArgument(format!("a count of {count} elements does not fit any memory")))
}
