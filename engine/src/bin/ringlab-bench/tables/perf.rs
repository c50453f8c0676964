//! Runs of `ringlab-perf` alone.

use std::collections::{BTreeMap, BTreeSet};

use super::{Run, commands, ranks_of, shown, table};
use crate::report::micros;

/// One table of all runs, out of place.
pub fn joined(runs: &[&Run]) -> Result<String, String> {
    if runs.is_empty() {
        return Ok(String::new());
    }
    let mut out = String::from("\n");
    let mut heads = Vec::new();
    let mut by_run: Vec<BTreeMap<u64, String>> = Vec::new();
    for run in runs {
        let (collective, algorithm) = (run.text("/settings/collective")?, run.text("/settings/algorithm")?);
        let ranks = run.count(&run.json, "/settings/ranks")?;
        out.push_str(&format!(
            "- `{}`: {collective}, {algorithm}, {}; {}; medians of {} rounds of {} executions\n",
            run.name,
            ranks_of(ranks),
            run.origin()?,
            run.count(&run.json, "/settings/rounds")?,
            run.count(&run.json, "/settings/iters")?,
        ));
        heads.extend([format!("{}: µs", ranks_of(ranks)), "busbw GB/s".into()]);
        let mut of_size = BTreeMap::new();
        for row in run.rows()?.iter().filter(|row| !row["out_of_place"].is_null()) {
            let wrong = run.count(row, "/out_of_place/wrong")?;
            if wrong > 0 {
                return Err(format!("{} has {wrong} wrong elements in {row}", run.name));
            }
            let time = micros(run.figure(row, "/out_of_place/time_us")?);
            let busbw = run.figure(row, "/out_of_place/busbw_gb_s")?;
            of_size.insert(run.count(row, "/size")?, format!("{time} | {busbw:.1}"));
        }
        by_run.push(of_size);
    }
    let sizes: BTreeSet<u64> = by_run.iter().flat_map(BTreeMap::keys).copied().collect();
    let lines =
        shown(&sizes).map(|bytes| (bytes, by_run.iter().map(|run| run.get(&bytes).cloned()).collect()));
    out.push('\n');
    out.push_str(&table(&heads, 2, lines));
    out.push('\n');
    out.push_str(&commands(runs.iter().copied())?);
    Ok(out)
}
