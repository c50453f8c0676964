//! How long to wait before the next try: doubling, with full jitter, so that runners do not come back all at once after a server's
//! restart.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(250);
const MOST: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub struct Backoff {
    tries: u32,
}

impl Backoff {
    pub fn reset(&mut self) {
        self.tries = 0;
    }

    /// Between a quarter of the present step and all of it.
    pub fn next_wait(&mut self) -> Duration {
        let step = FIRST.saturating_mul(1 << self.tries.min(10)).min(MOST);
        self.tries = self.tries.saturating_add(1);
        // RandomState is seeded by the system once and differs with each instance: random enough to spread runners, no dependency.
        let fraction = (RandomState::new().hash_one(self.tries) >> 11) as f64 / (1u64 << 53) as f64;
        step.mul_f64(0.25 + 0.75 * fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_most_and_no_further() {
        let mut backoff = Backoff::default();
        assert!(backoff.next_wait() <= FIRST);
        (0..50).for_each(|_| assert!(backoff.next_wait() <= MOST));
        assert!(backoff.next_wait() >= MOST / 4);
        backoff.reset();
        assert!(backoff.next_wait() <= FIRST);
    }
}
