//! Every request's id, log line and figures.

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::Instrument as _;
use uuid::Uuid;

/// Bounds of the histograms, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Installs the process-wide recorder.
pub fn install_metrics() -> anyhow::Result<PrometheusHandle> {
    let builder =
        PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &BUCKETS)?;
    let handle = builder.install_recorder()?;
    metrics::describe_counter!("ringlab_http_requests_total", "Requests by method, route and status");
    metrics::describe_histogram!(
        "ringlab_http_request_seconds",
        "Time to the head of the response, by route"
    );
    metrics::describe_histogram!("ringlab_queue_wait_seconds", "From entering the queue to the lease");
    metrics::describe_counter!("ringlab_events_total", "Events stored");
    metrics::describe_counter!("ringlab_leases_expired_total", "Leases that ended without a sign of life");
    metrics::describe_counter!(
        "ringlab_attempts_settled_total",
        "Accepted results and failures, by what became of the job"
    );
    metrics::describe_gauge!("ringlab_jobs", "Jobs by state");
    metrics::describe_gauge!("ringlab_runners", "Connected runners by state");
    metrics::describe_gauge!("ringlab_event_streams", "Open event streams");
    Ok(handle)
}

/// Middleware around everything.
pub async fn requests(request: Request, next: Next) -> Response {
    let id = Uuid::now_v7().simple().to_string();
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let span = tracing::info_span!("request", id, %method, path = request.uri().path());
    let start = Instant::now();
    async move {
        let mut response = next.run(request).await;
        let (status, took) = (response.status(), start.elapsed());
        metrics::counter!("ringlab_http_requests_total", "method" => method.to_string(), "route" => route.clone(), "status" => status.as_u16().to_string()).increment(1);
        metrics::histogram!("ringlab_http_request_seconds", "route" => route).record(took.as_secs_f64());
        log(status.as_u16(), took);
        let id = HeaderValue::try_from(id).expect("an id is hex");
        response.headers_mut().insert("x-request-id", id);
        response
    }
    .instrument(span)
    .await
}

fn log(status: u16, took: Duration) {
    let ms = took.as_secs_f64() * 1e3;
    if status >= 500 {
        tracing::error!(status, ms, "request failed");
    } else {
        tracing::debug!(status, ms, "request");
    }
}
