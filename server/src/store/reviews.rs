//! What instructors do with grades: overrides and confirmations, appended, each with its line in the audit log.

use ringlab_interview::api::{AuditEntry, Overridden};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{Store, StoreResult};
use crate::clock::UnixMs;

/// Who acts, by id and by the name that others read.
#[derive(Debug, Clone)]
pub struct Reviewer {
    pub user: String,
    pub name: String,
}

/// One change of one point.
#[derive(Debug, Clone)]
pub struct NewOverride {
    pub question: u32,
    pub point: u32,
    pub from: u32,
    pub to: u32,
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reviewed {
    Stored,
    /// Enough reviewers confirmed it before.
    Final,
}

/// What review has done to a sitting.
#[derive(Debug, Clone, Default)]
pub struct Review {
    /// By question, oldest first.
    pub overrides: Vec<(u32, Overridden)>,
    /// Names of those who confirmed the marks as they stand.
    pub confirmed_by: Vec<String>,
}

impl Store {
    pub async fn review(&self, sitting: &str) -> StoreResult<Review> {
        let rows = sqlx::query(
            "SELECT question, point, old, new, why, by_name, at_ms FROM overrides WHERE sitting = ? ORDER BY id",
        )
        .bind(sitting)
        .fetch_all(&self.read)
        .await?;
        let change = |row: &SqliteRow| {
            let change = Overridden {
                point: row.try_get(1)?,
                from: row.try_get(2)?,
                to: row.try_get(3)?,
                why: row.try_get(4)?,
                by: row.try_get(5)?,
                at_ms: row.try_get(6)?,
            };
            Ok((row.try_get(0)?, change))
        };
        let overrides = rows.iter().map(change).collect::<StoreResult<Vec<_>>>()?;
        let confirmed_by = sqlx::query_scalar(
            "SELECT by_name FROM confirmations WHERE sitting = ? AND revision = ? ORDER BY at_ms, by_user",
        )
        .bind(sitting)
        .bind(u32::try_from(overrides.len()).unwrap_or(u32::MAX))
        .fetch_all(&self.read)
        .await?;
        Ok(Review { overrides, confirmed_by })
    }

    /// Adds an override unless `needed` reviewers confirmed the marks already.
    pub async fn add_override(
        &self,
        sitting: &str,
        new: &NewOverride,
        by: &Reviewer,
        needed: u32,
        now: UnixMs,
    ) -> StoreResult<Reviewed> {
        let mut tx = self.begin_durable().await?;
        if confirmations(&mut tx, sitting).await? >= needed {
            return Ok(Reviewed::Final);
        }
        sqlx::query(
            "INSERT INTO overrides (sitting, question, point, old, new, why, by_user, by_name, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(sitting)
        .bind(new.question)
        .bind(new.point)
        .bind(new.from)
        .bind(new.to)
        .bind(&new.why)
        .bind(&by.user)
        .bind(&by.name)
        .bind(now.0)
        .execute(&mut *tx)
        .await?;
        let what = format!("override question {} point {}", new.question, new.point + 1);
        let (from, to) = (new.from.to_string(), new.to.to_string());
        log(&mut tx, sitting, &by.user, &what, Some(from), Some(to), &new.why, now).await?;
        tx.commit().await?;
        Ok(Reviewed::Stored)
    }

    /// Confirms the marks as they stand; said again by the same person, nothing changes.
    pub async fn confirm(
        &self,
        sitting: &str,
        note: &str,
        by: &Reviewer,
        needed: u32,
        now: UnixMs,
    ) -> StoreResult<Reviewed> {
        let mut tx = self.begin_durable().await?;
        if confirmations(&mut tx, sitting).await? >= needed {
            return Ok(Reviewed::Final);
        }
        let done = sqlx::query(
            "INSERT OR IGNORE INTO confirmations (sitting, by_user, by_name, revision, note, at_ms)
             SELECT ?1, ?2, ?3, count(*), ?4, ?5 FROM overrides WHERE sitting = ?1",
        )
        .bind(sitting)
        .bind(&by.user)
        .bind(&by.name)
        .bind(note)
        .bind(now.0)
        .execute(&mut *tx)
        .await?;
        if done.rows_affected() > 0 {
            log(&mut tx, sitting, &by.user, "confirm", None, None, note, now).await?;
        }
        tx.commit().await?;
        Ok(Reviewed::Stored)
    }

    /// What was done to a sitting, oldest first. Names of users that are gone are their ids.
    pub async fn audit_of_sitting(&self, sitting: &str) -> StoreResult<Vec<AuditEntry>> {
        let rows = sqlx::query(
            "SELECT l.at_ms, coalesce(u.display_name, u.email, l.who), l.what, l.old, l.new, l.why
             FROM audit_log l LEFT JOIN users u ON u.id = l.who WHERE l.subject = ? ORDER BY l.id",
        )
        .bind(subject(sitting))
        .fetch_all(&self.read)
        .await?;
        let entry = |row: &SqliteRow| {
            Ok(AuditEntry {
                at_ms: row.try_get(0)?,
                who: row.try_get(1)?,
                what: row.try_get(2)?,
                from: row.try_get(3)?,
                to: row.try_get(4)?,
                why: row.try_get(5)?,
            })
        };
        rows.iter().map(entry).collect()
    }

    /// A line in the audit log about a sitting.
    pub async fn log_regrade(
        &self,
        sitting: &str,
        question: u32,
        from: u32,
        to: u32,
        why: &str,
        now: UnixMs,
    ) -> StoreResult<()> {
        let mut tx = self.begin().await?;
        let what = format!("regrade question {question}");
        log(
            &mut tx,
            sitting,
            "ringlab-server",
            &what,
            Some(from.to_string()),
            Some(to.to_string()),
            why,
            now,
        )
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// The name that others read: an account's display name, else its address.
    pub async fn shown_name(&self, user: &str) -> StoreResult<String> {
        let name: Option<String> =
            sqlx::query_scalar("SELECT coalesce(display_name, email, id) FROM users WHERE id = ?")
                .bind(user)
                .fetch_optional(&self.read)
                .await?;
        Ok(name.unwrap_or_else(|| user.to_owned()))
    }
}

fn subject(sitting: &str) -> String {
    format!("sitting {sitting}")
}

/// How many confirmed the marks as they stand.
async fn confirmations(tx: &mut sqlx::Transaction<'static, sqlx::Sqlite>, sitting: &str) -> StoreResult<u32> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM confirmations WHERE sitting = ?1 AND revision = (SELECT count(*) FROM overrides WHERE sitting = ?1)",
    )
    .bind(sitting)
    .fetch_one(&mut **tx)
    .await?)
}

#[expect(clippy::too_many_arguments, reason = "one for each column")]
async fn log(
    tx: &mut sqlx::Transaction<'static, sqlx::Sqlite>,
    sitting: &str,
    who: &str,
    what: &str,
    from: Option<String>,
    to: Option<String>,
    why: &str,
    now: UnixMs,
) -> StoreResult<()> {
    sqlx::query(
        "INSERT INTO audit_log (at_ms, who, what, subject, old, new, why) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(now.0)
    .bind(who)
    .bind(what)
    .bind(subject(sitting))
    .bind(from)
    .bind(to)
    .bind(why)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
