//! The server's clock in the browser.

use std::cell::Cell;

/// Which announcement is due when the time left falls from `before` to `now` (milliseconds): minutes.
pub fn announced(before: i64, now: i64) -> Option<u32> {
    // The last one that was crossed: after a sleep of the machine the earlier ones are not true any more.
    [1, 5, 10]
        .into_iter()
        .find(|&minutes| before > i64::from(minutes) * 60_000 && now <= i64::from(minutes) * 60_000)
}

/// Server time minus the browser's monotonic clock.
#[derive(Debug, Default)]
pub struct Offset(Cell<f64>);

impl Offset {
    /// A reply that was asked for at `asked`, came at `came`, and says that it is `now_ms`: taken for the middle of the two.
    pub fn correct(&self, asked: f64, came: f64, now_ms: i64) {
        self.0.set(now_ms as f64 - f64::midpoint(asked, came));
    }

    pub fn server_ms(&self, monotonic: f64) -> i64 {
        (monotonic + self.0.get()) as i64
    }
}

/// Milliseconds since the page was opened; unlike the wall clock nobody sets it.
pub fn monotonic() -> f64 {
    web_sys::window().and_then(|w| w.performance()).map_or(0.0, |p| p.now())
}

/// A server's time in the reader's own zone: `12:30:05`.
pub fn time_of_day(ms: i64) -> String {
    let date = js_sys::Date::new(&wasm_bindgen::JsValue::from_f64(ms as f64));
    format!("{:02}:{:02}:{:02}", date.get_hours(), date.get_minutes(), date.get_seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_announcement_comes_once() {
        assert_eq!(announced(600_100, 599_900), Some(10));
        assert_eq!(announced(599_900, 599_700), None);
        assert_eq!(announced(300_001, 300_000), Some(5));
        assert_eq!(announced(60_050, 59_850), Some(1));
        // A rehearsal of 90 s is not told that ten minutes are left.
        assert_eq!(announced(90_000, 89_800), None);
        // The machine slept.
        assert_eq!(announced(700_000, 30_000), Some(1));
    }

    #[test]
    fn a_reply_is_taken_for_the_middle_of_its_way() {
        let offset = Offset::default();
        offset.correct(1_000.0, 1_200.0, 50_000);
        assert_eq!(offset.server_ms(1_100.0), 50_000);
        assert_eq!(offset.server_ms(2_100.0), 51_000);
    }
}
