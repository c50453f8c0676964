//! Answers and marks.

use ringlab_labs::job::{Fields, Marks};
use sqlx::{Sqlite, Transaction};

use super::{Store, StoreResult, from_json, to_json};
use crate::clock::UnixMs;

#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    Stored,
    /// The run was answered before, with these.
    Before(Fields),
}

impl Store {
    pub async fn answers(&self, job: &str) -> StoreResult<Option<Fields>> {
        let text: Option<String> = sqlx::query_scalar("SELECT answers FROM answers WHERE job = ?")
            .bind(job)
            .fetch_optional(&self.read)
            .await?;
        text.map(|t| from_json("answers", job, &t)).transpose()
    }

    /// The marks that count: the newest.
    pub async fn marks(&self, job: &str) -> StoreResult<Option<Marks>> {
        let text: Option<String> =
            sqlx::query_scalar("SELECT marks FROM marks WHERE job = ? ORDER BY id DESC LIMIT 1")
                .bind(job)
                .fetch_optional(&self.read)
                .await?;
        text.map(|t| from_json("marks", job, &t)).transpose()
    }

    /// Stores the answers and the marks they earn, once.
    pub async fn store_answers(
        &self,
        job: &str,
        answers: &Fields,
        marks: &Marks,
        now: UnixMs,
    ) -> StoreResult<Answered> {
        let mut tx = self.begin_durable().await?;
        let before: Option<String> = sqlx::query_scalar("SELECT answers FROM answers WHERE job = ?")
            .bind(job)
            .fetch_optional(&mut *tx)
            .await?;
        if let Some(before) = before {
            return Ok(Answered::Before(from_json("answers", job, &before)?));
        }
        sqlx::query("INSERT INTO answers (job, lab_version, created_ms, answers) VALUES (?, ?, ?, ?)")
            .bind(job)
            .bind(&marks.lab_version)
            .bind(now.0)
            .bind(to_json(answers))
            .execute(&mut *tx)
            .await?;
        insert_marks(&mut tx, job, marks, now).await?;
        tx.commit().await?;
        Ok(Answered::Stored)
    }

    /// Adds marks that were computed again; the older ones stay.
    pub async fn add_marks(&self, job: &str, marks: &Marks, now: UnixMs) -> StoreResult<()> {
        let mut tx = self.begin().await?;
        insert_marks(&mut tx, job, marks, now).await?;
        tx.commit().await?;
        Ok(())
    }
}

pub(super) async fn insert_marks(
    tx: &mut Transaction<'static, Sqlite>,
    job: &str,
    marks: &Marks,
    now: UnixMs,
) -> StoreResult<()> {
    sqlx::query("INSERT INTO marks (job, lab_version, computed_ms, marks) VALUES (?, ?, ?, ?)")
        .bind(job)
        .bind(&marks.lab_version)
        .bind(now.0)
        .bind(to_json(marks))
        .execute(&mut **tx)
        .await?;
    Ok(())
}
