//! What a reader leaves behind in the course, notes apart: sections read, the last place, quizzes.

use std::collections::HashMap;

use ringlab_content::quiz::Response;
use ringlab_content::reading::{Place, QuizState};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, Sqlite, Transaction};

use super::{Store, StoreResult, from_json, to_json};
use crate::clock::UnixMs;

/// A response to store; judged before.
#[derive(Debug, Clone)]
pub struct QuizRecord<'a> {
    pub user: &'a str,
    /// Slug.
    pub chapter: &'a str,
    pub quiz: &'a str,
    pub chapter_version: &'a str,
    pub response: &'a Response,
    /// `None` while it is not checked: the verdict before stays.
    pub right: Option<bool>,
    /// The version it was made from.
    pub base: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<T> {
    Done(T),
    /// Somebody wrote since; what they wrote is untouched.
    Conflict(T),
}

/// By chapter, as slugs.
#[derive(Debug, Default)]
pub struct Progress {
    pub sections: HashMap<String, Vec<String>>,
    pub places: HashMap<String, Place>,
    /// Ids of quizzes with their verdict.
    pub quizzes: HashMap<String, Vec<(String, bool)>>,
    pub notes: HashMap<String, u32>,
}

impl Store {
    pub async fn mark_read(&self, user: &str, chapter: &str, section: &str, now: UnixMs) -> StoreResult<()> {
        sqlx::query(
            "INSERT OR IGNORE INTO sections_read (user_id, chapter, section, at_ms) VALUES (?, ?, ?, ?)",
        )
        .bind(user)
        .bind(chapter)
        .bind(section)
        .bind(now.0)
        .execute(&self.write)
        .await?;
        Ok(())
    }

    pub async fn save_place(&self, user: &str, chapter: &str, place: &Place) -> StoreResult<()> {
        sqlx::query(
            "INSERT INTO reading_places (user_id, chapter, section, permille, at_ms) VALUES (?, ?, ?, ?, ?)
             ON CONFLICT (user_id, chapter)
             DO UPDATE SET section = excluded.section, permille = excluded.permille, at_ms = excluded.at_ms",
        )
        .bind(user)
        .bind(chapter)
        .bind(&place.section)
        .bind(place.permille)
        .bind(place.at_ms)
        .execute(&self.write)
        .await?;
        Ok(())
    }

    /// Stores a response, unless another was stored since the one it was made from. The same response again is no news.
    pub async fn save_quiz(&self, new: &QuizRecord<'_>, now: UnixMs) -> StoreResult<Outcome<QuizState>> {
        let mut tx = self.begin_durable().await?;
        let row = sqlx::query(
            "SELECT quiz, response, correct, version, at_ms FROM quiz_states WHERE user_id = ? AND chapter = ? AND quiz = ?",
        )
        .bind(new.user)
        .bind(new.chapter)
        .bind(new.quiz)
        .fetch_optional(&mut *tx)
        .await?;
        let current = row.as_ref().map(quiz_state).transpose()?;
        if let Some(current) = current.as_ref() {
            if current.response == *new.response {
                return Ok(Outcome::Done(current.clone()));
            }
            if current.version != new.base {
                return Ok(Outcome::Conflict(current.clone()));
            }
        }
        let state = QuizState {
            id: new.quiz.to_owned(),
            response: new.response.clone(),
            right: new.right.or(current.as_ref().and_then(|c| c.right)),
            version: current.map_or(1, |c| c.version + 1),
            at_ms: now.0,
        };
        sqlx::query(
            "INSERT INTO quiz_states (user_id, chapter, quiz, chapter_version, response, correct, version, at_ms)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (user_id, chapter, quiz)
             DO UPDATE SET chapter_version = excluded.chapter_version, response = excluded.response,
                           correct = excluded.correct, version = excluded.version, at_ms = excluded.at_ms",
        )
        .bind(new.user)
        .bind(new.chapter)
        .bind(new.quiz)
        .bind(new.chapter_version)
        .bind(to_json(&state.response))
        .bind(state.right)
        .bind(i64::try_from(state.version).unwrap_or(i64::MAX))
        .bind(state.at_ms)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(Outcome::Done(state))
    }

    pub async fn sections_read(&self, user: &str, chapter: &str) -> StoreResult<Vec<String>> {
        let sql = "SELECT section FROM sections_read WHERE user_id = ? AND chapter = ? ORDER BY section";
        Ok(sqlx::query_scalar(sql).bind(user).bind(chapter).fetch_all(&self.read).await?)
    }

