//! Records from the database as the API shows them.

use ringlab_labs::api::{JobState, JobView};
use ringlab_labs::job::Backend;
use ringlab_labs::text::Text;
use ringlab_labs::wire::{Failure, FailureKind};

use crate::clock::UnixMs;
use crate::store::jobs::{JobRecord, Phase};
use crate::store::queue::Place;
use crate::store::{Store, StoreResult};

pub async fn job(store: &Store, record: JobRecord) -> StoreResult<JobView> {
    let state = match record.phase {
        Phase::Queued => {
            let place = store.place(&record.id, record.backend).await?;
            JobState::Queued { position: place.position, reason: reason(&record, place) }
        }
        Phase::Running => JobState::Running,
        Phase::Done => JobState::Done,
        Phase::Failed => JobState::Failed { failure: record.failure.clone().unwrap_or_else(unknown_failure) },
        Phase::Cancelled => JobState::Cancelled,
    };
    let done = record.phase == Phase::Done;
    let artifacts = if done { store.artifacts(&record.id).await? } else { Vec::new() };
    let answers = if done { store.answers(&record.id).await? } else { None };
    let marks = if done { store.marks(&record.id).await? } else { None };
    Ok(JobView {
        id: record.id,
        lab: record.lab,
        lab_version: record.lab_version,
        seed: record.seed,
        state,
        attempt: record.attempt,
        max_attempts: record.max_attempts,
        created: record.created.rfc3339(),
        started: record.started.map(UnixMs::rfc3339),
        finished: record.finished.map(UnixMs::rfc3339),
        submission: record.submission,
        plan: record.plan,
        runner: record.runner,
        result: record.result,
        artifacts,
        answers,
        marks,
    })
}

pub async fn jobs(store: &Store, records: Vec<JobRecord>) -> StoreResult<Vec<JobView>> {
    let mut views = Vec::with_capacity(records.len());
    for record in records {
        views.push(job(store, record).await?);
    }
    Ok(views)
}

/// Why a queued job waits.
fn reason(record: &JobRecord, place: Place) -> Text {
    let backend = record.backend.name();
    let waits = match (place.runners, place.idle) {
        (0, _) => Text::new(
            format!(
                "目前没有连接着的运行节点支持 {backend} 后端{}，一有节点连上就会开始",
                zh_hint(record.backend)
            ),
            format!(
                "no connected runner has the {backend} backend{}; it starts as soon as one connects",
                en_hint(record.backend)
            ),
        ),
        (n, 0) => Text::new(
            format!("支持 {backend} 后端的 {n} 个运行节点都在忙"),
            if n == 1 {
                format!("the one runner with the {backend} backend is busy")
            } else {
                format!("all {n} runners with the {backend} backend are busy")
            },
        ),
        _ => Text::new("正在分配给空闲的运行节点", "being handed to an idle runner"),
    };
    match &record.failure {
        Some(failure) => Text::new(
            format!("第 {} 次尝试没有结果（{}），将重试；{}", record.attempt, failure.message, waits.zh),
            format!(
                "attempt {} gave no result ({}) and is retried; {}",
                record.attempt, failure.message, waits.en
            ),
        ),
        None => waits,
    }
}

fn zh_hint(backend: Backend) -> &'static str {
    match backend {
        Backend::Cpu => "",
        Backend::Cuda => "（需要一台有 GPU 的机器）",
    }
}

fn en_hint(backend: Backend) -> &'static str {
    match backend {
        Backend::Cpu => "",
        Backend::Cuda => " (a machine with a GPU)",
    }
}

/// The schema forbids a failed job without a failure; should one exist, it is still shown.
fn unknown_failure() -> Failure {
    Failure { kind: FailureKind::Runner, message: "the reason was not recorded; start the run again".into() }
}
