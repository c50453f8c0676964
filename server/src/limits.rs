//! How often somebody may do something: token buckets in memory, by what and by whom. Quotas that must hold across restarts are
//! counted in the database instead.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::problem::Problem;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// By address: a class of thirty behind one address starts at once.
    NewGuest,
    /// By user.
    SubmitJob,
    /// By address.
    VerifyPlan,
    /// By address: a class signs up at once.
    SignUp,
    /// By address: a class signs in at once.
    SignIn,
    /// By e-mail and address: whoever guesses from one place.
    Guess,
    /// By e-mail: whoever guesses from many. Loose enough that nobody is locked out of their account by others in a hurry.
    GuessFromAnywhere,
    /// By user: the own password, asked for again.
    Confirm,
    /// By user.
    Export,
    /// By address: answers and reveals of a class that practises.
    Practise,
    /// By user: every two seconds, and at once on leaving a question.
    SaveDraft,
    /// By user: sections read, places and quizzes; what was kept while offline comes at once.
    Read,
    /// By user: notes made, changed and deleted.
    Annotate,
}

impl Action {
    /// How many at once, and how long until one more.
    const fn allowance(self) -> (f64, Duration) {
        match self {
            Action::NewGuest => (120.0, Duration::from_millis(500)),
            Action::SubmitJob => (20.0, Duration::from_secs(3)),
            Action::SaveDraft => (40.0, Duration::from_millis(250)),
            Action::VerifyPlan => (120.0, Duration::from_millis(250)),
            Action::SignUp => (60.0, Duration::from_secs(10)),
            Action::SignIn => (120.0, Duration::from_secs(1)),
            Action::Guess => (10.0, Duration::from_secs(20)),
            Action::GuessFromAnywhere => (100.0, Duration::from_secs(5)),
            Action::Confirm => (10.0, Duration::from_secs(20)),
            Action::Export => (5.0, Duration::from_secs(30)),
            Action::Practise => (120.0, Duration::from_secs(1)),
            Action::Read => (120.0, Duration::from_millis(500)),
            Action::Annotate => (60.0, Duration::from_secs(1)),
        }
    }
}

#[derive(Debug, Default)]
pub struct Limiter {
    buckets: Mutex<HashMap<(Action, String), Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

/// Above this many buckets the full ones are dropped: a full bucket says the same as none.
const PRUNE: usize = 10_000;

impl Limiter {
    /// Counts one action, or says how long to wait.
    pub fn check(&self, action: Action, who: &str) -> Result<(), Problem> {
        self.check_at(action, who, Instant::now())
    }

    fn check_at(&self, action: Action, who: &str, now: Instant) -> Result<(), Problem> {
        let (capacity, refill) = action.allowance();
        // Every change is one assignment: a panic elsewhere leaves nothing half done.
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= PRUNE {
            buckets.retain(|(action, _), b| {
                let (capacity, refill) = action.allowance();
                b.tokens + (now - b.at).div_duration_f64(refill) < capacity
            });
        }
        let bucket = buckets.entry((action, who.to_owned())).or_insert(Bucket { tokens: capacity, at: now });
        bucket.tokens = (bucket.tokens + (now - bucket.at).div_duration_f64(refill)).min(capacity);
        bucket.at = now;
        if bucket.tokens < 1.0 {
            let wait = refill.mul_f64(1.0 - bucket.tokens).as_secs_f64().ceil();
            // At most one refill interval: half a minute.
            return Err(Problem::too_fast((wait as u32).max(1)));
        }
        bucket.tokens -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_then_the_pace() {
        let limiter = Limiter::default();
        let start = Instant::now();
        for _ in 0..20 {
            limiter.check_at(Action::SubmitJob, "a", start).unwrap();
        }
        assert_eq!(limiter.check_at(Action::SubmitJob, "a", start).unwrap_err().retry_after, Some(3));
        limiter.check_at(Action::SubmitJob, "b", start).unwrap();
        limiter.check_at(Action::SubmitJob, "a", start + Duration::from_secs(3)).unwrap();
        limiter.check_at(Action::SubmitJob, "a", start + Duration::from_secs(4)).unwrap_err();
    }
}
