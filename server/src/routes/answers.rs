//! `POST /api/v1/jobs/{id}/answers`: what the learner concludes from the figures, marked at once.

use axum::extract::State;
use ringlab_labs::api::{Answers, JobView};
use ringlab_labs::text::Text;

use crate::accounts::Visitor;
use crate::app::App;
use crate::clock::UnixMs;
use crate::extract::{JobId, Json};
use crate::problem::{ApiResult, Problem};
use crate::store::answers::Answered;
use crate::{view, visibility};

/// A run is answered once, since the marks show what was expected. The same answers again get the same marks: a browser that did
/// not hear the first reply may ask again.
pub async fn create(
    State(app): State<App>,
    visitor: Visitor,
    JobId(id): JobId,
    Json(Answers { answers }): Json<Answers>,
) -> ApiResult<axum::Json<JobView>> {
    let record = visibility::own_job(&app.store, visitor.user.as_deref(), &id).await?;
    let Some(result) = record.result.clone() else { return Err(no_result()) };
    match app.store.answers(&id).await? {
        Some(before) if before == answers => return Ok(axum::Json(view::job(&app.store, record).await?)),
        Some(_) => return Err(answered()),
        None => {}
    }
    let lab = app.lab(&record.lab).cloned().ok_or_else(|| lab_gone(&record.lab))?;
    let (submission, seed, given, run) =
        (record.submission.clone(), record.seed, answers.clone(), result.clone());
    app.compute(move || ringlab_labs::check_answers(&lab, &submission, seed, &run, &given))
        .await?
        .map_err(Problem::invalid)?;
    let marks = app
        .marks(&record, result, Some(answers.clone()))
        .await
        .ok_or_else(|| Problem::internal("the answers could not be marked"))?;
    match app.store.store_answers(&id, &answers, &marks, UnixMs::now()).await? {
        Answered::Stored => tracing::info!(job = id, total = marks.total, max = marks.max, "answers marked"),
        Answered::Before(before) if before == answers => {}
        Answered::Before(_) => return Err(answered()),
    }
    app.hub.job_changed(&id);
    Ok(axum::Json(view::job(&app.store, record).await?))
}

fn no_result() -> Problem {
    Problem::conflict(
        "no-result",
        Text::new("这次运行还没有结果，等它完成后再作答", "This run has no result; answer once it is done."),
    )
}

fn lab_gone(lab: &str) -> Problem {
    Problem::conflict(
        "lab-gone",
        Text::new(
            format!("实验“{lab}”已下线，无法再评分；您的结果仍然保留"),
            format!("The lab `{lab}` was withdrawn and cannot be marked any more; your result stays."),
        ),
    )
}

fn answered() -> Problem {
    Problem::conflict(
        "answered",
        Text::new(
            "这次运行已经作答，评分中已给出正确值。想再试一次，请重新运行：新的运行会有新的数据",
            "This run was answered, and its marks show the right values. To try again, start another run: it gets fresh data.",
        ),
    )
}
