//! Jobs as records: created, read, listed.

use ringlab_labs::job::{Artifact, Backend, JobResult, JobSpec, Submission};
use ringlab_labs::wire::{Attempt, Failure};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{Store, StoreError, StoreResult, from_json, to_json};
use crate::clock::UnixMs;

/// A job as the API and the pages need it; the spec stays in the database until a runner gets it.
#[derive(Debug, Clone)]
pub struct JobRecord {
    pub id: String,
    pub owner: String,
    pub lab: String,
    pub lab_version: String,
    pub seed: u64,
    pub submission: Submission,
    pub plan: Option<String>,
    pub backend: Backend,
    pub phase: Phase,
    pub attempt: Attempt,
    pub max_attempts: Attempt,
    pub created: UnixMs,
    pub started: Option<UnixMs>,
    pub finished: Option<UnixMs>,
    /// Name of the runner of the last attempt.
    pub runner: Option<String>,
    /// Of the last attempt while queued again, of the job when failed.
    pub failure: Option<Failure>,
    pub result: Option<JobResult>,
}

/// A job's state without what goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

impl Phase {
    pub const ALL: [Phase; 5] = [Phase::Queued, Phase::Running, Phase::Done, Phase::Failed, Phase::Cancelled];

    pub const fn name(self) -> &'static str {
        match self {
            Phase::Queued => "queued",
            Phase::Running => "running",
            Phase::Done => "done",
            Phase::Failed => "failed",
            Phase::Cancelled => "cancelled",
        }
    }

    pub const fn is_final(self) -> bool {
        matches!(self, Phase::Done | Phase::Failed | Phase::Cancelled)
    }
}

/// A job that was validated and compiled, not yet stored.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub owner: String,
    pub run_number: u32,
    pub submission: Submission,
    pub spec: JobSpec,
    pub plan: Option<String>,
    pub backend: Backend,
    pub max_attempts: Attempt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    Queued,
    /// The owner already has this many queued and running jobs.
    TooManyActive(u32),
    /// Another request of the same owner took the run number: count again.
    RunNumberTaken,
}

macro_rules! columns {
    () => {
        "j.id, j.owner, j.lab, j.lab_version, j.seed, j.submission, j.plan, j.backend, j.state, j.attempt,
         j.max_attempts, j.created_ms, j.started_ms, j.finished_ms, j.failure, j.result, a.runner_name
         FROM jobs j LEFT JOIN attempts a ON a.job = j.id AND a.attempt = j.attempt "
    };
}

