//! What the optional judge thought of answers.

use std::collections::BTreeMap;

use ringlab_content::report::Grade;
use ringlab_interview::opinion::Opinion;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{Store, StoreResult, from_json, to_json};
use crate::clock::UnixMs;

/// A graded answer that the judge was not asked about yet.
#[derive(Debug, Clone)]
pub struct Unjudged {
    pub sitting: String,
    pub question: u32,
    pub answer: String,
    pub grade: Grade,
}

impl Store {
    /// Answers with something in them whose newest grade has no opinion, those waiting longest first.
    pub async fn unjudged(&self, limit: u32) -> StoreResult<Vec<Unjudged>> {
        let rows = sqlx::query(
            "SELECT g.sitting, g.question, d.text, g.grade FROM grades g
             JOIN drafts d ON d.sitting = g.sitting AND d.question = g.question
             WHERE g.id = (SELECT max(id) FROM grades WHERE sitting = g.sitting AND question = g.question)
               AND trim(d.text) <> ''
               AND NOT EXISTS (SELECT 1 FROM opinions o
                               WHERE o.sitting = g.sitting AND o.question = g.question AND o.version = g.version)
             ORDER BY g.id LIMIT ?",
        )
        .bind(limit)
        .fetch_all(&self.read)
        .await?;
        let one = |row: &SqliteRow| {
            let sitting: String = row.try_get(0)?;
            let grade = from_json("grade", &sitting, row.try_get(3)?)?;
            Ok(Unjudged { question: row.try_get(1)?, answer: row.try_get(2)?, grade, sitting })
        };
        rows.iter().map(one).collect()
    }

    /// Stores an opinion, or why there is none. The sitting may be gone by now: then nothing is.
    pub async fn store_opinion(
        &self,
        of: &Unjudged,
        model: &str,
        result: Result<&Opinion, &str>,
        now: UnixMs,
    ) -> StoreResult<()> {
        let mut tx = self.begin().await?;
        sqlx::query(
            "INSERT OR IGNORE INTO opinions (sitting, question, version, at_ms, model, opinion, failure)
             SELECT id, ?2, ?3, ?4, ?5, ?6, ?7 FROM sittings WHERE id = ?1",
        )
        .bind(&of.sitting)
        .bind(of.question)
        .bind(&of.grade.version)
        .bind(now.0)
        .bind(model)
        .bind(result.ok().map(to_json))
        .bind(result.err())
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// So that the judge is asked again about what it failed at.
    pub async fn forget_failed_opinions(&self) -> StoreResult<u64> {
        let mut tx = self.begin().await?;
        let done = sqlx::query("DELETE FROM opinions WHERE failure IS NOT NULL").execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(done.rows_affected())
    }

    /// By question, those that were formed of the rubric's version `versions` names for it.
    pub async fn opinions(
        &self,
        sitting: &str,
        grades: &BTreeMap<u32, Grade>,
    ) -> StoreResult<BTreeMap<u32, Opinion>> {
        let rows = sqlx::query(
            "SELECT question, version, opinion FROM opinions WHERE sitting = ? AND opinion IS NOT NULL",
        )
        .bind(sitting)
        .fetch_all(&self.read)
        .await?;
        let mut out = BTreeMap::new();
        for row in rows {
            let (question, version): (u32, String) = (row.try_get(0)?, row.try_get(1)?);
            if grades.get(&question).is_some_and(|grade| grade.version == version) {
                out.insert(question, from_json("opinion", sitting, row.try_get(2)?)?);
            }
        }
        Ok(out)
    }
}
