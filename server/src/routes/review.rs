//! `/api/v1/review`: instructors look at what the grader did, change it with a reason, and confirm it.

use axum::extract::State;
use ringlab_interview::api::{
    Confirm, JudgeView, Override, QuestionReport, QuestionStatistics, ReviewItem, ReviewView,
};
use ringlab_interview::opinion::Opinion;
use ringlab_interview::report::points;
use ringlab_interview::statistics::{self, Answer};
use ringlab_labs::api::FieldError;
use ringlab_labs::text::Text;

use super::sittings::{not_graded, still_running};
use crate::accounts::Instructor;
use crate::app::App;
use crate::clock::UnixMs;
use crate::extract::{JobId, Json};
use crate::interview::reports::{self, Graded, reviewers_needed};
use crate::problem::{ApiResult, Problem};
use crate::store::reviews::{NewOverride, Reviewed, Reviewer};

/// Characters of a reason or a note.
const WHY: usize = 2_000;

/// What waits for a reviewer first, the least certain before the rest; then what is final.
pub async fn queue(State(app): State<App>, _: Instructor) -> ApiResult<axum::Json<Vec<ReviewItem>>> {
    let mut items: Vec<ReviewItem> = all(&app).await?.into_iter().map(item).collect();
    items.sort_by(|a, b| {
        a.is_final
            .cmp(&b.is_final)
            .then(a.confidence.total_cmp(&b.confidence))
            .then(a.ended_ms.cmp(&b.ended_ms))
    });
    Ok(axum::Json(items))
}

pub async fn show(
    State(app): State<App>,
    _: Instructor,
    JobId(id): JobId,
) -> ApiResult<axum::Json<ReviewView>> {
    Ok(axum::Json(view(&app, graded(&app, &id).await?).await?))
}

pub async fn override_point(
    State(app): State<App>,
    instructor: Instructor,
    JobId(id): JobId,
    Json(change): Json<Override>,
) -> ApiResult<axum::Json<ReviewView>> {
    let graded = graded(&app, &id).await?;
    not_own(&graded, &instructor)?;
    let from = check(&graded, &change)?;
    let new = NewOverride {
        question: change.question,
        point: change.point,
        from,
        to: change.to,
        why: change.why.trim().to_owned(),
    };
    let by = reviewer(&app, instructor).await?;
    let needed = reviewers_needed(&graded.assessment);
    match app.store.add_override(&id, &new, &by, needed, UnixMs::now()).await? {
        Reviewed::Stored => {}
        Reviewed::Final => return Err(is_final()),
    }
    show_again(&app, &id).await
}

pub async fn confirm(
    State(app): State<App>,
    instructor: Instructor,
    JobId(id): JobId,
    Json(Confirm { note }): Json<Confirm>,
) -> ApiResult<axum::Json<ReviewView>> {
    let graded = graded(&app, &id).await?;
    not_own(&graded, &instructor)?;
    if note.chars().count() > WHY {
        return Err(invalid(
            "note",
            Text::new(format!("最多 {WHY} 个字符"), format!("{WHY} characters at most")),
        ));
    }
    let by = reviewer(&app, instructor).await?;
    let needed = reviewers_needed(&graded.assessment);
    // Final before: whoever confirms again has nothing to add.
    app.store.confirm(&id, note.trim(), &by, needed, UnixMs::now()).await?;
    show_again(&app, &id).await
}

pub async fn statistics(
    State(app): State<App>,
    _: Instructor,
) -> ApiResult<axum::Json<Vec<QuestionStatistics>>> {
    let all = all(&app).await?;
    let of = |card: &ringlab_interview::api::QuestionCard| {
        let answers: Vec<Answer> = all.iter().filter_map(|graded| answer(graded, card.number)).collect();
        let pairs: Vec<(u32, u32)> = answers.iter().filter_map(|a| a.reviewed).collect();
        QuestionStatistics {
            question: card.clone(),
            answers: u32::try_from(answers.len()).unwrap_or(u32::MAX),
            facility: statistics::facility(&answers),
            discrimination: statistics::discrimination(&answers),
            median_seconds: statistics::median_seconds(&answers),
            agreement: statistics::kappa(&pairs),
            reviewed: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
        }
    };
    Ok(axum::Json(app.site.questions.cards().map(of).collect()))
}

fn answer(graded: &Graded, number: u32) -> Option<Answer> {
    let report = &graded.report;
    let question = report.questions.iter().find(|q| q.question.number == number)?;
    let reviewed = !graded.confirmed_by.is_empty();
    Some(Answer {
        total: question.total,
        max: question.grade.max,
        rest: report.total - question.total,
        rest_max: report.max - question.grade.max,
        seconds: question.seconds,
        reviewed: reviewed.then_some((question.grade.total, question.total)),
    })
}

