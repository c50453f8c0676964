//! Where a waiting job stands, and who could take it.

use ringlab_labs::job::Backend;
use sqlx::Row as _;

use super::{Store, StoreResult};

/// What a waiting learner is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// 1 is next among the jobs for the same backend.
    pub position: u32,
    /// Connected runners with the backend.
    pub runners: u32,
    /// Those of them that have no job.
    pub idle: u32,
}

impl Store {
    pub async fn place(&self, job: &str, backend: Backend) -> StoreResult<Place> {
        let row = sqlx::query(
            "WITH able AS (
                 SELECT EXISTS (SELECT 1 FROM jobs j WHERE j.state = 'running' AND j.runner = r.id) AS busy
                 FROM runners r WHERE r.disconnected_ms IS NULL
                 AND EXISTS (SELECT 1 FROM json_each(r.hardware, '$.backends') b WHERE b.value = ?1))
             SELECT (SELECT count(*) FROM jobs WHERE state = 'queued' AND backend = ?1 AND id <= ?2),
                    (SELECT count(*) FROM able), (SELECT count(*) FROM able WHERE NOT busy)",
        )
        .bind(backend.name())
        .bind(job)
        .fetch_one(&self.read)
        .await?;
        Ok(Place {
            position: row.try_get::<u32, _>(0)?.max(1),
            runners: row.try_get(1)?,
            idle: row.try_get(2)?,
        })
    }

    /// Backends that at least one queued job waits for.
    pub async fn wanted_backends(&self) -> StoreResult<Vec<String>> {
        Ok(sqlx::query_scalar("SELECT DISTINCT backend FROM jobs WHERE state = 'queued'")
            .fetch_all(&self.read)
            .await?)
    }
}
