//! Sittings: their start, their clock, their end, what happened beside the answers.

use ringlab_interview::api::{Draft, DraftVersion, SittingEvent, SittingState, StampedEvent};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::assessments::Assessment;
use super::{Store, StoreError, StoreResult, from_json, to_json};
use crate::clock::UnixMs;

/// Events of one sitting that are kept.
const EVENTS: u32 = 2_000;

#[derive(Debug, Clone)]
pub struct Sitting {
    pub id: String,
    pub assessment: String,
    pub candidate: String,
    pub name: String,
    pub state: SittingState,
    pub started: UnixMs,
    pub ends: UnixMs,
    pub ended: Option<UnixMs>,
    pub graded: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Its id; the same for the same candidate however often it is asked.
    Sitting(String),
    /// Someone else began with the invitation.
    Taken,
    /// Revoked, expired or closed since it was looked at.
    TooLate,
}

const SITTING: &str =
    "id, assessment, candidate, name, state, started_ms, ends_ms, ended_ms, graded_ms IS NOT NULL";

impl Store {
    pub async fn begin_sitting(
        &self,
        invitation: &str,
        assessment: &Assessment,
        candidate: &str,
        name: &str,
        now: UnixMs,
    ) -> StoreResult<Begun> {
        let mut tx = self.begin_durable().await?;
        let before: Option<(String, String)> =
            sqlx::query_as("SELECT id, candidate FROM sittings WHERE invitation = ?")
                .bind(invitation)
                .fetch_optional(&mut *tx)
                .await?;
        match before {
            Some((id, by)) if by == candidate => return Ok(Begun::Sitting(id)),
            Some(_) => return Ok(Begun::Taken),
            None => {}
        }
        let usable: Option<i64> = sqlx::query_scalar(
            "SELECT 1 FROM invitations i JOIN assessments a ON a.id = i.assessment
             WHERE i.id = ? AND i.revoked_ms IS NULL AND i.expires_ms > ? AND a.closed_ms IS NULL",
        )
        .bind(invitation)
        .bind(now.0)
        .fetch_optional(&mut *tx)
        .await?;
        if usable.is_none() {
            return Ok(Begun::TooLate);
        }
        let id = Uuid::now_v7().to_string();
        sqlx::query(
            "INSERT INTO sittings (id, invitation, assessment, candidate, name, started_ms, ends_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&id)
        .bind(invitation)
        .bind(&assessment.id)
        .bind(candidate)
        .bind(name)
        .bind(now.0)
        .bind(now.0 + i64::from(assessment.seconds) * 1_000)
        .execute(&mut *tx)
        .await?;
        for question in &assessment.questions {
            sqlx::query("INSERT INTO drafts (sitting, question) VALUES (?, ?)")
                .bind(&id)
                .bind(question)
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await?;
        Ok(Begun::Sitting(id))
    }

    pub async fn sitting(&self, id: &str) -> StoreResult<Option<Sitting>> {
        let sql = format!("SELECT {SITTING} FROM sittings WHERE id = ?");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).fetch_optional(&self.read).await?;
        row.map(|row| sitting(&row)).transpose()
    }

    /// Ended and graded, of one assessment or of all.
    pub async fn graded_sittings(&self) -> StoreResult<Vec<Sitting>> {
        let sql = format!("SELECT {SITTING} FROM sittings WHERE graded_ms IS NOT NULL ORDER BY id");
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(&self.read).await?;
        rows.iter().map(sitting).collect()
    }

    pub async fn drafts(&self, sitting: &str) -> StoreResult<Vec<(u32, Draft)>> {
        let rows = sqlx::query("SELECT question, version, text, saved_ms FROM drafts WHERE sitting = ?")
            .bind(sitting)
            .fetch_all(&self.read)
            .await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, draft(row, 1)?))).collect()
    }

    /// Newest first, the text as it stands before the earlier ones. Empty when the sitting does not have the question.
    pub async fn draft_history(&self, sitting: &str, question: u32) -> StoreResult<Vec<DraftVersion>> {
        let rows = sqlx::query(
            "SELECT version, saved_ms, text FROM drafts WHERE sitting = ?1 AND question = ?2 AND version > 0
             UNION ALL SELECT version, saved_ms, text FROM draft_versions WHERE sitting = ?1 AND question = ?2
             ORDER BY version DESC",
        )
        .bind(sitting)
        .bind(question)
        .fetch_all(&self.read)
        .await?;
        let version = |row: &SqliteRow| {
            Ok(DraftVersion {
                version: row.try_get::<i64, _>(0)?.unsigned_abs(),
                saved_ms: row.try_get(1)?,
                text: row.try_get(2)?,
            })
        };
        rows.iter().map(version).collect()
    }

    /// When which question was saved, as far as it is remembered.
    pub async fn save_times(&self, sitting: &str) -> StoreResult<Vec<(u32, i64)>> {
        Ok(sqlx::query_as(
            "SELECT question, saved_ms FROM drafts WHERE sitting = ?1 AND saved_ms IS NOT NULL
             UNION ALL SELECT question, saved_ms FROM draft_versions WHERE sitting = ?1",
        )
        .bind(sitting)
        .fetch_all(&self.read)
        .await?)
    }

    /// Adds events of a running sitting, as many as it may have. `false`: it is over.
    pub async fn add_events(&self, sitting: &str, events: &[SittingEvent], now: UnixMs) -> StoreResult<bool> {
        let mut tx = self.begin().await?;
        let stored: Option<u32> =
            sqlx::query_scalar("SELECT events FROM sittings WHERE id = ? AND state = 'running'")
                .bind(sitting)
                .fetch_optional(&mut *tx)
                .await?;
        let Some(stored) = stored else { return Ok(false) };
        let room = EVENTS.saturating_sub(stored) as usize;
        for event in events.iter().take(room) {
            sqlx::query("INSERT INTO sitting_events (sitting, at_ms, event) VALUES (?, ?, ?)")
                .bind(sitting)
                .bind(now.0)
                .bind(to_json(event))
                .execute(&mut *tx)
                .await?;
        }
        sqlx::query("UPDATE sittings SET events = events + ? WHERE id = ?")
            .bind(u32::try_from(events.len().min(room)).unwrap_or(EVENTS))
            .bind(sitting)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(true)
    }

    pub async fn events_of_sitting(&self, sitting: &str) -> StoreResult<Vec<StampedEvent>> {
        let rows = sqlx::query("SELECT at_ms, event FROM sitting_events WHERE sitting = ? ORDER BY id")
            .bind(sitting)
            .fetch_all(&self.read)
            .await?;
        let event = |row: &SqliteRow| {
            Ok(StampedEvent { at_ms: row.try_get(0)?, event: from_json("event", sitting, row.try_get(1)?)? })
        };
        rows.iter().map(event).collect()
    }

    /// Ends a running sitting by its candidate's word; one that is over stays as it ended.
    pub async fn submit_sitting(&self, id: &str, now: UnixMs) -> StoreResult<()> {
        let mut tx = self.begin_durable().await?;
        // Said within the grace, it still was submitted: at the end, not after it.
        sqlx::query("UPDATE sittings SET state = 'submitted', ended_ms = min(?, ends_ms) WHERE id = ? AND state = 'running'")
            .bind(now.0)
            .bind(id)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Ends every sitting whose time was over before `before`. Returns how many.
    pub async fn end_overdue_sittings(&self, before: UnixMs) -> StoreResult<u64> {
        let mut tx = self.begin_durable().await?;
        let done = sqlx::query("UPDATE sittings SET state = 'time_over', ended_ms = ends_ms WHERE state = 'running' AND ends_ms < ?")
            .bind(before.0)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(done.rows_affected())
    }

    /// When the next running sitting's time is over.
    pub async fn next_end(&self) -> StoreResult<Option<UnixMs>> {
        let next: Option<i64> =
            sqlx::query_scalar("SELECT min(ends_ms) FROM sittings WHERE state = 'running'")
                .fetch_one(&self.read)
                .await?;
        Ok(next.map(UnixMs))
    }
}

