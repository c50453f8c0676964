//! `GET /api/v1/jobs/{id}/events`: what happens to a job, as server-sent events.

use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use ringlab_labs::api::FieldError;
use ringlab_labs::text::Text;
use serde::Deserialize;

use crate::accounts::Visitor;
use crate::app::App;
use crate::extract::JobId;
use crate::problem::{ApiResult, Problem};
use crate::store::events::Cursor;
use crate::stream::feed::Feed;
use crate::visibility;

/// Proxies cut connections that are silent for a minute or half.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Streams of all browsers together.
const STREAMS_MAX: usize = 10_000;

#[derive(Debug, Deserialize)]
pub struct Resume {
    #[serde(default)]
    after: Option<String>,
}

pub async fn stream(
    State(app): State<App>,
    visitor: Visitor,
    JobId(id): JobId,
    headers: HeaderMap,
    query: Result<Query<Resume>, axum::extract::rejection::QueryRejection>,
) -> ApiResult<Response> {
    // What a browser sends when it reconnects by itself is newer than what stands in the URL.
    let after = match headers.get("last-event-id") {
        Some(value) => Some(value.to_str().unwrap_or("?").to_owned()),
        None => query.map_err(|_| bad_cursor("?"))?.0.after,
    };
    let cursor = match after.as_deref() {
        None | Some("") => Cursor::default(),
        Some(text) => cursor(text).ok_or_else(|| bad_cursor(text))?,
    };
    visibility::own_job(&app.store, visitor.user.as_deref(), &id).await?;
    if app.hub.subscribers() >= STREAMS_MAX {
        return Err(Problem::overloaded());
    }
    let feed = Feed::new(app.store.clone(), id.clone(), cursor, app.hub.subscribe(&id), app.shutdown.clone());
    let sse = Sse::new(feed.into_stream()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // nginx must not collect the stream.
    Ok(([(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"))], sse)
        .into_response())
}

/// `attempt.seq`
fn cursor(text: &str) -> Option<Cursor> {
    let (attempt, seq) = text.split_once('.')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(attempt) || !digits(seq) {
        return None;
    }
    Some(Cursor { attempt: attempt.parse().ok()?, seq: seq.parse().ok()? })
}

fn bad_cursor(text: &str) -> Problem {
    let shown: String = text.chars().take(80).collect();
    Problem {
        status: axum::http::StatusCode::BAD_REQUEST,
        ..Problem::invalid(vec![FieldError {
            field: "after".into(),
            message: Text::new(
                format!("应为“尝试.序号”，例如 1.25，收到的是“{shown}”"),
                format!("must be `attempt.seq`, such as 1.25, got `{shown}`"),
            ),
            line: None,
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_two_numbers() {
        assert_eq!(cursor("2.17"), Some(Cursor { attempt: 2, seq: 17 }));
        for text in
            ["", "1", "1.", ".1", "a.b", "+1.2", "1.-2", "1.2.3", "4294967296.1", "1.18446744073709551616"]
        {
            assert_eq!(cursor(text), None, "{text}");
        }
    }
}
