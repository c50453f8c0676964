//! How a rank leaves: when its memory can go that peers write to.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Communicator, Shared};
use crate::comm::error::CommError;

/// How long memory that peers may still write to is kept after a failure. They stop within a second.
const AFTERLIFE: Duration = Duration::from_millis(1500);

impl Shared {
    pub(super) fn farewell(&self) -> Result<(), CommError> {
        if let Some(port) = self.port().as_ref() {
            port.finish()?;
        }
        self.note_stall();
        self.bootstrap.barrier(self.config.setup_deadline)?;
        self.bootstrap.goodbye()
    }

    /// Leaves, and frees what peers can write to once they cannot any more.
    fn leave(&self) {
        let peaceful = self.finalized.swap(true, Ordering::AcqRel) || self.farewell().is_ok();
        if !peaceful && self.ranks > 1 {
            self.abort.raise();
            std::thread::sleep(AFTERLIFE);
        }
        drop(self.port().take());
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        let shared = self.shared.clone();
        if shared.here == 1 {
            shared.leave();
            return;
        }
        // Ranks of one thread leave one after the other: only the last may wait for the others.
        let leaving = shared.clone();
        let name = format!("ringlab-leave-{}", shared.rank);
        match std::thread::Builder::new().name(name).spawn(move || leaving.leave()) {
            Ok(handle) => wait_if_last(&shared, handle),
            // Without a thread nothing can be waited for: memory that others may write to is rather kept.
            Err(_) => std::mem::forget(shared),
        }
    }
}

/// By identity.
type Leaves = HashMap<[u8; 16], Vec<JoinHandle<()>>>;

/// Leaves of communicators that have further ranks in this process.
static LEAVING: Mutex<Option<Leaves>> = Mutex::new(None);

fn wait_if_last(shared: &Shared, handle: JoinHandle<()>) {
    let all = {
        let mut leaving = LEAVING.lock().unwrap_or_else(PoisonError::into_inner);
        let leaving = leaving.get_or_insert_default();
        let handles = leaving.entry(shared.identity).or_default();
        handles.push(handle);
        if handles.len() < shared.here {
            Vec::new()
        } else {
            leaving.remove(&shared.identity).unwrap_or_default()
        }
    };
    for handle in all {
        // A panic has been printed; nothing is left to be done.
        let _ = handle.join();
    }
}
