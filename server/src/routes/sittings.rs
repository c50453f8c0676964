//! `/api/v1/sittings/{id}`: a sitting as its candidate has it.

use std::collections::HashMap;

use axum::extract::{FromRequestParts, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ringlab_interview::api::{
    Draft, DraftVersion, Report, SaveDraft, Saved, SittingEvent, SittingQuestion, SittingState, SittingView,
};
use ringlab_labs::api::FieldError;
use ringlab_labs::text::Text;

use crate::accounts::Visitor;
use crate::app::App;
use crate::clock::UnixMs;
use crate::extract::{JobId, Json, expect_json_or_nothing, path_part};
use crate::interview::reports;
use crate::limits::Action;
use crate::problem::{ApiResult, Problem};
use crate::store::drafts::{GRACE_MS, NewDraft, SaveOutcome};
use crate::store::sittings::Sitting;
use crate::visibility::{self, may_teach};

/// Characters of an answer.
const ANSWER: usize = 20_000;
const TAB: usize = 64;
const EVENTS_AT_ONCE: usize = 100;

pub async fn show(State(app): State<App>, visitor: Visitor, JobId(id): JobId) -> ApiResult<Response> {
    let sitting = visibility::own_sitting(&app.store, visitor.user.as_deref(), &id).await?;
    Ok(fresh(view(&app, sitting).await?))
}

pub async fn save(
    State(app): State<App>,
    visitor: Visitor,
    JobId(sitting): JobId,
    Question(question): Question,
    Json(SaveDraft { tab, base, text }): Json<SaveDraft>,
) -> ApiResult<axum::Json<Saved>> {
    let received = UnixMs::now();
    let candidate = visitor.user.ok_or_else(Problem::not_found)?;
    app.limiter.check(Action::SaveDraft, &candidate)?;
    check(&tab, &text)?;
    let draft = NewDraft { sitting, candidate, question, tab, base, text, received };
    match app.interview.drafts.save(draft).await? {
        SaveOutcome::Saved { version, saved, ends } => {
            Ok(axum::Json(Saved { version, saved_ms: saved.0, now_ms: UnixMs::now().0, ends_ms: ends.0 }))
        }
        SaveOutcome::Conflict(current) => Err(conflict(&current)),
        SaveOutcome::TimeOver => Err(time_over()),
        SaveOutcome::Submitted => Err(submitted()),
        SaveOutcome::Unknown => Err(Problem::not_found()),
    }
}

pub async fn history(
    State(app): State<App>,
    visitor: Visitor,
    JobId(id): JobId,
    Question(question): Question,
) -> ApiResult<Response> {
    let sitting = visibility::own_sitting(&app.store, visitor.user.as_deref(), &id).await?;
    let versions: Vec<DraftVersion> = app.store.draft_history(&sitting.id, question).await?;
    Ok(fresh(versions))
}

/// Above what one sitting may have, events are dropped: they show a habit, not a tally.
pub async fn events(
    State(app): State<App>,
    visitor: Visitor,
    JobId(id): JobId,
    Json(events): Json<Vec<SittingEvent>>,
) -> ApiResult<StatusCode> {
    let sitting = visibility::own_sitting(&app.store, visitor.user.as_deref(), &id).await?;
    if events.len() > EVENTS_AT_ONCE {
        let n = events.len();
        return Err(invalid(
            "",
            Text::new(
                format!("一次最多 {EVENTS_AT_ONCE} 条，收到 {n} 条"),
                format!("send {EVENTS_AT_ONCE} at once at most, got {n}"),
            ),
        ));
    }
    app.limiter.check(Action::SaveDraft, &sitting.candidate)?;
    let asked = app.store.assessment(&sitting.assessment).await?.map_or_else(Vec::new, |a| a.questions);
    if let Some(at) = events.iter().position(|event| !asked.contains(&event.question())) {
        let number = events[at].question();
        return Err(invalid(
            &format!("[{at}].question"),
            Text::new(
                format!("这场测评没有第 {number} 题"),
                format!("this sitting has no question {number}"),
            ),
        ));
    }
    match app.store.add_events(&id, &events, UnixMs::now()).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false if sitting.state == SittingState::Submitted => Err(submitted()),
        false => Err(time_over()),
    }
}

/// Ends the sitting; said again, it stays as it ended.
pub async fn submit(
    State(app): State<App>,
    visitor: Visitor,
    JobId(id): JobId,
    headers: HeaderMap,
) -> ApiResult<Response> {
    expect_json_or_nothing(&headers)?;
    let now = UnixMs::now();
    let sitting = visibility::own_sitting(&app.store, visitor.user.as_deref(), &id).await?;
    // Later than that, the clock ends it.
    if sitting.state == SittingState::Running && now.0 <= sitting.ends.0 + GRACE_MS {
        app.store.submit_sitting(&id, now).await?;
        tracing::info!(sitting = id, "submitted");
        app.interview.ended.notify_one();
    }
    show(State(app), visitor, JobId(id)).await
}

