//! Time as the database keeps it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 UTC, by this server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixMs(pub i64);

impl UnixMs {
    pub fn now() -> UnixMs {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    pub fn plus(self, d: Duration) -> UnixMs {
        UnixMs(self.0.saturating_add(i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
    }

    pub fn minus(self, d: Duration) -> UnixMs {
        UnixMs(self.0.saturating_sub(i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
    }

    /// RFC 3339 with milliseconds, UTC.
    pub fn rfc3339(self) -> String {
        let since = Duration::from_millis(u64::try_from(self.0).unwrap_or(0));
        humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string()
    }
}

/// Tells a set clock and a process that stood still (suspended, starved) from time that simply passed. A deadline in [`UnixMs`] says
/// nothing about whoever should have met it after either.
#[derive(Debug)]
pub struct Passage {
    steady: Instant,
    shown: UnixMs,
}

impl Passage {
    pub fn new(steady: Instant, shown: UnixMs) -> Passage {
        Passage { steady, shown }
    }

    /// Whether, since the last call, both clocks went on alike and for less than half of `span`.
    pub fn is_even(&mut self, steady: Instant, shown: UnixMs, span: Duration) -> bool {
        let ms = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        let (passed, moved) = (ms(steady - self.steady), shown.0.saturating_sub(self.shown.0));
        *self = Passage { steady, shown };
        let most = ms(span / 2);
        passed < most && moved.saturating_sub(passed).saturating_abs() < most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_clock_and_a_standstill_are_not_time_that_passed() {
        let (steady, span) = (Instant::now(), Duration::from_secs(10));
        let after = |ms| steady + Duration::from_millis(ms);
        let even =
            |passed, moved| Passage::new(steady, UnixMs(0)).is_even(after(passed), UnixMs(moved), span);
        assert!(even(1_000, 1_000) && even(1_000, 1_200) && even(0, 0));
        assert!(!even(1_000, 3_601_000), "set forward");
        assert!(!even(1_000, -3_599_000), "set back");
        assert!(!even(20_000, 20_000), "stood still");
        assert!(!even(1_000, i64::MIN) && !even(1_000, i64::MAX));
        let mut passage = Passage::new(steady, UnixMs(0));
        assert!(!passage.is_even(after(1_000), UnixMs(9_000_000), span));
        assert!(passage.is_even(after(2_000), UnixMs(9_001_000), span), "the new time counts from then on");
    }

    #[test]
    fn a_time_is_shown_as_rfc_3339() {
        assert_eq!(UnixMs(1_764_633_600_005).rfc3339(), "2025-12-02T00:00:00.005Z");
        assert_eq!(UnixMs(-1).rfc3339(), "1970-01-01T00:00:00.000Z");
    }
}
