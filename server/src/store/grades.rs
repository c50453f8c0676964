//! Grades: appended, never replaced. The newest of a question counts.

use std::collections::BTreeMap;

use ringlab_content::report::Grade;
use sqlx::Row as _;

use super::{Store, StoreResult, from_json, to_json};
use crate::clock::UnixMs;

impl Store {
    /// Sittings that ended and still lack grades, those waiting longest first.
    pub async fn ungraded_sittings(&self) -> StoreResult<Vec<String>> {
        Ok(sqlx::query_scalar(
            "SELECT id FROM sittings WHERE ended_ms IS NOT NULL AND graded_ms IS NULL ORDER BY ended_ms LIMIT 100",
        )
        .fetch_all(&self.read)
        .await?)
    }

    /// Stores the first grades of a sitting, all at once and once.
    pub async fn store_grades(&self, sitting: &str, grades: &[(u32, Grade)], now: UnixMs) -> StoreResult<()> {
        let mut tx = self.begin_durable().await?;
        let done = sqlx::query(
            "UPDATE sittings SET graded_ms = ? WHERE id = ? AND ended_ms IS NOT NULL AND graded_ms IS NULL",
        )
        .bind(now.0)
        .bind(sitting)
        .execute(&mut *tx)
        .await?;
        if done.rows_affected() == 0 {
            return Ok(());
        }
        for (question, grade) in grades {
            insert(&mut tx, sitting, *question, grade, now).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Adds a grade that was computed again; the older ones stay.
    pub async fn add_grade(
        &self,
        sitting: &str,
        question: u32,
        grade: &Grade,
        now: UnixMs,
    ) -> StoreResult<()> {
        let mut tx = self.begin_durable().await?;
        insert(&mut tx, sitting, question, grade, now).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The grades that count, by question.
    pub async fn grades(&self, sitting: &str) -> StoreResult<BTreeMap<u32, Grade>> {
        let rows = sqlx::query("SELECT question, grade FROM grades WHERE sitting = ? ORDER BY id")
            .bind(sitting)
            .fetch_all(&self.read)
            .await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, from_json("grade", sitting, row.try_get(1)?)?))).collect()
    }
}

async fn insert(
    tx: &mut sqlx::Transaction<'static, sqlx::Sqlite>,
    sitting: &str,
    question: u32,
    grade: &Grade,
    now: UnixMs,
) -> StoreResult<()> {
    sqlx::query("INSERT INTO grades (sitting, question, version, graded_ms, grade) VALUES (?, ?, ?, ?, ?)")
        .bind(sitting)
        .bind(question)
        .bind(&grade.version)
        .bind(now.0)
        .bind(to_json(grade))
        .execute(&mut **tx)
        .await?;
    Ok(())
}
