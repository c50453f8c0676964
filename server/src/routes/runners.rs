//! `GET /api/v1/runners`: who could run a job now.

use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::problem::ApiResult;

pub async fn list(State(app): State<App>) -> ApiResult<Response> {
    Ok(([(CACHE_CONTROL, "no-store")], axum::Json(app.store.runners().await?)).into_response())
}
