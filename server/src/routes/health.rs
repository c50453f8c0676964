//! `GET /healthz`, `GET /metrics`: for machines.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::time::timeout;

use crate::app::App;
use crate::problem::Problem;

const CHECK: Duration = Duration::from_secs(2);

pub async fn check(State(app): State<App>) -> (StatusCode, Json<serde_json::Value>) {
    let database = match timeout(CHECK, app.store.check()).await {
        Ok(Ok(())) => "ok",
        Ok(Err(error)) => {
            tracing::error!(%error, "health check: the database does not answer");
            "fails"
        }
        Err(_) => "slow",
    };
    let stopping = app.shutdown.is_cancelled();
    let well = database == "ok" && !stopping;
    let status = if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = if well { "ok" } else { "unwell" };
    (status, Json(json!({ "status": word, "database": database, "stopping": stopping })))
}

pub async fn metrics(State(app): State<App>) -> Response {
    let counts = match app.store.count_jobs().await {
        Ok(counts) => counts,
        Err(error) => return Problem::from(error).into_response(),
    };
    for (phase, count) in counts {
        metrics::gauge!("ringlab_jobs", "state" => phase.name()).set(count as f64);
    }
    let (connected, idle) = app.dispatcher.counts();
    metrics::gauge!("ringlab_runners", "state" => "idle").set(idle as f64);
    metrics::gauge!("ringlab_runners", "state" => "busy").set((connected - idle) as f64);
    metrics::gauge!("ringlab_event_streams").set(app.hub.subscribers() as f64);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.render()).into_response()
}
