//! `/assets/*` (built into the program) and `/pkg/*` (the WASM build): cached for ever under a URL that names their content.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ringlab_web::Asset;
use sha2::{Digest as _, Sha256};

use crate::app::App;
use crate::extract::Name;
use crate::problem::{ApiResult, Problem};
use crate::secret::hex;

const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Without a version in its URL a file may change with the next release.
const REVALIDATE: &str = "public, no-cache";
/// Fonts are named by a style sheet of a fixed release and do not change with ours.
const WEEK: &str = "public, max-age=604800";

static ASSETS: LazyLock<HashMap<&str, (&Asset, HeaderValue)>> =
    LazyLock::new(|| ringlab_web::assets().iter().map(|a| (a.path, (a, tag(a.bytes)))).collect());

pub async fn asset(Name(path): Name, request: Request) -> ApiResult<Response> {
    let (asset, tag) = ASSETS.get(path.as_str()).ok_or_else(Problem::not_found)?;
    Ok(file(&request, asset.media_type, Bytes::from_static(asset.bytes), tag.clone()))
}

pub async fn pkg(State(app): State<App>, Name(path): Name, request: Request) -> ApiResult<Response> {
    let found = app.site.pkg.get(&path).ok_or_else(Problem::not_found)?;
    let tag = HeaderValue::try_from(format!("W/\"{}\"", app.site.build)).expect("a hash is hex");
    Ok(file(&request, found.media_type, found.bytes.clone(), tag))
}

fn file(request: &Request, media_type: &'static str, bytes: Bytes, tag: HeaderValue) -> Response {
    let versioned =
        request.uri().query().is_some_and(|q| q.split('&').any(|p| p.starts_with("v=") && p.len() > 2));
    let cache = match media_type {
        _ if versioned => FOR_EVER,
        "font/woff2" => WEEK,
        _ => REVALIDATE,
    };
    let same = request.headers().get(header::IF_NONE_MATCH) == Some(&tag);
    let headers = [
        (header::CACHE_CONTROL, HeaderValue::from_static(cache)),
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::ETAG, tag),
    ];
    if same {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, Body::from(bytes)).into_response()
}

/// Weak: the bytes on the wire may be compressed.
fn tag(bytes: &[u8]) -> HeaderValue {
    HeaderValue::try_from(format!("W/\"{}\"", hex(&Sha256::digest(bytes)[..8]))).expect("a hash is hex")
}
