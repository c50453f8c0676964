//! Pages: each handler fetches plain data and hands it to `ringlab_web::render`.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use ringlab_content::types::{Chapter, ChapterMeta};
use ringlab_engine::trace::Trace;
use ringlab_labs::job::Artifact;
use ringlab_labs::text::Lang;
use ringlab_web::page::{ChapterCard, Page, Shell};

use super::{files, interview_pages, notes, reference_pages, search};
use crate::accounts::Visitor;
use crate::app::App;
use crate::extract::{JobId, Name};
use crate::problem::{ApiResult, Problem};
use crate::store::events::Cursor;
use crate::store::jobs::JobRecord;
use crate::{lang, secret, security, view, visibility};

/// A visitor's earlier runs shown on a lab's page.
const EARLIER: u32 = 20;
/// Log lines in a page; a browser that runs the islands gets the rest by the event stream.
const LOG_LINES: u32 = 1_000;
/// A larger trace is left to the timeline viewer.
const TRACE_BYTES: u64 = 4 << 20;

pub fn router(app: &App) -> Router<App> {
    let mut router = Router::new()
        .route("/", get(front))
        .route("/assets/{*name}", get(files::asset))
        .route("/pkg/{*name}", get(files::pkg));
    for lang in Lang::ALL {
        let at = |path: &str| format!("/{}{path}", lang.code());
        router = router
            .route(&at(""), get(async move || Redirect::permanent(&format!("/{}/", lang.code()))))
            .route(&at("/"), get(home))
            .route(&at("/course"), get(course))
            .route(&at("/course/path"), get(path))
            .route(&at("/course/{name}"), get(chapter))
            .route(&at("/search"), get(search::show))
            .route(&at("/labs"), get(labs))
            .route(&at("/labs/{name}"), get(lab))
            .route(&at("/runs/{id}"), get(run));
        router = interview_pages::add(router, lang);
        router = notes::add(router, lang);
        router = reference_pages::add(router, lang);
    }
    router.fallback(missing).layer(from_fn_with_state(app.clone(), errors))
}

/// The page's address: its language and the rest.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) lang: Lang,
    /// With its leading slash.
    path: String,
}

impl Place {
    fn of(uri_path: &str) -> Option<Place> {
        let lang = lang::of_path(uri_path)?;
        let path = &uri_path[1 + lang.code().len()..];
        Some(Place { lang, path: if path.is_empty() { "/".into() } else { path.into() } })
    }

    /// So that the switch of the language keeps what was asked.
    pub(super) fn with_query(mut self, query: Option<&str>) -> Place {
        if let Some(query) = query {
            self.path = format!("{}?{query}", self.path);
        }
        self
    }

