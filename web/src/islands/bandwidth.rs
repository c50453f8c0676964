//! From bytes and time to both columns of nccl-tests.

use ringlab_engine::types::{Collective, Rank};

/// The collectives one can choose, by their name in the API.
pub const COLLECTIVES: [Collective; 9] = Collective::all(Rank(0));

/// Both bandwidths in GB/s (10⁹ bytes per second).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidths {
    pub algbw: f64,
    pub factor: f64,
    pub busbw: f64,
}

/// `None` unless there are at least 2 ranks and both figures are positive.
pub fn compute(collective: Collective, ranks: u32, bytes: f64, micros: f64) -> Option<Bandwidths> {
    let sensible = |x: f64| x.is_finite() && x > 0.0;
    if ranks < 2 || !sensible(bytes) || !sensible(micros) {
        return None;
    }
    let algbw = bytes / micros / 1e3;
    let factor = collective.busbw_factor(ranks);
    Some(Bandwidths { algbw, factor, busbw: algbw * factor })
}

/// The factor as one writes it down.
pub fn factor_formula(collective: Collective, ranks: u32) -> String {
    match collective {
        Collective::AllReduce => format!("2·({ranks} − 1)/{ranks}"),
        Collective::AllGather
        | Collective::ReduceScatter
        | Collective::AllToAll
        | Collective::Gather { .. }
        | Collective::Scatter { .. } => format!("({ranks} − 1)/{ranks}"),
        Collective::Broadcast { .. } | Collective::Reduce { .. } | Collective::SendRecv => "1".into(),
    }
}

/// Plain bytes, or with a binary unit: `1048576`, `64M`, `64 MiB`, `1.5g`.
pub fn parse_bytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1u64,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return None,
    };
    number.trim().parse::<f64>().ok().map(|n| n * scale as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gibibyte_in_a_hundred_milliseconds() {
        let got = compute(Collective::AllReduce, 8, 1e9, 100_000.0).expect("sensible");
        assert!((got.algbw - 10.0).abs() < 1e-12);
        assert!((got.factor - 1.75).abs() < 1e-12);
        assert!((got.busbw - 17.5).abs() < 1e-12);
    }

    #[test]
    fn nonsense_has_no_bandwidth() {
        assert_eq!(compute(Collective::AllReduce, 1, 1.0, 1.0), None);
        assert_eq!(compute(Collective::AllReduce, 4, 0.0, 1.0), None);
        assert_eq!(compute(Collective::AllReduce, 4, 1.0, f64::NAN), None);
    }

    #[test]
    fn sizes_come_with_or_without_units() {
        assert_eq!(parse_bytes("1048576"), Some(1048576.0));
        assert_eq!(parse_bytes(" 64 MiB "), Some(67108864.0));
        assert_eq!(parse_bytes("1.5k"), Some(1536.0));
        assert_eq!(parse_bytes("64 MB"), None);
        assert_eq!(parse_bytes("many"), None);
    }
}
