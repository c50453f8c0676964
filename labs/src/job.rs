//! A job from the learner's submission to its marks. All of it is plain, versioned data.

use std::collections::BTreeMap;

pub use ringlab_engine::types::Backend;
use ringlab_engine::types::{Collective, DType, RedOp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::Text;

/// Version of the structures in this module; a runner states which it speaks.
pub const SCHEMA: u32 = 1;

/// Values of a form by field name.
pub type Fields = BTreeMap<String, Value>;

/// What the lab panel posts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    pub lab: String,
    #[serde(default)]
    pub params: Fields,
    #[serde(default)]
    pub prediction: Fields,
    /// Plan text, for labs that take one. `None` or blank: the lab's own plan.
    #[serde(default)]
    pub code: Option<String>,
    /// How many of the lab's hints were open when this was sent, counted from the first. Their prices are taken off the marks.
    #[serde(default)]
    pub hints: u32,
}

/// What a runner is asked to do: no text for people, no marks, no expected answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    pub schema: u32,
    /// UUIDv7.
    pub job: String,
    pub lab: String,
    /// Content hash of the lab the learner was given.
    pub lab_version: String,
    /// From the lab's seed rule: every learner's instance differs and can be made again.
    pub seed: u64,
    pub tasks: Vec<Task>,
    pub limits: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall clock of the whole worker.
    pub wall_ms: u64,
    pub memory_bytes: u64,
    /// All events together.
    pub output_bytes: u64,
    /// One collective (see the engine's `SessionSpec::deadline`).
    pub collective_ms: u64,
}

/// Bytes of a FIFO slot, on the runner and in the simulation beside it. On a GPU NCCL's: `NCCL_DEFAULT_BUFFSIZE` of 4 MiB over 8
/// steps (src/init.cc at v2.22.3-1). On a CPU slots that stay in its caches are faster.
pub const fn slot_bytes(backend: Backend) -> usize {
    match backend {
        Backend::Cpu => 64 << 10,
        Backend::Cuda => 512 << 10,
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Task {
    Collective(CollectiveTask),
}

/// Run one plan at one size: fill, warm up, time, fill, run once, check every element, and trace once if asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectiveTask {
    /// Unique within the job; results and artifacts refer to it.
    pub id: String,
    pub backend: Backend,
    /// The plan's text form; the worker parses and verifies it again.
    pub plan: String,
    pub collective: Collective,
    pub ranks: u32,
    /// Elements of one block.
    pub block: u64,
    pub dtype: DType,
    pub op: RedOp,
    #[serde(default)]
    pub in_place: bool,
    pub warmup: u32,
    pub iterations: u32,
    pub trace: bool,
}

/// What the worker hands back. Figures only: marks are the checker's (see DESIGN §4.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    pub schema: u32,
    pub hardware: HardwareInfo,
    pub tasks: Vec<TaskResult>,
    pub artifacts: Vec<Artifact>,
    /// Commit or version of the engine that ran.
    pub engine: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    pub id: String,
    pub elements: u64,
    pub wrong: u64,
    #[serde(default)]
    pub first_wrong: Option<WrongElement>,
    /// Microseconds of each timed iteration, or of the average over all when the backend cannot tell them apart.
    pub times_us: Vec<f64>,
    /// Which clock: shown with every figure.
    pub clock: String,
    /// Payload bytes per rank that crossed between ranks in one execution, counted as they moved.
    pub moved_bytes: Vec<u64>,
    /// Communication steps per rank and channel (a step that sends, receives or both counts once), the largest.
    pub comm_steps: u32,
    /// Name of the trace artifact.
    #[serde(default)]
    pub trace: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WrongElement {
    pub rank: u32,
    pub index: u64,
    pub expected: String,
    pub got: String,
}

/// A file of the result, stored by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Unique within the job: letters, digits, `.`, `_`, `-`.
    pub name: String,
    pub media_type: String,
    pub bytes: u64,
    /// Lower-case hex.
    pub sha256: String,
}

/// What a runner has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HardwareInfo {
    pub cpu: String,
    pub cores: u32,
    pub memory_bytes: u64,
    pub os: String,
    pub gpus: Vec<Gpu>,
    /// Backends that passed the runner's own start-up self-test.
    pub backends: Vec<Backend>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    pub name: String,
    pub memory_bytes: u64,
    pub driver: String,
    pub compute_capability: String,
    pub multiprocessors: u32,
}

/// One thing that happened in a job's attempt. Numbered from 1 without gaps, per attempt; appended only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub seq: u64,
    /// Milliseconds since the attempt started, by the runner's monotonic clock.
    pub at_ms: u64,
    #[serde(flatten)]
    pub body: EventBody,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    Log {
        level: Level,
        /// `engine`, `worker`, `runner`, `server`
        source: String,
        message: String,
    },
    Progress {
        task: String,
        done: u32,
        total: u32,
        /// What is being done, a stable key: `verify`, `warmup`, `measure`, `check`, `trace`, `upload`.
        phase: String,
    },
    TaskDone {
        result: TaskResult,
    },
    /// The output limit was reached; later log lines of this attempt are dropped.
    Truncated {
        limit_bytes: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// One judged thing. Everything a learner needs to see why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub id: String,
    pub title: Text,
    pub expected: String,
    pub got: String,
    /// How far apart the two may be; empty when exact.
    #[serde(default)]
    pub tolerance: String,
    pub verdict: Verdict,
    pub marks: f64,
    pub max: f64,
    pub why: Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Pass,
    Fail,
    /// Waits for the learner's answers.
    Pending,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Marks {
    pub lab_version: String,
    pub checks: Vec<Check>,
    pub total: f64,
    pub max: f64,
    pub tables: Vec<Table>,
}

/// A table of results, for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub id: String,
    pub title: Text,
    pub columns: Vec<Text>,
    pub rows: Vec<Vec<String>>,
    /// Whether computed, simulated or measured, and on what.
    pub source: Text,
}
