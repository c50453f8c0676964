//! `/api/v1/assessments`: what instructors set up, and the invitations to it.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use ringlab_interview::api::{AssessmentView, Invitation, NewAssessment, NewInvitations};
use ringlab_interview::sets::SetError;
use ringlab_labs::api::FieldError;
use ringlab_labs::text::Text;
use uuid::Uuid;

use crate::accounts::Instructor;
use crate::app::App;
use crate::clock::UnixMs;
use crate::extract::{JobId, Json, expect_json_or_nothing};
use crate::interview::reports::reviewers_needed;
use crate::problem::{ApiResult, Problem};
use crate::secret::{TokenHash, new_token};
use crate::store::assessments::{Assessment, InvitationRecord, NewInvitation};

const TITLE: usize = 200;
const LABEL: usize = 200;
/// A day; a rehearsal may be a few seconds.
const SECONDS: std::ops::RangeInclusive<u32> = 1..=86_400;
const INVITATIONS_AT_ONCE: usize = 500;
const INVITATIONS: usize = 10_000;
const VALID: Duration = Duration::from_secs(30 * 24 * 3600);
const VALID_SECONDS: std::ops::RangeInclusive<u32> = 1..=366 * 24 * 3600;

pub async fn create(
    State(app): State<App>,
    instructor: Instructor,
    Json(new): Json<NewAssessment>,
) -> ApiResult<(StatusCode, axum::Json<AssessmentView>)> {
    let mut errors = Vec::new();
    let title = new.title.trim().to_owned();
    if title.is_empty() || title.chars().count() > TITLE {
        errors.push(field(
            "title",
            Text::new(
                format!("标题请写 1 至 {TITLE} 个字符"),
                format!("write a title of 1 to {TITLE} characters"),
            ),
        ));
    }
    let written: Vec<u32> = app.site.questions.cards().map(|card| card.number).collect();
    let questions = new.set.questions(&written).unwrap_or_else(|error| {
        errors.push(field("set", set_error(&error)));
        Vec::new()
    });
    let seconds = new.seconds.unwrap_or_else(|| new.set.seconds(questions.len()));
    if !SECONDS.contains(&seconds) && errors.is_empty() {
        let most = SECONDS.end();
        errors.push(field(
            "seconds",
            Text::new(format!("时长请在 1 至 {most} 秒之间"), format!("give it 1 to {most} seconds")),
        ));
    }
    if !errors.is_empty() {
        return Err(Problem::invalid(errors));
    }
    let assessment = Assessment {
        id: Uuid::now_v7().to_string(),
        title,
        set: new.set,
        questions,
        seconds,
        blind: new.blind,
        two_reviewers: new.two_reviewers,
        report_at_once: new.report_at_once,
        created_by: instructor.user,
        created: UnixMs::now(),
        closed: None,
    };
    app.store.create_assessment(&assessment).await?;
    tracing::info!(assessment = assessment.id, questions = assessment.questions.len(), "assessment made");
    Ok((StatusCode::CREATED, axum::Json(view(&app, assessment).await?)))
}

pub async fn list(State(app): State<App>, _: Instructor) -> ApiResult<axum::Json<Vec<AssessmentView>>> {
    let mut views = Vec::new();
    for assessment in app.store.assessments().await? {
        views.push(view(&app, assessment).await?);
    }
    Ok(axum::Json(views))
}

pub async fn show(
    State(app): State<App>,
    _: Instructor,
    JobId(id): JobId,
) -> ApiResult<axum::Json<AssessmentView>> {
    let assessment = app.store.assessment(&id).await?.ok_or_else(Problem::not_found)?;
    Ok(axum::Json(view(&app, assessment).await?))
}

/// Nobody begins any more; whoever began goes on to the end.
pub async fn close(
    State(app): State<App>,
    instructor: Instructor,
    JobId(id): JobId,
    headers: HeaderMap,
) -> ApiResult<axum::Json<AssessmentView>> {
    expect_json_or_nothing(&headers)?;
    app.store.close_assessment(&id, UnixMs::now()).await?;
    show(State(app), instructor, JobId(id)).await
}

