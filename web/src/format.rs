//! Figures for people: one way to write a size, a time, a bandwidth, on the server and in the browser alike.

/// Bytes in binary units, exact when they are a whole number of the unit: `64 MiB`, `1.5 KiB`, `1000 B`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut scale = 1u64;
    while unit + 1 < UNITS.len() && n / scale >= 1024 {
        unit += 1;
        scale *= 1024;
    }
    if n.is_multiple_of(scale) {
        format!("{} {}", n / scale, UNITS[unit])
    } else {
        format!("{} {}", decimal(n as f64 / scale as f64, 2), UNITS[unit])
    }
}

/// Nanoseconds in the unit that keeps three digits or so before the point: `840 ns`, `12.5 µs`, `3.21 ms`.
pub fn nanos(n: f64) -> String {
    if n < 1e3 {
        format!("{} ns", decimal(n, 0))
    } else if n < 1e6 {
        format!("{} µs", significant(n / 1e3))
    } else if n < 1e9 {
        format!("{} ms", significant(n / 1e6))
    } else {
        format!("{} s", significant(n / 1e9))
    }
}

/// Three significant digits, never an exponent, no digits cut before the point.
pub fn significant(x: f64) -> String {
    let magnitude = x.abs();
    decimal(
        x,
        if magnitude >= 100.0 {
            0
        } else if magnitude >= 10.0 {
            1
        } else if magnitude >= 1.0 {
            2
        } else {
            3
        },
    )
}

/// Rounded half up to at most `digits` places after the point, without trailing zeros. Written on integers: the formatting of floats
/// is a large part of a small WebAssembly module.
pub fn decimal(x: f64, digits: u32) -> String {
    if !x.is_finite() {
        return "–".into();
    }
    let scale = 10u64.pow(digits);
    let scaled = (x.abs() * scale as f64 + 0.5) as u64;
    let (whole, fraction) = (scaled / scale, scaled % scale);
    let sign = if x < 0.0 && scaled != 0 { "−" } else { "" };
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    let fraction = format!("{fraction:0width$}", width = digits as usize);
    format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
}

/// RFC 3339 in UTC to `2026-03-01 12:30 UTC`; anything else stays as it is.
pub fn when(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(10..11), rfc3339.get(11..16)) {
        (Some(day), Some("T"), Some(time)) if rfc3339.ends_with('Z') || rfc3339.ends_with("+00:00") => {
            format!("{day} {time} UTC")
        }
        _ => rfc3339.to_owned(),
    }
}

/// Milliseconds since 1970 to `2026-03-01 12:30 UTC`.
pub fn when_ms(ms: i64) -> String {
    let (day, minute) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000) / 60_000);
    // Civil date from days, proleptic Gregorian: years begin in March, so that the leap day is a year's last.
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

/// What is left on a clock, rounded up: `44:59`, `1:29:59`, `0:00`.
pub fn remaining(ms: i64) -> String {
    let seconds = (ms.max(0) + 999) / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Milliseconds since an attempt started: `0.012 s`, `75.200 s`.
pub fn clock(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        assert_eq!(when_ms(0), "1970-01-01 00:00 UTC");
        assert_eq!(when_ms(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(when_ms(1_796_271_480_000), "2026-12-03 04:18 UTC");
    }

    #[test]
    fn a_clock_shows_every_second_once() {
        assert_eq!(remaining(45 * 60_000), "45:00");
        assert_eq!(remaining(59_001), "1:00");
        assert_eq!(remaining(5_399_000), "1:29:59");
        assert_eq!(remaining(-5), "0:00");
    }

    #[test]
    fn sizes_are_exact_or_rounded_to_two_places() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1000), "1000 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(64 << 20), "64 MiB");
        assert_eq!(bytes((1 << 30) + 1), "1 GiB");
    }

    #[test]
    fn times_choose_their_unit() {
        assert_eq!(nanos(840.0), "840 ns");
        assert_eq!(nanos(12_500.0), "12.5 µs");
        assert_eq!(nanos(3_210_000.0), "3.21 ms");
        assert_eq!(nanos(2e9), "2 s");
    }

    #[test]
    fn decimals_round_half_up_and_drop_zeros() {
        assert_eq!(decimal(1.75, 2), "1.75");
        assert_eq!(decimal(2.0, 3), "2");
        assert_eq!(decimal(0.005, 2), "0.01");
        assert_eq!(decimal(-1.25, 1), "−1.3");
        assert_eq!(decimal(-0.001, 1), "0");
        assert_eq!(decimal(f64::NAN, 1), "–");
        assert_eq!(decimal(9.999, 2), "10");
    }

    #[test]
    fn times_of_day_lose_their_seconds_only_when_utc() {
        assert_eq!(when("2026-03-01T12:30:45Z"), "2026-03-01 12:30 UTC");
        assert_eq!(when("2026-03-01T12:30:45+08:00"), "2026-03-01T12:30:45+08:00");
        assert_eq!(when("soon"), "soon");
    }
}
