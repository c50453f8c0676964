//! `/api/v1/jobs`: submit, list, show, cancel.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ringlab_labs::api::{FieldError, JobView};
use ringlab_labs::job::{JobSpec, SCHEMA, Submission};
use ringlab_labs::text::Text;
use uuid::Uuid;

use crate::accounts::Visitor;
use crate::app::App;
use crate::clock::UnixMs;
use crate::extract::{JobId, Json, expect_json_or_nothing};
use crate::limits::Action;
use crate::problem::{ApiResult, Problem};
use crate::store::jobs::{Created, NewJob};
use crate::{view, visibility};

/// Jobs listed at most.
const LIST: u32 = 100;
/// Requests of one user that take the same run number at the same time are told apart by trying again.
const TRIES: u32 = 8;

pub async fn create(
    State(app): State<App>,
    visitor: Visitor,
    Json(submission): Json<Submission>,
) -> ApiResult<Response> {
    let lab = app.lab(&submission.lab).cloned().ok_or_else(|| unknown_lab(&submission.lab))?;
    let account = visitor.account(&app).await?;
    app.limiter.check(Action::SubmitJob, &account.user)?;
    for _ in 0..TRIES {
        let run_number = app.store.next_run_number(&account.user, &lab.id).await?;
        let seed = ringlab_labs::seed_for(&account.user, &lab.id, &lab.version, run_number);
        let (view, posted) = (lab.clone(), submission.clone());
        let compiled = app
            .compute(move || ringlab_labs::compile(&view, &posted, seed))
            .await?
            .map_err(Problem::invalid)?;
        let job = NewJob {
            owner: account.user.clone(),
            run_number,
            submission: submission.clone(),
            spec: JobSpec {
                schema: SCHEMA,
                job: Uuid::now_v7().to_string(),
                lab: lab.id.clone(),
                lab_version: lab.version.clone(),
                seed,
                tasks: compiled.tasks,
                limits: compiled.limits,
            },
            plan: compiled.plan,
            backend: compiled.backend,
            max_attempts: app.config.max_attempts,
        };
        match app.store.create_job(&job, app.config.max_active_jobs, UnixMs::now()).await? {
            Created::Queued => return queued(&app, &job.spec.job, account.cookie).await,
            Created::TooManyActive(active) => return Err(too_many_active(active)),
            Created::RunNumberTaken => {}
        }
    }
    Err(Problem::too_fast(1))
}

async fn queued(app: &App, id: &str, cookie: Option<HeaderValue>) -> ApiResult<Response> {
    app.dispatcher.wake();
    app.hub.queue_changed();
    tracing::info!(job = id, "job queued");
    let record =
        app.store.job(id).await?.ok_or_else(|| Problem::internal("a job vanished after it was stored"))?;
    let view = view::job(&app.store, record).await?;
    let mut response = (StatusCode::CREATED, axum::Json(view)).into_response();
    let headers = response.headers_mut();
    let location = HeaderValue::try_from(format!("/api/v1/jobs/{id}")).expect("an id is ASCII");
    headers.insert(LOCATION, location);
    if let Some(cookie) = cookie {
        headers.insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

pub async fn list(State(app): State<App>, visitor: Visitor) -> ApiResult<Response> {
    let records = match &visitor.user {
        Some(user) => app.store.jobs_of(user, None, LIST).await?,
        None => Vec::new(),
    };
    Ok(fresh(view::jobs(&app.store, records).await?))
}

pub async fn show(State(app): State<App>, visitor: Visitor, JobId(id): JobId) -> ApiResult<Response> {
    let record = visibility::own_job(&app.store, visitor.user.as_deref(), &id).await?;
    Ok(fresh(view::job(&app.store, record).await?))
}

/// Asks for the end of a job. A job that has ended stays as it is: the answer says how it ended.
pub async fn cancel(
    State(app): State<App>,
    visitor: Visitor,
    JobId(id): JobId,
    headers: HeaderMap,
) -> ApiResult<axum::Json<JobView>> {
    expect_json_or_nothing(&headers)?;
    let record = visibility::own_job(&app.store, visitor.user.as_deref(), &id).await?;
    if !record.phase.is_final() {
        let running = app.store.cancel(&id, &record.owner, UnixMs::now()).await?;
        if let Some((runner, lease)) = running {
            app.dispatcher.cancel(&runner, lease, "the learner cancelled the run");
        }
        app.dispatcher.changed(&id);
    }
    let record = visibility::own_job(&app.store, visitor.user.as_deref(), &id).await?;
    Ok(axum::Json(view::job(&app.store, record).await?))
}

fn fresh<T: serde::Serialize>(value: T) -> Response {
    ([(CACHE_CONTROL, "no-store")], axum::Json(value)).into_response()
}

fn unknown_lab(id: &str) -> Problem {
    let shown: String = id.chars().take(80).collect();
    Problem::invalid(vec![FieldError {
        field: "lab".into(),
        message: Text::new(format!("没有名为“{shown}”的实验"), format!("there is no lab `{shown}`")),
        line: None,
    }])
}

fn too_many_active(active: u32) -> Problem {
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "active-jobs",
        &["同时进行的运行已达上限", "Enough runs at once"],
        Text::new(
            format!("您有 {active} 个运行在排队或进行中。请等其中一个结束，或取消一个，再开始新的"),
            format!("You have {active} runs queued or running. Wait until one ends, or cancel one, then start the next."),
        ),
    )
    .retry_after(10)
}
