//! One line for each peer, collective and number of ranks.

use super::beside::{Group, library, ratio};
use super::{Kind, Run, distinct};
use crate::report::{micros, size};

/// Where latency is read: at the first size from here on.
const SMALL: u64 = 4 << 10;

pub fn lines(runs: &[Run]) -> Result<String, String> {
    let beside: Vec<&Run> = runs.iter().filter(|run| run.kind == Kind::Beside).collect();
    if beside.is_empty() {
        return Ok(String::new());
    }
    let mut out = String::from(
        "\n| collective | ranks | beside | small | ours | peer | times as fast (target) | large | ours | peer | times as fast (target) | \
         targets met |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let groups = Group::all(&beside)?;
    for group in &groups {
        let peer = distinct(group.runs.iter().map(|run| library(run)).collect::<Result<Vec<_>, _>>()?);
        let peer = peer.split(", ").next().unwrap_or(&peer).to_owned();
        let collective = match group.forced {
            Some(forced) => format!("{} by {forced}", group.collective),
            None => group.collective.to_owned(),
        };
        for (&ranks, of_size) in &group.rows {
            let cells = |bytes: u64| {
                let (run, row) = &of_size[&bytes];
                let side = |side: &str| run.figure(row, &format!("/{side}/median_us")).map(micros);
                Ok::<_, String>(format!(
                    "{} | {} | {} | {}",
                    size(bytes),
                    side("ours")?,
                    side("theirs")?,
                    ratio(run, row)?
                ))
            };
            let Some(&large) = of_size.keys().max() else { continue };
            let small = of_size.range(SMALL..).next().map_or(large, |(&size, _)| size);
            let (met, judged) = group.met(Some(ranks));
            out.push_str(&format!(
                "| {collective} | {ranks} | {peer} | {} | {} | {met} of {judged} |\n",
                cells(small)?,
                cells(large)?
            ));
        }
    }
    let origins = beside.iter().map(|run| run.origin()).collect::<Result<Vec<_>, _>>()?;
    out.push_str(&format!(
        "\nIn µs per execution, out of place, medians; a ratio in bold misses its target. On {}.\n\n",
        distinct(origins)
    ));
    Ok(out)
}