pub(super) fn draft(row: &SqliteRow, at: usize) -> StoreResult<Draft> {
    Ok(Draft {
        version: row.try_get::<i64, _>(at)?.unsigned_abs(),
        text: row.try_get(at + 1)?,
        saved_ms: row.try_get(at + 2)?,
    })
}

fn sitting(row: &SqliteRow) -> StoreResult<Sitting> {
    let id: String = row.try_get(0)?;
    Ok(Sitting {
        assessment: row.try_get(1)?,
        candidate: row.try_get(2)?,
        name: row.try_get(3)?,
        state: state(&id, row.try_get(4)?)?,
        started: UnixMs(row.try_get(5)?),
        ends: UnixMs(row.try_get(6)?),
        ended: row.try_get::<Option<i64>, _>(7)?.map(UnixMs),
        graded: row.try_get(8)?,
        id,
    })
}

pub(super) fn state(id: &str, name: &str) -> StoreResult<SittingState> {
    match name {
        "running" => Ok(SittingState::Running),
        "submitted" => Ok(SittingState::Submitted),
        "time_over" => Ok(SittingState::TimeOver),
        other => Err(StoreError::Unreadable {
            what: "state",
            id: id.to_owned(),
            cause: format!("`{other}` is no state of a sitting"),
        }),
    }
}
