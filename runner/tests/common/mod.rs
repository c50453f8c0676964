//! Jobs and folders shared by the tests.
#![allow(dead_code)] // each test binary uses its own part

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ringlab_engine::plan::{self, Algorithm};
use ringlab_engine::types::{Collective, DType, RedOp};
use ringlab_labs::job::{Backend, CollectiveTask, JobSpec, Limits, SCHEMA, Task};

pub mod server;

pub const RUNNER: &str = env!("CARGO_BIN_EXE_ringlab-runner");
pub const JOB: &str = "01931f00-0000-7000-8000-000000000001";

/// A folder of one test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ringlab-runner-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The plan's text for an all-reduce.
pub fn plan_text(algorithm: Algorithm, ranks: u32) -> String {
    plan::text::print(&plan::generate(algorithm, Collective::AllReduce, ranks, 1).unwrap())
}

/// An all-reduce of 1000 floats per rank on the CPU.
pub fn task(algorithm: Algorithm, ranks: u32) -> CollectiveTask {
    CollectiveTask {
        id: "first".into(),
        backend: Backend::Cpu,
        plan: plan_text(algorithm, ranks),
        collective: Collective::AllReduce,
        ranks,
        block: 1000,
        dtype: DType::F32,
        op: RedOp::Sum,
        in_place: false,
        warmup: 1,
        iterations: 3,
        trace: true,
    }
}

pub fn job(tasks: Vec<CollectiveTask>) -> JobSpec {
    JobSpec {
        schema: SCHEMA,
        job: JOB.into(),
        lab: "ring-allreduce".into(),
        lab_version: "test".into(),
        seed: 7,
        tasks: tasks.into_iter().map(Task::Collective).collect(),
        limits: Limits {
            wall_ms: 20_000,
            memory_bytes: 1 << 30,
            output_bytes: 1 << 20,
            collective_ms: 5_000,
        },
    }
}

/// A job that takes minutes if it is let.
pub fn endless_job() -> JobSpec {
    job(vec![CollectiveTask { block: 4 << 20, iterations: 100_000, ..task(Algorithm::Ring, 2) }])
}

/// The fields of `/proc/PID/stat` after the command's name: state, parent, group, …
pub fn stat(pid: i32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split_whitespace().map(str::to_owned).collect())
}

/// Whether a process runs (a zombie does not).
pub fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|fields| fields[0] != "Z")
}

pub fn children(parent: i32) -> Vec<i32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| stat(pid).is_some_and(|fields| fields[1] == parent.to_string() && fields[0] != "Z"))
        .collect()
}
