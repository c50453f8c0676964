//! Drafts: many saves in one durable transaction.

use ringlab_interview::api::{Draft, SittingState};
use sqlx::{Row as _, Sqlite, Transaction};

use super::{Store, StoreResult, sittings};
use crate::clock::UnixMs;

/// Between two texts in the history, unless much was deleted or another tab took over.
const KEEP_EVERY_MS: i64 = 15_000;
/// Texts of one question in the history; above that every second one goes.
const KEPT: i64 = 60;
/// What was sent in time may arrive this late.
pub const GRACE_MS: i64 = 2_000;

/// A text to store.
#[derive(Debug, Clone)]
pub struct NewDraft {
    pub sitting: String,
    pub candidate: String,
    pub question: u32,
    pub tab: String,
    pub base: u64,
    pub text: String,
    /// When it reached the server: waiting its turn here costs nobody time.
    pub received: UnixMs,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SaveOutcome {
    Saved {
        version: u64,
        saved: UnixMs,
        ends: UnixMs,
    },
    /// Another tab saved since `base`; its text is untouched.
    Conflict(Draft),
    TimeOver,
    Submitted,
    /// No such sitting of this candidate, or no such question in it.
    Unknown,
}

impl Store {
    /// Stores the drafts in their order and answers each. All are committed, or none.
    pub async fn save_drafts(&self, drafts: &[NewDraft]) -> StoreResult<Vec<SaveOutcome>> {
        let mut tx = self.begin_durable().await?;
        let mut outcomes = Vec::with_capacity(drafts.len());
        for draft in drafts {
            outcomes.push(save(&mut tx, draft).await?);
        }
        tx.commit().await?;
        Ok(outcomes)
    }
}

async fn save(tx: &mut Transaction<'static, Sqlite>, new: &NewDraft) -> StoreResult<SaveOutcome> {
    let row = sqlx::query(
        "SELECT s.candidate, s.state, s.ends_ms, d.version, d.text, d.saved_ms, d.tab, d.kept_ms
         FROM sittings s JOIN drafts d ON d.sitting = s.id WHERE s.id = ? AND d.question = ?",
    )
    .bind(&new.sitting)
    .bind(new.question)
    .fetch_optional(&mut **tx)
    .await?;
    let Some(row) = row else { return Ok(SaveOutcome::Unknown) };
    if row.try_get::<&str, _>(0)? != new.candidate {
        return Ok(SaveOutcome::Unknown);
    }
    let ends = UnixMs(row.try_get(2)?);
    match sittings::state(&new.sitting, row.try_get(1)?)? {
        SittingState::Submitted => return Ok(SaveOutcome::Submitted),
        SittingState::TimeOver => return Ok(SaveOutcome::TimeOver),
        SittingState::Running if new.received.0 > ends.0 + GRACE_MS => return Ok(SaveOutcome::TimeOver),
        SittingState::Running => {}
    }
    let current = sittings::draft(&row, 3)?;
    let same_tab = row.try_get::<&str, _>(6)? == new.tab;
    if new.base > current.version || (new.base < current.version && !same_tab) {
        return Ok(SaveOutcome::Conflict(current));
    }
    // Said again because the answer was lost: nothing new.
    if let (Some(saved), true) = (current.saved_ms, same_tab && current.text == new.text) {
        return Ok(SaveOutcome::Saved { version: current.version, saved: UnixMs(saved), ends });
    }
    let kept: i64 = row.try_get(7)?;
    let cut = current.text.len() > 200 && new.text.len() < current.text.len() / 2;
    let keep = current.version > 0 && (new.received.0 - kept >= KEEP_EVERY_MS || cut || !same_tab);
    if keep {
        remember(tx, new).await?;
    }
    let version = current.version + 1;
    sqlx::query("UPDATE drafts SET version = ?, tab = ?, text = ?, saved_ms = ?, kept_ms = ? WHERE sitting = ? AND question = ?")
        .bind(i64::try_from(version).unwrap_or(i64::MAX))
        .bind(&new.tab)
        .bind(&new.text)
        .bind(new.received.0)
        .bind(if keep || current.version == 0 { new.received.0 } else { kept })
        .bind(&new.sitting)
        .bind(new.question)
        .execute(&mut **tx)
        .await?;
    Ok(SaveOutcome::Saved { version, saved: new.received, ends })
}

/// Moves the text as it stands into the history.
async fn remember(tx: &mut Transaction<'static, Sqlite>, new: &NewDraft) -> StoreResult<()> {
    sqlx::query(
        "INSERT OR IGNORE INTO draft_versions (sitting, question, version, saved_ms, text)
         SELECT sitting, question, version, saved_ms, text FROM drafts WHERE sitting = ? AND question = ?",
    )
    .bind(&new.sitting)
    .bind(new.question)
    .execute(&mut **tx)
    .await?;
    let kept: i64 =
        sqlx::query_scalar("SELECT count(*) FROM draft_versions WHERE sitting = ? AND question = ?")
            .bind(&new.sitting)
            .bind(new.question)
            .fetch_one(&mut **tx)
            .await?;
    if kept > KEPT {
        sqlx::query(
            "DELETE FROM draft_versions WHERE sitting = ?1 AND question = ?2 AND version IN
             (SELECT version FROM (SELECT version, row_number() OVER (ORDER BY version) AS n FROM draft_versions
              WHERE sitting = ?1 AND question = ?2) WHERE n % 2 = 0)",
        )
        .bind(&new.sitting)
        .bind(new.question)
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}
