//! The communicators of this process, by handle. A handle is a number in a pointer's clothes: it is looked up, never dereferenced, so a
//! stale, null or invented one is an error and nothing worse.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use ringlab_engine::comm::WindowId;

use crate::abi::{IN_PROGRESS, NcclComm, NcclResult, SUCCESS};
use crate::config::Settings;
use crate::engine::Line;
use crate::fault::Fault;
use crate::reduction::Reductions;

/// One `ncclComm_t`.
#[derive(Debug)]
pub struct Comm {
    handle: usize,
    pub settings: Settings,
    state: Mutex<State>,
    /// What this communicator ran into last.
    error: Mutex<String>,
    pub reductions: Mutex<Reductions>,
    registered: Mutex<HashMap<usize, Registered>>,
    /// Handles of buffers given out; none is used again.
    handles: AtomicUsize,
}

/// A buffer the program has registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    pub address: usize,
    pub bytes: usize,
    /// Where it was registered with all ranks.
    pub window: Option<WindowId>,
}

#[derive(Debug)]
enum State {
    /// Where it will be, when that is known before it has formed.
    Forming(Option<Place>),
    Formed {
        line: Arc<dyn Line>,
        phase: Phase,
    },
    Failed(Fault),
    /// `ncclCommAbort` came while it was forming: what forms is dropped.
    Dropped,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Ready,
    /// Being finalised, perhaps in the background.
    Leaving,
    Left(Result<(), Fault>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub rank: u32,
    pub ranks: u32,
    pub device: u32,
}

impl Place {
    fn of(line: &dyn Line) -> Place {
        Place { rank: line.rank(), ranks: line.ranks(), device: line.device() }
    }
}

type Registry = RwLock<HashMap<usize, Arc<Comm>>>;

fn registry() -> &'static Registry {
    static ALL: OnceLock<Registry> = OnceLock::new();
    ALL.get_or_init(Registry::default)
}

/// Handles begin where no object lies, are never used again, and are aligned as a pointer would be.
static NEXT: AtomicUsize = AtomicUsize::new(0x5247_0000_0000);

impl Comm {
    /// A communicator that is about to form, in the registry.
    pub fn begin(place: Option<Place>, settings: Settings) -> Arc<Comm> {
        let comm = Arc::new(Comm {
            handle: NEXT.fetch_add(16, Ordering::Relaxed),
            settings,
            state: Mutex::new(State::Forming(place)),
            error: Mutex::default(),
            reductions: Mutex::default(),
            registered: Mutex::default(),
            handles: AtomicUsize::new(1),
        });
        registry().write().unwrap_or_else(PoisonError::into_inner).insert(comm.handle, comm.clone());
        comm
    }

    /// # Errors
    /// Invalid argument for null and for what is no communicator, or none any more.
    pub fn find(handle: NcclComm) -> Result<Arc<Comm>, Fault> {
        if handle.is_null() {
            return Err(Fault::argument("the communicator is null"));
        }
        let all = registry().read().unwrap_or_else(PoisonError::into_inner);
        all.get(&handle.addr()).cloned().ok_or_else(|| {
            Fault::argument(format!(
                "{handle:p} is no communicator: it was destroyed, or never one of this library"
            ))
        })
    }

    /// Takes it out of the registry: the handle is stale from now on.
    pub fn remove(&self) -> Result<(), Fault> {
        let mut all = registry().write().unwrap_or_else(PoisonError::into_inner);
        all.remove(&self.handle)
            .map(drop)
            .ok_or_else(|| Fault::argument("another thread has destroyed the communicator meanwhile"))
    }

    pub fn handle(&self) -> NcclComm {
        std::ptr::without_provenance_mut(self.handle)
    }

    /// A handle for a buffer that is about to be registered.
    pub fn next_buffer(&self) -> usize {
        self.handles.fetch_add(1, Ordering::Relaxed)
    }

