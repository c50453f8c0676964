//! `--tune-report`: measure, fit, choose, compare.

use std::collections::BTreeSet;

use ringlab_engine::exec::{Backend, Hardware};
use ringlab_engine::tuner::{Domain, Origin, Profile};
use ringlab_engine::types::{Collective, DType, Rank};
use serde_json::json;

use super::measure::{Point, measure};
use super::regret::{Row, Summary, rows, samples};
use crate::args::Args;
use crate::bench::Opener;

/// Measures and prints. Progress goes to standard error. Of several processes that measure together, one `speaks`.
pub fn report(args: &Args, speaks: bool, open: &Opener) -> Result<(), String> {
    let collectives = collectives(args)?;
    let ranks = if args.tune.tune_ranks.is_empty() { vec![args.ranks] } else { args.tune.tune_ranks.clone() };
    let devices = crate::devices(args).map_err(|err| err.to_string())?;
    if args.backend == Backend::Cuda && devices.len() != 1 {
        return Err(format!(
            "a shared_gpu profile is of one GPU, and there are {}; give --devices 0",
            devices.len()
        ));
    }
    let loaded = args.tune.profile.as_deref().map(|path| super::load(path, args)).transpose()?;

    let channels = channels(args, loaded.as_ref());
    let (mut points, mut hardware): (Vec<Point>, Option<Hardware>) = (Vec::new(), None);
    let mut left_out = BTreeSet::new();
    for collective in &collectives {
        for &ranks in &ranks {
            let measured = measure(args, open, *collective, ranks, &channels, &devices, |point| {
                if !speaks {
                    return;
                }
                eprintln!(
                    "{} {} ranks {:>12} B {:>16} {:>6}/{:<3} {:>12.2} us",
                    point.collective,
                    point.ranks,
                    point.bytes,
                    point.algorithm.to_string(),
                    point.protocol.to_string(),
                    point.channels,
                    point.time_us()
                );
            })?;
            left_out.extend(measured.skipped.into_iter().map(|why| format!("left out: {why}")));
            if !measured.no_plan.is_empty() {
                let names: Vec<&str> = measured.no_plan.iter().map(|algorithm| algorithm.name()).collect();
                left_out.insert(format!("{} has no plan of {}", collective.name(), names.join(", ")));
            }
            points.extend(measured.points);
            hardware = Some(measured.hardware);
        }
    }
    let hardware = hardware.ok_or("no collective and no number of ranks to measure")?;
    if !speaks {
        return Ok(());
    }

    let every_other = every_other(&points);
    let is_loaded = loaded.is_some();
    let profile = match loaded {
        Some(profile) => profile,
        None => fit(args, &hardware, points.iter().filter(|point| every_other.contains(&point.bytes)))?,
    };
    let fitted = |bytes| !is_loaded && every_other.contains(&bytes);
    let mut table = Vec::new();
    for collective in &collectives {
        for &ranks in &ranks {
            table.extend(rows(&profile, &points, *collective, ranks, fitted)?);
        }
    }
    let mut text = String::new();
    for why in &left_out {
        text += &format!("# {why}\n");
    }
    text += &lines(&profile, &hardware, &table);
    crate::tune::write(&text)?;

    if let Some(path) = &args.tune.save_profile {
        let mut all = fit(args, &hardware, points.iter())?;
        if args.tune.merge_profile && path.exists() {
            let kept = super::load(&path.display().to_string(), args)?;
            all = all.merged_into(kept).map_err(|err| err.to_string())?;
        }
        all.save(path).map_err(|err| err.to_string())?;
        crate::tune::write(&format!(
            "# profile of all {} sizes written to {}\n",
            sizes(&points).len(),
            path.display()
        ))?;
    }
    if let Some(path) = &args.json {
        let file = json!({
            "version": 1,
            "program": "ringlab-perf --tune-report",
            "commit": crate::report::commit(),
            "command": std::env::args().collect::<Vec<_>>(),
            "hardware": {"backend": hardware.backend, "device": hardware.device, "driver": hardware.driver},
            "profile": profile,
            "points": points,
            "rows": table,
            "regret": Summary::of(table.iter()),
            "regret_unseen": Summary::of(table.iter().filter(|row| !row.fitted)),
        });
        std::fs::write(path, format!("{file:#}\n"))
            .map_err(|err| format!("cannot write {}: {err}", path.display()))?;
    }
    Ok(())
}

fn collectives(args: &Args) -> Result<Vec<Collective>, String> {
    match args.tune.tune_report.as_deref().unwrap_or_default() {
        "" => Ok(vec![args.collective()]),
        "all" => Ok(Collective::all(Rank(args.root)).to_vec()),
        list => list.split(',').map(|name| crate::args::collective(name, Rank(args.root))).collect(),
    }
}

