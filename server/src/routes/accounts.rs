//! `/api/v1/accounts`: other people's accounts, for admins.

use axum::extract::{Query, State};
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use ringlab_interview::api::{AccountView, ChangeRole};
use ringlab_labs::api::FieldError;
use ringlab_labs::text::Text;
use serde::Deserialize;

use crate::accounts::Admin;
use crate::app::App;
use crate::clock::UnixMs;
use crate::email::Email;
use crate::extract::{Id, Json};
use crate::problem::{ApiResult, Problem};
use crate::store::members::{By, Changed};

/// Accounts listed at most.
const LIST: u32 = 500;
/// Of a reason, in characters.
const WHY_MAX: usize = 500;

#[derive(Debug, Deserialize)]
pub struct Filter {
    #[serde(default)]
    email: Option<String>,
}

/// All, by e-mail; or the one with this address.
pub async fn find(
    State(app): State<App>,
    _: Admin,
    filter: Result<Query<Filter>, axum::extract::rejection::QueryRejection>,
) -> ApiResult<Response> {
    let email = filter.ok().and_then(|Query(f)| f.email).filter(|e| !e.is_empty());
    let accounts = match email.as_deref().map(Email::parse) {
        None => app.store.members(None, LIST).await?,
        Some(Some(email)) => app.store.members(Some(&email.0), LIST).await?,
        Some(None) => Vec::new(),
    };
    Ok(([(CACHE_CONTROL, "no-store")], axum::Json(accounts)).into_response())
}

pub async fn change_role(
    State(app): State<App>,
    admin: Admin,
    Id(id): Id,
    Json(asked): Json<ChangeRole>,
) -> ApiResult<axum::Json<AccountView>> {
    let why = asked.why.trim();
    if why.is_empty() || why.chars().count() > WHY_MAX {
        let message = Text::new(
            format!("请写明原因（至多 {WHY_MAX} 个字符），它会记入审计日志"),
            format!("say why, in at most {WHY_MAX} characters: it goes into the audit log"),
        );
        return Err(Problem::invalid(vec![FieldError { field: "why".into(), message, line: None }]));
    }
    match app.store.set_role(&id, asked.role, By { who: &admin.user, why }, UnixMs::now()).await? {
        Changed::Done => {}
        Changed::NoSuchAccount => return Err(Problem::not_found()),
        Changed::LastAdmin => return Err(last_admin()),
    }
    tracing::info!(user = id, role = asked.role.name(), by = admin.user, "role changed");
    app.store.account(&id).await?.map(axum::Json).ok_or_else(Problem::not_found)
}

pub fn last_admin() -> Problem {
    Problem::conflict(
        "last-admin",
        Text::new(
            "这是最后一位管理员：之后就没有人能设置角色了。请先把另一个帐号设为管理员",
            "This is the last admin: nobody could give roles any more. Make another account an admin first.",
        ),
    )
}
