//! Runners: their tokens and their connections.

use ringlab_labs::api::RunnerView;
use ringlab_labs::job::HardwareInfo;
use sqlx::Row as _;
use uuid::Uuid;

use super::{Store, StoreResult, from_json, to_json};
use crate::clock::UnixMs;
use crate::secret::TokenHash;

/// Label of the token given at start: a new one replaces the earlier.
const START_TOKEN: &str = "given at start";

/// A runner that said hello.
#[derive(Debug, Clone)]
pub struct Introduction {
    pub token: String,
    pub name: String,
    pub version: String,
    pub hardware: HardwareInfo,
}

impl Store {
    /// Makes `token` the one given at start and revokes an earlier one.
    pub async fn set_start_token(&self, token: &TokenHash, now: UnixMs) -> StoreResult<()> {
        let mut tx = self.begin().await?;
        sqlx::query(
            "UPDATE runner_tokens SET revoked_ms = ? WHERE label = ? AND hash != ? AND revoked_ms IS NULL",
        )
        .bind(now.0)
        .bind(START_TOKEN)
        .bind(&token.0[..])
        .execute(&mut *tx)
        .await?;
        sqlx::query(
            "INSERT INTO runner_tokens (id, label, hash, created_ms) VALUES (?, ?, ?, ?)
             ON CONFLICT (hash) DO UPDATE SET revoked_ms = NULL",
        )
        .bind(Uuid::now_v7().to_string())
        .bind(START_TOKEN)
        .bind(&token.0[..])
        .bind(now.0)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Id of the unrevoked token with this hash.
    pub async fn runner_token(&self, presented: &TokenHash) -> StoreResult<Option<String>> {
        let rows: Vec<(String, Vec<u8>)> =
            sqlx::query_as("SELECT id, hash FROM runner_tokens WHERE revoked_ms IS NULL")
                .fetch_all(&self.read)
                .await?;
        Ok(rows
            .into_iter()
            .fold(None, |found, (id, hash)| if presented.matches(&hash) { Some(id) } else { found }))
    }

    pub async fn has_runner_token(&self) -> StoreResult<bool> {
        Ok(sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM runner_tokens WHERE revoked_ms IS NULL)")
            .fetch_one(&self.read)
            .await?)
    }

    /// Records a new connection and returns its id.
    pub async fn connect_runner(&self, who: &Introduction, now: UnixMs) -> StoreResult<String> {
        let id = Uuid::now_v7().to_string();
        sqlx::query(
            "INSERT INTO runners (id, token, name, version, hardware, connected_ms, seen_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&id)
        .bind(&who.token)
        .bind(&who.name)
        .bind(&who.version)
        .bind(to_json(&who.hardware))
        .bind(now.0)
        .bind(now.0)
        .execute(&self.write)
        .await?;
        Ok(id)
    }

    pub async fn runner_seen(&self, id: &str, now: UnixMs) -> StoreResult<()> {
        sqlx::query("UPDATE runners SET seen_ms = ? WHERE id = ?")
            .bind(now.0)
            .bind(id)
            .execute(&self.write)
            .await?;
        Ok(())
    }

    pub async fn disconnect_runner(&self, id: &str, now: UnixMs) -> StoreResult<()> {
        sqlx::query("UPDATE runners SET disconnected_ms = ? WHERE id = ? AND disconnected_ms IS NULL")
            .bind(now.0)
            .bind(id)
            .execute(&self.write)
            .await?;
        Ok(())
    }

    /// After a restart no connection is left; they come back by themselves.
    pub async fn disconnect_all_runners(&self, now: UnixMs) -> StoreResult<()> {
        sqlx::query("UPDATE runners SET disconnected_ms = ? WHERE disconnected_ms IS NULL")
            .bind(now.0)
            .execute(&self.write)
            .await?;
        Ok(())
    }

    /// Forgets connections that ended before `before`; attempts keep the runner's name.
    pub async fn forget_old_connections(&self, before: UnixMs) -> StoreResult<u64> {
        let done = sqlx::query("DELETE FROM runners WHERE disconnected_ms < ?")
            .bind(before.0)
            .execute(&self.write)
            .await?;
        Ok(done.rows_affected())
    }

    /// The connected runners, by name.
    pub async fn runners(&self) -> StoreResult<Vec<RunnerView>> {
        let rows = sqlx::query(
            "SELECT r.id, r.name, r.version, r.hardware, r.seen_ms,
                    EXISTS (SELECT 1 FROM jobs j WHERE j.state = 'running' AND j.runner = r.id)
             FROM runners r WHERE r.disconnected_ms IS NULL ORDER BY r.name, r.id",
        )
        .fetch_all(&self.read)
        .await?;
        rows.iter()
            .map(|r| {
                Ok(RunnerView {
                    name: r.try_get(1)?,
                    version: r.try_get(2)?,
                    hardware: from_json("hardware", r.try_get(0)?, r.try_get(3)?)?,
                    last_seen: UnixMs(r.try_get(4)?).rfc3339(),
                    busy: r.try_get(5)?,
                })
            })
            .collect()
    }
}
