//! The real catalogue, and results as a runner would send them.

use std::path::Path;
use std::sync::OnceLock;

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

/// Names of a form, to fill it with anything.
pub fn names(form: &[ringlab_labs::catalogue::Field]) -> Vec<String> {
    form.iter().map(|field| field.name.clone()).collect()
}
