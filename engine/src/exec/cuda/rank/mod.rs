//! One rank of a communicator on its device: what a process of its own, or a thread, needs to take part. The interpreter runs this
//! rank's programs of a plan; FIFOs to the peers' memory carry everything, so no peer's user buffer has to be mapped. Those that are
//! registered may be read where they are, and ranks of one process may run as one launch.

mod arena;
mod batch;
mod buffers;
mod fusion;
mod group;
mod local;
mod mailbox;
mod mark;
mod messages;
mod port;
mod programs;
mod ready;
mod starve;
#[cfg(test)]
mod tests;
mod windows;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use buffers::RankBuffers;
pub(crate) use group::{Group, Member};
pub use mailbox::Card;
use mailbox::Mailbox;
pub use mark::Mark;
pub use port::{Abort, Port};
pub(crate) use windows::algorithm as registered_algorithm;
pub use windows::{WindowCard, WindowId};

use super::driver::{self, Device};
use super::foreign::Visit;
use crate::exec::ExecError;
use crate::fifo::Protocol;
use crate::plan::Algorithm;
use crate::types::{Collective, DType, Rank, RedOp};

/// What all ranks of a communicator have in common, and this rank's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub rank: u32,
    pub ranks: u32,
    /// Most channels of any plan.
    pub channels: u32,
    /// Bytes of a FIFO slot: a multiple of 16.
    pub slot_bytes: u64,
}

/// Payload of a slot of lines: they are for short messages, and NCCL's LL has as much for 512 threads.
const LINE_PAYLOAD: u64 = 32 << 10;

impl Shape {
    /// Payload bytes of a slot.
    pub fn payload(&self, protocol: Protocol) -> u64 {
        if protocol == Protocol::Simple { self.slot_bytes } else { self.slot_bytes.min(LINE_PAYLOAD) }
    }
}

/// Which plan a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schedule {
    Standard {
        algorithm: Algorithm,
        channels: u32,
        protocol: Protocol,
    },
    /// One that was given to the port before, by the second.
    Given(usize, Protocol),
}

impl Schedule {
    pub fn protocol(&self) -> Protocol {
        match *self {
            Schedule::Standard { protocol, .. } | Schedule::Given(_, protocol) => protocol,
        }
    }
}

/// A collective on the caller's buffers, as all ranks call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub collective: Collective,
    pub schedule: Schedule,
    /// Elements.
    pub block: u64,
    pub dtype: DType,
    pub op: RedOp,
    /// What a [`RedOp::PreMulSum`] multiplies this rank's input by. In place the input is multiplied where it lies, all of it.
    pub factor: Option<Factor>,
    /// Addresses on this rank's device.
    pub input: u64,
    pub output: u64,
    pub in_place: bool,
}

impl Call {
    /// The factor, where there is something to multiply.
    fn factor(&self) -> Option<Factor> {
        self.factor.filter(|_| self.op == RedOp::PreMulSum && self.collective.reduces())
    }
}

/// A value of the operation's element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factor {
    /// Its bits, in the low bytes.
    Bits(u64),
    /// Where it is on the device, read when the operation runs.
    Device(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    Send,
    Receive,
    /// From this rank to itself.
    Own,
}

/// A message of this rank to or from a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    pub way: Way,
    pub peer: Rank,
    pub address: u64,
    pub bytes: u64,
}

/// A rank that has told its card and waits for those of the others.
pub struct Opening {
    device: Arc<Device>,
    shape: Shape,
    mailbox: Mailbox,
}

impl Opening {
    /// # Errors
    /// Refused when there is no such device or not enough memory on it.
    pub fn new(device: u32, shape: Shape) -> Result<Opening, ExecError> {
        driver::start()?;
        let count = driver::device_count()?;
        if device >= count {
            return Err(ExecError::Refused(format!("there is no device {device}; the driver shows {count}")));
        }
        let device = Device::open(device)?;
        let _visit = Visit::begin(&device)?;
        let mailbox = Mailbox::new(&device, shape)?;
        Ok(Opening { device, shape, mailbox })
    }

    pub fn card(&self) -> Result<Card, ExecError> {
        let _visit = Visit::begin(&self.device)?;
        self.mailbox.card()
    }

    /// `cards` of all ranks, this one's among them.
    pub fn connect(self, cards: &[Card], deadline: Duration) -> Result<Port, ExecError> {
        Port::new(self, cards, deadline)
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").field("device", &self.device.ordinal).field("shape", &self.shape).finish()
    }
}
