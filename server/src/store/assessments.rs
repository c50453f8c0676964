//! Assessments and invitations to them.

use ringlab_interview::api::{QuestionSet, SittingState};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{Store, StoreResult, from_json, to_json};
use crate::clock::UnixMs;
use crate::secret::TokenHash;

#[derive(Debug, Clone)]
pub struct Assessment {
    pub id: String,
    pub title: String,
    pub set: QuestionSet,
    pub questions: Vec<u32>,
    pub seconds: u32,
    pub blind: bool,
    pub two_reviewers: bool,
    pub report_at_once: bool,
    pub created_by: String,
    pub created: UnixMs,
    pub closed: Option<UnixMs>,
}

#[derive(Debug, Clone)]
pub struct InvitationRecord {
    pub id: String,
    pub label: String,
    pub expires: UnixMs,
    pub revoked: bool,
    /// Its sitting, whose it is, how it stands.
    pub sitting: Option<(String, String, SittingState)>,
}

#[derive(Debug)]
pub struct NewInvitation {
    pub id: String,
    pub label: String,
    pub code: TokenHash,
    pub expires: UnixMs,
}

const ASSESSMENT: &str = "a.id, a.title, a.question_set, a.questions, a.seconds, a.blind, a.two_reviewers, a.report_at_once, a.created_by, a.created_ms, a.closed_ms";

impl Store {
    pub async fn create_assessment(&self, new: &Assessment) -> StoreResult<()> {
        sqlx::query(
            "INSERT INTO assessments (id, title, question_set, questions, seconds, blind, two_reviewers, report_at_once, created_by, created_ms)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&new.id)
        .bind(&new.title)
        .bind(to_json(&new.set))
        .bind(to_json(&new.questions))
        .bind(new.seconds)
        .bind(new.blind)
        .bind(new.two_reviewers)
        .bind(new.report_at_once)
        .bind(&new.created_by)
        .bind(new.created.0)
        .execute(&self.write)
        .await?;
        Ok(())
    }

    pub async fn assessment(&self, id: &str) -> StoreResult<Option<Assessment>> {
        let sql = select(ASSESSMENT, "FROM assessments a WHERE a.id = ?");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).fetch_optional(&self.read).await?;
        row.map(|row| assessment(&row, 0)).transpose()
    }

    /// Newest first.
    pub async fn assessments(&self) -> StoreResult<Vec<Assessment>> {
        let sql = select(ASSESSMENT, "FROM assessments a ORDER BY a.id DESC LIMIT 1000");
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(&self.read).await?;
        rows.iter().map(|row| assessment(row, 0)).collect()
    }

    /// Nobody begins any more; whoever began goes on.
    pub async fn close_assessment(&self, id: &str, now: UnixMs) -> StoreResult<()> {
        sqlx::query("UPDATE assessments SET closed_ms = ? WHERE id = ? AND closed_ms IS NULL")
            .bind(now.0)
            .bind(id)
            .execute(&self.write)
            .await?;
        Ok(())
    }

    pub async fn create_invitations(
        &self,
        assessment: &str,
        new: &[NewInvitation],
        now: UnixMs,
    ) -> StoreResult<()> {
        let mut tx = self.begin_durable().await?;
        for invitation in new {
            sqlx::query(
                "INSERT INTO invitations (id, assessment, label, code_hash, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?)",
            )
            .bind(&invitation.id)
            .bind(assessment)
            .bind(&invitation.label)
            .bind(&invitation.code.0[..])
            .bind(now.0)
            .bind(invitation.expires.0)
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await?;
        Ok(())
    }

    pub async fn count_invitations(&self, assessment: &str) -> StoreResult<u32> {
        Ok(sqlx::query_scalar("SELECT count(*) FROM invitations WHERE assessment = ?")
            .bind(assessment)
            .fetch_one(&self.read)
            .await?)
    }

    /// In the order they were made.
    pub async fn invitations(&self, assessment: &str) -> StoreResult<Vec<InvitationRecord>> {
        let rows = sqlx::query(
            "SELECT i.id, i.label, i.expires_ms, i.revoked_ms IS NOT NULL, s.id, s.candidate, s.state
             FROM invitations i LEFT JOIN sittings s ON s.invitation = i.id WHERE i.assessment = ? ORDER BY i.id",
        )
        .bind(assessment)
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(|row| invitation(row, 0)).collect()
    }

    pub async fn invitation_by_code(
        &self,
        code: &TokenHash,
    ) -> StoreResult<Option<(Assessment, InvitationRecord)>> {
        let sql = select(
            ASSESSMENT,
            ", i.id, i.label, i.expires_ms, i.revoked_ms IS NOT NULL, s.id, s.candidate, s.state
             FROM invitations i JOIN assessments a ON a.id = i.assessment LEFT JOIN sittings s ON s.invitation = i.id WHERE i.code_hash = ?",
        );
        let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(&code.0[..]).fetch_optional(&self.read).await?;
        row.map(|row| Ok((assessment(&row, 0)?, invitation(&row, 11)?))).transpose()
    }

    /// `false`: there is no such invitation.
    pub async fn revoke_invitation(&self, id: &str, now: UnixMs) -> StoreResult<bool> {
        let done = sqlx::query("UPDATE invitations SET revoked_ms = coalesce(revoked_ms, ?) WHERE id = ?")
            .bind(now.0)
            .bind(id)
            .execute(&self.write)
            .await?;
        Ok(done.rows_affected() > 0)
    }
}

fn select(columns: &str, rest: &str) -> String {
    format!("SELECT {columns} {rest}")
}

fn assessment(row: &SqliteRow, at: usize) -> StoreResult<Assessment> {
    let id: String = row.try_get(at)?;
    Ok(Assessment {
        title: row.try_get(at + 1)?,
        set: from_json("question set", &id, row.try_get(at + 2)?)?,
        questions: from_json("questions", &id, row.try_get(at + 3)?)?,
        seconds: row.try_get(at + 4)?,
        blind: row.try_get(at + 5)?,
        two_reviewers: row.try_get(at + 6)?,
        report_at_once: row.try_get(at + 7)?,
        created_by: row.try_get(at + 8)?,
        created: UnixMs(row.try_get(at + 9)?),
        closed: row.try_get::<Option<i64>, _>(at + 10)?.map(UnixMs),
        id,
    })
}

fn invitation(row: &SqliteRow, at: usize) -> StoreResult<InvitationRecord> {
    let sitting: Option<String> = row.try_get(at + 4)?;
    let sitting = match sitting {
        Some(id) => {
            let state = super::sittings::state(&id, row.try_get(at + 6)?)?;
            Some((id, row.try_get(at + 5)?, state))
        }
        None => None,
    };
    Ok(InvitationRecord {
        id: row.try_get(at)?,
        label: row.try_get(at + 1)?,
        expires: UnixMs(row.try_get(at + 2)?),
        revoked: row.try_get(at + 3)?,
        sitting,
    })
}
