//! Events of attempts: appended without gaps, read from any point on.

use ringlab_labs::api::StreamEvent;
use ringlab_labs::job::Event;
use ringlab_labs::wire::{Attempt, LeaseRef};
use sqlx::Row as _;

use super::{Store, StoreResult, from_json, to_json};
use crate::clock::UnixMs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    /// All events up to and including `last_seq` are stored, `new` of them by this call.
    Stored { last_seq: u64, new: u64 },
    /// More bytes than an attempt may store.
    TooMany { limit_bytes: u64 },
    /// The lease is not current.
    NotCurrent,
}

/// A place in a job's event stream: everything up to and including it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cursor {
    pub attempt: Attempt,
    pub seq: u64,
}

impl Store {
    /// Appends what is new and follows on without a gap; drops duplicates and everything after a gap (the runner sends it again from
    /// the acknowledged number on). Also keeps the lease alive.
    pub async fn append_events(
        &self,
        lease: &LeaseRef,
        events: &[Event],
        limit_bytes: u64,
        lease_until: UnixMs,
    ) -> StoreResult<Append> {
        let mut tx = self.begin().await?;
        let row = sqlx::query(
            "UPDATE jobs SET lease_until_ms = ? WHERE id = ? AND attempt = ? AND state = 'running'
             RETURNING (SELECT last_seq FROM attempts a WHERE a.job = jobs.id AND a.attempt = jobs.attempt),
                       (SELECT event_bytes FROM attempts a WHERE a.job = jobs.id AND a.attempt = jobs.attempt)",
        )
        .bind(lease_until.0)
        .bind(&lease.job)
        .bind(lease.attempt)
        .fetch_optional(&mut *tx)
        .await?;
        let Some(row) = row else { return Ok(Append::NotCurrent) };
        let before = row.try_get::<i64, _>(0)?.unsigned_abs();
        let mut bytes = row.try_get::<i64, _>(1)?.unsigned_abs();
        let mut last_seq = before;
        for event in events {
            if event.seq <= last_seq {
                continue;
            }
            if event.seq != last_seq + 1 {
                break;
            }
            let text = to_json(event);
            bytes += text.len() as u64;
            if bytes > limit_bytes {
                return Ok(Append::TooMany { limit_bytes });
            }
            sqlx::query("INSERT INTO events (job, attempt, seq, event) VALUES (?, ?, ?, ?)")
                .bind(&lease.job)
                .bind(lease.attempt)
                .bind(i64::try_from(event.seq).unwrap_or(i64::MAX))
                .bind(text)
                .execute(&mut *tx)
                .await?;
            last_seq = event.seq;
        }
        if last_seq > before {
            sqlx::query("UPDATE attempts SET last_seq = ?, event_bytes = ? WHERE job = ? AND attempt = ?")
                .bind(i64::try_from(last_seq).unwrap_or(i64::MAX))
                .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
                .bind(&lease.job)
                .bind(lease.attempt)
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await?;
        Ok(Append::Stored { last_seq, new: last_seq - before })
    }

    /// Events after `cursor`, in order, at most `limit`.
    pub async fn events_after(&self, job: &str, cursor: Cursor, limit: u32) -> StoreResult<Vec<StreamEvent>> {
        let rows = sqlx::query(
            "SELECT attempt, event FROM events WHERE job = ? AND (attempt, seq) > (?, ?) ORDER BY attempt, seq LIMIT ?",
        )
        .bind(job)
        .bind(cursor.attempt)
        .bind(i64::try_from(cursor.seq).unwrap_or(i64::MAX))
        .bind(limit)
        .fetch_all(&self.read)
        .await?;
        rows.iter()
            .map(|r| {
                Ok(StreamEvent { attempt: r.try_get(0)?, event: from_json("event", job, r.try_get(1)?)? })
            })
            .collect()
    }
}