    pub(super) fn lang(&self) -> Lang {
        self.lang
    }
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Place {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self, Problem> {
        Place::of(parts.uri.path()).ok_or_else(Problem::not_found)
    }
}

async fn front(headers: HeaderMap) -> Response {
    let to = format!("/{}/", lang::preferred(&headers).code());
    ([(header::VARY, "accept-language"), (header::CACHE_CONTROL, "no-cache")], Redirect::temporary(&to))
        .into_response()
}

async fn home(State(app): State<App>, place: Place) -> ApiResult<Response> {
    let library = &app.site.library;
    let numbers = library.titles().iter().map(|title| title.number.to_string());
    let chapters = numbers.filter_map(|n| library.readable(place.lang, &n)).map(|c| c.meta.clone()).collect();
    let labs = app.site.catalogue.iter().cloned().collect();
    let runners = app.store.runners().await?;
    Ok(page(&app, place, StatusCode::OK, Page::Home { chapters, labs, runners }))
}

async fn course(State(app): State<App>, place: Place) -> Response {
    let chapters = cards(&app, place.lang);
    page(&app, place, StatusCode::OK, Page::Course { chapters })
}

/// The chapters in the order in which they build on one another.
async fn path(State(app): State<App>, place: Place) -> Response {
    let chapters = cards(&app, place.lang);
    page(&app, place, StatusCode::OK, Page::Path { chapters })
}

fn cards(app: &App, lang: Lang) -> Vec<ChapterCard> {
    let library = &app.site.library;
    let card = |title: &ringlab_content::ChapterTitle| ChapterCard {
        number: title.number,
        title: title.title(lang).to_owned(),
        written: library.readable(lang, &title.number.to_string()).map(|c| c.meta.clone()),
    };
    library.titles().iter().map(card).collect()
}

/// A chapter by number or slug alone is sent on to its one address.
async fn chapter(State(app): State<App>, place: Place, Name(name): Name) -> ApiResult<Response> {
    let library = &app.site.library;
    let chapter = library.readable(place.lang, &name).ok_or_else(Problem::not_found)?;
    let folder = folder(&chapter.meta);
    if folder != name {
        return Ok(Redirect::permanent(&format!("/{}/course/{folder}", place.lang.code())).into_response());
    }
    let numbers = library.titles().iter().map(|title| title.number.to_string());
    let all: Vec<&Chapter> = numbers.filter_map(|n| library.readable(place.lang, &n)).collect();
    let here = all.iter().position(|c| c.meta.number == chapter.meta.number);
    let near = |i: Option<usize>| i.and_then(|i| all.get(i)).map(|c| c.meta.clone());
    let (previous, next) = (near(here.and_then(|i| i.checked_sub(1))), near(here.map(|i| i + 1)));
    let questions = app.site.questions.about(chapter.meta.number);
    let shown = Page::Chapter { chapter: chapter.clone(), previous, next, questions };
    Ok(page(&app, place, StatusCode::OK, shown))
}

fn folder(meta: &ChapterMeta) -> String {
    format!("{:02}-{}", meta.number, meta.slug)
}

async fn labs(State(app): State<App>, place: Place) -> Response {
    let labs = app.site.catalogue.iter().cloned().collect();
    page(&app, place, StatusCode::OK, Page::Labs { labs })
}

/// A visit makes a guest: the instance of the lab that is shown must be the one that is run.
async fn lab(
    State(app): State<App>,
    place: Place,
    visitor: Visitor,
    Name(name): Name,
) -> ApiResult<Response> {
    let lab = app.lab(&name).cloned().ok_or_else(Problem::not_found)?;
    let account = visitor.account(&app).await?;
    let run_number = app.store.next_run_number(&account.user, &lab.id).await?;
    let seed = ringlab_labs::seed_for(&account.user, &lab.id, &lab.version, run_number);
    let jobs = app.store.jobs_of(&account.user, Some(&lab.id), EARLIER).await?;
    let jobs = view::jobs(&app.store, jobs).await?;
    let runners = app.store.runners().await?;
    let chapter = app.site.library.readable(place.lang, &lab.chapter.to_string()).map(|c| c.meta.clone());
    let mut response = page(&app, place, StatusCode::OK, Page::Lab { lab, seed, runners, jobs, chapter });
    if let Some(cookie) = account.cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

async fn run(
    State(app): State<App>,
    place: Place,
    visitor: Visitor,
    JobId(id): JobId,
) -> ApiResult<Response> {
    let record = visibility::own_job(&app.store, visitor.user.as_deref(), &id).await?;
    let lab = app.lab(&record.lab).cloned().ok_or_else(Problem::not_found)?;
    let start = Cursor { attempt: record.attempt, seq: 0 };
    let events = app.store.events_after(&id, start, LOG_LINES).await?;
    let trace = trace(&app, &record).await?.map(Box::new);
    let job = Box::new(view::job(&app.store, record).await?);
    Ok(page(&app, place, StatusCode::OK, Page::Run { job, lab, events, trace }))
}

async fn trace(app: &App, record: &JobRecord) -> ApiResult<Option<Trace>> {
    let Some(name) = record.result.iter().flat_map(|r| &r.tasks).find_map(|t| t.trace.as_deref()) else {
        return Ok(None);
    };
    let artifacts = app.store.artifacts(&record.id).await?;
    let small = |a: &&Artifact| a.name == name && a.bytes <= TRACE_BYTES;
    let Some(artifact) = artifacts.iter().find(small) else { return Ok(None) };
    let bytes = app.blobs.read(&artifact.sha256).await?;
    serde_json::from_slice(&bytes).map(Some).map_err(Problem::internal)
}

/// No page here. An address with a slash too many is put right.
async fn missing(request: Request) -> Response {
    let path = request.uri().path();
    match path.strip_suffix('/') {
        // Only below a language: `//elsewhere/` must not become a redirect to another site.
        Some(shorter) if Place::of(shorter).is_some_and(|p| p.path != "/") => {
            Redirect::permanent(shorter).into_response()
        }
        _ => Problem::not_found().into_response(),
    }
}

/// Middleware: an error becomes a page for people.
async fn errors(State(app): State<App>, request: Request, next: Next) -> Response {
    let place = Place::of(request.uri().path())
        .unwrap_or_else(|| Place { lang: lang::preferred(request.headers()), path: "/".into() });
    let response = next.run(request).await;
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let problem = Problem::of_response(&response);
    let error = Page::Error {
        status: status.as_u16(),
        title: problem.title(place.lang).to_owned(),
        detail: problem.detail.get(place.lang).to_owned(),
    };
    let mut shown = page(&app, place, status, error);
    for name in [header::ALLOW, header::RETRY_AFTER] {
        if let Some(value) = response.headers().get(&name) {
            shown.headers_mut().insert(name, value.clone());
        }
    }
    shown
}

pub(super) fn page(app: &App, place: Place, status: StatusCode, page: Page) -> Response {
    let nonce = secret::nonce();
    let policy = security::page_policy(&nonce);
    let shell = Shell { lang: place.lang, path: place.path, nonce, build: app.site.build.clone() };
    let html = ringlab_web::render(shell, page);
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        // A page carries a nonce, and what is the visitor's own.
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ];
    (status, headers, Html(html)).into_response()
}
