//! `/api/v1/invitations`: what a code opens.

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ringlab_interview::api::{InvitationView, Start, Usable};
use ringlab_labs::api::FieldError;
use ringlab_labs::text::Text;

use super::sittings;
use crate::accounts::{Instructor, Visitor};
use crate::app::App;
use crate::clock::UnixMs;
use crate::extract::{JobId, Json, expect_json_or_nothing, path_part};
use crate::problem::{ApiResult, Problem};
use crate::secret::TokenHash;
use crate::store::assessments::{Assessment, InvitationRecord};
use crate::store::sittings::Begun;

const NAME: usize = 200;

/// The code in the path.
#[derive(Debug)]
pub struct Code(TokenHash);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Code {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Self, Problem> {
        Ok(Code(TokenHash::of(&path_part(parts, state, "code").await?)))
    }
}

pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Code(code): Code,
) -> ApiResult<axum::Json<InvitationView>> {
    let (assessment, invitation) = app.store.invitation_by_code(&code).await?.ok_or_else(unknown)?;
    let now = UnixMs::now();
    let own = own_sitting(&invitation, visitor.user.as_deref());
    Ok(axum::Json(InvitationView {
        usable: usable(&assessment, &invitation, own.is_some(), now),
        title: assessment.title,
        label: invitation.label,
        questions: u32::try_from(assessment.questions.len()).unwrap_or(u32::MAX),
        seconds: assessment.seconds,
        now_ms: now.0,
        expires_ms: invitation.expires.0,
        sitting: own,
    }))
}

pub async fn start(
    State(app): State<App>,
    visitor: Visitor,
    Code(code): Code,
    Json(start): Json<Start>,
) -> ApiResult<Response> {
    let (assessment, invitation) = app.store.invitation_by_code(&code).await?.ok_or_else(unknown)?;
    if start.name.chars().count() > NAME {
        return Err(Problem::invalid(vec![FieldError {
            field: "name".into(),
            message: Text::new(
                format!("姓名最多 {NAME} 个字符"),
                format!("a name has {NAME} characters at most"),
            ),
            line: None,
        }]));
    }
    let own = own_sitting(&invitation, visitor.user.as_deref());
    if own.is_none() {
        refuse(usable(&assessment, &invitation, false, UnixMs::now()))?;
    }
    let account = visitor.invited(&app).await?;
    let name = match start.name.trim() {
        "" => &invitation.label,
        name => name,
    };
    let begun =
        app.store.begin_sitting(&invitation.id, &assessment, &account.user, name, UnixMs::now()).await?;
    let id = match begun {
        Begun::Sitting(id) => id,
        Begun::Taken => return Err(taken()),
        Begun::TooLate => return Err(over(Usable::Expired)),
    };
    if own.is_none() {
        tracing::info!(sitting = id, "sitting began");
        app.interview.began.notify_one();
    }
    let sitting = app.store.sitting(&id).await?.ok_or_else(Problem::not_found)?;
    let mut response = axum::Json(sittings::view(&app, sitting).await?).into_response();
    if let Some(cookie) = account.cookie {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Who began goes on.
pub async fn revoke(
    State(app): State<App>,
    _: Instructor,
    JobId(id): JobId,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    expect_json_or_nothing(&headers)?;
    match app.store.revoke_invitation(&id, UnixMs::now()).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found()),
    }
}

fn own_sitting(invitation: &InvitationRecord, user: Option<&str>) -> Option<String> {
    let (id, candidate, _) = invitation.sitting.as_ref()?;
    (Some(candidate.as_str()) == user).then(|| id.clone())
}

fn usable(assessment: &Assessment, invitation: &InvitationRecord, own: bool, now: UnixMs) -> Usable {
    if own {
        Usable::Yes
    } else if invitation.sitting.is_some() {
        Usable::Taken
    } else if invitation.revoked {
        Usable::Revoked
    } else if assessment.closed.is_some() {
        Usable::Closed
    } else if invitation.expires <= now {
        Usable::Expired
    } else {
        Usable::Yes
    }
}

fn refuse(usable: Usable) -> ApiResult<()> {
    match usable {
        Usable::Yes => Ok(()),
        Usable::Taken => Err(taken()),
        other => Err(over(other)),
    }
}

fn unknown() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "invitation",
        &["没有这个邀请", "No such invitation"],
        Text::new(
            "请核对链接是否完整；如果仍然打不开，请向发出邀请的人再要一个",
            "Check that the link is whole; if it still fails, ask whoever sent it for another.",
        ),
    )
}

fn taken() -> Problem {
    Problem::conflict(
        "invitation-taken",
        Text::new(
            "已经有人用这个邀请开始了。如果是您，请回到开始时用的浏览器；否则请再要一个邀请",
            "Someone began with this invitation. If it was you, go back to the browser you began in; else ask for another.",
        ),
    )
}

fn over(usable: Usable) -> Problem {
    let (kind, zh, en) = match usable {
        Usable::Revoked => ("invitation-revoked", "这个邀请已被撤回", "This invitation was revoked"),
        Usable::Closed => ("invitation-closed", "这场测评已经关闭", "This assessment is closed"),
        _ => ("invitation-expired", "这个邀请已经过期", "This invitation has expired"),
    };
    Problem::new(
        StatusCode::GONE,
        kind,
        &["不能再开始", "It cannot be begun any more"],
        Text::new(
            format!("{zh}。请向发出邀请的人再要一个"),
            format!("{en}. Ask whoever sent it for another."),
        ),
    )
}
