//! The seed rule: every learner's instance differs, and can be made again from four public facts.

use ringlab_engine::data::mix;

/// Seed of a learner's `run_number`-th run (from 1) of one version of a lab.
///
/// 53 bits, so that it survives a reader of JSON that keeps numbers as doubles. It is no secret: it decides which instance somebody
/// gets, and what they are asked about it hangs on times that only their own run produces.
pub fn seed_for(user_id: &str, lab_id: &str, lab_version: &str, run_number: u32) -> u64 {
    let mut state = absorb(0, user_id);
    state = absorb(state, lab_id);
    state = absorb(state, lab_version);
    mix(state ^ u64::from(run_number)) >> 11
}

/// Length first, so that `("ab", "c")` and `("a", "bc")` differ.
fn absorb(state: u64, part: &str) -> u64 {
    part.as_bytes().chunks(8).fold(mix(state ^ part.len() as u64), |state, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(state.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ u64::from_le_bytes(word))
    })
}

/// A stream of draws from a seed. `purpose` separates streams, so that adding a draw to one leaves the others as they were.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64, purpose: &str) -> Draw {
        Draw(absorb(seed, purpose))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Below `bound`, which is at least 1. The bias of at most `bound` / 2^64 does not matter here.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing to draw from");
        self.next() % bound
    }

    /// `low..=high`
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Fisher and Yates.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_of_the_four_facts_changes_the_seed_and_none_else_does() {
        let seed = seed_for("u1", "busbw", "v1", 1);
        assert_eq!(seed, seed_for("u1", "busbw", "v1", 1));
        assert!(seed < 1 << 53);
        for other in [
            seed_for("u2", "busbw", "v1", 1),
            seed_for("u1", "ring", "v1", 1),
            seed_for("u1", "busbw", "v2", 1),
            seed_for("u1", "busbw", "v1", 2),
            seed_for("u1busbw", "", "v1", 1),
        ] {
            assert_ne!(seed, other);
        }
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..8).collect();
        Draw::new(7, "test").shuffle(&mut items);
        assert_ne!(items, (0..8).collect::<Vec<_>>());
        items.sort();
        assert_eq!(items, (0..8).collect::<Vec<_>>());
    }
}