async fn all(app: &App) -> ApiResult<Vec<Graded>> {
    let mut all = Vec::new();
    for sitting in app.store.graded_sittings().await? {
        all.extend(reports::graded(app, sitting, true).await?);
    }
    Ok(all)
}

async fn graded(app: &App, id: &str) -> ApiResult<Graded> {
    let sitting = app.store.sitting(id).await?.ok_or_else(Problem::not_found)?;
    if sitting.ended.is_none() {
        return Err(still_running());
    }
    reports::graded(app, sitting, true).await?.ok_or_else(not_graded)
}

async fn show_again(app: &App, id: &str) -> ApiResult<axum::Json<ReviewView>> {
    Ok(axum::Json(view(app, graded(app, id).await?).await?))
}

async fn reviewer(app: &App, instructor: Instructor) -> ApiResult<Reviewer> {
    let name = app.store.shown_name(&instructor.user).await?;
    Ok(Reviewer { user: instructor.user, name })
}

fn item(graded: Graded) -> ReviewItem {
    let report = graded.report;
    let asks = report.questions.iter().filter(|q| q.grade.person).map(|q| q.question.number).collect();
    let confidence = report.questions.iter().map(|q| q.grade.confidence).min_by(f32::total_cmp);
    ReviewItem {
        sitting: report.sitting,
        assessment: graded.assessment.id,
        title: report.title,
        name: report.name,
        ended_ms: report.ended_ms,
        total: report.total,
        max: report.max,
        confidence: confidence.unwrap_or(0.0),
        asks,
        confirmed_by: graded.confirmed_by,
        is_final: report.is_final,
    }
}

async fn view(app: &App, graded: Graded) -> ApiResult<ReviewView> {
    let log = app.store.audit_of_sitting(&graded.report.sitting).await?;
    let mut order: Vec<&QuestionReport> = graded.report.questions.iter().collect();
    order.sort_by(|a, b| a.grade.confidence.total_cmp(&b.grade.confidence));
    let order = order.into_iter().map(|q| q.question.number).collect();
    let opinion = |(question, opinion): (u32, Opinion)| JudgeView {
        question,
        model: opinion.model,
        fatal: !opinion.fatal.is_empty(),
        points: opinion.points,
    };
    let opinions = graded.opinions.into_iter().map(opinion).collect();
    Ok(ReviewView {
        order,
        confirmed_by: graded.confirmed_by,
        two_reviewers: graded.assessment.two_reviewers,
        log,
        opinions,
        report: graded.report,
    })
}

/// What the point earns now.
fn check(graded: &Graded, change: &Override) -> ApiResult<u32> {
    let number = change.question;
    let Some(question) = graded.report.questions.iter().find(|q| q.question.number == number) else {
        return Err(invalid(
            "question",
            Text::new(
                format!("这场测评没有第 {number} 题"),
                format!("this sitting has no question {number}"),
            ),
        ));
    };
    let at = change.point as usize;
    let n = question.grade.points.len();
    let Some(point) = question.grade.points.get(at) else {
        return Err(invalid(
            "point",
            Text::new(
                format!("第 {number} 题只有 {n} 个得分点，从 0 数起"),
                format!("question {number} has {n} points, counted from 0"),
            ),
        ));
    };
    if change.to > point.max {
        let max = point.max;
        return Err(invalid(
            "to",
            Text::new(format!("这个得分点最多 {max} 分"), format!("this point earns {max} at most")),
        ));
    }
    let why = change.why.trim();
    if why.is_empty() || why.chars().count() > WHY {
        return Err(invalid(
            "why",
            Text::new(
                format!("请用 1 至 {WHY} 个字符写明理由，考生会看到"),
                format!("give the reason in 1 to {WHY} characters; the candidate will read it"),
            ),
        ));
    }
    Ok(points(&question.grade, &question.overrides)[at])
}

fn not_own(graded: &Graded, instructor: &Instructor) -> ApiResult<()> {
    if graded.sitting.candidate != instructor.user {
        return Ok(());
    }
    Err(Problem::new(
        axum::http::StatusCode::FORBIDDEN,
        "own-sitting",
        &["不能评自己的卷", "Not your own sitting"],
        Text::new("请让另一位教师复核", "Ask another instructor to review it."),
    ))
}

fn is_final() -> Problem {
    Problem::conflict(
        "final",
        Text::new("复核已经完成，分数不再改动", "The review is done; its marks do not change any more."),
    )
}

fn invalid(field: &str, message: Text) -> Problem {
    Problem::invalid(vec![FieldError { field: field.to_owned(), message, line: None }])
}
