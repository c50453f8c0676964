//! Chapter 8: from raw times to algbw and busbw. A run measures ten collectives; the learner works out both bandwidths of four, and
//! finds the one cell of a printed table that was changed.

mod instance;
mod tables;
mod why;

use ringlab_engine::plan::{Algorithm, generate, text};
use ringlab_engine::types::RedOp;

use self::instance::{Instance, Row};
use super::checker::{Checker, Kind, Needs, Run, Work};
use super::sheet::{Judged, Ruling};
use super::{backend_of, of_field, show};
use crate::api::FieldError;
use crate::form::Values;
use crate::job::{Backend, CollectiveTask, JobResult, Task, TaskResult};
use crate::text::Text;

pub(super) struct Busbw;

const WARMUP: u32 = 2;
const ITERATIONS: u32 = 5;
const ASKED: [&str; 4] = ["a", "b", "c", "d"];

impl Checker for Busbw {
    fn revision(&self) -> u32 {
        1
    }

    fn needs(&self) -> Needs {
        let mut answers: Vec<(String, Kind)> = Vec::new();
        for row in ASKED {
            answers.push((format!("algbw_{row}"), Kind::Number));
            answers.push((format!("busbw_{row}"), Kind::Number));
        }
        answers.push(("broken_row".to_owned(), Kind::Integer));
        answers.push(("broken_column".to_owned(), Kind::Choice));
        let mut checks = vec!["correct".to_owned()];
        checks.extend(answers.iter().map(|(name, _)| name.clone()));
        Needs { params: Vec::new(), prediction: Vec::new(), answers, checks, takes_plan: false }
    }

    fn compile(&self, params: &Values, _code: Option<&str>, seed: u64) -> Result<Work, Vec<FieldError>> {
        let backend = backend_of(params);
        let tasks =
            Instance::new(seed, backend).rows().map(|row| task(row, backend)).collect::<Result<_, _>>()?;
        Ok(Work { tasks, plan: None })
    }

    fn judge(&self, run: &Run) -> Judged {
        let instance = Instance::new(run.seed, run.compiled.backend);
        let mut judged = Judged { rulings: Default::default(), tables: tables::of(run, &instance) };
        judged.rulings.insert("correct".to_owned(), correct(run, &instance));
        for row in &instance.asked {
            for (name, bus) in
                [(format!("algbw_{}", row.label), false), (format!("busbw_{}", row.label), true)]
            {
                let ruling = match run.answers {
                    None => Ruling::pending(),
                    Some(answers) => bandwidth(run, row, bus, answers.number(&name), &name),
                };
                judged.rulings.insert(name, ruling);
            }
        }
        let (row, column) = match run.answers {
            None => (Ruling::pending(), Ruling::pending()),
            Some(answers) => broken(run, &instance, answers),
        };
        judged.rulings.insert("broken_row".to_owned(), row);
        judged.rulings.insert("broken_column".to_owned(), column);
        judged
    }
}

fn task(row: &Row, backend: Backend) -> Result<Task, Vec<FieldError>> {
    let channels = match backend {
        Backend::Cpu => 1,
        Backend::Cuda => 4,
    };
    let plan = generate(Algorithm::Ring, row.collective, row.ranks, channels).map_err(|error| {
        let error = error.text();
        vec![of_field(
            "lab",
            Text::new(
                format!("无法为这个实验生成计划：{}请告诉管理员。", error.zh),
                format!("no plan could be generated for this lab: {} Tell whoever runs it.", error.en),
            ),
        )]
    })?;
    Ok(Task::Collective(CollectiveTask {
        id: task_id(row),
        backend,
        plan: text::print(&plan),
        collective: row.collective,
        ranks: row.ranks,
        block: row.count,
        dtype: row.dtype,
        op: RedOp::Sum,
        in_place: false,
        warmup: WARMUP,
        iterations: ITERATIONS,
        trace: false,
    }))
}

