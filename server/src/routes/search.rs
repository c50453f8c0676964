//! `GET /api/v1/search?q=…&lang=zh&kind=term&offset=0&limit=20`, and the page for people.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use ringlab_labs::text::{Lang, Text};
use ringlab_search::{Kind, Results};
use ringlab_web::page::{Page, SearchPage};
use serde::Deserialize;

use super::pages::{Place, page};
use crate::app::App;
use crate::problem::{ApiResult, Problem};

/// Hits of one page.
const HITS: usize = 20;
const HITS_MAX: usize = 100;
/// Whoever looks further than this has the wrong words.
const OFFSET_MAX: usize = 1_000;

#[derive(Debug, Deserialize)]
pub struct Asked {
    #[serde(default)]
    q: String,
    #[serde(default)]
    lang: String,
    #[serde(default)]
    kind: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

pub async fn api(
    State(app): State<App>,
    query: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> ApiResult<Json<Results>> {
    let Query(asked) = query.map_err(|_| malformed())?;
    let lang = match asked.lang.as_str() {
        "" => Lang::Zh,
        code => Lang::from_code(code).ok_or_else(malformed)?,
    };
    let kind = match asked.kind.as_str() {
        "" => None,
        name => Some(Kind::from_name(name).ok_or_else(malformed)?),
    };
    let (offset, limit) = (asked.offset.unwrap_or(0), asked.limit.unwrap_or(HITS));
    if offset > OFFSET_MAX || limit > HITS_MAX {
        return Err(malformed());
    }
    find(&app, lang, asked.q, kind, offset, limit).await.map(Json)
}

/// A kind or offset that is none is taken for none: an address that was typed shows something.
pub async fn show(
    State(app): State<App>,
    place: Place,
    uri: Uri,
    query: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> ApiResult<Response> {
    let asked = query.map_or_else(
        |_| Asked { q: String::new(), lang: String::new(), kind: String::new(), offset: None, limit: None },
        |q| q.0,
    );
    let kind = Kind::from_name(&asked.kind);
    let offset = asked.offset.unwrap_or(0).min(OFFSET_MAX);
    let results = find(&app, place.lang(), asked.q.clone(), kind, offset, HITS).await?;
    let shown = SearchPage { query: asked.q, kind, offset, limit: HITS, results };
    Ok(page(&app, place.with_query(uri.query()), StatusCode::OK, Page::Search(shown)))
}

async fn find(
    app: &App,
    lang: Lang,
    text: String,
    kind: Option<Kind>,
    offset: usize,
    limit: usize,
) -> ApiResult<Results> {
    if text.trim().is_empty() {
        return Ok(Results::default());
    }
    let shared = app.clone();
    let search = move || {
        let query = ringlab_search::Query { text: &text, kind, offset, limit };
        shared.site.search()?.of(lang).search(&query)
    };
    app.compute(search).await?.map_err(Problem::internal)
}

fn malformed() -> Problem {
    Problem::malformed(Text::new(
        format!(
            "搜索的参数：q、lang（zh 或 en）、kind（{}）、offset（至多 {OFFSET_MAX}）、limit（至多 {HITS_MAX}）",
            kinds()
        ),
        format!(
            "Parameters of a search: q, lang (zh or en), kind ({}), offset (at most {OFFSET_MAX}), limit (at most {HITS_MAX}).",
            kinds()
        ),
    ))
}

fn kinds() -> String {
    Kind::ALL.map(Kind::name).join(", ")
}
