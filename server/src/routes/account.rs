//! `/api/v1/account`: one's own account.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use ringlab_interview::api::{AccountView, ChangePassword, DeleteAccount, Role, SignIn, SignUp};
use ringlab_labs::api::FieldError;
use ringlab_labs::text::Text;
use tokio::sync::mpsc;

use crate::accounts::{Member, Visitor, cookie, no_cookie};
use crate::app::App;
use crate::clock::UnixMs;
use crate::email::Email;
use crate::extract::{Json, expect_json_or_nothing};
use crate::limits::Action;
use crate::password;
use crate::problem::{ApiResult, Problem};
use crate::secret::{TokenHash, new_token};
use crate::store::members::{Credentials, NewMember, SignedUp};
use crate::store::personal::Forgotten;

/// In characters.
const NAME_MAX: usize = 80;
/// Pieces of an export that wait for a slow browser.
const PIECES: usize = 4;

pub async fn show(State(app): State<App>, visitor: Visitor) -> ApiResult<Response> {
    let view = match &visitor.user {
        Some(user) => app.store.account(user).await?,
        None => None,
    };
    let nobody = AccountView { id: None, role: Role::Learner, email: None, display_name: None };
    Ok(([(CACHE_CONTROL, "no-store")], axum::Json(view.unwrap_or(nobody))).into_response())
}

/// A guest keeps their id, and with it their work; the session is a new one.
pub async fn sign_up(
    State(app): State<App>,
    visitor: Visitor,
    Json(asked): Json<SignUp>,
) -> ApiResult<Response> {
    if visitor.member {
        return Err(signed_in());
    }
    app.limiter.check(Action::SignUp, &visitor.address)?;
    let email = Email::parse(&asked.email);
    let name = asked.display_name.trim();
    let mut errors = Vec::new();
    if email.is_none() {
        errors.push(field("email", Email::wanted()));
    }
    let shown = email.as_ref().map_or("", |e| &e.0);
    errors.extend(password::refuse(&asked.password, shown).map(|why| field("password", why)));
    errors.extend(refuse_name(name).map(|why| field("display_name", why)));
    let Some(email) = email.filter(|_| errors.is_empty()) else { return Err(Problem::invalid(errors)) };
    let new = NewMember {
        email: email.0,
        password_hash: app.passwords.hash(asked.password).await?,
        display_name: name.to_owned(),
        role: Role::Learner,
    };
    let token = new_token();
    let guest = visitor.user.as_deref();
    match app.store.sign_up(&new, guest, &TokenHash::of(&token), UnixMs::now()).await? {
        SignedUp::Done(user) => {
            tracing::info!(user, "signed up");
            enter(&app, &user, &token, StatusCode::CREATED).await
        }
        SignedUp::EmailTaken => Err(Problem::invalid(vec![field(
            "email",
            Text::new(
                "这个邮箱已经注册过，请直接登录，或换一个邮箱",
                "there is an account with this address: sign in, or use another",
            ),
        )])),
    }
}

/// An unknown address and a wrong password get the same answer after the same time.
pub async fn sign_in(
    State(app): State<App>,
    visitor: Visitor,
    Json(asked): Json<SignIn>,
) -> ApiResult<Response> {
    app.limiter.check(Action::SignIn, &visitor.address)?;
    let email =
        Email::parse(&asked.email).ok_or_else(|| Problem::invalid(vec![field("email", Email::wanted())]))?;
    app.limiter.check(Action::GuessFromAnywhere, &email.0)?;
    app.limiter.check(Action::Guess, &format!("{} {}", email.0, visitor.address))?;
    let known = app.store.credentials(&email.0).await?;
    let stored = known.as_ref().map(|c| c.password_hash.clone());
    let right = app.passwords.matches(asked.password, stored).await?;
    let Some(credentials) = known.filter(|_| right) else { return Err(wrong_credentials()) };
    let token = new_token();
    let guest = visitor.user.as_deref().filter(|_| !visitor.member);
    let (before, now) = (visitor.session.as_ref(), UnixMs::now());
    if !app.store.sign_in(&credentials, before, guest, &TokenHash::of(&token), now).await? {
        return Err(wrong_credentials());
    }
    tracing::info!(user = credentials.user, guest, "signed in");
    enter(&app, &credentials.user, &token, StatusCode::OK).await
}

/// A guest is not signed out: nobody could reach their work again.
pub async fn sign_out(State(app): State<App>, visitor: Visitor, headers: HeaderMap) -> ApiResult<Response> {
    expect_json_or_nothing(&headers)?;
    if visitor.user.is_some() && !visitor.member {
        return Err(Problem::conflict(
            "guest",
            Text::new(
                "您还没有帐号：退出后就再也打不开做过的内容。请先注册以保留它，或删除它",
                "You have no account: nobody could open your work again. Sign up to keep it, or delete it.",
            ),
        ));
    }
    if let Some(session) = &visitor.session {
        app.store.sign_out(session).await?;
    }
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, no_cookie(&app))]).into_response())
}

