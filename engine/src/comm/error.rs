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

impl CommError {
    /// Number on the wire between ranks, and the rank it is about.
    pub(super) fn code(&self) -> (u8, Option<Rank>) {
        match self {
            CommError::InvalidArgument(_) => (0, None),
            CommError::InvalidUsage(_) => (1, None),
            CommError::System(_) => (2, None),
            CommError::Device(_) => (3, None),
            CommError::Remote { rank, .. } => (4, Some(*rank)),
            CommError::Aborted(_) => (5, None),
            CommError::Timeout(_) => (6, None),
            CommError::Unsupported(_) => (7, None),
        }
    }

    /// The text without what the variant itself adds.
    pub(super) fn text(&self) -> &str {
        match self {
            CommError::InvalidArgument(why)
            | CommError::InvalidUsage(why)
            | CommError::System(why)
            | CommError::Device(why)
            | CommError::Aborted(why)
            | CommError::Timeout(why)
            | CommError::Unsupported(why)
            | CommError::Remote { why, .. } => why,
        }
    }

    /// Reverse of [`CommError::code`] and [`CommError::text`]; an unknown number is a peer's system error.
    pub(super) fn from_parts(code: u8, rank: Option<Rank>, why: String) -> CommError {
        match (code, rank) {
            (0, _) => CommError::InvalidArgument(why),
            (1, _) => CommError::InvalidUsage(why),
            (3, _) => CommError::Device(why),
            (4, Some(rank)) => CommError::Remote { rank, why },
            (5, _) => CommError::Aborted(why),
            (6, _) => CommError::Timeout(why),
            (7, _) => CommError::Unsupported(why),
            _ => CommError::System(why),
        }
    }
}
