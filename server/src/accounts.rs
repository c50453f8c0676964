//! Who is asking. A browser is known by a cookie; the first write makes it a guest.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use ringlab_interview::api::Role;

use crate::app::App;
use crate::clock::UnixMs;
use crate::limits::Action;
use crate::problem::{ApiResult, Problem};
use crate::secret::{TokenHash, new_token};
use crate::store::users::Session;
use crate::visibility;

const COOKIE: &str = "ringlab";
/// Browsers keep cookies for at most 400 days.
const COOKIE_AGE: Duration = Duration::from_secs(400 * 24 * 3600);
/// A session's last use is written at most this often.
const SEEN: Duration = Duration::from_secs(3600);

/// Whoever sent the request: a known user, or nobody yet.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub user: Option<String>,
    /// A guest's and a stranger's is [`Role::Learner`].
    pub role: Role,
    /// Has an account with a password; a guest has only a cookie.
    pub member: bool,
    /// Of the cookie, when it is a user's.
    pub session: Option<TokenHash>,
    /// Address of the browser, for limits alone.
    pub address: String,
}

/// Extractor: someone with an account. Others are asked to sign in.
#[derive(Debug, Clone)]
pub struct Member {
    pub user: String,
    pub role: Role,
}

/// Extractor: an instructor, or an admin.
#[derive(Debug, Clone)]
pub struct Instructor {
    pub user: String,
}

/// Extractor: an admin.
#[derive(Debug, Clone)]
pub struct Admin {
    pub user: String,
}

/// A user, and the cookie to set if the account is new.
#[derive(Debug)]
pub struct Account {
    pub user: String,
    pub cookie: Option<HeaderValue>,
}

impl FromRequestParts<App> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let address = address(parts, app);
        let nobody =
            |address| Visitor { user: None, role: Role::Learner, member: false, session: None, address };
        let Some(token) = token(&parts.headers) else { return Ok(nobody(address)) };
        let hash = TokenHash::of(token);
        let Some(session) = app.store.session(&hash).await? else { return Ok(nobody(address)) };
        let now = UnixMs::now();
        if session.seen < now.minus(SEEN) {
            app.store.touch_session(&hash, now).await?;
        }
        let Session { user, role, member, .. } = session;
        Ok(Visitor { user: Some(user), role, member, session: Some(hash), address })
    }
}

impl FromRequestParts<App> for Member {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let visitor = Visitor::from_request_parts(parts, app).await?;
        let user = visitor.user.filter(|_| visitor.member).ok_or_else(visibility::sign_in_first)?;
        Ok(Member { user, role: visitor.role })
    }
}

impl FromRequestParts<App> for Instructor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let member = Member::from_request_parts(parts, app).await?;
        if !visibility::may_teach(member.role) {
            return Err(visibility::role_needed(Role::Instructor));
        }
        Ok(Instructor { user: member.user })
    }
}

impl FromRequestParts<App> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let member = Member::from_request_parts(parts, app).await?;
        if !visibility::may_administer(member.role) {
            return Err(visibility::role_needed(Role::Admin));
        }
        Ok(Admin { user: member.user })
    }
}

impl Visitor {
    /// The visitor's account, made now if there is none.
    pub async fn account(self, app: &App) -> ApiResult<Account> {
        if let Some(user) = self.user {
            return Ok(Account { user, cookie: None });
        }
        app.limiter.check(Action::NewGuest, &self.address)?;
        self.invited(app).await
    }

    /// The account of someone with an unused invitation. No limit: a code cannot be guessed, and a room full of candidates behind one
    /// address begins at once.
    pub async fn invited(self, app: &App) -> ApiResult<Account> {
        if let Some(user) = self.user {
            return Ok(Account { user, cookie: None });
        }
        let token = new_token();
        let user = app.store.create_guest(&TokenHash::of(&token), UnixMs::now()).await?;
        tracing::info!(user, "new guest");
        Ok(Account { user, cookie: Some(cookie(app, &token)) })
    }
}

/// Sets a browser's session.
pub fn cookie(app: &App, token: &str) -> HeaderValue {
    let secure = if app.config.secure_cookies() { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{secure}", COOKIE_AGE.as_secs());
    HeaderValue::try_from(cookie).expect("hex and attributes are visible ASCII")
}

/// Ends it in the browser.
pub fn no_cookie(app: &App) -> HeaderValue {
    let secure = if app.config.secure_cookies() { "; Secure" } else { "" };
    HeaderValue::try_from(format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0{secure}"))
        .expect("attributes are visible ASCII")
}

fn token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE && value.len() == 64).then_some(value))
}

/// Behind a proxy (a public URL is configured) the proxy's own entry in `X-Forwarded-For`, which is the last; else the peer.
fn address(parts: &Parts, app: &App) -> String {
    let forwarded = parts.headers.get("x-forwarded-for").and_then(|v| v.to_str().ok());
    let last = forwarded.and_then(|v| v.rsplit(',').next()).map(str::trim);
    match last.filter(|_| app.config.public_url.is_some()) {
        Some(last) => last.to_owned(),
        None => parts
            .extensions
            .get::<ConnectInfo<SocketAddr>>()
            .map_or_else(|| "unknown".to_owned(), |ConnectInfo(peer)| peer.ip().to_string()),
    }
}
