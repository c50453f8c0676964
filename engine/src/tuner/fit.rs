//! From measurements to a profile: per algorithm, protocol, collective, ranks and channels one line, or several where one does not fit.
//!
//! A line minimises the relative error, so that 5 us and 5 ms count alike, and is robust: it starts from least absolute deviations
//! and ends with Tukey's bisquare, which gives a sample far off no weight (Huber and Ronchetti, Robust Statistics, ch. 7). Neither
//! alpha nor beta is negative. Where to cut is decided on the sizes' medians by dynamic programming; a further segment must pay for
//! itself by the Bayesian information criterion.

use std::collections::BTreeMap;

use super::Protocol;
use super::profile::{Domain, Entry, Origin, Profile, ProfileError, Segment, VERSION};
use crate::plan::Algorithm;

/// One timed execution, or the median of some.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub algorithm: Algorithm,
    pub protocol: Protocol,
    /// [`crate::types::Collective::name`]
    pub collective: String,
    pub ranks: u32,
    pub channels: u32,
    /// Of the larger buffer of a rank.
    pub bytes: u64,
    pub time_us: f64,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    #[error("{algorithm} for {collective} of {bytes} bytes took {time_us} us: a time must be above 0")]
    Time { algorithm: Algorithm, collective: String, bytes: u64, time_us: f64 },
    #[error(
        "{algorithm} for {collective} on {ranks} ranks was measured at {sizes} size; alpha and beta take two or more"
    )]
    Sizes { algorithm: Algorithm, collective: String, ranks: u32, sizes: usize },
    #[error("the fitted profile cannot be used: {0}")]
    Profile(#[from] ProfileError),
}

/// Most segments of an entry, and the fewest sizes in one of several.
const MAX_SEGMENTS: usize = 4;
const MIN_SIZES: usize = 3;
/// Errors below this are measuring noise and not worth a segment.
const NOISE: f64 = 0.03;

type Key = (Algorithm, Protocol, String, u32, u32);
/// (bytes, microseconds)
type Point = (f64, f64);

impl Profile {
    /// # Errors
    /// On a time that is none, on too few sizes, and on figures that [`Profile::check`] refuses.
    pub fn fit(name: &str, domain: Domain, origin: Origin, samples: &[Sample]) -> Result<Profile, FitError> {
        let mut groups: BTreeMap<Key, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
        for sample in samples {
            let Sample { algorithm, protocol, collective, ranks, channels, bytes, time_us } = sample;
            if !time_us.is_finite() || *time_us <= 0.0 {
                let collective = collective.clone();
                return Err(FitError::Time {
                    algorithm: *algorithm,
                    collective,
                    bytes: *bytes,
                    time_us: *time_us,
                });
            }
            let key = (*algorithm, *protocol, collective.clone(), *ranks, *channels);
            groups.entry(key).or_default().entry(*bytes).or_default().push(*time_us);
        }
        let entries = groups.into_iter().map(|(key, sizes)| entry(key, &sizes)).collect::<Result<_, _>>()?;
        let profile = Profile { version: VERSION, name: name.into(), domain, origin, entries };
        profile.check()?;
        Ok(profile)
    }
}

fn entry(key: Key, sizes: &BTreeMap<u64, Vec<f64>>) -> Result<Entry, FitError> {
    let (algorithm, protocol, collective, ranks, channels) = key;
    if sizes.len() < 2 {
        return Err(FitError::Sizes { algorithm, collective, ranks, sizes: sizes.len() });
    }
    let medians: Vec<Point> = sizes.iter().map(|(bytes, times)| (*bytes as f64, median(times))).collect();
    let starts = cuts(&medians);
    let bounds: Vec<u64> = sizes.keys().copied().collect();
    let mut segments = Vec::new();
    for (at, &start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(medians.len());
        let points: Vec<Point> = bounds[start..end]
            .iter()
            .flat_map(|bytes| sizes[bytes].iter().map(|time| (*bytes as f64, *time)))
            .collect();
        let (alpha_us, beta) = line(&points);
        segments.push(Segment {
            from_bytes: if at == 0 { 0 } else { bounds[start] },
            alpha_us: six_digits(alpha_us),
            gbps: (beta > 0.0).then(|| six_digits(1e-3 / beta)),
        });
    }
    let mut entry = Entry {
        algorithm,
        protocol,
        collective,
        ranks,
        channels,
        segments,
        samples: sizes.values().map(|times| times.len() as u32).sum(),
        median_error_pct: 0.0,
    };
    let errors: Vec<f64> = sizes
        .iter()
        .flat_map(|(bytes, times)| {
            let predicted = entry.time_us(*bytes);
            times.iter().map(move |time| (predicted / time - 1.0).abs() * 100.0)
        })
        .collect();
    entry.median_error_pct = six_digits(median(&errors));
    Ok(entry)
}

