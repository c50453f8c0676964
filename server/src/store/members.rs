//! Accounts with a password: made, signed in to, changed.

use ringlab_interview::api::{AccountView, Role};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, Sqlite, Transaction};
use uuid::Uuid;

use super::personal::merge_guest;
use super::users::role;
use super::{Store, StoreResult};
use crate::clock::UnixMs;
use crate::secret::TokenHash;

/// What an account is made from; checked before.
#[derive(Debug, Clone)]
pub struct NewMember {
    /// In lower case.
    pub email: String,
    pub password_hash: String,
    pub display_name: String,
    pub role: Role,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedUp {
    Done(String),
    EmailTaken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    Done,
    NoSuchAccount,
    /// Nobody could give roles any more.
    LastAdmin,
}

/// Who signs in, with the hash that their password was found to match.
#[derive(Debug, Clone)]
pub struct Credentials {
    pub user: String,
    pub password_hash: String,
}

/// For the audit log: who does it and why.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    pub who: &'a str,
    pub why: &'a str,
}

impl Store {
    /// A guest becomes a member with all that is theirs; without a guest a new account is made. Every session the guest had ends,
    /// `token` begins.
    pub async fn sign_up(
        &self,
        new: &NewMember,
        guest: Option<&str>,
        token: &TokenHash,
        now: UnixMs,
    ) -> StoreResult<SignedUp> {
        let mut tx = self.begin_durable().await?;
        if email_taken(&mut tx, &new.email).await? {
            return Ok(SignedUp::EmailTaken);
        }
        let filled = match guest {
            Some(guest) => fill_in(&mut tx, new, guest).await?,
            None => false,
        };
        let user = match guest {
            Some(guest) if filled => guest.to_owned(),
            _ => insert(&mut tx, new, now).await?,
        };
        only_session(&mut tx, &user, token, now).await?;
        tx.commit().await?;
        Ok(SignedUp::Done(user))
    }

    /// Makes an account without a browser.
    pub async fn create_member(&self, new: &NewMember, by: By<'_>, now: UnixMs) -> StoreResult<SignedUp> {
        let mut tx = self.begin_durable().await?;
        if email_taken(&mut tx, &new.email).await? {
            return Ok(SignedUp::EmailTaken);
        }
        let user = insert(&mut tx, new, now).await?;
        audit(&mut tx, by, "account.create", &user, None, Some(new.role.name()), now).await?;
        tx.commit().await?;
        Ok(SignedUp::Done(user))
    }

    pub async fn credentials(&self, email: &str) -> StoreResult<Option<Credentials>> {
        let row: Option<(String, String)> = sqlx::query_as(
            "SELECT id, password_hash FROM users WHERE email = ? AND password_hash IS NOT NULL",
        )
        .bind(email)
        .fetch_optional(&self.read)
        .await?;
        Ok(row.map(|(user, password_hash)| Credentials { user, password_hash }))
    }

    pub async fn credentials_of(&self, user: &str) -> StoreResult<Option<Credentials>> {
        let hash: Option<Option<String>> = sqlx::query_scalar("SELECT password_hash FROM users WHERE id = ?")
            .bind(user)
            .fetch_optional(&self.read)
            .await?;
        Ok(hash.flatten().map(|password_hash| Credentials { user: user.to_owned(), password_hash }))
    }

    /// Begins a session, ends `before`, and takes over what the browser's guest did. False: the password was changed in between.
    pub async fn sign_in(
        &self,
        credentials: &Credentials,
        before: Option<&TokenHash>,
        guest: Option<&str>,
        token: &TokenHash,
        now: UnixMs,
    ) -> StoreResult<bool> {
        let mut tx = self.begin_durable().await?;
        if !still_valid(&mut tx, credentials).await? {
            return Ok(false);
        }
        if let Some(before) = before {
            end_session(&mut tx, before).await?;
        }
        if let Some(guest) = guest {
            merge_guest(&mut tx, guest, &credentials.user, now).await?;
        }
        begin_session(&mut tx, &credentials.user, token, now).await?;
        tx.commit().await?;
        Ok(true)
    }

    pub async fn sign_out(&self, token: &TokenHash) -> StoreResult<()> {
        let mut tx = self.begin_durable().await?;
        end_session(&mut tx, token).await?;
        tx.commit().await?;
        Ok(())
    }

