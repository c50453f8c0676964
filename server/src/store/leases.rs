//! Leases: given, kept alive, taken up again, returned, expired, cancelled.
//!
//! A lease is `(job, attempt)`. The attempt number only ever rises, so it fences: whatever a runner says about an older attempt, or
//! about a job that is no longer running, changes nothing.

use std::time::Duration;

use ringlab_labs::job::JobSpec;
use ringlab_labs::wire::{Attempt, Failure, FailureKind, LeaseRef};
use sqlx::{Row as _, Sqlite, Transaction};

use super::{Store, StoreResult, from_json, to_json};
use crate::clock::UnixMs;

/// Who gets a lease.
#[derive(Debug, Clone, Copy)]
pub struct Taker<'a> {
    /// The connection (`runners.id`).
    pub runner: &'a str,
    pub name: &'a str,
    pub backends: &'a [&'a str],
}

#[derive(Debug, Clone)]
pub struct Leased {
    pub lease: LeaseRef,
    pub spec: JobSpec,
    /// How long the job waited since it entered the queue.
    pub waited: Duration,
}

/// What became of a job when an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Done,
    Requeued,
    Failed,
}

/// Where a lease stands in the eyes of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Running under this attempt; all events up to `last_seq` are stored.
    Current { last_seq: u64 },
    /// This very attempt ended with a result or failure that was accepted.
    Settled,
    /// Cancelled, expired, of an older attempt, or never given.
    Over,
}

