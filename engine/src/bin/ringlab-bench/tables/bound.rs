//! What the memory of a shared GPU allows. Ranks that share one cannot be faster than all their bytes are read and written there.

use super::beside::Group;
use super::{Run, ranks_of};
use crate::report::micros;

/// Below this the caches hold a part of the data, and memory bounds nothing.
const FROM: u64 = 64 << 20;

/// What all-reduce is to reach at the largest size.
const TARGET: f64 = 0.9;

/// Bytes that every schedule has to read or write: each input once, each output once. `size` is that of a rank's larger buffer.
fn moved(collective: &str, ranks: u64, size: u64) -> Option<u64> {
    match collective {
        "all_reduce" | "all_to_all" => Some(2 * ranks * size),
        "all_gather" | "reduce_scatter" | "broadcast" => Some((ranks + 1) * size),
        _ => None,
    }
}

/// GB/s read plus written: of the run itself, else of a stored copy on the same device and driver.
fn bandwidth(run: &Run, copies: &[&Run]) -> Option<f64> {
    let own = run.json["copy"]["gb_s"].as_f64();
    let same = |copy: &&&Run| {
        ["device", "driver"].iter().all(|key| copy.json["hardware"][key] == run.json["hardware"][key])
    };
    own.or_else(|| copies.iter().find(same)?.json["copy"]["gb_s"].as_f64())
}

/// Nothing where no bandwidth was measured or ranks share no GPU.
pub fn table(group: &Group<'_>, copies: &[&Run]) -> Result<String, String> {
    let mut heads = Vec::new();
    let mut columns = Vec::new();
    let mut bandwidths = Vec::new();
    for (&ranks, of_size) in &group.rows {
        let mut cells = std::collections::BTreeMap::new();
        let largest = of_size.keys().max().copied();
        for (&size, (run, row)) in of_size.range(FROM..) {
            let shared = run.json["hardware"]["backend"] == "cuda" && run.json["hardware"]["devices"] == 1;
            let gb_s = bandwidth(run, copies).filter(|_| shared);
            let (Some(gb_s), Some(bytes)) = (gb_s, moved(group.collective, ranks, size)) else { continue };
            let bound_us = bytes as f64 / gb_s / 1e3;
            let ours = bound_us / run.figure(row, "/ours/median_us")?;
            let most = run.figure(row, "/theirs/median_us")? / bound_us;
            let judged = group.collective == "all_reduce" && group.forced.is_none() && Some(size) == largest;
            let percent = format!("{:.0} %", ours * 100.0);
            let percent = if judged && ours < TARGET { format!("**{percent}**") } else { percent };
            cells.insert(size, format!("{} | {percent} | {most:.2}", micros(bound_us)));
            bandwidths.push(format!("{gb_s:.0}"));
        }
        if !cells.is_empty() {
            heads.extend([
                format!("{}: bound", ranks_of(ranks)),
                "ours reaches".into(),
                format!("{} over bound", group.peer),
            ]);
            columns.push(cells);
        }
    }
    if columns.is_empty() {
        return Ok(String::new());
    }
    let sizes: std::collections::BTreeSet<u64> = columns.iter().flat_map(|of| of.keys()).copied().collect();
    let lines = sizes.iter().map(|size| (*size, columns.iter().map(|of| of.get(size).cloned()).collect()));
    let count = match group.collective {
        "all_reduce" | "all_to_all" => "2·N",
        _ => "(N + 1)",
    };
    Ok(format!(
        "The bound is {count}·size over the bandwidth of the driver's own copy, {} GB/s read plus written. The last column is how many times \
         as fast as the peer anything can be there.\n\n{}\n",
        super::distinct(bandwidths),
        super::table(&heads, 3, lines)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_input_is_read_and_each_output_written_once() {
        assert_eq!(moved("all_reduce", 4, 100), Some(800));
        assert_eq!(moved("all_to_all", 4, 100), Some(800));
        // 4 inputs of a quarter, 4 outputs.
        assert_eq!(moved("all_gather", 4, 100), Some(500));
        assert_eq!(moved("reduce_scatter", 4, 100), Some(500));
        assert_eq!(moved("broadcast", 4, 100), Some(500));
        assert_eq!(moved("send_recv", 4, 100), None);
    }
}
