//! What can go wrong in a communicator.

use crate::exec::ExecError;
use crate::types::Rank;

/// Each text says what happened, with which values, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommError {
    /// A value outside its range.
    #[error("{0}")]
    InvalidArgument(String),
    /// Calls that do not fit together.
    #[error("{0}")]
    InvalidUsage(String),
    /// The operating system refused: sockets, files, memory.
    #[error("{0}")]
    System(String),
    /// The device or its driver failed.
    #[error("{0}")]
    Device(String),
    /// Another rank failed or is gone.
    #[error("rank {rank}: {why}")]
    Remote { rank: Rank, why: String },
    /// Someone called abort.
    #[error("the communicator was aborted: {0}")]
    Aborted(String),
    #[error("{0}")]
    Timeout(String),
    /// Valid, but not offered here.
    #[error("{0}")]
    Unsupported(String),
}

impl From<ExecError> for CommError {
    fn from(error: ExecError) -> CommError {
        match error {
            ExecError::Refused(why) => CommError::InvalidUsage(why),
            ExecError::Stalled { .. } => CommError::Timeout(error.to_string()),
            ExecError::Device { .. } => CommError::Device(error.to_string()),
        }
    }
}
