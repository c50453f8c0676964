//! A runner's last word on a lease.

use ringlab_labs::job::JobResult;
use ringlab_labs::wire::{Failure, FailureKind, LeaseRef};

use super::{AVOID, report};
use crate::app::App;
use crate::clock::UnixMs;
use crate::store::StoreError;
use crate::store::leases::{After, Standing};
use crate::store::settle::Settlement;

#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Blob(#[from] crate::blobs::BlobError),
}

/// Takes a result in. Returns whether it was accepted, now or before.
pub async fn result(app: &App, lease: &LeaseRef, result: JobResult) -> Result<bool, SettleError> {
    // The check and the marks take a while: a result that cannot count any more is turned away first. What counts in the end is
    // decided in one transaction by `settle_result`.
    if app.store.standing(lease).await? == Standing::Over {
        return Ok(false);
    }
    let (Some(spec), Some(record)) = (app.store.spec(&lease.job).await?, app.store.job(&lease.job).await?)
    else {
        return Ok(false);
    };
    if let Some(fault) = report::fault(&spec, &result, &app.blobs).await? {
        let failure = Failure {
            kind: FailureKind::Runner,
            message: format!("the runner's result cannot be used: {fault}"),
        };
        self::failure(app, lease, failure).await?;
        return Ok(false);
    }
    let marks = app.marks(&record, result.clone(), None).await;
    let settlement = app.store.settle_result(lease, &result, marks.as_ref(), UnixMs::now()).await?;
    Ok(announce(app, lease, settlement))
}

/// Takes a failure in. Returns whether it was accepted, now or before.
pub async fn failure(app: &App, lease: &LeaseRef, failure: Failure) -> Result<bool, StoreError> {
    tracing::info!(job = lease.job, attempt = lease.attempt, kind = ?failure.kind, message = failure.message, "attempt failed");
    let now = UnixMs::now();
    let settlement = app.store.settle_failure(lease, failure, now.plus(AVOID), now).await?;
    Ok(announce(app, lease, settlement))
}

fn announce(app: &App, lease: &LeaseRef, settlement: Settlement) -> bool {
    let Settlement::Accepted(after) = settlement else {
        let accepted = settlement == Settlement::AcceptedBefore;
        tracing::info!(job = lease.job, attempt = lease.attempt, accepted, "repeated or late report");
        return accepted;
    };
    let outcome = match after {
        After::Done => "done",
        After::Requeued => "requeued",
        After::Failed => "failed",
    };
    tracing::info!(job = lease.job, attempt = lease.attempt, outcome, "attempt settled");
    metrics::counter!("ringlab_attempts_settled_total", "outcome" => outcome).increment(1);
    app.dispatcher.changed(&lease.job);
    app.dispatcher.wake();
    true
}
