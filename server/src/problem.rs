//! Errors as the API answers them: problem details (RFC 9457), in the language of the request.
//!
//! A handler returns a [`Problem`]; as a response it is only an extension and a status. [`render`] gives it its body, and gives one
//! to every other error under `/api` too (no such route, wrong method), so that no error leaves in another shape.

use std::fmt::Display;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ringlab_labs::api::{self, FieldError};
use ringlab_labs::text::{Lang, Text};

use crate::blobs::BlobError;
use crate::lang;
use crate::store::StoreError;

/// What went wrong and what to do, before the language is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub status: StatusCode,
    /// Stable: `urn:ringlab:problem:<kind>`.
    pub kind: &'static str,
    /// In Chinese and English.
    pub title: &'static [&'static str; 2],
    pub detail: Text,
    pub errors: Vec<FieldError>,
    /// A member beside the usual ones (RFC 9457 §3.2).
    pub extra: Option<Box<(&'static str, serde_json::Value)>>,
    /// Seconds after which to try again.
    pub retry_after: Option<u32>,
}

pub type ApiResult<T> = Result<T, Problem>;

impl Problem {
    pub fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static [&'static str; 2],
        detail: Text,
    ) -> Problem {
        Problem { status, kind, title, detail, errors: Vec::new(), extra: None, retry_after: None }
    }

    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Problem {
        self.retry_after = Some(seconds);
        self
    }

    /// With another member in the problem's body.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl serde::Serialize) -> Problem {
        let value = serde_json::to_value(value).expect("types of the API have string keys");
        self.extra = Some(Box::new((name, value)));
        self
    }

    pub fn not_found() -> Problem {
        Problem::new(
            StatusCode::NOT_FOUND,
            "not-found",
            &["没有找到", "Not found"],
            Text::new(
                "这里什么也没有，或者它不属于您。请核对地址；运行结果只有发起它的浏览器能打开",
                "There is nothing here, or it is not yours. Check the address; a run opens only in the browser that started it.",
            ),
        )
    }

    pub fn malformed(detail: Text) -> Problem {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "malformed",
            &["请求无法读取", "The request cannot be read"],
            detail,
        )
    }

    /// The request is well formed, its values are not acceptable.
    pub fn invalid(errors: Vec<FieldError>) -> Problem {
        let n = errors.len();
        Problem {
            errors,
            ..Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid",
                &["有些内容需要修改", "Some values need another look"],
                Text::new(
                    format!("{n} 处有误，每一处都说明了原因"),
                    if n == 1 {
                        "1 value; the reason stands with it.".into()
                    } else {
                        format!("{n} values; the reason stands with each.")
                    },
                ),
            )
        }
    }

    pub fn conflict(kind: &'static str, detail: Text) -> Problem {
        Problem::new(StatusCode::CONFLICT, kind, &["现在不能这样做", "Not possible in this state"], detail)
    }

    pub fn too_fast(seconds: u32) -> Problem {
        Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-fast",
            &["请求过于频繁", "Too many requests"],
            Text::new(format!("请在 {seconds} 秒后再试"), format!("Please try again in {seconds} s.")),
        )
        .retry_after(seconds)
    }

    pub fn overloaded() -> Problem {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "overloaded",
            &["服务器繁忙", "The server is busy"],
            Text::new(
                "请几秒后再试，您的数据没有丢失",
                "Try again in a few seconds; nothing of yours is lost.",
            ),
        )
        .retry_after(5)
    }

    /// Our fault: the cause goes to the log, under the request's id.
    pub fn internal(cause: impl Display) -> Problem {
        tracing::error!(%cause, "internal error");
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            &["服务器出错了", "The server made a mistake"],
            Text::new(
                "错在我们，已经记录。请再试一次；若仍然出错，请把响应头 x-request-id 告诉维护者",
                "The fault is ours and was recorded. Try again; if it stays, tell the maintainers the x-request-id of this answer.",
            ),
        )
    }

    fn of_status(status: StatusCode) -> Problem {
        match status {
            StatusCode::NOT_FOUND => Problem::not_found(),
            StatusCode::METHOD_NOT_ALLOWED => Problem::new(
                status,
                "method",
                &["这个地址不支持该方法", "This address does not take that method"],
                Text::new("支持的方法见响应头 Allow", "The Allow header lists those it takes."),
            ),
            StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
                status,
                "too-large",
                &["请求太大", "The request is too large"],
                Text::new("请发送更小的内容", "Send less at once."),
            ),
            status if status.is_server_error() => {
                Problem::internal(format_args!("a response of {status} without a problem"))
            }
            status => Problem::new(
                status,
                "malformed",
                &["请求无法处理", "The request cannot be served"],
                Text::new(
                    format!("服务器以 {} 拒绝了它", status.as_u16()),
                    format!("The server refused it: {status}."),
                ),
            ),
        }
    }

    /// What an error response is about, also one that no handler of ours made.
    pub fn of_response(response: &Response) -> Arc<Problem> {
        let problem = response.extensions().get::<Arc<Problem>>().cloned();
        problem.unwrap_or_else(|| Arc::new(Problem::of_status(response.status())))
    }

    pub fn title(&self, lang: Lang) -> &'static str {
        self.title[usize::from(lang == Lang::En)]
    }

    fn to_api(&self, lang: Lang) -> api::Problem {
        api::Problem {
            kind: format!("urn:ringlab:problem:{}", self.kind),
            title: self.title(lang).to_owned(),
            status: self.status.as_u16(),
            detail: self.detail.get(lang).to_owned(),
            errors: self.errors.clone(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::Sql(sqlx::Error::PoolTimedOut) => {
                tracing::error!("no database connection became free in time");
                Problem::overloaded()
            }
            error => Problem::internal(error),
        }
    }
}

impl From<BlobError> for Problem {
    fn from(error: BlobError) -> Problem {
        let both = Text::new(error.to_string(), error.to_string());
        match error {
            BlobError::BadName(_) | BlobError::Body(_) => Problem::malformed(both),
            BlobError::Mismatch { .. } => Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "hash",
                &["哈希不符", "The hash does not match"],
                both,
            ),
            BlobError::TooLarge { .. } => {
                Problem { detail: both, ..Problem::of_status(StatusCode::PAYLOAD_TOO_LARGE) }
            }
            BlobError::Io(_) => Problem::internal(error),
        }
    }
}

/// Middleware of everything under `/api`.
pub async fn render(request: Request, next: Next) -> Response {
    let lang = lang::of_request(request.headers());
    let response = next.run(request).await;
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let problem = Problem::of_response(&response);
    let mut body = serde_json::to_value(problem.to_api(lang)).expect("problems have string keys");
    if let Some((name, value)) = problem.extra.as_deref() {
        body[*name] = value.clone();
    }
    let body = body.to_string();
    let (mut parts, _) = response.into_parts();
    set_body_headers(&mut parts.headers);
    Response::from_parts(parts, Body::from(body))
}

fn set_body_headers(headers: &mut HeaderMap) {
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.append(header::VARY, HeaderValue::from_static("accept-language"));
}