pub async fn report(State(app): State<App>, visitor: Visitor, JobId(id): JobId) -> ApiResult<Response> {
    let report = report_for(&app, &visitor, &id).await?;
    Ok(fresh(report))
}

/// The report as this visitor may see it.
pub async fn report_for(app: &App, visitor: &Visitor, id: &str) -> ApiResult<Report> {
    let user = visitor.user.as_deref().ok_or_else(Problem::not_found)?;
    let sitting = app.store.sitting(id).await?.ok_or_else(Problem::not_found)?;
    let own = sitting.candidate == user;
    if !own && !may_teach(visitor.role) {
        return Err(Problem::not_found());
    }
    if sitting.ended.is_none() {
        return Err(still_running());
    }
    let assessment = app.store.assessment(&sitting.assessment).await?.ok_or_else(Problem::not_found)?;
    if own && sitting.graded && !reports::open_to_candidate(app, &sitting, &assessment).await? {
        return Err(not_final());
    }
    let graded = reports::graded(app, sitting, !own).await?.ok_or_else(not_graded)?;
    Ok(graded.report)
}

/// As its candidate sees it.
pub async fn view(app: &App, sitting: Sitting) -> ApiResult<SittingView> {
    let assessment = app.store.assessment(&sitting.assessment).await?.ok_or_else(Problem::not_found)?;
    let report = reports::open_to_candidate(app, &sitting, &assessment).await?;
    let mut drafts: HashMap<u32, Draft> = app.store.drafts(&sitting.id).await?.into_iter().collect();
    let questions = assessment.questions.iter().filter_map(|number| {
        let texts = app.site.questions.texts(*number)?;
        Some(SittingQuestion {
            question: texts.card.clone(),
            prompt: texts.prompt.clone(),
            draft: drafts.remove(number)?,
        })
    });
    Ok(SittingView {
        questions: questions.collect(),
        id: sitting.id,
        title: assessment.title,
        name: sitting.name,
        state: sitting.state,
        now_ms: UnixMs::now().0,
        started_ms: sitting.started.0,
        ends_ms: sitting.ends.0,
        ended_ms: sitting.ended.map(|at| at.0),
        report,
    })
}

/// Number of a question in the path. Anything but a number names none.
#[derive(Debug)]
pub struct Question(u32);

impl<S: Send + Sync> FromRequestParts<S> for Question {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let number = path_part(parts, state, "question").await?;
        number.parse().map(Question).map_err(|_| Problem::not_found())
    }
}

fn fresh<T: serde::Serialize>(value: T) -> Response {
    ([(CACHE_CONTROL, "no-store")], axum::Json(value)).into_response()
}

fn check(tab: &str, text: &str) -> ApiResult<()> {
    let n = text.chars().count();
    if n > ANSWER {
        return Err(invalid(
            "text",
            Text::new(
                format!("答案最多 {ANSWER} 个字符，现在有 {n} 个。请缩短后再保存"),
                format!("an answer has {ANSWER} characters at most, this one has {n}; shorten it"),
            ),
        ));
    }
    if tab.is_empty() || tab.len() > TAB {
        return Err(invalid(
            "tab",
            Text::new(
                format!("请写 1 至 {TAB} 个字节"),
                format!("give the tab a random name of 1 to {TAB} bytes"),
            ),
        ));
    }
    Ok(())
}

fn invalid(field: &str, message: Text) -> Problem {
    Problem::invalid(vec![FieldError { field: field.to_owned(), message, line: None }])
}

fn conflict(current: &Draft) -> Problem {
    Problem::conflict(
        "draft-conflict",
        Text::new(
            "另一个标签页已经保存了更新的内容，这里没有覆盖它。请比较两份内容，合并后再保存",
            "Another tab has saved since, and nothing of it was overwritten. Compare the two texts, merge them and save again.",
        ),
    )
    .with("current", current)
}

fn time_over() -> Problem {
    Problem::new(
        StatusCode::GONE,
        "time-over",
        &["时间到了", "Time is over"],
        Text::new(
            "测评已经结束，以最后一次保存的内容为准",
            "The sitting has ended; what was saved last counts.",
        ),
    )
}

fn submitted() -> Problem {
    Problem::new(
        StatusCode::GONE,
        "submitted",
        &["已经提交", "Already submitted"],
        Text::new(
            "您已经提交，答案不能再改动",
            "You have submitted; the answers cannot be changed any more.",
        ),
    )
}

pub fn still_running() -> Problem {
    Problem::conflict(
        "still-running",
        Text::new(
            "测评还在进行，结束后才有报告",
            "The sitting is still running; its report comes after the end.",
        ),
    )
}

pub fn not_graded() -> Problem {
    Problem::conflict(
        "not-graded",
        Text::new("正在评分，请几秒后再看", "The answers are being graded; look again in a few seconds."),
    )
    .retry_after(1)
}

fn not_final() -> Problem {
    Problem::conflict(
        "not-final",
        Text::new(
            "教师还在复核，复核完成后您就能看到报告",
            "Instructors are still reviewing; you can open the report once they are done.",
        ),
    )
}
