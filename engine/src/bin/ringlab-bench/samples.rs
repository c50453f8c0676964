//! What the rounds of one band gave, by size and placement.

use std::collections::BTreeMap;

use serde_json::Value;

/// One placement of one size in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    pub time_us: f64,
    /// `None` when this round checked nothing.
    pub wrong: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Bytes of the larger buffer.
    pub size: u64,
    /// `None` where the library has no such placement.
    pub out_of_place: Option<Cell>,
    pub in_place: Option<Cell>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    OutOfPlace,
    InPlace,
}

impl Placement {
    pub const fn name(self) -> &'static str {
        match self {
            Placement::OutOfPlace => "out_of_place",
            Placement::InPlace => "in_place",
        }
    }
}

/// Microseconds per execution, a value for each round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pair {
    pub ours: Vec<f64>,
    pub theirs: Vec<f64>,
    pub wrong_ours: u64,
    pub wrong_theirs: u64,
}

#[derive(Debug, Default)]
pub struct Samples {
    pub pairs: BTreeMap<(u64, Placement), Pair>,
}

impl Samples {
    /// One round of both sides. Only placements that both have are kept: there is nothing to set the others beside.
    ///
    /// # Errors
    /// When the two did not measure the same sizes.
    pub fn add(&mut self, ours: Vec<Row>, theirs: Vec<Row>) -> Result<(), String> {
        let sizes = |rows: &[Row]| rows.iter().map(|row| row.size).collect::<Vec<_>>();
        if sizes(&ours) != sizes(&theirs) {
            let (ours, theirs) = (sizes(&ours), sizes(&theirs));
            return Err(format!("the two sides measured different sizes: ours {ours:?}, theirs {theirs:?}"));
        }
        for (our, their) in ours.iter().zip(&theirs) {
            let placements = [
                (Placement::OutOfPlace, our.out_of_place, their.out_of_place),
                (Placement::InPlace, our.in_place, their.in_place),
            ];
            for (placement, our_cell, their_cell) in placements {
                let (Some(a), Some(b)) = (our_cell, their_cell) else { continue };
                // A buffer too small to hold a block for each rank is empty: neither side did anything.
                if our.size == 0 {
                    continue;
                }
                let pair = self.pairs.entry((our.size, placement)).or_default();
                pair.ours.push(a.time_us);
                pair.theirs.push(b.time_us);
                pair.wrong_ours += a.wrong.unwrap_or(0);
                pair.wrong_theirs += b.wrong.unwrap_or(0);
            }
        }
        Ok(())
    }

    pub fn wrong(&self) -> u64 {
        self.pairs.values().map(|pair| pair.wrong_ours + pair.wrong_theirs).sum()
    }
}

/// The middle value, or the mean of the two.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Half of the range between the quartiles, as a part of the median: how far a typical round lies from it.
pub fn spread(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let place = part * (sorted.len() as f64 - 1.0);
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    (at(0.75) - at(0.25)) / 2.0 / median(values)
}

/// The rows of the file that `ringlab-perf --json` writes: its times are not rounded to a column's width.
pub fn rows_of_ours(file: &Value) -> Result<Vec<Row>, String> {
    let wrong = || {
        "ringlab-perf's JSON is not of the version this program reads; use programs of one build".to_owned()
    };
    let cell = |value: &Value| match value {
        Value::Null => Ok(None),
        value => {
            let time_us = value["time_us"].as_f64().ok_or_else(wrong)?;
            Ok::<_, String>(Some(Cell { time_us, wrong: value["wrong"].as_u64() }))
        }
    };
    let rows = file["rows"].as_array().ok_or_else(wrong)?;
    rows.iter()
        .map(|row| {
            Ok(Row {
                size: row["size"].as_u64().ok_or_else(wrong)?,
                out_of_place: cell(&row["out_of_place"])?,
                in_place: cell(&row["in_place"])?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(size: u64, out: Option<f64>, inside: Option<f64>) -> Row {
        let cell = |us: f64| Cell { time_us: us, wrong: Some(0) };
        Row { size, out_of_place: out.map(cell), in_place: inside.map(cell) }
    }

    #[test]
    fn only_what_both_sides_have_is_compared() {
        let mut samples = Samples::default();
        let theirs = vec![row(8, None, Some(2.0)), row(16, None, Some(4.0))];
        samples.add(vec![row(8, Some(1.0), Some(1.5)), row(16, Some(3.0), Some(3.5))], theirs).unwrap();
        let keys: Vec<_> = samples.pairs.keys().copied().collect();
        assert_eq!(keys, [(8, Placement::InPlace), (16, Placement::InPlace)]);
        assert_eq!(samples.pairs[&(16, Placement::InPlace)].theirs, [4.0]);
        let error = samples.add(vec![row(8, None, None)], vec![row(16, None, None)]).unwrap_err();
        assert!(error.contains("[8]") && error.contains("[16]"));
    }

    #[test]
    fn a_median_ignores_an_outlier_and_the_spread_is_of_the_middle_half() {
        assert_eq!(median(&[3.0, 1.0, 100.0]), 3.0);
        assert_eq!(median(&[1.0, 2.0, 3.0, 100.0]), 2.5);
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0, 5.0]), 1.0 / 3.0);
        assert_eq!(spread(&[7.0]), 0.0);
    }

    #[test]
    fn our_file_is_read_with_null_for_a_missing_placement() {
        let file = serde_json::json!({"rows": [
            {"size": 8, "out_of_place": {"time_us": 0.25, "wrong": 0}, "in_place": null}
        ]});
        let cell = Some(Cell { time_us: 0.25, wrong: Some(0) });
        assert_eq!(rows_of_ours(&file).unwrap(), [Row { size: 8, out_of_place: cell, in_place: None }]);
        assert!(rows_of_ours(&serde_json::json!({})).is_err());
    }
}
