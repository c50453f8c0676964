//! What every response says to browsers, and which requests other sites may not send.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ringlab_labs::text::Text;

use crate::app::App;
use crate::problem::Problem;

const ALWAYS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// For everything that is not a page: nothing in it may run or load anything, whatever it is.
const INERT: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// A page's policy: scripts are ours or carry the nonce; WebAssembly is compiled; KaTeX positions by style attributes.
pub fn page_policy(nonce: &str) -> HeaderValue {
    HeaderValue::try_from(format!(
        "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; \
         style-src-attr 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; object-src 'none'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ))
    .expect("a nonce is hex")
}

/// Middleware: headers of every response.
pub async fn headers(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if app.config.secure_cookies() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(INERT));
    response
}

/// Middleware: a browser may send a write only from one of our own pages. Every current browser says where a request comes from
/// (`Sec-Fetch-Site`, or at least `Origin`); a program that says nothing carries no browser's cookie.
pub async fn same_origin(State(app): State<App>, request: Request, next: Next) -> Response {
    let safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if safe || is_same_origin(request.headers(), app.config.public_url.as_deref()) {
        return next.run(request).await;
    }
    Problem::new(
        StatusCode::FORBIDDEN,
        "cross-site",
        &["请求来自别的网站", "The request comes from another site"],
        Text::new("请在本站的页面上操作", "Use this site's own pages."),
    )
    .into_response()
}

fn is_same_origin(headers: &HeaderMap, public_url: Option<&str>) -> bool {
    let text = |name: HeaderName| headers.get(name).map(|v| v.to_str().unwrap_or("?"));
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site"))
        && site != "same-origin"
    {
        return false;
    }
    let Some(origin) = text(header::ORIGIN) else { return true };
    if let Some(public) = public_url {
        return origin == public.trim_end_matches('/');
    }
    let host = text(header::HOST).unwrap_or_default();
    origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(n, v)| (HeaderName::from_static(n), v.parse().unwrap())).collect()
    }

    #[test]
    fn writes_come_from_our_own_pages() {
        let ours: [&[(&str, &str)]; 4] = [
            &[("host", "a:1")],
            &[("host", "a:1"), ("origin", "http://a:1")],
            &[("host", "a:1"), ("origin", "http://a:1"), ("sec-fetch-site", "same-origin")],
            &[("host", "A:1"), ("sec-fetch-site", "same-origin")],
        ];
        for pairs in ours {
            assert!(is_same_origin(&headers(pairs), None), "{pairs:?}");
        }
        let theirs: [&[(&str, &str)]; 6] = [
            &[("host", "a:1"), ("origin", "http://b:1")],
            &[("host", "a:1"), ("origin", "http://a:2")],
            &[("host", "a:1"), ("origin", "null")],
            &[("host", "a:1"), ("sec-fetch-site", "cross-site")],
            &[("host", "a:1"), ("sec-fetch-site", "same-site")],
            &[("host", "a:1"), ("origin", "http://a:1"), ("sec-fetch-site", "none")],
        ];
        for pairs in theirs {
            assert!(!is_same_origin(&headers(pairs), None), "{pairs:?}");
        }
        let proxied = headers(&[("host", "inner:1"), ("origin", "https://ringlab.example")]);
        assert!(is_same_origin(&proxied, Some("https://ringlab.example/")));
        assert!(!is_same_origin(&proxied, Some("https://other.example")));
    }
}
