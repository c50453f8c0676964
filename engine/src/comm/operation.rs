//! What a rank asks of its communicator.

use std::path::PathBuf;
use std::time::Duration;

use super::error::CommError;
use super::faults::Faults;
use crate::plan::MAX_CHANNELS;
use crate::tuner::Overrides;
use crate::types::{Collective, DType, Rank, RedOp};

/// One call. Addresses are of device memory, counts in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Collective {
        collective: Collective,
        send: u64,
        recv: u64,
        /// Elements of one block ([`Collective::input_blocks`]).
        block: u64,
        dtype: DType,
        op: RedOp,
        /// For a pre-multiplied sum.
        factor: Option<Scalar>,
    },
    Send {
        to: Rank,
        buffer: u64,
        count: u64,
        dtype: DType,
    },
    Recv {
        from: Rank,
        buffer: u64,
        count: u64,
        dtype: DType,
    },
    /// What comes behind it on a rank's stream starts when all ranks have come to it on theirs.
    Barrier,
}

impl Operation {
    /// Elements of a block or a message.
    pub const fn block(&self) -> u64 {
        match *self {
            Operation::Collective { block, .. } => block,
            Operation::Send { count, .. } | Operation::Recv { count, .. } => count,
            Operation::Barrier => 0,
        }
    }

    /// Of its elements; bytes where it has none.
    pub const fn dtype(&self) -> DType {
        match *self {
            Operation::Collective { dtype, .. }
            | Operation::Send { dtype, .. }
            | Operation::Recv { dtype, .. } => dtype,
            Operation::Barrier => DType::U8,
        }
    }

    /// Bytes that a rank of so many sends at the least, where all share the load.
    pub fn sent_bytes(&self, ranks: u32) -> u64 {
        let bytes = self.block().saturating_mul(self.dtype().size() as u64);
        match *self {
            Operation::Collective { collective, .. } => {
                let blocks = collective.input_blocks(ranks).max(collective.output_blocks(ranks));
                (bytes.saturating_mul(blocks.into()) as f64 * collective.busbw_factor(ranks)) as u64
            }
            Operation::Send { .. } => bytes,
            Operation::Recv { .. } | Operation::Barrier => 0,
        }
    }
}

/// A factor of the operation's element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Its bit pattern, in the low bytes.
    Bits(u64),
    /// Where it is on the device, read when the operation runs.
    Device(u64),
}

/// What a communicator is made with. All ranks give the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Longest that starting, splitting or ending may take.
    pub setup_deadline: Duration,
    /// Longest that a kernel may wait for its peers. Ranks may come late to an operation, so it is long.
    pub deadline: Duration,
    pub min_channels: u32,
    pub max_channels: u32,
    /// Bytes of a FIFO slot; a connection has [`crate::plan::SLOTS`].
    pub slot_bytes: u64,
    /// Compare what all ranks ask for before any data moves, at the price of a round over sockets per operation.
    pub check_mismatch: bool,
    /// What stands above the tuner's own choice; nothing here means the variables of this process.
    pub overrides: Option<Overrides>,
    /// The tuner's profile; nothing here means the one that `RINGLAB_TUNER_PROFILE` names, else one that comes with the engine.
    pub profile: Option<PathBuf>,
    /// What this rank does wrong on purpose; nothing here means what `RINGLAB_FAULT` says.
    pub faults: Option<Faults>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            setup_deadline: Duration::from_secs(60),
            deadline: Duration::from_secs(600),
            min_channels: 1,
            max_channels: 16,
            slot_bytes: 128 << 10,
            check_mismatch: false,
            overrides: None,
            profile: None,
            faults: None,
        }
    }
}

impl Config {
    /// # Errors
    /// Values that no communicator can be made with.
    pub fn check(&self) -> Result<(), CommError> {
        let wrong = |why: String| Err(CommError::InvalidArgument(why));
        if self.min_channels == 0 || self.min_channels > self.max_channels || self.max_channels > MAX_CHANNELS
        {
            return wrong(format!(
                "channels from {} to {}; choose at least 1, at most {MAX_CHANNELS}, and no more at least than at most",
                self.min_channels, self.max_channels
            ));
        }
        if !self.slot_bytes.is_multiple_of(16) || !(16..=1 << 30).contains(&self.slot_bytes) {
            return wrong(format!(
                "a FIFO slot of {} bytes; choose a multiple of 16 up to 1 GiB",
                self.slot_bytes
            ));
        }
        Ok(())
    }
}