impl Store {
    /// Leases the oldest queued job that the taker can run.
    pub async fn lease_next(
        &self,
        taker: &Taker<'_>,
        lease: Duration,
        now: UnixMs,
    ) -> StoreResult<Option<Leased>> {
        let mut tx = self.begin().await?;
        let row = sqlx::query(
            "UPDATE jobs SET state = 'running', attempt = attempt + 1, started_ms = ?1, runner = ?2,
                             lease_until_ms = ?3, avoid_runner = NULL
             WHERE id = (SELECT id FROM jobs WHERE state = 'queued'
                         AND backend IN (SELECT value FROM json_each(?4))
                         AND (avoid_runner IS NULL OR avoid_runner != ?5 OR avoid_until_ms <= ?1)
                         ORDER BY id LIMIT 1)
             RETURNING id, attempt, spec, queued_ms",
        )
        .bind(now.0)
        .bind(taker.runner)
        .bind(now.plus(lease).0)
        .bind(to_json(&taker.backends))
        .bind(taker.name)
        .fetch_optional(&mut *tx)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let job: String = row.try_get("id")?;
        let attempt: Attempt = row.try_get("attempt")?;
        sqlx::query(
            "INSERT INTO attempts (job, attempt, runner, runner_name, started_ms) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(&job)
        .bind(attempt)
        .bind(taker.runner)
        .bind(taker.name)
        .bind(now.0)
        .execute(&mut *tx)
        .await?;
        let spec = from_json("spec", &job, row.try_get("spec")?)?;
        let queued: i64 = row.try_get("queued_ms")?;
        tx.commit().await?;
        let waited = Duration::from_millis(u64::try_from(now.0 - queued).unwrap_or(0));
        Ok(Some(Leased { lease: LeaseRef { job, attempt }, spec, waited }))
    }

    /// Keeps a lease alive. False: it is not current.
    pub async fn extend_lease(&self, lease: &LeaseRef, until: UnixMs) -> StoreResult<bool> {
        let done = sqlx::query(
            "UPDATE jobs SET lease_until_ms = ? WHERE id = ? AND attempt = ? AND state = 'running'",
        )
        .bind(until.0)
        .bind(&lease.job)
        .bind(lease.attempt)
        .execute(&self.write)
        .await?;
        Ok(done.rows_affected() == 1)
    }

    /// A runner is back after a lost connection: the lease moves to its new connection, if it is still current.
    pub async fn resume_lease(&self, lease: &LeaseRef, runner: &str, until: UnixMs) -> StoreResult<Standing> {
        sqlx::query(
            "UPDATE jobs SET runner = ?, lease_until_ms = ? WHERE id = ? AND attempt = ? AND state = 'running'",
        )
        .bind(runner)
        .bind(until.0)
        .bind(&lease.job)
        .bind(lease.attempt)
        .execute(&self.write)
        .await?;
        self.standing(lease).await
    }

    pub async fn standing(&self, lease: &LeaseRef) -> StoreResult<Standing> {
        let row = sqlx::query(
            "SELECT j.state = 'running' AND j.attempt = a.attempt, a.outcome IN ('done', 'failed'), a.last_seq
             FROM attempts a JOIN jobs j ON j.id = a.job WHERE a.job = ? AND a.attempt = ?",
        )
        .bind(&lease.job)
        .bind(lease.attempt)
        .fetch_optional(&self.read)
        .await?;
        let Some(row) = row else { return Ok(Standing::Over) };
        Ok(if row.try_get(0)? {
            Standing::Current { last_seq: row.try_get::<i64, _>(2)?.unsigned_abs() }
        } else if row.try_get::<Option<bool>, _>(1)?.unwrap_or(false) {
            Standing::Settled
        } else {
            Standing::Over
        })
    }

    /// The current lease of a connection, if it holds one.
    pub async fn lease_of(&self, runner: &str) -> StoreResult<Option<LeaseRef>> {
        let row = sqlx::query("SELECT id, attempt FROM jobs WHERE state = 'running' AND runner = ?")
            .bind(runner)
            .fetch_optional(&self.read)
            .await?;
        row.map(|r| Ok(LeaseRef { job: r.try_get(0)?, attempt: r.try_get(1)? })).transpose()
    }

    /// Takes back a lease that never reached its runner: it does not count against the job.
    pub async fn return_lease(&self, lease: &LeaseRef, now: UnixMs) -> StoreResult<()> {
        let mut tx = self.begin().await?;
        let done = sqlx::query(
            "UPDATE jobs SET state = 'queued', max_attempts = max_attempts + 1, runner = NULL,
                             lease_until_ms = NULL, started_ms = NULL
             WHERE id = ? AND attempt = ? AND state = 'running'",
        )
        .bind(&lease.job)
        .bind(lease.attempt)
        .execute(&mut *tx)
        .await?;
        if done.rows_affected() == 1 {
            end_attempt(&mut tx, lease, "returned", None, now).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Gives every running job a fresh lease, and lets any runner take any queued one: after a restart of the server, or a clock that was
    /// set, the times stored before mean nothing. Returns how many jobs are running.
    pub async fn refresh_leases(&self, until: UnixMs) -> StoreResult<u64> {
        let mut tx = self.begin().await?;
        let running = sqlx::query("UPDATE jobs SET lease_until_ms = ? WHERE state = 'running'")
            .bind(until.0)
            .execute(&mut *tx)
            .await?;
        sqlx::query(
            "UPDATE jobs SET avoid_runner = NULL WHERE state = 'queued' AND avoid_runner IS NOT NULL",
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(running.rows_affected())
    }

    /// Ends every lease that ran out: the job is queued again, or failed after its last attempt.
    pub async fn expire_leases(&self, lease: Duration, now: UnixMs) -> StoreResult<Vec<(LeaseRef, After)>> {
        let mut tx = self.begin().await?;
        let rows = sqlx::query(
            "SELECT j.id, j.attempt, a.runner_name FROM jobs j JOIN attempts a ON a.job = j.id AND a.attempt = j.attempt
             WHERE j.state = 'running' AND j.lease_until_ms < ?",
        )
        .bind(now.0)
        .fetch_all(&mut *tx)
        .await?;
        let mut expired = Vec::with_capacity(rows.len());
        for row in rows {
            let lease_ref = LeaseRef { job: row.try_get(0)?, attempt: row.try_get(1)? };
            let failure = Failure {
                kind: FailureKind::Runner,
                message: format!(
                    "runner `{}` gave no sign of life for {:.1} s",
                    row.try_get::<&str, _>(2)?,
                    lease.as_secs_f64()
                ),
            };
            let after = retry_or_fail(&mut tx, &lease_ref, "expired", failure, None, now).await?;
            expired.push((lease_ref, after));
        }
        tx.commit().await?;
        Ok(expired)
    }

    /// Cancels a queued or running job. `Some`: the runner (connection) that must be told to stop and its lease.
    pub async fn cancel(&self, job: &str, who: &str, now: UnixMs) -> StoreResult<Option<(String, LeaseRef)>> {
        let mut tx = self.begin().await?;
        let before = sqlx::query(
            "SELECT state, attempt, runner FROM jobs WHERE id = ? AND state IN ('queued', 'running')",
        )
        .bind(job)
        .fetch_optional(&mut *tx)
        .await?;
        let Some(before) = before else { return Ok(None) };
        sqlx::query(
            "UPDATE jobs SET state = 'cancelled', finished_ms = ?, lease_until_ms = NULL, failure = NULL WHERE id = ?",
        )
        .bind(now.0)
        .bind(job)
        .execute(&mut *tx)
        .await?;
        let state: String = before.try_get("state")?;
        let lease = LeaseRef { job: job.to_owned(), attempt: before.try_get("attempt")? };
        let running = state == "running";
        if running {
            end_attempt(&mut tx, &lease, "cancelled", None, now).await?;
        }
        sqlx::query(
            "INSERT INTO audit_log (at_ms, who, what, subject, old, new, why)
             VALUES (?, ?, 'job.cancel', ?, ?, 'cancelled', 'the owner asked')",
        )
        .bind(now.0)
        .bind(who)
        .bind(job)
        .bind(&state)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        let runner: Option<String> = before.try_get("runner")?;
        Ok(runner.filter(|_| running).map(|r| (r, lease)))
    }
}

pub(super) async fn end_attempt(
    tx: &mut Transaction<'static, Sqlite>,
    lease: &LeaseRef,
    outcome: &'static str,
    failure: Option<&Failure>,
    now: UnixMs,
) -> StoreResult<()> {
    sqlx::query("UPDATE attempts SET ended_ms = ?, outcome = ?, failure = ? WHERE job = ? AND attempt = ?")
        .bind(now.0)
        .bind(outcome)
        .bind(failure.map(to_json))
        .bind(&lease.job)
        .bind(lease.attempt)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Ends the current attempt of a running job by the runner's fault. `avoid_until`: keep away from the same runner until then.
pub(super) async fn retry_or_fail(
    tx: &mut Transaction<'static, Sqlite>,
    lease: &LeaseRef,
    outcome: &'static str,
    mut failure: Failure,
    avoid_until: Option<UnixMs>,
    now: UnixMs,
) -> StoreResult<After> {
    end_attempt(tx, lease, outcome, Some(&failure), now).await?;
    let max: Attempt = sqlx::query_scalar("SELECT max_attempts FROM jobs WHERE id = ?")
        .bind(&lease.job)
        .fetch_one(&mut **tx)
        .await?;
    let retry = failure.kind == FailureKind::Runner && lease.attempt < max;
    if retry {
        sqlx::query(
            "UPDATE jobs SET state = 'queued', queued_ms = ?, started_ms = NULL, lease_until_ms = NULL, failure = ?,
                             avoid_runner = (SELECT runner_name FROM attempts WHERE job = ?4 AND attempt = ?5),
                             avoid_until_ms = ?3, runner = NULL
             WHERE id = ?4",
        )
        .bind(now.0)
        .bind(to_json(&failure))
        .bind(avoid_until.unwrap_or(now).0)
        .bind(&lease.job)
        .bind(lease.attempt)
        .execute(&mut **tx)
        .await?;
        return Ok(After::Requeued);
    }
    if failure.kind == FailureKind::Runner {
        failure.message = format!(
            "attempt {} of {max} ended without a result and was the last: {}. \
             The fault is the runner's, not yours: start the run again, and tell whoever looks after it.",
            lease.attempt,
            failure.message.trim_end_matches('.')
        );
    }
    sqlx::query(
        "UPDATE jobs SET state = 'failed', finished_ms = ?, lease_until_ms = NULL, failure = ? WHERE id = ?",
    )
    .bind(now.0)
    .bind(to_json(&failure))
    .bind(&lease.job)
    .execute(&mut **tx)
    .await?;
    Ok(After::Failed)
}
