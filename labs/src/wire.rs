//! The wire between runner and server: JSON text frames over one WebSocket that the runner opens at `/api/v1/runner`, with
//! `Authorization: Bearer TOKEN`. Artifacts go by HTTP `PUT /api/v1/runner/artifacts/{sha256}` with the same header.
//!
//! A runner says `hello`, gets `welcome` or `refused`. It asks with `lease` whenever it is idle and is sent one `assign` when there is
//! work. While it holds a lease it sends `heartbeat`s; events are resent until acknowledged; a result is accepted once, for the current
//! attempt alone.

use serde::{Deserialize, Serialize};

use crate::job::{Event, HardwareInfo, JobResult, JobSpec};

/// Oldest and newest protocol this code speaks.
pub const PROTOCOL: (u32, u32) = (1, 1);

/// Number of a lease of a job, from 1: the fencing token.
pub type Attempt = u32;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromRunner {
    Hello {
        oldest: u32,
        newest: u32,
        /// Shown to people: host name or what `--name` said.
        name: String,
        version: String,
        hardware: HardwareInfo,
        /// A lease this runner still works on, after a lost connection.
        #[serde(default)]
        resume: Option<LeaseRef>,
    },
    /// Idle: wants one job.
    Lease,
    Heartbeat {
        lease: LeaseRef,
    },
    /// Consecutive events, starting right after the last acknowledged one or earlier.
    Events {
        lease: LeaseRef,
        events: Vec<Event>,
    },
    /// Sent after all events and artifacts.
    Result {
        lease: LeaseRef,
        result: Box<JobResult>,
    },
    Failed {
        lease: LeaseRef,
        failure: Failure,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRef {
    pub job: String,
    pub attempt: Attempt,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    /// For the learner: what happened, with which values, what to do.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The job itself cannot succeed (refused plan, stalled collective): not retried.
    Job,
    /// Wall clock, memory or output limit: not retried.
    Limit,
    /// The runner's fault (worker crashed, device lost): retried.
    Runner,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromServer {
    Welcome {
        protocol: u32,
        runner: String,
        heartbeat_ms: u64,
        /// Without a heartbeat for this long a lease ends.
        lease_ms: u64,
    },
    /// The connection ends after this; the text says what to do.
    Refused {
        reason: String,
    },
    Assign {
        lease: LeaseRef,
        spec: Box<JobSpec>,
    },
    /// All events up to and including `seq` are stored.
    Ack {
        lease: LeaseRef,
        seq: u64,
    },
    /// The final word on a result or failure: not accepted means that another attempt owns the job.
    Settled {
        lease: LeaseRef,
        accepted: bool,
    },
    /// Stop this work and report nothing more of it.
    Cancel {
        lease: LeaseRef,
        reason: String,
    },
}
