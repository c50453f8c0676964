//! Guests, members and their cookies.

use sqlx::Row as _;
use uuid::Uuid;

use super::{Store, StoreResult};
use crate::clock::UnixMs;
use crate::secret::TokenHash;

impl Store {
    /// A new guest and the session of its first browser.
    pub async fn create_guest(&self, token: &TokenHash, now: UnixMs) -> StoreResult<String> {
        let id = Uuid::now_v7().to_string();
        let mut tx = self.begin().await?;
        sqlx::query("INSERT INTO users (id, kind, created_ms) VALUES (?, 'guest', ?)")
            .bind(&id)
            .bind(now.0)
            .execute(&mut *tx)
            .await?;
        sqlx::query("INSERT INTO sessions (token_hash, user_id, created_ms, seen_ms) VALUES (?, ?, ?, ?)")
            .bind(&token.0[..])
            .bind(&id)
            .bind(now.0)
            .bind(now.0)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(id)
    }

    /// Whose cookie this is, and when it was last seen.
    pub async fn session(&self, token: &TokenHash) -> StoreResult<Option<(String, UnixMs)>> {
        let row = sqlx::query("SELECT user_id, seen_ms FROM sessions WHERE token_hash = ?")
            .bind(&token.0[..])
            .fetch_optional(&self.read)
            .await?;
        row.map(|r| Ok((r.try_get(0)?, UnixMs(r.try_get(1)?)))).transpose()
    }

    pub async fn touch_session(&self, token: &TokenHash, now: UnixMs) -> StoreResult<()> {
        sqlx::query("UPDATE sessions SET seen_ms = ? WHERE token_hash = ?")
            .bind(now.0)
            .bind(&token.0[..])
            .execute(&self.write)
            .await?;
        Ok(())
    }

    /// Forgets guests who never ran anything and were not seen since `before`. Returns how many.
    pub async fn forget_idle_guests(&self, before: UnixMs) -> StoreResult<u64> {
        let done = sqlx::query(
            "DELETE FROM users WHERE kind = 'guest' AND created_ms < ?1
             AND NOT EXISTS (SELECT 1 FROM jobs WHERE owner = users.id)
             AND NOT EXISTS (SELECT 1 FROM sessions WHERE user_id = users.id AND seen_ms >= ?1)",
        )
        .bind(before.0)
        .execute(&self.write)
        .await?;
        Ok(done.rows_affected())
    }
}