fn task_id(row: &Row) -> String {
    format!("row-{}", row.label)
}

fn result_of<'a>(result: &'a JobResult, row: &Row) -> Option<&'a TaskResult> {
    let id = task_id(row);
    result.tasks.iter().find(|task| task.id == id)
}

/// Mean of the timed iterations in microseconds; `None` when there is none or one of them cannot be.
fn mean_us(result: &JobResult, row: &Row) -> Option<f64> {
    let times = &result_of(result, row)?.times_us;
    let usable = !times.is_empty() && times.iter().all(|time| time.is_finite() && *time > 0.0);
    usable.then(|| times.iter().sum::<f64>() / times.len() as f64)
}

/// GB/s (1e9 bytes a second) of `bytes` in `us` microseconds.
fn gbps(bytes: u64, us: f64) -> f64 {
    bytes as f64 / us / 1e3
}

fn correct(run: &Run, instance: &Instance) -> Ruling {
    let results: Vec<&TaskResult> = instance.rows().filter_map(|row| result_of(run.result, row)).collect();
    let rows = instance.rows().count();
    if results.len() < rows {
        let missing = rows - results.len();
        return Ruling::unmeasured(
            &format!("{rows} 个 collective 中的 {missing} 个"),
            &format!("{missing} of {rows} collectives"),
        );
    }
    let elements: u64 = results.iter().fold(0, |sum, task| sum.saturating_add(task.elements));
    let wrong: u64 = results.iter().fold(0, |sum, task| sum.saturating_add(task.wrong));
    Ruling::decided(
        wrong == 0 && elements > 0,
        "0",
        wrong.to_string(),
        Text::new(
            format!(
                "{rows} 个 collective 的输出共比对 {elements} 个元素，错 {wrong} 个。算错了的通信，再快也不叫带宽。"
            ),
            format!(
                "{elements} output elements of {rows} collectives were compared, {wrong} wrong. A wrong \
                 result has no bandwidth, however fast it came."
            ),
        ),
    )
}

fn bandwidth(run: &Run, row: &Row, bus: bool, answer: Option<f64>, check: &str) -> Ruling {
    let (Some(us), Some(answer)) = (mean_us(run.result, row), answer) else {
        let row = row.label.to_uppercase();
        return Ruling::unmeasured(&format!("{row} 行"), &format!("row {row}"));
    };
    let algbw = gbps(row.size(), us);
    let expected = if bus { algbw * row.factor() } else { algbw };
    let pass = close(answer, expected, tolerance(run, check));
    let why = why::bandwidth(row, us, bus, (!pass).then_some(answer));
    let unit = |value: f64| format!("{} GB/s", show::significant(value, 5));
    Ruling::decided(pass, unit(expected), unit(answer), why)
}

fn tolerance(run: &Run, check: &str) -> f64 {
    run.lab.checks.iter().find(|spec| spec.id == check).and_then(|spec| spec.tolerance).unwrap_or(0.0)
}

fn close(got: f64, expected: f64, relative: f64) -> bool {
    (got - expected).abs() <= relative * expected.abs()
}

fn broken(run: &Run, instance: &Instance, answers: &Values) -> (Ruling, Ruling) {
    let row = &instance.printed[instance.broken_row];
    let (Some(got_row), Some(got_column)) = (answers.integer("broken_row"), answers.text("broken_column"))
    else {
        return (unprinted(), unprinted());
    };
    let Some(us) = mean_us(run.result, row) else {
        return (unprinted(), unprinted());
    };
    let expected_row = instance.broken_row as i64 + 1;
    let column = instance.broken_column;
    let why = why::broken(row, column, us, ITERATIONS);
    (
        Ruling::decided(got_row == expected_row, expected_row.to_string(), got_row.to_string(), why.clone()),
        Ruling::decided(got_column == column.name(), column.name(), got_column, why),
    )
}

fn unprinted() -> Ruling {
    Ruling::unmeasured("表二", "table 2")
}
