//! One plan carried out by several kernels: what an interpreter costs.

use std::collections::{BTreeMap, BTreeSet};

use super::{Run, commands, distinct, ranks_of, shown, table};
use crate::report::micros;

/// The interpreter, on programs as it runs authored plans, may take so many times the specialised kernel's time.
const MOST: f64 = 1.3;

const KERNELS: [&str; 3] = ["specialised", "fused", "interpreter"];

pub fn tables(runs: &[&Run]) -> Result<String, String> {
    let mut plans: BTreeMap<(String, String), Vec<&Run>> = BTreeMap::new();
    for &run in runs {
        let plan = (run.text("/settings/collective")?.into(), run.text("/settings/algorithm")?.into());
        plans.entry(plan).or_default().push(run);
    }
    plans.into_iter().map(|(plan, runs)| one(&plan, &runs)).collect()
}

fn one((collective, algorithm): &(String, String), runs: &[&Run]) -> Result<String, String> {
    // Median by ranks, size and kernel, out of place.
    let mut by_ranks: BTreeMap<u64, BTreeMap<u64, BTreeMap<&str, f64>>> = BTreeMap::new();
    for run in runs {
        let of_ranks = by_ranks.entry(run.count(&run.json, "/settings/ranks")?).or_default();
        for row in run.rows()?.iter().filter(|row| !row["out_of_place"].is_null()) {
            let wrong = run.count(row, "/out_of_place/wrong")?;
            if wrong > 0 {
                return Err(format!("{} has {wrong} wrong elements in {row}", run.name));
            }
            let times = of_ranks.entry(run.count(row, "/size")?).or_default();
            times.insert(run.text("/settings/kernel")?, run.figure(row, "/out_of_place/time_us")?);
        }
    }
    let origins = runs.iter().map(|run| run.origin()).collect::<Result<Vec<_>, _>>()?;
    let heads: Vec<String> = by_ranks
        .keys()
        .flat_map(|ranks| {
            [format!("{}: {}", ranks_of(*ranks), KERNELS[0]), KERNELS[1].into(), KERNELS[2].into()]
        })
        .collect();
    let sizes: BTreeSet<u64> = by_ranks.values().flat_map(BTreeMap::keys).copied().collect();
    let lines = shown(&sizes)
        .map(|size| (size, by_ranks.values().map(|of| of.get(&size).map(cells)).collect::<Vec<_>>()));
    Ok(format!(
        "\n### {collective} by {algorithm}, kernel beside kernel\n\nOn {}; in µs per execution, in brackets as a multiple of the \
         specialised kernel's time. `fused` is the interpreter on programs rewritten for one launch of all ranks, as authored plans are \
         run: at most {MOST:.1} is its target.\n\n{}\n{}",
        distinct(origins),
        table(&heads, KERNELS.len(), lines),
        commands(runs.iter().copied())?
    ))
}

fn cells(times: &BTreeMap<&str, f64>) -> String {
    let specialised = times.get("specialised");
    let cell = |kernel: &str| {
        let Some(&time) = times.get(kernel) else { return "-".into() };
        match specialised.filter(|_| kernel != "specialised") {
            None => micros(time),
            Some(base) => {
                let multiple = format!("{:.2}", time / base);
                let missed = kernel == "fused" && time / base > MOST;
                format!("{} ({})", micros(time), if missed { format!("**{multiple}**") } else { multiple })
            }
        }
    };
    KERNELS.map(cell).join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_of_the_specialised_kernel_and_a_miss_is_bold() {
        let times = |fused| BTreeMap::from([("specialised", 10.0), ("fused", fused), ("interpreter", 40.0)]);
        assert_eq!(cells(&times(13.0)), "10.0 | 13.0 (1.30) | 40.0 (4.00)");
        assert_eq!(cells(&times(14.0)), "10.0 | 14.0 (**1.40**) | 40.0 (4.00)");
        assert_eq!(cells(&BTreeMap::from([("fused", 2.0)])), "- | 2.00 | -");
    }
}
