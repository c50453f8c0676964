//! SQL, and nothing but SQL: one file per concern, each a further `impl Store`. Every state change is one transaction, so that a
//! server killed at any instant leaves a state that another can go on from.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Sqlite, Transaction};

pub mod answers;
pub mod assessments;
pub mod drafts;
pub mod events;
pub mod grades;
pub mod jobs;
pub mod leases;
pub mod members;
pub mod notes;
pub mod opinions;
pub mod personal;
pub mod practice;
pub mod queue;
pub mod reading;
pub mod reviews;
pub mod runners;
pub mod settle;
pub mod sittings;
pub mod users;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations/sqlite");

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("database: {0}")]
    Sql(#[from] sqlx::Error),
    #[error("database migration: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A row that this version of the server cannot read.
    #[error("{what} of {id} in the database cannot be read: {cause}")]
    Unreadable { what: &'static str, id: String, cause: String },
}

pub type StoreResult<T> = Result<T, StoreError>;

/// SQLite has one writer at a time: writes go through a pool of one connection, so that they queue here in order instead of failing
/// with SQLITE_BUSY. Readers see the last commit (WAL) and never wait.
#[derive(Debug, Clone)]
pub struct Store {
    read: SqlitePool,
    write: SqlitePool,
}

impl Store {
    /// Opens or makes the database and migrates it.
    pub async fn open(path: &Path) -> StoreResult<Store> {
        let timeout = Duration::from_secs(10);
        let options = SqliteConnectOptions::new().filename(path).foreign_keys(true).busy_timeout(timeout);
        let writer = options
            .clone()
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal);
        let write =
            SqlitePoolOptions::new().max_connections(1).acquire_timeout(timeout).connect_with(writer).await?;
        MIGRATIONS.run(&write).await?;
        let read = SqlitePoolOptions::new()
            .max_connections(4)
            .acquire_timeout(timeout)
            .connect_with(options.pragma("query_only", "on"))
            .await?;
        Ok(Store { read, write })
    }

    /// Asks both sides of the database a question.
    pub async fn check(&self) -> StoreResult<()> {
        sqlx::query("SELECT count(*) FROM jobs WHERE state = 'running'").fetch_one(&self.read).await?;
        self.begin().await?.rollback().await?;
        Ok(())
    }

    pub async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }

    /// A write transaction that holds the write lock from the start: what it reads cannot change before it writes. Committed, it
    /// outlives the server's process, whatever happens to it; a power cut may take the last moments.
    async fn begin(&self) -> StoreResult<Transaction<'static, Sqlite>> {
        Ok(self.write.begin_with("PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE").await?)
    }

    /// One that, committed, outlives a power cut too, with everything before it: for what its sender forgets once it is acknowledged.
    async fn begin_durable(&self) -> StoreResult<Transaction<'static, Sqlite>> {
        Ok(self.write.begin_with("PRAGMA synchronous = FULL; BEGIN IMMEDIATE").await?)
    }
}

fn from_json<T: serde::de::DeserializeOwned>(what: &'static str, id: &str, text: &str) -> StoreResult<T> {
    serde_json::from_str(text).map_err(|e| StoreError::Unreadable {
        what,
        id: id.to_owned(),
        cause: e.to_string(),
    })
}

fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("types of ringlab-labs have string keys and finite numbers")
}
