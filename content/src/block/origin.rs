//! Where a measured figure comes from: machine, driver, date and command, as the programs that measure write them.
//! Three writers are understood: words by hand, a runner's `HardwareInfo`, and the report of `ringlab-perf --json`.

use serde_json::Value;

fn words<'a>(data: &'a Value, pointer: &str) -> Option<&'a str> {
    data.pointer(pointer).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// A sentence about the machine: as written, from the runner's `HardwareInfo`, or from a report's device.
pub(super) fn hardware(data: &Value) -> Option<String> {
    if let Some(text) = words(data, "/hardware") {
        return Some(text.to_owned());
    }
    if let Some(device) = words(data, "/hardware/device") {
        return Some(match data.pointer("/hardware/devices").and_then(Value::as_u64) {
            Some(count) if count > 1 => format!("{count} × {device}"),
            _ => device.to_owned(),
        });
    }
    let gpus = data.pointer("/hardware/gpus").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let cpu = words(data, "/hardware/cpu")?;
    let mut names: Vec<(&str, usize)> = Vec::new();
    for name in gpus.iter().filter_map(|gpu| gpu.get("name").and_then(Value::as_str)) {
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    let mut parts: Vec<String> = names
        .iter()
        .map(|(name, count)| if *count == 1 { (*name).to_owned() } else { format!("{count} × {name}") })
        .collect();
    parts.push(cpu.to_owned());
    Some(parts.join(", "))
}

/// The GPU's driver.
pub(super) fn driver(data: &Value) -> Option<String> {
    ["/driver", "/hardware/driver", "/hardware/gpus/0/driver"]
        .iter()
        .find_map(|pointer| words(data, pointer))
        .map(str::to_owned)
}

/// Whether the file says that there was no GPU and hence no driver.
pub(super) fn no_gpu(data: &Value) -> bool {
    ["/driver", "/hardware/driver"].iter().any(|pointer| data.pointer(pointer) == Some(&Value::Null))
        || data.pointer("/hardware/gpus").and_then(Value::as_array).is_some_and(Vec::is_empty)
}

/// The day, as written or, in UTC, from the second at which a report was finished.
pub(super) fn date(data: &Value) -> Option<String> {
    let written = words(data, "/date").map(str::to_owned);
    written.or_else(|| data.get("finished_unix").and_then(Value::as_u64).map(day))
}

/// The command line: as written, or joined from a report's arguments.
pub(super) fn command(data: &Value) -> Option<String> {
    if let Some(line) = words(data, "/command") {
        return Some(line.to_owned());
    }
    let arguments: Option<Vec<&str>> =
        data.get("command").and_then(Value::as_array)?.iter().map(Value::as_str).collect();
    arguments.map(|arguments| arguments.join(" ")).filter(|line| !line.trim().is_empty())
}

/// `2026-01-31` for a second since 1970. A year runs from March to February here, so that the leap day is its last
/// and the lengths of months follow one line: 153 days every five.
fn day(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468; // since 0000-03-01
    let (era, in_era) = (days / 146_097, days % 146_097);
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_is_named_from_a_string_or_from_hardware_info() {
        assert_eq!(hardware(&json!({"hardware": "one H200"})).as_deref(), Some("one H200"));
        let gpu = json!({"name": "NVIDIA H200", "driver": "570.1"});
        let data = json!({"hardware": {"cpu": "Xeon", "gpus": [gpu, gpu]}});
        assert_eq!(hardware(&data).as_deref(), Some("2 × NVIDIA H200, Xeon"));
        assert_eq!(driver(&data).as_deref(), Some("570.1"));
    }

    #[test]
    fn a_report_of_ringlab_perf_tells_its_origin() {
        let data = json!({
            "hardware": {"backend": "cuda", "device": "NVIDIA H200", "devices": 1, "driver": "580.1"},
            "finished_unix": 1_796_185_787_u64,
            "command": ["./ringlab-perf", "-g", "4"],
        });
        assert_eq!(hardware(&data).as_deref(), Some("NVIDIA H200"));
        assert_eq!(driver(&data).as_deref(), Some("580.1"));
        assert_eq!(date(&data).as_deref(), Some("2026-12-02"));
        assert_eq!(command(&data).as_deref(), Some("./ringlab-perf -g 4"));
        assert!(!no_gpu(&data) && no_gpu(&json!({"hardware": {"device": "CPU", "driver": null}})));
        assert_eq!(command(&json!({"command": ["a", 1]})), None);
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, wanted) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (4_107_542_399, "2100-02-28"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(day(seconds), wanted);
        }
    }
}
