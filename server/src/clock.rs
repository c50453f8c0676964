//! Time as the database keeps it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_as_rfc_3339() {
        assert_eq!(UnixMs(1_764_633_600_005).rfc3339(), "2025-12-02T00:00:00.005Z");
        assert_eq!(UnixMs(-1).rfc3339(), "1970-01-01T00:00:00.000Z");
    }
}