    pub async fn place_in(&self, user: &str, chapter: &str) -> StoreResult<Option<Place>> {
        let row = sqlx::query(
            "SELECT section, permille, at_ms FROM reading_places WHERE user_id = ? AND chapter = ?",
        )
        .bind(user)
        .bind(chapter)
        .fetch_optional(&self.read)
        .await?;
        row.map(|row| place(&row, 0)).transpose()
    }

    pub async fn quizzes_of(&self, user: &str, chapter: &str) -> StoreResult<Vec<QuizState>> {
        let rows = sqlx::query(
            "SELECT quiz, response, correct, version, at_ms FROM quiz_states WHERE user_id = ? AND chapter = ? ORDER BY quiz",
        )
        .bind(user)
        .bind(chapter)
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(quiz_state).collect()
    }

    /// Everything in short, of all chapters.
    pub async fn progress_of(&self, user: &str) -> StoreResult<Progress> {
        let mut progress = Progress::default();
        let sections: Vec<(String, String)> =
            sqlx::query_as("SELECT chapter, section FROM sections_read WHERE user_id = ?")
                .bind(user)
                .fetch_all(&self.read)
                .await?;
        for (chapter, section) in sections {
            progress.sections.entry(chapter).or_default().push(section);
        }
        let places =
            sqlx::query("SELECT chapter, section, permille, at_ms FROM reading_places WHERE user_id = ?")
                .bind(user)
                .fetch_all(&self.read)
                .await?;
        for row in places {
            progress.places.insert(row.try_get(0)?, place(&row, 1)?);
        }
        let quizzes: Vec<(String, String, bool)> = sqlx::query_as(
            "SELECT chapter, quiz, correct FROM quiz_states WHERE user_id = ? AND correct IS NOT NULL",
        )
        .bind(user)
        .fetch_all(&self.read)
        .await?;
        for (chapter, quiz, right) in quizzes {
            progress.quizzes.entry(chapter).or_default().push((quiz, right));
        }
        let notes: Vec<(String, u32)> =
            sqlx::query_as("SELECT chapter, count(*) FROM notes WHERE user_id = ? GROUP BY chapter")
                .bind(user)
                .fetch_all(&self.read)
                .await?;
        progress.notes = notes.into_iter().collect();
        Ok(progress)
    }
}

/// Before a guest's rows move into an account: where both have been, the newer state stays. Versions go on after both, so that a page
/// that is still open with either learns of the other.
pub(super) async fn keep_newest(
    tx: &mut Transaction<'static, Sqlite>,
    guest: &str,
    member: &str,
) -> StoreResult<()> {
    for sql in [
        "DELETE FROM reading_places WHERE user_id = ?2 AND EXISTS (SELECT 1 FROM reading_places g
         WHERE g.user_id = ?1 AND g.chapter = reading_places.chapter AND g.at_ms > reading_places.at_ms)",
        "UPDATE quiz_states SET version = version + (SELECT coalesce(max(o.version), 0) FROM quiz_states o
         WHERE o.user_id IN (?1, ?2) AND o.user_id != quiz_states.user_id AND o.chapter = quiz_states.chapter
         AND o.quiz = quiz_states.quiz) WHERE user_id IN (?1, ?2)",
        "DELETE FROM quiz_states WHERE user_id = ?2 AND EXISTS (SELECT 1 FROM quiz_states g
         WHERE g.user_id = ?1 AND g.chapter = quiz_states.chapter AND g.quiz = quiz_states.quiz
         AND g.at_ms > quiz_states.at_ms)",
    ] {
        sqlx::query(sql).bind(guest).bind(member).execute(&mut **tx).await?;
    }
    Ok(())
}

fn place(row: &SqliteRow, from: usize) -> StoreResult<Place> {
    Ok(Place { section: row.try_get(from)?, permille: row.try_get(from + 1)?, at_ms: row.try_get(from + 2)? })
}

fn quiz_state(row: &SqliteRow) -> StoreResult<QuizState> {
    let id: String = row.try_get(0)?;
    let version: i64 = row.try_get(3)?;
    Ok(QuizState {
        response: from_json("response", &id, row.try_get(1)?)?,
        right: row.try_get(2)?,
        version: u64::try_from(version).unwrap_or(0),
        at_ms: row.try_get(4)?,
        id,
    })
}
