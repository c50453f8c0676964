//! Routes: one file per group, handlers and nothing else. Order of the layers, outermost first: request id and log, security
//! headers, panics become 500, compression; under `/api` also problem details and the same-origin check.

use std::any::Any;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post, put};
use tokio::time::timeout;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;

use crate::app::App;
use crate::problem::{self, Problem};
use crate::{extract, observe, security};

mod account;
mod accounts;
mod answers;
mod artifacts;
mod assessments;
mod events;
mod files;
mod health;
mod interview_pages;
mod invitations;
mod jobs;
mod labs;
mod notes;
mod pages;
mod practice;
mod questions;
mod reading;
mod reference_pages;
mod review;
mod runner;
mod runners;
mod search;
mod sittings;

/// Longest time to the head of a response (bodies and event streams may take longer).
const REQUEST: Duration = Duration::from_secs(30);

pub fn router(app: App) -> Router {
    let quick = Router::new()
        .route("/jobs", post(jobs::create).get(jobs::list))
        .route("/jobs/{id}", get(jobs::show))
        .route("/jobs/{id}/cancel", post(jobs::cancel))
        .route("/jobs/{id}/answers", post(answers::create))
        .route("/jobs/{id}/events", get(events::stream))
        .route("/jobs/{id}/artifacts/{name}", get(artifacts::show))
        .route("/jobs/{id}/perfetto", get(artifacts::perfetto))
        .route("/labs/{name}/verify", post(labs::verify))
        .route("/questions", get(questions::list))
        .route("/runners", get(runners::list))
        .route("/search", get(search::api))
        .route("/runner", get(runner::connect))
        .route("/account", get(account::show))
        .route("/account/sign-up", post(account::sign_up))
        .route("/account/sign-in", post(account::sign_in))
        .route("/account/sign-out", post(account::sign_out))
        .route("/account/password", post(account::change_password))
        .route("/account/export", get(account::export))
        .route("/account/delete", post(account::delete))
        .route("/accounts", get(accounts::find))
        .route("/accounts/{id}/role", post(accounts::change_role))
        .route("/practice", get(practice::list))
        .route("/practice/{name}/answers", post(practice::answer))
        .route("/practice/{name}/reveal", post(practice::reveal))
        .route("/reading", get(reading::all))
        .route("/reading/{name}", get(reading::show))
        .route("/reading/{name}/sections/{item}", put(reading::mark_read))
        .route("/reading/{name}/place", put(reading::save_place))
        .route("/reading/{name}/quiz/{item}", put(reading::save_quiz))
        .route("/reading/{name}/notes", post(notes::create))
        .route("/reading/{name}/notes/{id}", put(notes::change).delete(notes::delete))
        .route("/assessments", post(assessments::create).get(assessments::list))
        .route("/assessments/{id}", get(assessments::show))
        .route("/assessments/{id}/close", post(assessments::close))
        .route("/assessments/{id}/invitations", post(assessments::invite))
        .route("/invitations/{id}/revoke", post(invitations::revoke))
        .route("/invitations/by-code/{code}", get(invitations::show))
        .route("/invitations/by-code/{code}/start", post(invitations::start))
        .route("/sittings/{id}", get(sittings::show))
        .route("/sittings/{id}/drafts/{question}", put(sittings::save))
        .route("/sittings/{id}/drafts/{question}/history", get(sittings::history))
        .route("/sittings/{id}/events", post(sittings::events))
        .route("/sittings/{id}/submit", post(sittings::submit))
        .route("/sittings/{id}/report", get(sittings::report))
        .route("/review", get(review::queue))
        .route("/review/statistics", get(review::statistics))
        .route("/review/sittings/{id}", get(review::show))
        .route("/review/sittings/{id}/overrides", post(review::override_point))
        .route("/review/sittings/{id}/confirm", post(review::confirm))
        .layer(from_fn(extract::whole_body))
        .layer(from_fn(in_time));
    let v1 = quick
        // An upload of the largest artifact over a slow line takes longer; it has its own deadline and limit.
        .route("/runner/artifacts/{name}", put(runner::upload));
    let nothing = async || Problem::not_found();
    let api = Router::new()
        .nest("/v1", v1)
        .route("/v1/", any(nothing))
        .fallback(nothing)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(app.clone(), security::same_origin))
        .layer(from_fn(problem::render));
    Router::new()
        .nest("/api", api)
        .route("/healthz", get(health::check))
        .route("/metrics", get(health::metrics))
        .merge(pages::router(&app))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(app.clone(), security::headers))
        .layer(from_fn(observe::requests))
        .with_state(app)
}

async fn in_time(request: Request, next: Next) -> Response {
    match timeout(REQUEST, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::overloaded().into_response(),
    }
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    Problem::internal(format_args!("a handler panicked: {}", text.unwrap_or("no message"))).into_response()
}
