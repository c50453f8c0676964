//! Guests, members and their cookies.

use ringlab_interview::api::Role;
use sqlx::Row as _;
use uuid::Uuid;

use super::{Store, StoreError, StoreResult};
use crate::clock::UnixMs;
use crate::secret::TokenHash;

/// A browser's session and whose it is.
#[derive(Debug, Clone)]
pub struct Session {
    pub user: String,
    pub role: Role,
    /// Has an e-mail address and a password; a guest has neither.
    pub member: bool,
    /// When it was last used, as far as that is written down.
    pub seen: UnixMs,
}

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

    /// Whose cookie this is.
    pub async fn session(&self, token: &TokenHash) -> StoreResult<Option<Session>> {
        let row = sqlx::query(
            "SELECT u.id, u.role, u.kind = 'member', s.seen_ms
             FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.token_hash = ?",
        )
        .bind(&token.0[..])
        .fetch_optional(&self.read)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let user: String = row.try_get(0)?;
        Ok(Some(Session {
            role: role(&user, row.try_get(1)?)?,
            user,
            member: row.try_get(2)?,
            seen: UnixMs(row.try_get(3)?),
        }))
    }

    pub async fn touch_session(&self, token: &TokenHash, now: UnixMs) -> StoreResult<()> {
        sqlx::query("UPDATE sessions SET seen_ms = ? WHERE token_hash = ?")
            .bind(now.0)
            .bind(&token.0[..])
            .execute(&self.write)
            .await?;
        Ok(())
    }

    /// Ends sessions whose cookie no browser keeps any more. Returns how many.
    pub async fn forget_old_sessions(&self, before: UnixMs) -> StoreResult<u64> {
        let done =
            sqlx::query("DELETE FROM sessions WHERE seen_ms < ?").bind(before.0).execute(&self.write).await?;
        Ok(done.rows_affected())
    }
}

pub(super) fn role(user: &str, name: &str) -> StoreResult<Role> {
    Role::from_name(name).ok_or_else(|| StoreError::Unreadable {
        what: "role",
        id: user.to_owned(),
        cause: format!("`{name}` is none"),
    })
}
