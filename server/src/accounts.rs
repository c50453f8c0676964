//! Who is asking. A browser is known by a cookie; the first write makes it a guest.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use std::time::Duration;

use crate::app::App;
use crate::clock::UnixMs;
use crate::limits::Action;
use crate::problem::{ApiResult, Problem};
use crate::secret::{TokenHash, new_token};

const COOKIE: &str = "ringlab";
/// Browsers keep cookies for at most 400 days.
const COOKIE_AGE: Duration = Duration::from_secs(400 * 24 * 3600);
/// A session's last use is written at most this often.
const SEEN: Duration = Duration::from_secs(3600);

/// Whoever sent the request: a known user, or nobody yet.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub user: Option<String>,
    /// Address of the browser, for limits alone.
    pub address: String,
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
        let Some(token) = token(&parts.headers) else { return Ok(Visitor { user: None, address }) };
        let hash = TokenHash::of(token);
        let Some((user, seen)) = app.store.session(&hash).await? else {
            return Ok(Visitor { user: None, address });
        };
        let now = UnixMs::now();
        if seen < now.minus(SEEN) {
            app.store.touch_session(&hash, now).await?;
        }
        Ok(Visitor { user: Some(user), address })
    }
}

impl Visitor {
    /// The visitor's account, made now if there is none.
    pub async fn account(self, app: &App) -> ApiResult<Account> {
        if let Some(user) = self.user {
            return Ok(Account { user, cookie: None });
        }
        app.limiter.check(Action::NewGuest, &self.address)?;
        let token = new_token();
        let user = app.store.create_guest(&TokenHash::of(&token), UnixMs::now()).await?;
        tracing::info!(user, "new guest");
        let secure = if app.config.secure_cookies() { "; Secure" } else { "" };
        let cookie = format!(
            "{COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{secure}",
            COOKIE_AGE.as_secs()
        );
        let cookie = HeaderValue::try_from(cookie).expect("hex and attributes are visible ASCII");
        Ok(Account { user, cookie: Some(cookie) })
    }
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
