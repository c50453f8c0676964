//! A counting semaphore between two threads, on monotonic counters.

use std::sync::atomic::{AtomicU64, Ordering};

use super::wait::Padded;

/// Everything the signaller read or wrote before its `Release` store of `given` happens before whatever the waiter does after its `Acquire`
/// load: this is what lets a plan order direct accesses to a peer's buffer. Happens-before is transitive, so a chain of signals and FIFOs
/// through third ranks orders as well.
#[derive(Debug, Default)]
pub struct Signals {
    given: Padded<AtomicU64>,
    taken: Padded<AtomicU64>,
}

impl Signals {
    /// Whether there is one to take.
    pub fn any(&self) -> bool {
        self.given.0.load(Ordering::Acquire) > self.taken.0.load(Ordering::Relaxed)
    }

    pub fn give(&self) {
        let given = self.given.0.load(Ordering::Relaxed);
        self.given.0.store(given + 1, Ordering::Release);
    }

    /// Takes one if there is one.
    pub fn try_take(&self) -> bool {
        let taken = self.taken.0.load(Ordering::Relaxed);
        let there = self.given.0.load(Ordering::Acquire) > taken;
        if there {
            self.taken.0.store(taken + 1, Ordering::Relaxed);
        }
        there
    }

    /// (taken, given), for reports.
    pub fn counters(&self) -> (u64, u64) {
        (self.taken.0.load(Ordering::Relaxed), self.given.0.load(Ordering::Relaxed))
    }

    /// Takes what a stopped run left. Only while no thread runs a plan.
    pub fn drain(&self) {
        self.taken.0.store(self.given.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_counted() {
        let signals = Signals::default();
        signals.give();
        signals.give();
        assert!(signals.any() && signals.try_take() && signals.try_take() && !signals.try_take());
        assert_eq!(signals.counters(), (2, 2));
    }
}
