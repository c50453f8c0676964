//! Who may see and change what. The one place that decides; a stranger gets the same answer as for something that does not exist.

use axum::http::StatusCode;
use ringlab_interview::api::Role;
use ringlab_labs::text::Text;

use crate::problem::{ApiResult, Problem};
use crate::store::Store;
use crate::store::jobs::JobRecord;
use crate::store::sittings::Sitting;

/// A job, for its owner alone: its page reopens by its URL in the browser that started it (or, later, wherever its owner signs in).
pub async fn own_job(store: &Store, user: Option<&str>, id: &str) -> ApiResult<JobRecord> {
    let user = user.ok_or_else(Problem::not_found)?;
    let job = store.job(id).await?;
    job.filter(|j| j.owner == user).ok_or_else(Problem::not_found)
}

/// A sitting, for its candidate alone.
pub async fn own_sitting(store: &Store, user: Option<&str>, id: &str) -> ApiResult<Sitting> {
    let user = user.ok_or_else(Problem::not_found)?;
    let sitting = store.sitting(id).await?;
    sitting.filter(|s| s.candidate == user).ok_or_else(Problem::not_found)
}

/// What an instructor may do, an admin may too.
pub fn may_teach(role: Role) -> bool {
    matches!(role, Role::Instructor | Role::Admin)
}

pub fn may_administer(role: Role) -> bool {
    role == Role::Admin
}

/// For a guest or a stranger where only members may go.
pub fn sign_in_first() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "sign-in",
        &["请先登录", "Sign in first"],
        Text::new(
            "这里需要帐号。请登录或注册，您以访客身份做过的内容会保留下来",
            "This needs an account. Sign in or sign up; what you did as a guest stays yours.",
        ),
    )
}

/// For a member without the role. That there is such a place is no secret; what is in it is.
pub fn role_needed(needed: Role) -> Problem {
    let (zh, en) = match needed {
        Role::Admin => ("管理员", "an admin"),
        Role::Instructor => ("教师", "an instructor"),
        Role::Learner => ("学员", "a learner"),
    };
    Problem::new(
        StatusCode::FORBIDDEN,
        "role",
        &["您的角色不能这样做", "Not with your role"],
        Text::new(
            format!("这里只对{zh}开放。请联系管理员为您的帐号设置角色，或换一个帐号登录"),
            format!(
                "This is for {en}. Ask an admin to give your account the role, or sign in with another account."
            ),
        ),
    )
}
