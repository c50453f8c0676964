//! Runs beside a peer: a table for each peer and collective, with a group of columns for each number of ranks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Run, bound, commands, distinct, ranks_of, shown, table};
use crate::report::{micros, size};

/// All runs of one peer and collective.
pub struct Group<'a> {
    pub peer: &'a str,
    pub collective: &'a str,
    /// The algorithm that both sides were held to.
    pub forced: Option<&'a str>,
    pub runs: Vec<&'a Run>,
    /// By ranks and size; in place only where there is nothing else.
    pub rows: BTreeMap<u64, BTreeMap<u64, (&'a Run, &'a Value)>>,
}

impl<'a> Group<'a> {
    /// # Errors
    /// Two runs of the same number of ranks: which one counts?
    pub fn all(runs: &[&'a Run]) -> Result<Vec<Group<'a>>, String> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for &run in runs {
            let (peer, collective) = (run.text("/peer/name")?, run.text("/collective")?);
            let forced = run.json["forced"].as_str();
            let same = |group: &Group<'_>| {
                (group.peer, group.collective, group.forced) == (peer, collective, forced)
            };
            let at = groups.iter().position(same).unwrap_or_else(|| {
                groups.push(Group { peer, collective, forced, runs: vec![], rows: BTreeMap::new() });
                groups.len() - 1
            });
            groups[at].add(run)?;
        }
        Ok(groups)
    }

    fn add(&mut self, run: &'a Run) -> Result<(), String> {
        for row in run.rows()? {
            let of_size = self.rows.entry(run.count(row, "/ranks")?).or_default();
            let size = run.count(row, "/size")?;
            let other = of_size.get(&size).filter(|(other, _)| other.name != run.name);
            if let Some((other, _)) = other {
                return Err(format!("{} and {} have rows of the same ranks and size", other.name, run.name));
            }
            if row["placement"] == "out_of_place" || !of_size.contains_key(&size) {
                of_size.insert(size, (run, row));
            }
        }
        self.runs.push(run);
        Ok(())
    }

    pub fn title(&self) -> String {
        match self.forced {
            Some(forced) => format!("{} by {forced} on both sides beside {}", self.collective, self.peer),
            None => format!("{} beside {}", self.collective, self.peer),
        }
    }

    /// Rows that met their target, and rows that have one, both placements.
    pub fn met(&self, of_ranks: Option<u64>) -> (usize, usize) {
        let rows = self.runs.iter().flat_map(|run| run.json["rows"].as_array().into_iter().flatten());
        let counted = rows.filter(|row| of_ranks.is_none_or(|ranks| row["ranks"] == ranks));
        let judged: Vec<&Value> = counted.filter(|row| row["target_met"].is_boolean()).collect();
        (judged.iter().filter(|row| row["target_met"] == true).count(), judged.len())
    }
}

pub fn tables(runs: &[&Run], copies: &[&Run]) -> Result<String, String> {
    Group::all(runs)?.iter().map(|group| one(group, copies)).collect()
}

fn one(group: &Group<'_>, copies: &[&Run]) -> Result<String, String> {
    let each = |text: fn(&Run) -> Result<String, String>| {
        Ok::<_, String>(distinct(group.runs.iter().map(|run| text(run)).collect::<Result<Vec<_>, _>>()?))
    };
    let (met, with_target) = group.met(None);
    let mut out = format!(
        "\n### {}\n\nOn {}; peer: {}. Medians of {} rounds, in µs per execution; {}. Targets are met in {met} of {with_target} \
         rows, with those not shown.",
        group.title(),
        each(Run::origin)?,
        each(library)?,
        each(|run| Ok(run.count(&run.json, "/rounds")?.to_string()))?,
        each(|run| Ok(run.text("/note")?.to_owned()))?,
    );
    for (ranks, of_size) in &group.rows {
        out.push_str(&format!(" Ours with {}: {}.", ranks_of(*ranks), flags(of_size)));
    }
    let heads: Vec<String> = group
        .rows
        .keys()
        .flat_map(|ranks| {
            [format!("{}: ours", ranks_of(*ranks)), group.peer.into(), "times as fast (target)".into()]
        })
        .collect();
    let sizes: BTreeSet<u64> = group.rows.values().flat_map(BTreeMap::keys).copied().collect();
    let mut lines = Vec::new();
    for bytes in shown(&sizes) {
        let of_ranks = group.rows.values();
        let cells = of_ranks.map(|of_size| of_size.get(&bytes).map(|(run, row)| cells(run, row)).transpose());
        lines.push((bytes, cells.collect::<Result<Vec<_>, _>>()?));
    }
    out.push_str("\n\n");
    out.push_str(&table(&heads, 3, lines.into_iter()));
    out.push('\n');
    out.push_str(&bound::table(group, copies)?);
    out.push_str(&commands(group.runs.iter().copied())?);
    Ok(out)
}

/// Which of our flags from which size on.
fn flags(of_size: &BTreeMap<u64, (&Run, &Value)>) -> String {
    let mut last = "";
    let mut parts = Vec::new();
    for (bytes, (_, row)) in of_size {
        let flags = row["ours_flags"].as_str().unwrap_or("");
        if flags != last {
            parts.push(format!(
                "{} from {}",
                if flags.is_empty() { "defaults" } else { flags },
                size(*bytes)
            ));
            last = flags;
        }
    }
    if parts.is_empty() { "defaults".into() } else { parts.join(", ") }
}

/// What the peer says it is; of NCCL, its version as people write it.
pub fn library(run: &Run) -> Result<String, String> {
    let name = run.text("/peer/name")?;
    let said = run.json["peer"]["library"].as_str().unwrap_or(name);
    let number = said
        .split_once("nccl-library=")
        .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok());
    Ok(match number {
        Some(n) => format!("NCCL {}.{}.{}, timed by {name}", n / 10_000, n / 100 % 100, n % 100),
        None => said.to_owned(),
    })
}

/// Ours, theirs and their ratio.
fn cells(run: &Run, row: &Value) -> Result<String, String> {
    let side = |side: &str| {
        let wrong = run.count(row, &format!("/{side}/wrong"))?;
        let median = micros(run.figure(row, &format!("/{side}/median_us"))?);
        Ok::<_, String>(if wrong > 0 { format!("{median} ({wrong} wrong)") } else { median })
    };
    Ok(format!("{} | {} | {}", side("ours")?, side("theirs")?, ratio(run, row)?))
}

/// How many times as fast, in bold where that misses the target.
pub fn ratio(run: &Run, row: &Value) -> Result<String, String> {
    let ratio = run.figure(row, "/times_as_fast")?;
    let ratio = if ratio < 100.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") };
    let ratio = if row["target_met"] == false { format!("**{ratio}**") } else { ratio };
    let target = row["target"].as_f64().map(|target| format!(" ({target:.1})")).unwrap_or_default();
    Ok(format!("{ratio}{target}"))
}
