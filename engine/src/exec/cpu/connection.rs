//! What a task asks of a connection, whatever protocol it has. Each kind is compiled into tasks of its own: the messages of the simplest
//! one are counted in nanoseconds, and pay for no other.

use super::memory::Window;
use super::signals::Signals;
use crate::fifo::Protocol;

/// What a connection has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub protocol: Protocol,
    /// Steps of a slice.
    pub steps: u32,
    /// Most payload bytes of a slice, a multiple of the element's size; 0 where only signals travel.
    pub payload: usize,
}

/// One producer and one consumer thread. `bytes` is the payload of the slice that is next, `elems` the elements of its whole tile.
pub trait Connection: Send + Sync + Sized + 'static {
    /// Whether a chunk may cross in several slices or a slice take several steps.
    const SLICED: bool;
    /// Whether a slot says how long its tile is. If not, the consumer has to know.
    const TELLS_LENGTH: bool;

    /// Bytes of memory that a connection takes; none when they are more than there are addresses.
    fn bytes(shape: Shape) -> Option<usize>;

    /// `None` when there is not so much memory.
    fn new(shape: Shape) -> Option<Self>;

    fn signals(&self) -> &Signals;

    /// Producer: whether there is room for a slice.
    fn has_room(&self) -> bool;

    /// Producer: where the next slice's payload goes, once there is room.
    fn try_reserve(&self) -> Option<Window<'_>>;

    /// Producer: hands over what it was given room for.
    fn post(&self, bytes: usize, elems: u64);

    /// Consumer: whether the next slice is there.
    fn has_data(&self, bytes: usize) -> bool;

    /// Consumer: the next slice's payload, once it is there, and its tile's elements if the slot tells.
    fn try_peek(&self, bytes: usize) -> Option<(Window<'_>, u64)>;

    /// Consumer: frees the slice it peeked at.
    fn free(&self);

    /// (head, tail): steps freed and steps filled, for reports.
    fn counters(&self) -> (u64, u64);

    /// Forgets whatever a stopped run left in the connection. Only while no thread runs a plan.
    fn drain(&self);

    /// As if so many steps had crossed. Only while no thread runs a plan.
    #[cfg(test)]
    fn start_at(&self, steps: u64);
}
