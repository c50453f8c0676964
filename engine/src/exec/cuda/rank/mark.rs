//! A point behind a rank's launch that can be waited for after later launches as well.

use std::sync::Arc;

use super::Port;
use crate::exec::ExecError;
use crate::exec::cuda::driver::Device;
use crate::exec::cuda::foreign::{Event, ForeignStream, Visit};

/// Held, it costs the port a new event for its next launch; else it costs nothing.
#[derive(Debug)]
pub struct Mark {
    device: Arc<Device>,
    event: Option<Arc<Event>>,
}

impl Mark {
    fn event(&self) -> &Event {
        self.event.as_ref().expect("it goes in `drop` only")
    }

    /// Whether everything before it has ended.
    pub fn has_passed(&self) -> Result<bool, ExecError> {
        let _visit = Visit::begin(&self.device)?;
        self.event().has_passed()
    }

    /// What the stream queues from now on starts after it.
    pub fn block(&self, stream: ForeignStream) -> Result<(), ExecError> {
        let _visit = Visit::begin(&self.device)?;
        self.event().block(stream)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // The last to hold an event destroys it, for which its device must be current: on the caller's thread for as long only.
        let last = self.event.as_ref().is_some_and(|event| Arc::strong_count(event) == 1);
        let visit = last.then(|| Visit::begin(&self.device));
        self.event = None;
        drop(visit);
    }
}

impl Port {
    /// Behind the last launch that did not go into a graph; none before the first.
    pub fn mark(&self) -> Option<Mark> {
        self.last_stream.map(|_| Mark { device: self.device.clone(), event: Some(self.last.clone()) })
    }

    /// Sees that the event to be recorded next is not one that a [`Mark`] holds.
    pub(super) fn renew_event(&mut self) -> Result<(), ExecError> {
        let held_here = 1 + usize::from(Arc::ptr_eq(&self.own, &self.last));
        if Arc::strong_count(&self.own) > held_here {
            self.own = Arc::new(Event::new(&self.device)?);
        }
        Ok(())
    }
}