    /// All sessions end, `token` begins. False: the password was changed in between.
    pub async fn change_password(
        &self,
        credentials: &Credentials,
        new_hash: &str,
        token: &TokenHash,
        now: UnixMs,
    ) -> StoreResult<bool> {
        let mut tx = self.begin_durable().await?;
        if !still_valid(&mut tx, credentials).await? {
            return Ok(false);
        }
        set_password(&mut tx, &credentials.user, new_hash).await?;
        only_session(&mut tx, &credentials.user, token, now).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Somebody with access to the machine sets a password; all sessions of the account end.
    pub async fn reset_password(
        &self,
        user: &str,
        new_hash: &str,
        by: By<'_>,
        now: UnixMs,
    ) -> StoreResult<()> {
        let mut tx = self.begin_durable().await?;
        set_password(&mut tx, user, new_hash).await?;
        end_sessions(&mut tx, user).await?;
        audit(&mut tx, by, "account.password", user, None, None, now).await?;
        tx.commit().await?;
        Ok(())
    }

    pub async fn set_role(&self, user: &str, to: Role, by: By<'_>, now: UnixMs) -> StoreResult<Changed> {
        let mut tx = self.begin_durable().await?;
        let before: Option<String> =
            sqlx::query_scalar("SELECT role FROM users WHERE id = ? AND kind = 'member'")
                .bind(user)
                .fetch_optional(&mut *tx)
                .await?;
        let Some(before) = before else { return Ok(Changed::NoSuchAccount) };
        if before == to.name() {
            return Ok(Changed::Done);
        }
        if before == Role::Admin.name() && is_last_admin(&mut tx, user).await? {
            return Ok(Changed::LastAdmin);
        }
        sqlx::query("UPDATE users SET role = ? WHERE id = ?")
            .bind(to.name())
            .bind(user)
            .execute(&mut *tx)
            .await?;
        audit(&mut tx, by, "account.role", user, Some(&before), Some(to.name()), now).await?;
        tx.commit().await?;
        Ok(Changed::Done)
    }

    /// A guest or a member.
    pub async fn account(&self, user: &str) -> StoreResult<Option<AccountView>> {
        let row = sqlx::query("SELECT id, role, email, display_name FROM users WHERE id = ?")
            .bind(user)
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(view).transpose()
    }

    /// Members by e-mail: all, or the one.
    pub async fn members(&self, email: Option<&str>, limit: u32) -> StoreResult<Vec<AccountView>> {
        let rows = sqlx::query(
            "SELECT id, role, email, display_name FROM users
             WHERE kind = 'member' AND (?1 IS NULL OR email = ?1) ORDER BY email LIMIT ?2",
        )
        .bind(email)
        .bind(limit)
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(view).collect()
    }
}

fn view(row: &SqliteRow) -> StoreResult<AccountView> {
    let id: String = row.try_get(0)?;
    Ok(AccountView {
        role: role(&id, row.try_get(1)?)?,
        id: Some(id),
        email: row.try_get(2)?,
        display_name: row.try_get(3)?,
    })
}

type Tx = Transaction<'static, Sqlite>;

async fn email_taken(tx: &mut Tx, email: &str) -> StoreResult<bool> {
    Ok(sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM users WHERE email = ?)")
        .bind(email)
        .fetch_one(&mut **tx)
        .await?)
}

/// False: it is no guest any more.
async fn fill_in(tx: &mut Tx, new: &NewMember, guest: &str) -> StoreResult<bool> {
    let done = sqlx::query(
        "UPDATE users SET kind = 'member', email = ?, password_hash = ?, display_name = ?, role = ?
         WHERE id = ? AND kind = 'guest'",
    )
    .bind(&new.email)
    .bind(&new.password_hash)
    .bind(&new.display_name)
    .bind(new.role.name())
    .bind(guest)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

async fn insert(tx: &mut Tx, new: &NewMember, now: UnixMs) -> StoreResult<String> {
    let id = Uuid::now_v7().to_string();
    sqlx::query(
        "INSERT INTO users (id, kind, role, email, password_hash, display_name, created_ms)
         VALUES (?, 'member', ?, ?, ?, ?, ?)",
    )
    .bind(&id)
    .bind(new.role.name())
    .bind(&new.email)
    .bind(&new.password_hash)
    .bind(&new.display_name)
    .bind(now.0)
    .execute(&mut **tx)
    .await?;
    Ok(id)
}

async fn still_valid(tx: &mut Tx, credentials: &Credentials) -> StoreResult<bool> {
    Ok(sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM users WHERE id = ? AND password_hash = ?)")
        .bind(&credentials.user)
        .bind(&credentials.password_hash)
        .fetch_one(&mut **tx)
        .await?)
}

async fn set_password(tx: &mut Tx, user: &str, hash: &str) -> StoreResult<()> {
    sqlx::query("UPDATE users SET password_hash = ? WHERE id = ? AND kind = 'member'")
        .bind(hash)
        .bind(user)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub(super) async fn is_last_admin(tx: &mut Tx, user: &str) -> StoreResult<bool> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM users WHERE id = ?1 AND role = 'admin')
            AND NOT EXISTS (SELECT 1 FROM users WHERE id != ?1 AND role = 'admin')",
    )
    .bind(user)
    .fetch_one(&mut **tx)
    .await?)
}

async fn begin_session(tx: &mut Tx, user: &str, token: &TokenHash, now: UnixMs) -> StoreResult<()> {
    sqlx::query("INSERT INTO sessions (token_hash, user_id, created_ms, seen_ms) VALUES (?1, ?2, ?3, ?3)")
        .bind(&token.0[..])
        .bind(user)
        .bind(now.0)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

async fn end_session(tx: &mut Tx, token: &TokenHash) -> StoreResult<()> {
    sqlx::query("DELETE FROM sessions WHERE token_hash = ?").bind(&token.0[..]).execute(&mut **tx).await?;
    Ok(())
}

async fn end_sessions(tx: &mut Tx, user: &str) -> StoreResult<()> {
    sqlx::query("DELETE FROM sessions WHERE user_id = ?").bind(user).execute(&mut **tx).await?;
    Ok(())
}

async fn only_session(tx: &mut Tx, user: &str, token: &TokenHash, now: UnixMs) -> StoreResult<()> {
    end_sessions(tx, user).await?;
    begin_session(tx, user, token, now).await
}

pub(super) async fn audit(
    tx: &mut Tx,
    by: By<'_>,
    what: &'static str,
    subject: &str,
    old: Option<&str>,
    new: Option<&str>,
    now: UnixMs,
) -> StoreResult<()> {
    sqlx::query(
        "INSERT INTO audit_log (at_ms, who, what, subject, old, new, why) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(now.0)
    .bind(by.who)
    .bind(what)
    .bind(subject)
    .bind(old)
    .bind(new)
    .bind(by.why)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