/// The middle value, or the mean of the two middle ones. At least one value.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { (sorted[half - 1] + sorted[half]) / 2.0 } else { sorted[half] }
}

/// More digits than a measurement has.
fn six_digits(x: f64) -> f64 {
    format!("{x:.5e}").parse().expect("a number that was printed")
}

/// Sum over points of |predicted / measured - 1|, each at most 1/2 so that one outlier does not buy a segment.
fn loss(points: &[Point], (alpha, beta): (f64, f64)) -> f64 {
    points.iter().map(|(x, t)| ((alpha + beta * x) / t - 1.0).abs().min(0.5)).sum()
}

/// Indices at which segments start, the first 0.
fn cuts(points: &[Point]) -> Vec<usize> {
    let n = points.len();
    let cost = |from: usize, to: usize| loss(&points[from..to], line(&points[from..to]));
    let score = |loss: f64, segments: usize| {
        let size = n as f64;
        // Three figures a segment: alpha, beta, and where it starts.
        size * (loss / size).max(NOISE).ln() + 1.5 * segments as f64 * size.ln()
    };
    // best[k][end]: least loss of the points before `end` in k + 1 segments, and where the last one starts.
    let single = (0..=n).map(|end| (end >= MIN_SIZES.min(n)).then(|| (cost(0, end), 0)));
    let mut best: Vec<Vec<Option<(f64, usize)>>> = vec![single.collect()];
    for k in 1..MAX_SEGMENTS.min(n / MIN_SIZES) {
        let last = &best[k - 1];
        let row = (0..=n).map(|end| {
            let starts = k * MIN_SIZES..=end.checked_sub(MIN_SIZES)?;
            let split = starts.filter_map(|start| Some((last[start]?.0 + cost(start, end), start)));
            split.min_by(|a, b| a.0.total_cmp(&b.0))
        });
        let row = row.collect();
        best.push(row);
    }
    let scored =
        best.iter().enumerate().filter_map(|(k, row)| row[n].map(|(loss, _)| (score(loss, k + 1), k)));
    let chosen = scored.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |(_, k)| k);
    let mut starts = Vec::new();
    let mut end = n;
    for k in (0..=chosen).rev() {
        let start = best[k][end].map_or(0, |(_, start)| start);
        starts.push(start);
        end = start;
    }
    starts.reverse();
    starts
}

/// `(alpha, beta)` of the line through points, both 0 or more and not both 0.
fn line(points: &[Point]) -> (f64, f64) {
    let ones = vec![1.0; points.len()];
    let mut fit = weighted(points, &ones);
    let residuals = |(alpha, beta): (f64, f64)| -> Vec<f64> {
        points.iter().map(|(x, t)| ((alpha + beta * x) / t - 1.0).abs()).collect()
    };
    // Least absolute deviations, by weights of 1 / |residual|.
    for _ in 0..40 {
        let weights: Vec<f64> = residuals(fit).iter().map(|r| 1.0 / r.max(1e-6)).collect();
        fit = weighted(points, &weights);
    }
    // Bisquare from there, at a scale that stays, so that the weights settle.
    let scale = 4.685 * (1.4826 * median(&residuals(fit))).max(1e-3);
    for _ in 0..20 {
        let weights: Vec<f64> = residuals(fit)
            .iter()
            .map(|r| {
                let u = r / scale;
                if u < 1.0 { (1.0 - u * u).powi(2) } else { 0.0 }
            })
            .collect();
        fit = weighted(points, &weights);
    }
    fit
}