/// Those asked for, else those a loaded profile chooses between.
fn channels(args: &Args, loaded: Option<&Profile>) -> Vec<u32> {
    let asked: BTreeSet<u32> = match loaded {
        _ if !args.tune.tune_channels.is_empty() => args.tune.tune_channels.iter().copied().collect(),
        Some(profile) if args.channels.is_none() => {
            profile.entries.iter().map(|entry| entry.channels).collect()
        }
        _ => [args.channels()].into(),
    };
    asked.into_iter().collect()
}

fn sizes(points: &[Point]) -> BTreeSet<u64> {
    points.iter().map(|point| point.bytes).collect()
}

/// Every other size, and the largest: beyond it a line would be drawn further than it was seen.
fn every_other(points: &[Point]) -> BTreeSet<u64> {
    let mut chosen = BTreeSet::new();
    for (collective, ranks) in
        points.iter().map(|point| (point.collective, point.ranks)).collect::<BTreeSet<_>>()
    {
        let here = points.iter().filter(|point| point.collective == collective && point.ranks == ranks);
        let sizes: BTreeSet<u64> = here.map(|point| point.bytes).collect();
        chosen.extend(sizes.iter().step_by(2));
        chosen.extend(sizes.last());
    }
    chosen
}

fn fit<'a>(
    args: &Args,
    hardware: &Hardware,
    points: impl Iterator<Item = &'a Point>,
) -> Result<Profile, String> {
    let domain = super::domain(args);
    let place = match domain {
        Domain::SharedGpuRanks => "each rank a process that launches for itself",
        Domain::Cpu | Domain::SharedGpu => "all ranks in one process",
    };
    let dtype = args.dtype.list(&DType::ALL)[0];
    let origin = Origin {
        device: hardware.device.clone(),
        driver: hardware.driver.clone(),
        date: today(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        commit: crate::report::commit(),
        conditions: format!(
            "{dtype}, out of place, slots of {} bytes, kernel {}, {place}, {} rounds of up to {} executions",
            args.slot_bytes(),
            args.kernel.name(),
            args.rounds,
            args.iters
        ),
    };
    let name = format!("{} on {}", domain.name(), hardware.device);
    Profile::fit(&name, domain, origin, &samples(points)).map_err(|err| err.to_string())
}

/// The day in UTC, as 2026-12-02.
fn today() -> String {
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// Howard Hinnant's `civil_from_days`, for days from 1970-01-01 on.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + u64::from(month <= 2))
}

fn lines(profile: &Profile, hardware: &Hardware, table: &[Row]) -> String {
    let mut lines = Vec::new();
    lines.push(format!("# {} on {} ({})", hardware.backend, hardware.device, hardware.driver));
    lines.push(format!(
        "# profile: {}, {} entries, of {}",
        profile.name,
        profile.entries.len(),
        profile.origin.date
    ));
    lines.push(
        "# fit: `fit` saw this size, `new` did not; spread: of the best one's rounds, less is noise".into(),
    );
    lines.push(format!(
        "# {:>15} {:>5} {:>12} {:>20} {:>12} {:>12} {:>20} {:>12} {:>9} {:>9} fit",
        "collective",
        "ranks",
        "size(B)",
        "chosen/channels",
        "predicted",
        "took(us)",
        "best/channels",
        "took(us)",
        "regret(%)",
        "spread(%)"
    ));
    for row in table {
        lines.push(format!(
            "{:>17} {:>5} {:>12} {:>20} {:>12.2} {:>12.2} {:>20} {:>12.2} {:>9.1} {:>9.1} {}",
            row.collective,
            row.ranks,
            row.bytes,
            row.chosen,
            row.predicted_us,
            row.chosen_us,
            row.best,
            row.best_us,
            row.regret_pct,
            row.spread_pct,
            if row.fitted { "fit" } else { "new" }
        ));
    }
    let summaries = [
        ("all sizes", Summary::of(table.iter())),
        ("sizes the profile had not seen", Summary::of(table.iter().filter(|row| !row.fitted))),
    ];
    for (what, summary) in summaries {
        if let Some(Summary { sizes, median_pct, worst_pct }) = summary {
            lines.push(format!(
                "# regret over {what} ({sizes}): median {median_pct:.1} %, worst {worst_pct:.1} %"
            ));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!([date(0), date(19_782), date(20_789)], ["1970-01-01", "2024-02-29", "2026-12-02"]);
    }
}
