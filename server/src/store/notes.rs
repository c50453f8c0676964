//! A reader's notes on passages of the course.

use ringlab_content::reading::{ChangeNote, Colour, NewNote, Note, Quote};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, Sqlite, Transaction};

use super::reading::Outcome;
use super::{Store, StoreError, StoreResult};
use crate::clock::UnixMs;

const COLUMNS: &str =
    "id, section, lang, quote, quote_before, quote_after, colour, text, version, created_ms, changed_ms";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    New(Note),
    /// The browser said it again: the note as it is now.
    Again(Note),
    /// The id is another's, or of another chapter.
    Taken,
    /// One more would be too many: of the chapter's, or of all.
    TooMany,
}

/// How many notes somebody may have.
#[derive(Debug, Clone, Copy)]
pub struct NoteLimits {
    pub in_chapter: i64,
    pub in_all: i64,
}

impl Store {
    pub async fn add_note(
        &self,
        user: &str,
        chapter: &str,
        new: &NewNote,
        limits: NoteLimits,
        now: UnixMs,
    ) -> StoreResult<Added> {
        let mut tx = self.begin_durable().await?;
        let owner: Option<(String, String)> =
            sqlx::query_as("SELECT user_id, chapter FROM notes WHERE id = ?")
                .bind(&new.id)
                .fetch_optional(&mut *tx)
                .await?;
        if let Some((owner, of)) = owner {
            return Ok(match note(&mut tx, user, chapter, &new.id).await? {
                Some(note) if owner == user && of == chapter => Added::Again(note),
                _ => Added::Taken,
            });
        }
        let (here, all): (i64, i64) =
            sqlx::query_as("SELECT coalesce(sum(chapter = ?2), 0), count(*) FROM notes WHERE user_id = ?1")
                .bind(user)
                .bind(chapter)
                .fetch_one(&mut *tx)
                .await?;
        if here >= limits.in_chapter || all >= limits.in_all {
            return Ok(Added::TooMany);
        }
        let quote = new.quote.as_ref();
        sqlx::query(
            "INSERT INTO notes (id, user_id, chapter, section, lang, quote, quote_before, quote_after, colour, text,
                                version, created_ms, changed_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 1, ?11, ?11)",
        )
        .bind(&new.id)
        .bind(user)
        .bind(chapter)
        .bind(&new.section)
        .bind(&new.lang)
        .bind(quote.map(|q| &q.exact))
        .bind(quote.map(|q| &q.before))
        .bind(quote.map(|q| &q.after))
        .bind(new.colour.name())
        .bind(&new.text)
        .bind(now.0)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(Added::New(Note {
            id: new.id.clone(),
            section: new.section.clone(),
            lang: new.lang.clone(),
            quote: new.quote.clone(),
            colour: new.colour,
            text: new.text.clone(),
            version: 1,
            created_ms: now.0,
            changed_ms: now.0,
        }))
    }

    /// `None`: no such note of this reader in this chapter.
    pub async fn change_note(
        &self,
        user: &str,
        chapter: &str,
        id: &str,
        change: &ChangeNote,
        now: UnixMs,
    ) -> StoreResult<Option<Outcome<Note>>> {
        let mut tx = self.begin_durable().await?;
        let Some(current) = note(&mut tx, user, chapter, id).await? else { return Ok(None) };
        // Said again because the answer was lost, or changed alike in another tab.
        if current.colour == change.colour && current.text == change.text {
            return Ok(Some(Outcome::Done(current)));
        }
        if current.version != change.base {
            return Ok(Some(Outcome::Conflict(current)));
        }
        sqlx::query(
            "UPDATE notes SET colour = ?, text = ?, version = version + 1, changed_ms = ? WHERE id = ?",
        )
        .bind(change.colour.name())
        .bind(&change.text)
        .bind(now.0)
        .bind(id)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(Some(Outcome::Done(Note {
            colour: change.colour,
            text: change.text.clone(),
            version: current.version + 1,
            changed_ms: now.0,
            ..current
        })))
    }

    /// Deletes a note; one that was changed since `version` stays. `None`: no such note.
    pub async fn delete_note(
        &self,
        user: &str,
        chapter: &str,
        id: &str,
        version: Option<u64>,
    ) -> StoreResult<Option<Outcome<Note>>> {
        let mut tx = self.begin_durable().await?;
        let Some(current) = note(&mut tx, user, chapter, id).await? else { return Ok(None) };
        if version.is_some_and(|version| version != current.version) {
            return Ok(Some(Outcome::Conflict(current)));
        }
        sqlx::query("DELETE FROM notes WHERE id = ?").bind(id).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(Some(Outcome::Done(current)))
    }

    /// Of one chapter, oldest first.
    pub async fn notes_in(&self, user: &str, chapter: &str) -> StoreResult<Vec<Note>> {
        let sql = select(COLUMNS, "WHERE user_id = ? AND chapter = ? ORDER BY created_ms, id");
        let rows =
            sqlx::query(sqlx::AssertSqlSafe(sql)).bind(user).bind(chapter).fetch_all(&self.read).await?;
        rows.iter().map(read).collect()
    }

    /// All, each with its chapter's slug, oldest first.
    pub async fn notes_of(&self, user: &str) -> StoreResult<Vec<(String, Note)>> {
        let sql =
            select(&format!("{COLUMNS}, chapter"), "WHERE user_id = ? ORDER BY chapter, created_ms, id");
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(user).fetch_all(&self.read).await?;
        rows.iter().map(|row| Ok((row.try_get("chapter")?, read(row)?))).collect()
    }
}

fn select(columns: &str, rest: &str) -> String {
    format!("SELECT {columns} FROM notes {rest}")
}

async fn note(
    tx: &mut Transaction<'static, Sqlite>,
    user: &str,
    chapter: &str,
    id: &str,
) -> StoreResult<Option<Note>> {
    let sql = select(COLUMNS, "WHERE user_id = ? AND chapter = ? AND id = ?");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(user)
        .bind(chapter)
        .bind(id)
        .fetch_optional(&mut **tx)
        .await?;
    row.as_ref().map(read).transpose()
}

fn read(row: &SqliteRow) -> StoreResult<Note> {
    let id: String = row.try_get("id")?;
    let colour: &str = row.try_get("colour")?;
    let colour = Colour::from_name(colour).ok_or_else(|| StoreError::Unreadable {
        what: "colour",
        id: id.clone(),
        cause: format!("no colour is called {colour}"),
    })?;
    let quote = match row.try_get::<Option<String>, _>("quote")? {
        Some(exact) => {
            Some(Quote { exact, before: row.try_get("quote_before")?, after: row.try_get("quote_after")? })
        }
        None => None,
    };
    let version: i64 = row.try_get("version")?;
    Ok(Note {
        id,
        section: row.try_get("section")?,
        lang: row.try_get("lang")?,
        quote,
        colour,
        text: row.try_get("text")?,
        version: u64::try_from(version).unwrap_or(0),
        created_ms: row.try_get("created_ms")?,
        changed_ms: row.try_get("changed_ms")?,
    })
}