/// Every session ends; this browser gets a new one.
pub async fn change_password(
    State(app): State<App>,
    member: Member,
    Json(asked): Json<ChangePassword>,
) -> ApiResult<Response> {
    let email = app.store.account(&member.user).await?.and_then(|a| a.email).unwrap_or_default();
    if let Some(why) = password::refuse(&asked.new, &email) {
        return Err(Problem::invalid(vec![field("new", why)]));
    }
    let credentials = confirm(&app, &member.user, asked.old, "old").await?;
    let hash = app.passwords.hash(asked.new).await?;
    let token = new_token();
    let changed =
        app.store.change_password(&credentials, &hash, &TokenHash::of(&token), UnixMs::now()).await?;
    if !changed {
        return Err(wrong_password("old"));
    }
    tracing::info!(user = member.user, "changed the password");
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie(&app, &token))]).into_response())
}

/// Runs, answers and practice go. A sitting stays for those who grade it and for the statistics of its questions, without the name.
pub async fn delete(
    State(app): State<App>,
    visitor: Visitor,
    Json(asked): Json<DeleteAccount>,
) -> ApiResult<Response> {
    let Some(user) = visitor.user else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    if visitor.member {
        confirm(&app, &user, asked.password.unwrap_or_default(), "password").await?;
    }
    for job in app.store.active_jobs_of(&user).await? {
        if let Some((runner, lease)) = app.store.cancel(&job, &user, UnixMs::now()).await? {
            app.dispatcher.cancel(&runner, lease, "the learner's account was deleted");
        }
        app.dispatcher.changed(&job);
    }
    match app.store.forget(&user, UnixMs::now()).await? {
        Forgotten::Done => {
            tracing::info!(user, "account deleted");
            Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, no_cookie(&app))]).into_response())
        }
        Forgotten::LastAdmin => Err(super::accounts::last_admin()),
    }
}

pub async fn export(State(app): State<App>, visitor: Visitor) -> ApiResult<Response> {
    let user = visitor.user.ok_or_else(Problem::not_found)?;
    app.limiter.check(Action::Export, &user)?;
    let (out, pieces) = mpsc::channel(PIECES);
    let store = app.store.clone();
    app.tasks.spawn(async move {
        if let Err(error) = store.export(&user, UnixMs::now(), &out).await {
            // The body breaks off, so that the browser takes no half of it for the whole.
            tracing::error!(user, %error, "an export broke off");
            let _ = out.send(Err(error)).await;
        }
    });
    let body = stream::unfold(pieces, |mut pieces| async move { Some((pieces.recv().await?, pieces)) });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"ringlab-export.json\"")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

async fn enter(app: &App, user: &str, token: &str, status: StatusCode) -> ApiResult<Response> {
    let view = app.store.account(user).await?.ok_or_else(wrong_credentials)?;
    let headers = [(SET_COOKIE, cookie(app, token)), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((status, headers, axum::Json(view)).into_response())
}

/// The member's own password, asked for again before something that cannot be undone.
async fn confirm(app: &App, user: &str, password: String, name: &str) -> ApiResult<Credentials> {
    app.limiter.check(Action::Confirm, user)?;
    let known = app.store.credentials_of(user).await?;
    let stored = known.as_ref().map(|c| c.password_hash.clone());
    let right = app.passwords.matches(password, stored).await?;
    known.filter(|_| right).ok_or_else(|| wrong_password(name))
}

fn refuse_name(name: &str) -> Option<Text> {
    let bad = name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control);
    bad.then(|| {
        Text::new(
            format!("请填写 1 至 {NAME_MAX} 个字符的名字"),
            format!("a name has 1 to {NAME_MAX} characters"),
        )
    })
}

fn field(name: &str, message: Text) -> FieldError {
    FieldError { field: name.to_owned(), message, line: None }
}

fn wrong_password(name: &str) -> Problem {
    Problem::invalid(vec![field(
        name,
        Text::new("密码不对，请再输入一次", "this is not your password; type it again"),
    )])
}

fn wrong_credentials() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "credentials",
        &["邮箱或密码不对", "Wrong e-mail address or password"],
        Text::new(
            "请检查邮箱和密码再试。忘记密码时，请管理员为您重设",
            "Check both and try again. If the password is forgotten, ask whoever runs this server to set a new one.",
        ),
    )
}

fn signed_in() -> Problem {
    Problem::conflict(
        "signed-in",
        Text::new(
            "您已登录。要注册另一个帐号，请先退出",
            "You are signed in. Sign out first to make another account.",
        ),
    )
}
