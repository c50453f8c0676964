//! What a rank knows of the others while a communicator lives: the first failure, who is slow, who has left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::CommError;
use crate::types::Rank;

/// The first thing that broke the communicator. It stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whose fault or death, where known.
    pub rank: Option<Rank>,
    pub error: CommError,
}

/// A change, as a callback gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Failed(Failure),
    /// A rank answers no heartbeats; it may be stopped or starved. Not a failure.
    Slow {
        rank: Rank,
        silent_for: Duration,
    },
    /// A slow rank answers again.
    Awake {
        rank: Rank,
    },
    /// A rank has said goodbye.
    Left {
        rank: Rank,
    },
}

type Watcher = Arc<dyn Fn(&Event) + Send + Sync>;

#[derive(Default)]
struct Known {
    failure: Option<Failure>,
    slow: BTreeMap<Rank, Duration>,
    left: BTreeSet<Rank>,
    watchers: Vec<Watcher>,
}

/// Shared by everything that works for one rank of one communicator.
#[derive(Default)]
pub struct AsyncState {
    failed: AtomicBool,
    known: Mutex<Known>,
    changed: Condvar,
}

impl fmt::Debug for AsyncState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.lock();
        f.debug_struct("AsyncState")
            .field("failure", &known.failure)
            .field("slow", &known.slow)
            .field("left", &known.left)
            .finish_non_exhaustive()
    }
}

impl AsyncState {
    fn lock(&self) -> MutexGuard<'_, Known> {
        // No code of ours panics with the lock held, and what it holds is whole after each line.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One load: for loops that wait.
    #[inline]
    pub fn has_failed(&self) -> bool {
        // Acquire: pairs with the release in `fail`, so that what led to the failure is visible; the text itself is behind the lock.
        self.failed.load(Ordering::Acquire)
    }

    pub fn failure(&self) -> Option<Failure> {
        if self.has_failed() { self.lock().failure.clone() } else { None }
    }

    /// Ranks that do not answer now, and how long each had been silent when that was noticed.
    pub fn slow(&self) -> Vec<(Rank, Duration)> {
        self.lock().slow.iter().map(|(rank, silent)| (*rank, *silent)).collect()
    }

    pub fn has_left(&self, rank: Rank) -> bool {
        self.lock().left.contains(&rank)
    }

    /// Waits for a failure, at most so long.
    pub fn wait_failure(&self, wait: Duration) -> Option<Failure> {
        let until = Instant::now() + wait;
        let mut known = self.lock();
        loop {
            if known.failure.is_some() {
                return known.failure.clone();
            }
            let left = until.checked_duration_since(Instant::now())?;
            known = self.changed.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Calls back at every change, from the thread that notices it: be quick, and do not wait for the communicator in it. A failure
    /// that has already happened is told at once.
    pub fn watch(&self, callback: impl Fn(&Event) + Send + Sync + 'static) {
        let callback: Watcher = Arc::new(callback);
        let failure = {
            let mut known = self.lock();
            known.watchers.push(callback.clone());
            known.failure.clone()
        };
        if let Some(failure) = failure {
            callback(&Event::Failed(failure));
        }
    }

    /// Records the first failure; returns whether this was it. Also for what other parts find: a device error, a watchdog.
    pub fn fail(&self, failure: Failure) -> bool {
        let mut known = self.lock();
        if known.failure.is_some() {
            return false;
        }
        known.failure = Some(failure.clone());
        self.failed.store(true, Ordering::Release);
        self.changed.notify_all();
        tell(known, &Event::Failed(failure));
        true
    }

    pub(super) fn note(&self, event: &Event) {
        let mut known = self.lock();
        match event {
            Event::Failed(failure) => {
                drop(known);
                self.fail(failure.clone());
                return;
            }
            Event::Slow { rank, silent_for } => drop(known.slow.insert(*rank, *silent_for)),
            Event::Awake { rank } => drop(known.slow.remove(rank)),
            Event::Left { rank } => {
                known.slow.remove(rank);
                known.left.insert(*rank);
            }
        }
        self.changed.notify_all();
        tell(known, event);
    }
}

/// Without the lock: a callback may ask for the state.
fn tell(known: MutexGuard<'_, Known>, event: &Event) {
    let watchers = known.watchers.clone();
    drop(known);
    watchers.iter().for_each(|watcher| watcher(event));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn the_first_failure_stays_and_late_watchers_hear_of_it() {
        let state = AsyncState::default();
        let failure = |why: &str| Failure { rank: None, error: CommError::Aborted(why.into()) };
        assert!(!state.has_failed());
        assert!(state.fail(failure("first")));
        assert!(!state.fail(failure("second")));
        assert_eq!(state.failure(), Some(failure("first")));
        let heard = Arc::new(AtomicU32::new(0));
        let count = heard.clone();
        state.watch(move |_| assert_eq!(count.fetch_add(1, Ordering::Relaxed), 0));
        assert_eq!(heard.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_callback_may_ask_for_the_state() {
        let state = Arc::new(AsyncState::default());
        let inner = state.clone();
        state.watch(move |event| {
            if matches!(event, Event::Slow { .. }) {
                assert_eq!(inner.slow().len(), 1);
            }
        });
        state.note(&Event::Slow { rank: Rank(1), silent_for: Duration::from_secs(1) });
        state.note(&Event::Left { rank: Rank(1) });
        assert!(state.slow().is_empty() && state.has_left(Rank(1)) && !state.has_failed());
    }
}
