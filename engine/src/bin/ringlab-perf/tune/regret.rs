//! How much the tuner's choices cost against the best that was measured.

use ringlab_engine::tuner::Protocol;
use ringlab_engine::tuner::{Overrides, Profile, Query, Sample, Tuner};
use ringlab_engine::types::{Collective, Rank};

use super::measure::Point;
use crate::bench::median;

/// One size: what the tuner would take and what was best.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Row {
    pub collective: &'static str,
    pub ranks: u32,
    pub bytes: u64,
    /// Whether the profile had seen this size.
    pub fitted: bool,
    pub chosen: String,
    pub predicted_us: f64,
    /// The choice, as measured.
    pub chosen_us: f64,
    pub best: String,
    pub best_us: f64,
    /// 100 x (chosen / best - 1).
    pub regret_pct: f64,
    /// 100 x (max - min) / median over the rounds of the best: regret below this is noise.
    pub spread_pct: f64,
}

#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Summary {
    pub sizes: usize,
    pub median_pct: f64,
    pub worst_pct: f64,
}

impl Summary {
    /// `None` without rows.
    pub fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<Summary> {
        let regrets: Vec<f64> = rows.map(|row| row.regret_pct).collect();
        let worst_pct = regrets.iter().copied().max_by(f64::total_cmp)?;
        Some(Summary { sizes: regrets.len(), median_pct: median(&regrets), worst_pct })
    }
}

/// A sample of each round, so that the fit sees the noise.
pub fn samples<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<Sample> {
    points
        .flat_map(|point| {
            point.rounds_us.iter().map(|time_us| Sample {
                algorithm: point.algorithm,
                protocol: point.protocol,
                collective: point.collective.into(),
                ranks: point.ranks,
                channels: point.channels,
                bytes: point.bytes,
                time_us: *time_us,
            })
        })
        .collect()
}

fn name(point: &Point) -> String {
    let protocol =
        if point.protocol == Protocol::Simple { String::new() } else { format!(" {}", point.protocol) };
    format!("{}{protocol}/{}", point.algorithm, point.channels)
}

/// The rows of one collective and number of ranks. `fitted` tells the sizes the profile was made from.
pub fn rows(
    profile: &Profile,
    points: &[Point],
    collective: Collective,
    ranks: u32,
    fitted: impl Fn(u64) -> bool,
) -> Result<Vec<Row>, String> {
    let tuner = Tuner::new(profile.clone(), Overrides::default(), ranks).map_err(|err| err.to_string())?;
    let collective = Collective::named(collective.name(), Rank(0)).expect("a root changes no name");
    let here: Vec<&Point> =
        points.iter().filter(|point| point.collective == collective.name() && point.ranks == ranks).collect();
    let mut sizes: Vec<u64> = here.iter().map(|point| point.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
        .into_iter()
        .map(|bytes| {
            let choice = tuner.choose(Query { collective, bytes }).map_err(|err| err.to_string())?;
            let at_size = || here.iter().filter(|point| point.bytes == bytes);
            let best = at_size().min_by(|a, b| a.time_us().total_cmp(&b.time_us())).expect("the size is of a point");
            let chosen = at_size()
                .find(|point| {
                    Some(point.algorithm) == choice.algorithm()
                        && point.protocol.name() == choice.winner().protocol
                        && point.channels == choice.launched.channels
                })
                .ok_or_else(|| {
                    format!(
                        "the profile chooses {} with {} channels for {bytes} bytes, which was not measured; add it to --tune-channels",
                        choice.winner().algorithm, choice.launched.channels
                    )
                })?;
            let (most, least) = best.rounds_us.iter().fold((0.0_f64, f64::INFINITY), |(most, least), t| {
                (most.max(*t), least.min(*t))
            });
            Ok(Row {
                collective: collective.name(),
                ranks,
                bytes,
                fitted: fitted(bytes),
                chosen: name(chosen),
                predicted_us: choice.winner().cost.as_ref().map_or(0.0, |cost| cost.time_us),
                chosen_us: chosen.time_us(),
                best: name(best),
                best_us: best.time_us(),
                regret_pct: (chosen.time_us() / best.time_us() - 1.0) * 100.0,
                spread_pct: (most - least) / best.time_us() * 100.0,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ringlab_engine::plan::Algorithm;
    use ringlab_engine::tuner::{Domain, Origin};

    use super::*;

    fn point(algorithm: Algorithm, bytes: u64, time_us: f64) -> Point {
        let rounds_us = vec![time_us, time_us * 1.02, time_us * 0.98];
        Point {
            algorithm,
            protocol: Protocol::Simple,
            collective: "all_reduce",
            ranks: 2,
            channels: 1,
            bytes,
            kernel: "interpreter",
            iters: 1,
            rounds_us,
        }
    }

    fn profile(points: &[Point]) -> Profile {
        let text = String::from("test");
        let origin = Origin {
            device: text.clone(),
            driver: text.clone(),
            date: text.clone(),
            command: text.clone(),
            commit: None,
            conditions: text,
        };
        Profile::fit("test", Domain::Cpu, origin, &samples(points.iter())).unwrap()
    }

    #[test]
    fn regret_is_what_the_choice_costs_against_the_best_of_the_size() {
        let seen: Vec<Point> = [1u64 << 10, 1 << 16, 1 << 20]
            .into_iter()
            .flat_map(|bytes| {
                let x = bytes as f64;
                [
                    point(Algorithm::Ring, bytes, 10.0 + x / 4e3),
                    point(Algorithm::OneShot, bytes, 1.0 + x / 1e3),
                ]
            })
            .collect();
        let profile = profile(&seen);
        let rows = |points: &[Point]| {
            rows(&profile, points, Collective::AllReduce, 2, |bytes| bytes != 4096).unwrap()
        };
        assert!(rows(&seen).iter().all(|row| row.regret_pct == 0.0 && row.fitted));
        // At 4096 bytes one-shot is predicted at 5.1 us; this time it took 11.
        let [row] = &rows(&[point(Algorithm::Ring, 4096, 10.0), point(Algorithm::OneShot, 4096, 11.0)])[..]
        else {
            panic!("one size, one row")
        };
        assert_eq!((row.chosen.as_str(), row.best.as_str(), row.fitted), ("one_shot/1", "ring/1", false));
        assert!((row.regret_pct - 10.0).abs() < 1e-9 && (row.spread_pct - 4.0).abs() < 1e-9);
        let summary = Summary::of([row].into_iter()).unwrap();
        assert!((summary.worst_pct - 10.0).abs() < 1e-9 && summary.sizes == 1);
    }

    #[test]
    fn a_choice_that_was_not_measured_is_an_error() {
        let seen = [point(Algorithm::Ring, 8, 1.0), point(Algorithm::Ring, 16, 1.0)];
        let other = [Point { channels: 2, ..point(Algorithm::Ring, 8, 1.0) }];
        let err = rows(&profile(&seen), &other, Collective::AllReduce, 2, |_| true).unwrap_err();
        assert!(err.contains("ring with 1 channels for 8 bytes, which was not measured"), "{err}");
    }
}
