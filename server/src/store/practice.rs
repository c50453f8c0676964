//! Practice: answers to single questions, and reveals of model answers.

use ringlab_content::report::Grade;
use sqlx::Row as _;

use super::{Store, StoreResult, to_json};
use crate::clock::UnixMs;

/// An answer with the grade it got; the rubric's version is in the grade.
#[derive(Debug, Clone)]
pub struct PracticeRecord<'a> {
    pub user: &'a str,
    pub question: u32,
    /// Number of the follow-up, from 1; the question itself without.
    pub follow_up: Option<u32>,
    pub text: &'a str,
    pub grade: &'a Grade,
}

/// What the spacing of practice needs to know of an answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    pub question: u32,
    pub at: UnixMs,
    pub total: u32,
    pub max: u32,
    pub seen: bool,
}

impl Store {
    /// Stores an answer. It counts as seen when the model answer was revealed after `seen_since`; the reveal is used up by it.
    pub async fn add_practice(
        &self,
        answer: &PracticeRecord<'_>,
        seen_since: UnixMs,
        now: UnixMs,
    ) -> StoreResult<()> {
        let mut tx = self.begin_durable().await?;
        // A reveal shows the question's own answer and those of its follow-ups; only an answer to the question itself is spaced.
        let seen: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM practice_reveals WHERE user_id = ? AND question = ? AND at_ms >= ?)",
        )
        .bind(answer.user)
        .bind(answer.question)
        .bind(seen_since.0)
        .fetch_one(&mut *tx)
        .await?;
        sqlx::query(
            "INSERT INTO practice_answers (user_id, question, follow_up, at_ms, text, seen, version, total, max, grade)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(answer.user)
        .bind(answer.question)
        .bind(answer.follow_up)
        .bind(now.0)
        .bind(answer.text)
        .bind(seen)
        .bind(&answer.grade.version)
        .bind(answer.grade.total)
        .bind(answer.grade.max)
        .bind(to_json(answer.grade))
        .execute(&mut *tx)
        .await?;
        if answer.follow_up.is_none() {
            sqlx::query("DELETE FROM practice_reveals WHERE user_id = ? AND question = ?")
                .bind(answer.user)
                .bind(answer.question)
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await?;
        Ok(())
    }

    pub async fn reveal(&self, user: &str, question: u32, now: UnixMs) -> StoreResult<()> {
        sqlx::query(
            "INSERT INTO practice_reveals (user_id, question, at_ms) VALUES (?, ?, ?)
             ON CONFLICT (user_id, question) DO UPDATE SET at_ms = max(at_ms, excluded.at_ms)",
        )
        .bind(user)
        .bind(question)
        .bind(now.0)
        .execute(&self.write)
        .await?;
        Ok(())
    }

    /// All answers of a person to questions themselves (not to follow-ups), oldest first; to one question if asked.
    pub async fn practice_of(&self, user: &str, question: Option<u32>) -> StoreResult<Vec<Attempt>> {
        let rows = sqlx::query(
            "SELECT question, at_ms, total, max, seen FROM practice_answers
             WHERE user_id = ?1 AND (?2 IS NULL OR question = ?2) AND follow_up IS NULL ORDER BY question, id",
        )
        .bind(user)
        .bind(question)
        .fetch_all(&self.read)
        .await?;
        rows.iter()
            .map(|r| {
                Ok(Attempt {
                    question: r.try_get(0)?,
                    at: UnixMs(r.try_get(1)?),
                    total: r.try_get(2)?,
                    max: r.try_get(3)?,
                    seen: r.try_get(4)?,
                })
            })
            .collect()
    }
}
