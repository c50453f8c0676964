//! The HTTP API under `/api/v1`, as seen by a browser.
//!
//! | method and path | request | answer |
//! | --- | --- | --- |
//! | `POST /jobs` | [`Submission`](crate::job::Submission) | 201 [`JobView`]; 422 [`Problem`] with field errors |
//! | `GET /jobs/{id}` | | [`JobView`] |
//! | `GET /jobs/{id}/events` | SSE; resumes after `Last-Event-ID` or `?after=` (`attempt.seq`) | events `event` ([`StreamEvent`]) and `state` ([`JobView`]); ends after a final state |
//! | `POST /jobs/{id}/answers` | [`Answers`] | [`JobView`] with marks |
//! | `POST /jobs/{id}/cancel` | | [`JobView`] |
//! | `GET /jobs/{id}/artifacts/{name}` | | the file |
//! | `GET /jobs/{id}/perfetto` | | the first trace as a Perfetto (Chrome JSON) file |
//! | `GET /jobs` | | the caller's own jobs, newest first: `Vec<JobView>` |
//! | `POST /labs/{id}/verify` | [`VerifyRequest`] | [`VerifyReport`] |
//! | `GET /runners` | | `Vec<RunnerView>` |

use serde::{Deserialize, Serialize};

use crate::job::{Artifact, Event, Fields, HardwareInfo, JobResult, Marks, Submission};
use crate::text::Text;
use crate::wire::{Attempt, Failure};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    pub id: String,
    pub lab: String,
    pub lab_version: String,
    pub seed: u64,
    pub state: JobState,
    pub attempt: Attempt,
    pub max_attempts: Attempt,
    /// RFC 3339, UTC.
    pub created: String,
    #[serde(default)]
    pub started: Option<String>,
    #[serde(default)]
    pub finished: Option<String>,
    pub submission: Submission,
    /// The plan that runs, in text form: for the viewer and the simulation beside it.
    #[serde(default)]
    pub plan: Option<String>,
    #[serde(default)]
    pub runner: Option<String>,
    #[serde(default)]
    pub result: Option<JobResult>,
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    #[serde(default)]
    pub answers: Option<Fields>,
    #[serde(default)]
    pub marks: Option<Marks>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum JobState {
    /// `position` 1 is next. `reason`: why it waits (no runner with the backend, all busy, retry after …).
    Queued {
        position: u32,
        reason: Text,
    },
    Running,
    Done,
    Failed {
        failure: Failure,
    },
    Cancelled,
}

impl JobState {
    pub const fn is_final(&self) -> bool {
        matches!(self, JobState::Done | JobState::Failed { .. } | JobState::Cancelled)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEvent {
    pub attempt: Attempt,
    #[serde(flatten)]
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answers {
    pub answers: Fields,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyRequest {
    #[serde(default)]
    pub params: Fields,
    pub code: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifyReport {
    pub accepted: bool,
    /// Of a refused plan: the shortest counter-example, in words.
    #[serde(default)]
    pub refusal: Option<Text>,
    /// Line of the plan text the refusal is about, from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// Summary of an accepted plan: steps, bytes against the lower bound.
    #[serde(default)]
    pub summary: Option<Text>,
}

/// RFC 9457, sent as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    #[serde(default)]
    pub detail: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldError {
    /// `params.ranks`, `prediction.steps`, `code`, `lab`
    pub field: String,
    /// What is wrong with which value, and what to do.
    pub message: Text,
    /// Line of `code`, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerView {
    pub name: String,
    pub hardware: HardwareInfo,
    pub version: String,
    pub busy: bool,
    /// RFC 3339, UTC.
    pub last_seen: String,
}