/// Least squares of `(alpha + beta x) / t - 1` with weights, over alpha and beta of 0 or more.
fn weighted(points: &[Point], weights: &[f64]) -> (f64, f64) {
    let most = points.iter().map(|(x, _)| *x).fold(1.0, f64::max);
    // Normal equations in u = 1/t and v = x/(most t).
    let (mut uu, mut uv, mut vv, mut u1, mut v1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for ((x, t), w) in points.iter().zip(weights) {
        let (u, v) = (1.0 / t, x / most / t);
        uu += w * u * u;
        uv += w * u * v;
        vv += w * v * v;
        u1 += w * u;
        v1 += w * v;
    }
    let det = uu * vv - uv * uv;
    if det > 1e-12 * uu * vv {
        let (alpha, beta) = ((u1 * vv - v1 * uv) / det, (v1 * uu - u1 * uv) / det);
        if alpha >= 0.0 && beta >= 0.0 {
            // What is left of a figure that is 0 after rounding.
            let tiny = 1e-9 * (alpha + beta);
            let [alpha, beta] = [alpha, beta].map(|x| if x < tiny { 0.0 } else { x });
            return (alpha, beta / most);
        }
    }
    // On the border: the better of a constant and a proportion, by what each takes off the sum of squares.
    let (constant, proportion) = (u1 * u1 / uu, if vv > 0.0 { v1 * v1 / vv } else { 0.0 });
    if constant >= proportion { (u1 / uu, 0.0) } else { (0.0, v1 / vv / most) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mix;
    use proptest::prelude::*;

    fn noise(seed: u64) -> f64 {
        (mix(seed) >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    }

    fn sample(bytes: u64, time_us: f64) -> Sample {
        Sample {
            algorithm: Algorithm::Ring,
            protocol: Protocol::Simple,
            collective: "all_reduce".into(),
            ranks: 2,
            channels: 1,
            bytes,
            time_us,
        }
    }

    fn fit(samples: &[Sample]) -> Result<Entry, FitError> {
        let origin = crate::tuner::profile::tests::profile(vec![]).origin;
        Profile::fit("test", Domain::Cpu, origin, samples).map(|profile| profile.entries[0].clone())
    }

    proptest! {
        /// Five rounds of sizes 8 B to 64 MiB, 3 % noise, one sample in nine ten times too slow.
        #[test]
        fn alpha_and_beta_are_found_in_noise_and_outliers(
            alpha in 1.0..100.0f64, gbps in 0.5..500.0f64, seed: u64,
        ) {
            let samples: Vec<Sample> = (3..27u32)
                .flat_map(|log| (0..5u64).map(move |round| (1u64 << log, u64::from(log) * 5 + round)))
                .map(|(bytes, at)| {
                    let clean = alpha + bytes as f64 / (1000.0 * gbps);
                    let slow = if mix(seed ^ (at * 7919)).is_multiple_of(9) { 10.0 } else { 1.0 };
                    sample(bytes, clean * (1.0 + 0.03 * noise(seed.wrapping_add(at))) * slow)
                })
                .collect();
            let entry = fit(&samples).unwrap();
            for log in 3..27 {
                let clean = alpha + (1u64 << log) as f64 / (1000.0 * gbps);
                let error = (entry.time_us(1 << log) / clean - 1.0).abs();
                prop_assert!(error < 0.06, "{error} at 2^{log}: {entry:?}");
            }
            let near = |got: f64, want: f64| (got / want - 1.0).abs() < 0.06;
            prop_assert!(near(entry.segments[0].alpha_us, alpha), "{entry:?}");
            if alpha < (1 << 26) as f64 / (1000.0 * gbps) / 20.0 {
                let last = entry.segments.last().unwrap();
                prop_assert!(last.gbps.is_some_and(|got| near(got, gbps)), "{entry:?}");
            }
        }
    }

    #[test]
    fn exact_samples_of_one_line_give_that_line() {
        let entry = fit(&(4..20)
            .map(|log| sample(1 << log, 5.0 + (1u64 << log) as f64 / 2000.0))
            .collect::<Vec<_>>());
        let Entry { segments, median_error_pct, .. } = entry.unwrap();
        assert_eq!(segments.len(), 1);
        assert!((segments[0].alpha_us - 5.0).abs() < 1e-6 && (segments[0].gbps.unwrap() - 2.0).abs() < 1e-6);
        assert!(median_error_pct < 1e-6);
    }

    /// As where buffers leave the cache.
    #[test]
    fn a_bend_gets_a_segment() {
        let time = |bytes: u64| match bytes {
            ..=0x10_0000 => 2.0 + bytes as f64 / 20_000.0,
            _ => bytes as f64 / 4_000.0,
        };
        let entry = fit(&(4..28).map(|log| sample(1 << log, time(1 << log))).collect::<Vec<_>>()).unwrap();
        assert_eq!(entry.segments.len(), 2, "{entry:?}");
        let last = entry.segments.last().unwrap();
        assert!((last.gbps.unwrap() - 4.0).abs() < 0.05 && last.from_bytes == 1 << 21, "{entry:?}");
    }

    #[test]
    fn times_that_do_not_grow_have_no_beta() {
        let entry = fit(&(4..12).map(|log| sample(1 << log, 7.0)).collect::<Vec<_>>()).unwrap();
        let [Segment { from_bytes: 0, alpha_us, gbps: None }] = entry.segments[..] else {
            panic!("{entry:?}")
        };
        assert!((alpha_us - 7.0).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_fitted_is_named() {
        let refused = |samples: &[Sample]| fit(samples).unwrap_err().to_string();
        assert!(refused(&[sample(8, 0.0), sample(16, 1.0)]).contains("of 8 bytes took 0 us"));
        assert!(refused(&[sample(8, 1.0), sample(8, 2.0)]).contains("measured at 1 size"));
        assert!(refused(&[sample(8, f64::NAN)]).contains("NaN"));
    }
}