pub async fn invite(
    State(app): State<App>,
    _: Instructor,
    JobId(id): JobId,
    Json(new): Json<NewInvitations>,
) -> ApiResult<(StatusCode, axum::Json<Vec<Invitation>>)> {
    let assessment = app.store.assessment(&id).await?.ok_or_else(Problem::not_found)?;
    if assessment.closed.is_some() {
        return Err(Problem::conflict(
            "closed",
            Text::new(
                "这场测评已关闭，不能再发邀请。请另建一场",
                "This assessment is closed and takes no more invitations. Make another one.",
            ),
        ));
    }
    check_invitations(&new, app.store.count_invitations(&id).await? as usize)?;
    let now = UnixMs::now();
    let valid = new.valid_seconds.map_or(VALID, |s| Duration::from_secs(u64::from(s)));
    let made: Vec<(NewInvitation, String)> = new
        .labels
        .iter()
        .map(|label| {
            let code = new_token();
            let invitation = NewInvitation {
                id: Uuid::now_v7().to_string(),
                label: label.trim().to_owned(),
                code: TokenHash::of(&code),
                expires: now.plus(valid),
            };
            (invitation, code)
        })
        .collect();
    let (invitations, codes): (Vec<_>, Vec<_>) = made.into_iter().unzip();
    app.store.create_invitations(&id, &invitations, now).await?;
    let shown = invitations.into_iter().zip(codes).map(|(invitation, code)| Invitation {
        id: invitation.id,
        label: invitation.label,
        code: Some(code),
        expires_ms: invitation.expires.0,
        revoked: false,
        sitting: None,
        state: None,
    });
    Ok((StatusCode::CREATED, axum::Json(shown.collect())))
}

fn check_invitations(new: &NewInvitations, before: usize) -> ApiResult<()> {
    let mut errors = Vec::new();
    let n = new.labels.len();
    let most = INVITATIONS_AT_ONCE.min(INVITATIONS.saturating_sub(before));
    if n == 0 || n > most {
        errors.push(field(
            "labels",
            Text::new(
                format!("一次请写 1 至 {most} 个，收到 {n} 个"),
                format!("write 1 to {most} at once, got {n}"),
            ),
        ));
    }
    for (i, label) in new.labels.iter().enumerate() {
        if label.trim().is_empty() || label.chars().count() > LABEL {
            errors.push(field(
                &format!("labels[{i}]"),
                Text::new(format!("请写 1 至 {LABEL} 个字符"), format!("write 1 to {LABEL} characters")),
            ));
        }
    }
    if new.valid_seconds.is_some_and(|s| !VALID_SECONDS.contains(&s)) {
        errors.push(field(
            "valid_seconds",
            Text::new("有效期最长 366 天", "an invitation lasts 366 days at most"),
        ));
    }
    if errors.is_empty() { Ok(()) } else { Err(Problem::invalid(errors)) }
}

async fn view(app: &App, assessment: Assessment) -> ApiResult<AssessmentView> {
    let mut invitations = Vec::new();
    for record in app.store.invitations(&assessment.id).await? {
        invitations.push(invitation(app, &assessment, record).await?);
    }
    let card = |number: &u32| app.site.questions.texts(*number).map(|texts| texts.card.clone());
    Ok(AssessmentView {
        questions: assessment.questions.iter().filter_map(card).collect(),
        id: assessment.id,
        title: assessment.title,
        set: assessment.set,
        seconds: assessment.seconds,
        blind: assessment.blind,
        two_reviewers: assessment.two_reviewers,
        report_at_once: assessment.report_at_once,
        created_ms: assessment.created.0,
        closed_ms: assessment.closed.map(|at| at.0),
        invitations,
    })
}

/// A label leads to a sitting only where a reviewer may know who sat it.
async fn invitation(app: &App, assessment: &Assessment, record: InvitationRecord) -> ApiResult<Invitation> {
    let (sitting, state) = match record.sitting {
        Some((id, _, state)) if assessment.blind => {
            let confirmed = app.store.review(&id).await?.confirmed_by.len();
            ((confirmed >= reviewers_needed(assessment) as usize).then_some(id), Some(state))
        }
        Some((id, _, state)) => (Some(id), Some(state)),
        None => (None, None),
    };
    Ok(Invitation {
        id: record.id,
        label: record.label,
        code: None,
        expires_ms: record.expires.0,
        revoked: record.revoked,
        sitting,
        state,
    })
}

fn field(name: &str, message: Text) -> FieldError {
    FieldError { field: name.to_owned(), message, line: None }
}

fn set_error(error: &SetError) -> Text {
    match error {
        SetError::Last(n) => Text::new(
            format!("90 分钟的题组以第 53 或 54 题结尾，不能是第 {n} 题"),
            format!("the 90-minute set ends with question 53 or 54, not {n}"),
        ),
        SetError::Empty => Text::new("请至少选一道题", "choose at least one question"),
        SetError::Twice(n) => Text::new(
            format!("第 {n} 题出现了两次，每题只能选一次"),
            format!("question {n} is there twice; choose each once"),
        ),
        SetError::Missing(missing) => {
            let list = missing.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            Text::new(
                format!("题库里还没有这些题：{list}。请改选其他题"),
                format!("the bank does not have these questions yet: {list}; choose others"),
            )
        }
    }
}
