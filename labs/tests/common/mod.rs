//! The real catalogue, and results as a runner would send them.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use ringlab_engine::exec::{KernelChoice, SessionSpec, cpu};
use ringlab_engine::plan::{Step, text};
use ringlab_labs::Compiled;
use ringlab_labs::catalogue::{Catalogue, LabView};
use ringlab_labs::job::{
    Backend, CollectiveTask, Fields, HardwareInfo, JobResult, SCHEMA, Submission, Task, TaskResult,
};
use serde_json::Value;

pub fn lab(id: &str) -> &'static LabView {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    let catalogue = CATALOGUE.get_or_init(|| {
        Catalogue::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("catalogue"))
            .unwrap_or_else(|e| panic!("{e}"))
    });
    catalogue.get(id).unwrap()
}

pub fn fields(value: Value) -> Fields {
    serde_json::from_value(value).unwrap()
}

pub fn submission(lab: &str, params: Value, prediction: Value, code: Option<String>) -> Submission {
    Submission { lab: lab.into(), params: fields(params), prediction: fields(prediction), code, hints: 0 }
}

pub fn tasks(compiled: &Compiled) -> impl Iterator<Item = &CollectiveTask> {
    compiled.tasks.iter().map(|Task::Collective(task)| task)
}

/// A result with `task` for each of the job's tasks.
pub fn result(compiled: &Compiled, task: impl FnMut(&CollectiveTask) -> TaskResult) -> JobResult {
    JobResult {
        schema: SCHEMA,
        hardware: HardwareInfo {
            cpu: "test CPU".into(),
            cores: 2,
            memory_bytes: 1 << 33,
            os: "test".into(),
            gpus: Vec::new(),
            backends: vec![Backend::Cpu],
        },
        tasks: tasks(compiled).map(task).collect(),
        artifacts: Vec::new(),
        engine: "test".into(),
    }
}

/// All elements right, in the given times.
pub fn task_result(
    task: &CollectiveTask,
    times_us: Vec<f64>,
    moved_bytes: Vec<u64>,
    comm_steps: u32,
) -> TaskResult {
    TaskResult {
        id: task.id.clone(),
        elements: task.block * u64::from(task.ranks),
        wrong: 0,
        first_wrong: None,
        times_us,
        clock: "test clock".into(),
        moved_bytes,
        comm_steps,
        trace: None,
    }
}

/// Really runs a task on the CPU backend, as a runner's worker does.
pub fn execute(task: &CollectiveTask) -> TaskResult {
    let plan = text::parse(&task.plan).unwrap().plan;
    let comm_steps = plan.programs.iter().map(|program| communicating(&program.steps)).max().unwrap();
    let spec = SessionSpec {
        plan,
        block: task.block,
        dtype: task.dtype,
        op: task.op,
        factors: ringlab_engine::types::Factors::Parity,
        in_place: task.in_place,
        slot_bytes: 1 << 16,
        fifo: ringlab_engine::fifo::Fifo::default(),
        deadline: Duration::from_secs(20),
        devices: Vec::new(),
        trace_spans: 0,
        kernel: KernelChoice::Auto,
    };
    let mut session = cpu::open(spec).unwrap();
    session.fill(3).unwrap();
    session.run(1).unwrap();
    let check = session.check(3).unwrap();
    let timing = session.run(task.iterations).unwrap();
    let times = timing.iterations.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    let mut result = task_result(task, times, timing.moved_bytes, comm_steps);
    (result.elements, result.wrong) = (check.elements, check.wrong);
    result
}

fn communicating(steps: &[Step]) -> u32 {
    let talks = |step: &&Step| match step {
        Step::Copy { src, .. } => src.rank.is_some(),
        Step::Reduce { srcs, .. } => srcs.iter().any(|src| src.rank.is_some()),
        Step::Signal { .. } | Step::Wait { .. } => false,
        _ => true,
    };
    steps.iter().filter(talks).count() as u32
}

/// Names of a form, to fill it with anything.
pub fn names(form: &[ringlab_labs::catalogue::Field]) -> Vec<String> {
    form.iter().map(|field| field.name.clone()).collect()
}
