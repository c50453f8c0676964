//! Files of a result: as they are, and the first trace in Perfetto's form.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ringlab_engine::trace::Trace;
use ringlab_labs::job::Artifact;
use ringlab_labs::text::Text;
use tokio_util::io::ReaderStream;

use crate::accounts::Visitor;
use crate::app::App;
use crate::extract::{JobId, Name};
use crate::problem::{ApiResult, Problem};
use crate::visibility;

/// An artifact of a final job never changes under its name.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");

pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    JobId(id): JobId,
    Name(name): Name,
    request: HeaderMap,
) -> ApiResult<Response> {
    let artifact =
        own_artifact(&app, &visitor, &id, |a| a.name == name).await?.ok_or_else(Problem::not_found)?;
    let tag = format!("\"{}\"", artifact.sha256);
    let headers = download(&artifact.media_type, &artifact.name, &tag);
    if request.get(header::IF_NONE_MATCH).is_some_and(|v| v.as_bytes() == tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    let file = app.blobs.open_file(&artifact.sha256).await?;
    let length = [(header::CONTENT_LENGTH, HeaderValue::from(artifact.bytes))];
    Ok((headers, length, Body::from_stream(ReaderStream::with_capacity(file, 64 << 10))).into_response())
}

pub async fn perfetto(State(app): State<App>, visitor: Visitor, JobId(id): JobId) -> ApiResult<Response> {
    let record = visibility::own_job(&app.store, visitor.user.as_deref(), &id).await?;
    let trace = record.result.iter().flat_map(|r| &r.tasks).find_map(|t| t.trace.clone());
    let trace = trace.ok_or_else(no_trace)?;
    let artifact = own_artifact(&app, &visitor, &id, |a| a.name == trace).await?.ok_or_else(no_trace)?;
    let bytes = app.blobs.read(&artifact.sha256).await?;
    let file = app
        .compute(move || {
            let trace: Trace = serde_json::from_slice(&bytes)?;
            Ok::<_, serde_json::Error>(ringlab_engine::trace::perfetto::export(&trace))
        })
        .await?
        .map_err(|e| Problem::internal(format_args!("trace {} cannot be read: {e}", artifact.sha256)))?;
    let tag = format!("\"{}-perfetto\"", artifact.sha256);
    Ok((download("application/json", &format!("ringlab-{id}.perfetto.json"), &tag), file).into_response())
}

async fn own_artifact(
    app: &App,
    visitor: &Visitor,
    id: &str,
    which: impl Fn(&Artifact) -> bool,
) -> ApiResult<Option<Artifact>> {
    visibility::own_job(&app.store, visitor.user.as_deref(), id).await?;
    Ok(app.store.artifacts(id).await?.into_iter().find(which))
}

/// A file to keep, never a page to open: what is in it came from a worker.
fn download(media_type: &str, name: &str, tag: &str) -> [(HeaderName, HeaderValue); 4] {
    let value = |s: String| HeaderValue::try_from(s).unwrap_or(HeaderValue::from_static("attachment"));
    [
        (
            header::CONTENT_TYPE,
            HeaderValue::try_from(media_type).unwrap_or(HeaderValue::from_static("application/octet-stream")),
        ),
        (header::CONTENT_DISPOSITION, value(format!("attachment; filename=\"{name}\""))),
        (header::ETAG, value(tag.to_owned())),
        (header::CACHE_CONTROL, IMMUTABLE),
    ]
}

fn no_trace() -> Problem {
    Problem {
        detail: Text::new("这次运行没有时间线", "This run has no trace."), ..Problem::not_found()
    }
}
