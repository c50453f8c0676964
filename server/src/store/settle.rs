//! The end of an attempt in a result or a failure: accepted once, for the current attempt alone.

use ringlab_labs::job::{JobResult, Marks};
use ringlab_labs::wire::{Failure, LeaseRef};
use sqlx::{Sqlite, Transaction};

use super::leases::{After, end_attempt, retry_or_fail};
use super::{Store, StoreResult, to_json};
use crate::clock::UnixMs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// This call ended the attempt.
    Accepted(After),
    /// The same attempt had ended so before: the runner did not hear it the first time.
    AcceptedBefore,
    /// Another attempt owns the job, or it was cancelled.
    Refused,
}

impl Store {
    /// Stores the result, its artifacts' names and its marks, and ends the job, all or nothing.
    pub async fn settle_result(
        &self,
        lease: &LeaseRef,
        result: &JobResult,
        marks: Option<&Marks>,
        now: UnixMs,
    ) -> StoreResult<Settlement> {
        let mut tx = self.begin_durable().await?;
        let done = sqlx::query(
            "UPDATE jobs SET state = 'done', result = ?, finished_ms = ?, lease_until_ms = NULL, failure = NULL
             WHERE id = ? AND attempt = ? AND state = 'running'",
        )
        .bind(to_json(result))
        .bind(now.0)
        .bind(&lease.job)
        .bind(lease.attempt)
        .execute(&mut *tx)
        .await?;
        if done.rows_affected() == 0 {
            return settled_before(&mut tx, lease, "done").await;
        }
        end_attempt(&mut tx, lease, "done", None, now).await?;
        for (position, a) in (0i64..).zip(&result.artifacts) {
            sqlx::query(
                "INSERT INTO artifacts (job, name, position, media_type, bytes, sha256) VALUES (?, ?, ?, ?, ?, ?)",
            )
            .bind(&lease.job)
            .bind(&a.name)
            .bind(position)
            .bind(&a.media_type)
            .bind(i64::try_from(a.bytes).unwrap_or(i64::MAX))
            .bind(&a.sha256)
            .execute(&mut *tx)
            .await?;
        }
        if let Some(marks) = marks {
            super::answers::insert_marks(&mut tx, &lease.job, marks, now).await?;
        }
        tx.commit().await?;
        Ok(Settlement::Accepted(After::Done))
    }

    /// Ends the attempt in a failure: the job is retried if that was the runner's fault and an attempt is left.
    pub async fn settle_failure(
        &self,
        lease: &LeaseRef,
        failure: Failure,
        avoid_until: UnixMs,
        now: UnixMs,
    ) -> StoreResult<Settlement> {
        let mut tx = self.begin().await?;
        let current: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ? AND attempt = ? AND state = 'running')",
        )
        .bind(&lease.job)
        .bind(lease.attempt)
        .fetch_one(&mut *tx)
        .await?;
        if !current {
            return settled_before(&mut tx, lease, "failed").await;
        }
        let after = retry_or_fail(&mut tx, lease, "failed", failure, Some(avoid_until), now).await?;
        tx.commit().await?;
        Ok(Settlement::Accepted(after))
    }
}

async fn settled_before(
    tx: &mut Transaction<'static, Sqlite>,
    lease: &LeaseRef,
    outcome: &'static str,
) -> StoreResult<Settlement> {
    let same: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM attempts WHERE job = ? AND attempt = ? AND outcome = ?)",
    )
    .bind(&lease.job)
    .bind(lease.attempt)
    .bind(outcome)
    .fetch_one(&mut **tx)
    .await?;
    Ok(if same { Settlement::AcceptedBefore } else { Settlement::Refused })
}
