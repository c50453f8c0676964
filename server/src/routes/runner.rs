//! The runner's side: `GET /api/v1/runner` (WebSocket) and `PUT /api/v1/runner/artifacts/{sha256}`, both by bearer token.

use std::time::Duration;

use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ringlab_labs::text::Text;
use tokio::time::timeout;

use crate::app::App;
use crate::dispatch::session;
use crate::extract::Name;
use crate::problem::{ApiResult, Problem};
use crate::secret::TokenHash;

/// Largest message: a result with all its times, or a batch of events.
const MESSAGE_MAX: usize = 16 << 20;
const UPLOAD: Duration = Duration::from_secs(600);

/// Id of the token a runner presented.
pub struct RunnerToken(String);

impl FromRequestParts<App> for RunnerToken {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let value =
            parts.headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let token = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let id = match token {
            Some((_, token)) => app.store.runner_token(&TokenHash::of(token.trim())).await,
            None => Ok(None),
        };
        match id {
            Ok(Some(id)) => Ok(RunnerToken(id)),
            Ok(None) => {
                tracing::warn!("a runner presented no token or an unknown one");
                let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
                Err((challenge, unauthorized()).into_response())
            }
            Err(error) => Err(Problem::from(error).into_response()),
        }
    }
}

pub async fn connect(
    State(app): State<App>,
    RunnerToken(token): RunnerToken,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(_) => return upgrade_required().into_response(),
    };
    let tasks = app.tasks.clone();
    upgrade
        .max_message_size(MESSAGE_MAX)
        .max_frame_size(MESSAGE_MAX)
        .on_upgrade(move |socket| tasks.track_future(session::serve(app, socket, token)))
}

pub async fn upload(
    State(app): State<App>,
    _: RunnerToken,
    Name(sha256): Name,
    body: Body,
) -> ApiResult<StatusCode> {
    let bytes = match timeout(UPLOAD, app.blobs.put(&sha256, body.into_data_stream())).await {
        Ok(stored) => stored?,
        Err(_) => return Err(Problem::overloaded()),
    };
    tracing::info!(sha256, bytes, "artifact stored");
    Ok(StatusCode::NO_CONTENT)
}

fn unauthorized() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "runner-token",
        &["运行节点的令牌无效", "The runner's token is not valid"],
        Text::new(
            "请以 Authorization: Bearer 发送服务器启动时的令牌（--runner-token）",
            "Send, as Authorization: Bearer, the token the server was started with (--runner-token).",
        ),
    )
}

fn upgrade_required() -> Problem {
    Problem::new(
        StatusCode::UPGRADE_REQUIRED,
        "websocket",
        &["这里只接受 WebSocket", "Only a WebSocket is served here"],
        Text::new("请由 ringlab-runner 连接", "Connect with ringlab-runner."),
    )
}
