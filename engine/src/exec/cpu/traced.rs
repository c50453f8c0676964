//! What a traced run keeps of the step under way.

use std::time::Duration;

use super::run::Record;

/// Times since the run's epoch.
#[derive(Debug, Default)]
pub struct Traced {
    start: Option<Duration>,
    bytes: u64,
    wire_bytes: u64,
    waited: Duration,
    without_credit: Duration,
    /// Since when, and whether for a credit.
    blocked: Option<(Duration, bool)>,
}

impl Traced {
    /// The step is tried, for the first time or again.
    pub fn tried(&mut self, now: Duration) {
        self.start.get_or_insert(now);
        if let Some((since, for_credit)) = self.blocked.take() {
            self.waited += now - since;
            if for_credit {
                self.without_credit += now - since;
            }
        }
    }

    pub fn blocked(&mut self, now: Duration, for_credit: bool) {
        self.blocked = Some((now, for_credit));
    }

    pub fn moved(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    pub fn sent(&mut self, wire_bytes: u64) {
        self.wire_bytes += wire_bytes;
    }

    /// The step is over; the next one begins with nothing.
    pub fn finish(&mut self, step: u32, tile: u64, end: Duration) -> Record {
        let Traced { start, bytes, wire_bytes, waited, without_credit, .. } = std::mem::take(self);
        Record { step, tile, bytes, start: start.unwrap_or(end), waited, end, wire_bytes, without_credit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_add_up_and_those_for_credits_are_told_apart() {
        let at = Duration::from_nanos;
        let mut traced = Traced::default();
        traced.tried(at(10));
        traced.blocked(at(11), false);
        traced.tried(at(15));
        traced.blocked(at(16), true);
        traced.tried(at(18));
        traced.moved(8);
        traced.sent(16);
        let record = traced.finish(3, 7, at(20));
        assert_eq!(
            (record.start, record.waited, record.without_credit, record.end),
            (at(10), at(6), at(2), at(20))
        );
        assert_eq!((record.step, record.tile, record.bytes, record.wire_bytes), (3, 7, 8, 16));
        traced.tried(at(30));
        assert_eq!(traced.finish(4, 7, at(31)).waited, at(0));
    }
}
