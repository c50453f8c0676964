//! The two tables of the lab: the raw times of four rows, and six more rows worked out with one cell changed.

use super::instance::{Column, Instance, Row};
use super::{ITERATIONS, gbps, mean_us, result_of};
use crate::job::{JobResult, Table};
use crate::lab::checker::Run;
use crate::lab::show;
use crate::text::Text;

/// In place of a figure that the run did not bring.
const NONE: &str = "—";

pub(super) fn of(run: &Run, instance: &Instance) -> Vec<Table> {
    let clock = instance.rows().find_map(|row| result_of(run.result, row)).map_or("", |task| &task.clock);
    let source = show::measured(&run.result.hardware, run.compiled.backend, clock);
    vec![raw(run.result, instance, &source), printed(run.result, instance, &source)]
}

fn raw(result: &JobResult, instance: &Instance, source: &Text) -> Table {
    let same = |name: &str| Text::new(name, name);
    Table {
        id: "raw".to_owned(),
        title: Text::new("表一：原始时间", "Table 1: raw times"),
        columns: vec![
            Text::new("行", "row"),
            same("collective"),
            same("ranks"),
            Text::new("count（元素）", "count (elements)"),
            same("type"),
            Text::new("每元素字节", "bytes each"),
            Text::new("每次迭代的时间（µs）", "time of each iteration (µs)"),
        ],
        rows: instance.asked.iter().map(|row| raw_row(result, row)).collect(),
        source: source.clone(),
    }
}

fn raw_row(result: &JobResult, row: &Row) -> Vec<String> {
    let times: Vec<String> = match (mean_us(result, row), result_of(result, row)) {
        (Some(_), Some(task)) => task.times_us.iter().map(|time| show::significant(*time, 6)).collect(),
        _ => vec![NONE.to_owned()],
    };
    vec![
        row.label.to_uppercase(),
        row.collective.name().to_owned(),
        row.ranks.to_string(),
        row.count.to_string(),
        row.dtype.name().to_owned(),
        row.dtype.size().to_string(),
        times.join("  "),
    ]
}

fn printed(result: &JobResult, instance: &Instance, source: &Text) -> Table {
    let same = |name: &str| Text::new(name, name);
    Table {
        id: "printed".to_owned(),
        title: Text::new("表二：有一格被改过", "Table 2: one cell was changed"),
        columns: vec![
            Text::new("行", "row"),
            same("collective"),
            same("ranks"),
            same("size (B)"),
            Text::new("count（元素）", "count (elements)"),
            same("type"),
            same("time (µs)"),
            same("algbw (GB/s)"),
            same("busbw (GB/s)"),
        ],
        rows: (instance.printed.iter().enumerate())
            .map(|(index, row)| {
                let broken = (index == instance.broken_row).then_some(instance.broken_column);
                printed_row(mean_us(result, row), row, broken)
            })
            .collect(),
        source: Text::new(
            format!("由同一次运行的时间算得，其中一格被有意改动。{}", source.zh),
            format!("Computed from the times of the same run, one cell changed on purpose; {}", source.en),
        ),
    }
}

/// One benchmark line; with `broken`, that cell alone is what the named mistake would have printed.
fn printed_row(us: Option<f64>, row: &Row, broken: Option<Column>) -> Vec<String> {
    let figure = |column: Column, value: Option<f64>| match value {
        None => NONE.to_owned(),
        Some(value) if broken == Some(column) => show::significant(value * mistake(row, column), 5),
        Some(value) => show::significant(value, 5),
    };
    let size = if broken == Some(Column::Size) { wrong_size(row) } else { row.size() };
    let algbw = us.map(|us| gbps(row.size(), us));
    vec![
        row.label.clone(),
        row.collective.name().to_owned(),
        row.ranks.to_string(),
        size.to_string(),
        row.count.to_string(),
        row.dtype.name().to_owned(),
        figure(Column::Time, us),
        figure(Column::Algbw, algbw),
        figure(Column::Busbw, algbw.map(|algbw| algbw * row.factor())),
    ]
}

/// Takes the other convention: one rank's part where the whole is meant, or all ranks' buffers together where one is meant.
pub(super) fn wrong_size(row: &Row) -> u64 {
    if row.size() == row.part() { row.part() * u64::from(row.ranks) } else { row.part() }
}

/// What the cell is multiplied by.
pub(super) fn mistake(row: &Row, column: Column) -> f64 {
    let n = f64::from(row.ranks);
    match column {
        Column::Size => wrong_size(row) as f64 / row.size() as f64,
        // The total was divided by one iteration too few.
        Column::Time => f64::from(ITERATIONS) / f64::from(ITERATIONS - 1),
        // GiB/s under a heading that says GB/s.
        Column::Algbw => 1e9 / f64::from(1u32 << 30),
        // The factor of another collective.
        Column::Busbw if row.factor() > 1.0 => 0.5,
        Column::Busbw if row.factor() < 1.0 => 2.0,
        Column::Busbw => (n - 1.0) / n,
    }
}
