//! Ends sittings whose time is over, also those that ended while no server ran.

use std::time::Duration;

use tokio::time::sleep;

use crate::app::App;
use crate::clock::UnixMs;
use crate::store::StoreResult;
use crate::store::drafts::GRACE_MS;

/// After the grace: saves that arrived within it have been stored by then.
const MARGIN_MS: i64 = 500;
/// A clock that is set, or a sitting shortened by hand, is noticed within this.
const LONGEST: Duration = Duration::from_secs(30);
const AFTER_ERROR: Duration = Duration::from_secs(1);

pub async fn run(app: App) {
    loop {
        let wait = match end_overdue(&app).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::error!(%error, "ending sittings failed; trying again");
                AFTER_ERROR
            }
        };
        tokio::select! {
            () = sleep(wait) => {}
            () = app.interview.began.notified() => {}
            () = app.shutdown.cancelled() => return,
        }
    }
}

/// Returns how long nothing more is to be done.
async fn end_overdue(app: &App) -> StoreResult<Duration> {
    let late = GRACE_MS + MARGIN_MS;
    let Some(next) = app.store.next_end().await? else { return Ok(LONGEST) };
    let now = UnixMs::now();
    if next.0 + late < now.0 {
        let ended = app.store.end_overdue_sittings(UnixMs(now.0 - late)).await?;
        tracing::info!(ended, "time over");
        app.interview.ended.notify_one();
        return Ok(Duration::ZERO);
    }
    let wait = u64::try_from(next.0 + late + 1 - now.0).unwrap_or(0);
    Ok(Duration::from_millis(wait).min(LONGEST))
}