impl Store {
    /// Stores a job and puts it in the queue, within the owner's quota.
    pub async fn create_job(&self, job: &NewJob, max_active: u32, now: UnixMs) -> StoreResult<Created> {
        let mut tx = self.begin().await?;
        let active: u32 = sqlx::query_scalar(
            "SELECT count(*) FROM jobs WHERE owner = ? AND state IN ('queued', 'running')",
        )
        .bind(&job.owner)
        .fetch_one(&mut *tx)
        .await?;
        if active >= max_active {
            return Ok(Created::TooManyActive(active));
        }
        let inserted = sqlx::query(
            "INSERT INTO jobs (id, owner, lab, lab_version, run_number, seed, submission, spec, plan, backend,
                               max_attempts, created_ms, queued_ms)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner, lab, run_number) DO NOTHING",
        )
        .bind(&job.spec.job)
        .bind(&job.owner)
        .bind(&job.spec.lab)
        .bind(&job.spec.lab_version)
        .bind(job.run_number)
        .bind(job.spec.seed.cast_signed())
        .bind(to_json(&job.submission))
        .bind(to_json(&job.spec))
        .bind(&job.plan)
        .bind(job.backend.name())
        .bind(job.max_attempts)
        .bind(now.0)
        .bind(now.0)
        .execute(&mut *tx)
        .await?;
        if inserted.rows_affected() == 0 {
            return Ok(Created::RunNumberTaken);
        }
        tx.commit().await?;
        Ok(Created::Queued)
    }

    /// The number the owner's next run of this lab gets, from 1.
    pub async fn next_run_number(&self, owner: &str, lab: &str) -> StoreResult<u32> {
        let last: u32 =
            sqlx::query_scalar("SELECT coalesce(max(run_number), 0) FROM jobs WHERE owner = ? AND lab = ?")
                .bind(owner)
                .bind(lab)
                .fetch_one(&self.read)
                .await?;
        Ok(last.saturating_add(1))
    }

    pub async fn job(&self, id: &str) -> StoreResult<Option<JobRecord>> {
        let row = sqlx::query(concat!("SELECT ", columns!(), "WHERE j.id = ?"))
            .bind(id)
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(record).transpose()
    }

    /// What the runner was asked to do.
    pub async fn spec(&self, id: &str) -> StoreResult<Option<JobSpec>> {
        let text: Option<String> = sqlx::query_scalar("SELECT spec FROM jobs WHERE id = ?")
            .bind(id)
            .fetch_optional(&self.read)
            .await?;
        text.map(|t| from_json("spec", id, &t)).transpose()
    }

    /// Bytes of events the job's limits allow.
    pub async fn output_limit(&self, id: &str) -> StoreResult<Option<u64>> {
        let bytes: Option<i64> =
            sqlx::query_scalar("SELECT json_extract(spec, '$.limits.output_bytes') FROM jobs WHERE id = ?")
                .bind(id)
                .fetch_optional(&self.read)
                .await?;
        Ok(bytes.map(i64::unsigned_abs))
    }

    /// The owner's jobs, newest first; of one lab if asked.
    pub async fn jobs_of(&self, owner: &str, lab: Option<&str>, limit: u32) -> StoreResult<Vec<JobRecord>> {
        let rows = sqlx::query(concat!(
            "SELECT ",
            columns!(),
            "WHERE j.owner = ?1 AND (?2 IS NULL OR j.lab = ?2) ORDER BY j.id DESC LIMIT ?3"
        ))
        .bind(owner)
        .bind(lab)
        .bind(limit)
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(record).collect()
    }

    /// The owner's queued and running jobs.
    pub async fn active_jobs_of(&self, owner: &str) -> StoreResult<Vec<String>> {
        Ok(sqlx::query_scalar("SELECT id FROM jobs WHERE owner = ? AND state IN ('queued', 'running')")
            .bind(owner)
            .fetch_all(&self.read)
            .await?)
    }

    /// Jobs that are done and have a result: what marks can be computed from again.
    pub async fn ids_of_done_jobs(&self) -> StoreResult<Vec<String>> {
        Ok(sqlx::query_scalar("SELECT id FROM jobs WHERE state = 'done' ORDER BY id")
            .fetch_all(&self.read)
            .await?)
    }

    pub async fn artifacts(&self, job: &str) -> StoreResult<Vec<Artifact>> {
        let rows = sqlx::query(
            "SELECT name, media_type, bytes, sha256 FROM artifacts WHERE job = ? ORDER BY position",
        )
        .bind(job)
        .fetch_all(&self.read)
        .await?;
        rows.iter()
            .map(|r| {
                Ok(Artifact {
                    name: r.try_get(0)?,
                    media_type: r.try_get(1)?,
                    bytes: r.try_get::<i64, _>(2)?.unsigned_abs(),
                    sha256: r.try_get(3)?,
                })
            })
            .collect()
    }

    /// How many jobs are in each state.
    pub async fn count_jobs(&self) -> StoreResult<Vec<(Phase, u64)>> {
        let rows: Vec<(String, i64)> =
            sqlx::query_as("SELECT state, count(*) FROM jobs GROUP BY state").fetch_all(&self.read).await?;
        Ok(Phase::ALL
            .into_iter()
            .map(|p| (p, rows.iter().find(|(s, _)| s == p.name()).map_or(0, |(_, n)| n.unsigned_abs())))
            .collect())
    }
}

fn record(row: &SqliteRow) -> StoreResult<JobRecord> {
    let id: String = row.try_get("id")?;
    let unreadable = |what, cause: String| StoreError::Unreadable { what, id: id.clone(), cause };
    let state: &str = row.try_get("state")?;
    let phase = Phase::ALL.into_iter().find(|p| p.name() == state);
    let time = |column| row.try_get::<Option<i64>, _>(column).map(|ms| ms.map(UnixMs));
    let json = |column| row.try_get::<Option<&str>, _>(column);
    Ok(JobRecord {
        owner: row.try_get("owner")?,
        lab: row.try_get("lab")?,
        lab_version: row.try_get("lab_version")?,
        seed: row.try_get::<i64, _>("seed")?.cast_unsigned(),
        submission: from_json("submission", &id, row.try_get("submission")?)?,
        plan: row.try_get("plan")?,
        backend: backend(row.try_get("backend")?).ok_or_else(|| unreadable("backend", "unknown".into()))?,
        phase: phase.ok_or_else(|| unreadable("state", state.to_owned()))?,
        attempt: row.try_get("attempt")?,
        max_attempts: row.try_get("max_attempts")?,
        created: UnixMs(row.try_get("created_ms")?),
        started: time("started_ms")?,
        finished: time("finished_ms")?,
        runner: row.try_get("runner_name")?,
        failure: json("failure")?.map(|t| from_json("failure", &id, t)).transpose()?,
        result: json("result")?.map(|t| from_json("result", &id, t)).transpose()?,
        id: id.clone(),
    })
}

fn backend(name: &str) -> Option<Backend> {
    [Backend::Cpu, Backend::Cuda].into_iter().find(|b| b.name() == name)
}
