//! What handlers take from a request, with a problem for everything that cannot be read.

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use ringlab_labs::api::FieldError;
use ringlab_labs::text::Text;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::problem::Problem;

/// Largest JSON body: a plan of 10,000 lines fits.
const BODY_MAX: usize = 256 << 10;

/// A larger body is read to its end all the same, up to here: an answer sent before that may never reach a browser still sending.
const DRAIN_MAX: usize = 8 << 20;

/// Middleware: reads the whole body before anything else happens.
pub async fn whole_body(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut chunks = body.into_data_stream();
    let (mut bytes, mut seen) = (Vec::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else { return broken_body().into_response() };
        seen += chunk.len();
        if seen <= BODY_MAX {
            bytes.extend_from_slice(&chunk);
        } else if seen > DRAIN_MAX {
            break;
        }
    }
    if seen > BODY_MAX {
        return too_large().into_response();
    }
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}

/// A JSON body of a known shape.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        expect_json(request.headers())?;
        let body = to_bytes(request.into_body(), BODY_MAX).await.map_err(|_| broken_body())?;
        let Ok(text) = std::str::from_utf8(&body) else {
            return Err(Problem::malformed(Text::new(
                "请求体不是 UTF-8 文本",
                "The body is not UTF-8 text.",
            )));
        };
        parse(text).map(Json)
    }
}

/// A body that must not be there, or may be any JSON that is ignored. The content type is checked all the same: it is what keeps
/// forms of other sites out.
pub fn expect_json_or_nothing(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(header::CONTENT_TYPE) { expect_json(headers) } else { Ok(()) }
}

fn expect_json(headers: &HeaderMap) -> Result<(), Problem> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let (essence, parameters) = value.split_once(';').unwrap_or((value, ""));
    let utf8 = matches!(
        parameters.trim().to_ascii_lowercase().as_str(),
        "" | "charset=utf-8" | "charset=\"utf-8\"" | "charset=utf8"
    );
    if essence.trim().eq_ignore_ascii_case("application/json") && utf8 {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "media-type",
        &["请以 JSON 发送", "Send JSON"],
        Text::new(
            format!("Content-Type 应为 application/json（UTF-8），收到的是“{value}”"),
            format!("Content-Type must be application/json (UTF-8), got \"{value}\"."),
        ),
    ))
}

fn broken_body() -> Problem {
    Problem::malformed(Text::new("请求体没有传完", "The body broke off before its end."))
}

fn too_large() -> Problem {
    let kib = BODY_MAX >> 10;
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too-large",
        &["请求太大", "The request is too large"],
        Text::new(format!("请求体最多 {kib} KiB"), format!("A body may have {kib} KiB.")),
    )
}

/// Not JSON at all: 400 with the place. JSON of another shape: 422 with the field.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let field = e.path().to_string();
        let error = e.into_inner();
        match error.classify() {
            serde_json::error::Category::Data => {
                let field = if field == "." { String::new() } else { field };
                Problem::invalid(vec![FieldError {
                    field,
                    message: Text::new(
                        format!("内容不符合要求：{error}"),
                        format!("not what is expected here: {error}"),
                    ),
                    line: None,
                }])
            }
            _ => not_json(&error),
        }
    })?;
    reader.end().map_err(|e| not_json(&e))?;
    Ok(value)
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::malformed(Text::new(
        format!("请求体不是合法的 JSON：{error}"),
        format!("The body is not valid JSON: {error}."),
    ))
}

/// Id of a job in the path. Anything but a UUID names no job.
#[derive(Debug, Clone)]
pub struct JobId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for JobId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = path_part(parts, state, "id").await?;
        let id = Uuid::try_parse(&id).map_err(|_| Problem::not_found())?;
        Ok(JobId(id.hyphenated().to_string()))
    }
}

/// An id in the path that is no job's. Anything but a UUID names nothing.
#[derive(Debug, Clone)]
pub struct Id(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        JobId::from_request_parts(parts, state).await.map(|JobId(id)| Id(id))
    }
}

/// The part of the path that the route calls `name`. What is not UTF-8 names nothing.
#[derive(Debug, Clone)]
pub struct Name(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        path_part(parts, state, "name").await.map(Name)
    }
}

/// The part of the path that the route calls `name`.
pub async fn path_part<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Result<String, Problem> {
    let Path(params) = Path::<Vec<(String, String)>>::from_request_parts(parts, state)
        .await
        .map_err(|_| Problem::not_found())?;
    params.into_iter().find(|(n, _)| n == name).map(|(_, v)| v).ok_or_else(Problem::not_found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringlab_labs::job::Submission;

    fn problem(text: &str) -> Problem {
        parse::<Submission>(text).expect_err(text)
    }

    #[test]
    fn what_is_not_json_is_malformed_and_what_is_another_shape_names_the_field() {
        for text in ["", "{", "nul", "{} {}", "{\"lab\":\"a\"} x", "[1e999]", &"[".repeat(10_000)] {
            let status = problem(text).status;
            assert!(
                status == StatusCode::BAD_REQUEST || status == StatusCode::UNPROCESSABLE_ENTITY,
                "{text} {status}"
            );
        }
        for (text, field) in [
            ("[]", ""),
            ("{}", ""),
            ("{\"lab\":1}", "lab"),
            ("{\"lab\":\"a\",\"params\":[]}", "params"),
            ("{\"lab\":\"a\",\"extra\":1}", "extra"),
            ("{\"lab\":\"a\",\"lab\":\"b\"}", ""),
        ] {
            let problem = problem(text);
            assert_eq!(problem.status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
            assert_eq!(problem.errors.len(), 1, "{text}");
            assert!(problem.errors[0].field == field || field.is_empty(), "{text}: {:?}", problem.errors);
        }
    }
}