    pub fn keep_buffer(&self, handle: usize, registered: Registered) {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner).insert(handle, registered);
    }

    /// # Errors
    /// Invalid argument for what is no registration, or none any more.
    pub fn forget_buffer(&self, handle: *mut c_void) -> Result<Registered, Fault> {
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        registered.remove(&handle.addr()).ok_or_else(|| {
            Fault::argument(format!(
                "{handle:p} is no registration of this communicator, or was deregistered"
            ))
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of forming. What nobody wants any more is aborted.
    pub fn formed(&self, outcome: Result<Arc<dyn Line>, Fault>) {
        let mut state = self.state();
        if matches!(*state, State::Dropped) {
            drop(state);
            if let Ok(line) = outcome {
                line.abort("ncclCommAbort was called while the communicator was forming");
            }
            return;
        }
        *state = match outcome {
            Ok(line) => State::Formed { line, phase: Phase::Ready },
            Err(fault) => {
                self.note(&fault);
                State::Failed(fault)
            }
        };
    }

    /// The formed communicator.
    ///
    /// # Errors
    /// While it forms, when it failed to, and when it has been finalised.
    pub fn line(&self) -> Result<Arc<dyn Line>, Fault> {
        match &*self.state() {
            State::Formed { line, phase: Phase::Ready } => Ok(line.clone()),
            State::Formed { .. } => Err(Fault::usage(
                "the communicator is finalised; only destroy and abort are left to be called",
            )),
            State::Forming(_) => Err(still_forming()),
            State::Failed(fault) => Err(fault.clone()),
            State::Dropped => Err(aborted()),
        }
    }

    /// Begins finalising.
    pub fn leaving(&self) -> Result<Arc<dyn Line>, Fault> {
        let line = self.line()?;
        *self.state() = State::Formed { line: line.clone(), phase: Phase::Leaving };
        Ok(line)
    }

    /// The end of finalising.
    pub fn left(&self, outcome: Result<(), Fault>) {
        if let Err(fault) = &outcome {
            self.note(fault);
        }
        if let State::Formed { phase, .. } = &mut *self.state() {
            *phase = Phase::Left(outcome);
        }
    }

    /// A bug of ours ended what was going on in the background.
    pub fn broke(&self, fault: Fault) {
        self.note(&fault);
        let line = self.take();
        *self.state() = State::Failed(fault);
        if let Some(line) = line {
            line.abort("a thread of this rank has panicked");
        }
    }

    /// What is left to be dropped or aborted; nothing while it forms, which is then given up.
    pub fn take(&self) -> Option<Arc<dyn Line>> {
        match std::mem::replace(&mut *self.state(), State::Dropped) {
            State::Formed { line, .. } => Some(line),
            State::Forming(_) | State::Failed(_) | State::Dropped => None,
        }
    }

    pub fn is_forming(&self) -> bool {
        matches!(*self.state(), State::Forming(_))
    }

    /// # Errors
    /// While a split is forming, and when forming failed.
    pub fn place(&self) -> Result<Place, Fault> {
        match &*self.state() {
            State::Formed { line, .. } => Ok(Place::of(line.as_ref())),
            State::Forming(Some(place)) => Ok(*place),
            State::Forming(None) => Err(still_forming()),
            State::Failed(fault) => Err(fault.clone()),
            State::Dropped => Err(aborted()),
        }
    }

    /// What `ncclCommGetAsyncError` answers.
    pub fn async_error(&self) -> NcclResult {
        let line = match &*self.state() {
            State::Forming(_) | State::Formed { phase: Phase::Leaving, .. } => return IN_PROGRESS,
            State::Dropped | State::Formed { phase: Phase::Left(Ok(())), .. } => return SUCCESS,
            State::Failed(fault) | State::Formed { phase: Phase::Left(Err(fault)), .. } => Err(fault.clone()),
            State::Formed { line, phase: Phase::Ready } => Ok(line.clone()),
        };
        // Without the lock: the engine may have to look at the device first.
        let fault = match line.map(|line| line.async_error()) {
            Ok(None) => return SUCCESS,
            Ok(Some(error)) => Fault::from(error),
            Err(fault) => fault,
        };
        self.note(&fault);
        fault.code
    }

    pub fn note(&self, fault: &Fault) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&fault.text);
    }

    /// The text of its own last error; empty without one.
    pub fn last_error(&self) -> String {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn still_forming() -> Fault {
    Fault::argument("the communicator is still forming; wait until ncclCommGetAsyncError says ncclSuccess")
}

fn aborted() -> Fault {
    Fault::argument("the communicator was destroyed or aborted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn comm() -> Arc<Comm> {
        Comm::begin(Some(Place { rank: 1, ranks: 2, device: 0 }), config::settings(None).unwrap())
    }

    #[test]
    fn null_stale_and_invented_handles_are_refused() {
        let live = comm();
        assert!(Arc::ptr_eq(&Comm::find(live.handle()).unwrap(), &live));
        live.remove().unwrap();
        assert!(Comm::find(live.handle()).unwrap_err().text.contains("destroyed"));
        assert!(live.remove().is_err());
        assert!(Comm::find(std::ptr::null_mut()).unwrap_err().text.contains("null"));
        assert!(Comm::find(std::ptr::without_provenance_mut(0xdead_beef)).is_err());
    }

    #[test]
    fn a_forming_communicator_knows_its_rank_but_takes_no_operations() {
        let comm = comm();
        assert_eq!(comm.async_error(), IN_PROGRESS);
        assert_eq!(comm.place().unwrap().rank, 1);
        assert!(comm.line().unwrap_err().text.contains("still forming"));
        comm.formed(Err(Fault::cuda("no device")));
        assert_eq!(comm.async_error(), 1);
        assert_eq!(comm.last_error(), "no device");
        assert_eq!(comm.line().unwrap_err().text, "no device");
    }
}
