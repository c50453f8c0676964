//! Who may see and change what. The one place that decides; a stranger gets the same answer as for something that does not exist.

use crate::problem::{ApiResult, Problem};
use crate::store::Store;
use crate::store::jobs::JobRecord;

/// A job, for its owner alone: its page reopens by its URL in the browser that started it (or, later, wherever its owner signs in).
pub async fn own_job(store: &Store, user: Option<&str>, id: &str) -> ApiResult<JobRecord> {
    let user = user.ok_or_else(Problem::not_found)?;
    let job = store.job(id).await?;
    job.filter(|j| j.owner == user).ok_or_else(Problem::not_found)
}
