//! `/api/v1/reading`: how far a reader got in the course, where they were, their quizzes. Guests may. Notes are in `notes.rs`.

use axum::extract::{FromRequestParts, Query, State};
use axum::http::header::{CACHE_CONTROL, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ringlab_content::quiz::{self, Judged};
use ringlab_content::reading::{ChapterProgress, ChapterReading, Place, ReadingView, SavePlace, SaveQuiz};
use ringlab_content::types::{Chapter, Quiz, Segment};
use ringlab_labs::api::FieldError;
use ringlab_labs::text::{Lang, Text};
use serde::Deserialize;

use crate::accounts::Visitor;
use crate::app::App;
use crate::clock::UnixMs;
use crate::extract::{Json, Name, expect_json_or_nothing, path_part};
use crate::lang;
use crate::limits::Action;
use crate::problem::{ApiResult, Problem};
use crate::site::Site;
use crate::store::reading::{Outcome, Progress, QuizRecord};

/// Of what is typed into a numeric quiz, in characters.
const TYPED_MAX: usize = 200;
/// No quiz has as many options.
const PICKS_MAX: usize = 64;

/// A section or a quiz in the path.
#[derive(Debug, Clone)]
pub struct Item(pub String);

impl FromRequestParts<App> for Item {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &App) -> Result<Self, Problem> {
        path_part(parts, state, "item").await.map(Item)
    }
}

#[derive(Debug, Deserialize)]
pub struct Asked {
    #[serde(default)]
    lang: Option<String>,
}

pub async fn all(
    State(app): State<App>,
    visitor: Visitor,
    headers: HeaderMap,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> ApiResult<Response> {
    let named = asked.ok().and_then(|Query(a)| a.lang).and_then(|code| Lang::from_code(&code));
    let lang = named.unwrap_or_else(|| lang::of_request(&headers));
    let progress = match &visitor.user {
        Some(user) => app.store.progress_of(user).await?,
        None => Progress::default(),
    };
    let chapters = app.site.library.titles().iter().filter_map(|title| {
        let chapter = app.site.library.readable(lang, &title.slug)?;
        Some(chapter_progress(chapter, &progress))
    });
    let view = ReadingView { chapters: chapters.collect() };
    Ok(([(CACHE_CONTROL, "no-store")], axum::Json(view)).into_response())
}

/// Counts what the chapter still has.
fn chapter_progress(chapter: &Chapter, progress: &Progress) -> ChapterProgress {
    let meta = &chapter.meta;
    let read = progress
        .sections
        .get(&meta.slug)
        .map_or(0, |read| chapter.toc.iter().filter(|entry| read.contains(&entry.id)).count());
    let verdicts = progress.quizzes.get(&meta.slug).map_or(&[][..], Vec::as_slice);
    let here: Vec<bool> = quizzes(chapter)
        .filter_map(|quiz| verdicts.iter().find(|(id, _)| *id == quiz.id).map(|(_, right)| *right))
        .collect();
    let place = progress.places.get(&meta.slug).filter(|p| has_section(chapter, &p.section));
    ChapterProgress {
        number: meta.number,
        folder: folder(chapter),
        title: meta.title.clone(),
        sections: count(chapter.toc.len()),
        read: count(read),
        quizzes: count(quizzes(chapter).count()),
        answered: count(here.len()),
        right: count(here.iter().filter(|right| **right).count()),
        notes: progress.notes.get(&meta.slug).copied().unwrap_or(0),
        place: place.cloned(),
    }
}

pub async fn show(State(app): State<App>, visitor: Visitor, Name(name): Name) -> ApiResult<Response> {
    let chapter = chapter(&app.site, &name)?;
    let slug = &chapter.meta.slug;
    let mut view = ChapterReading { folder: name, read: vec![], place: None, quizzes: vec![], notes: vec![] };
    if let Some(user) = &visitor.user {
        view.read = app.store.sections_read(user, slug).await?;
        view.read.retain(|id| has_section(chapter, id));
        view.place = app.store.place_in(user, slug).await?.filter(|p| has_section(chapter, &p.section));
        view.quizzes = app.store.quizzes_of(user, slug).await?;
        view.quizzes.retain(|state| quizzes(chapter).any(|quiz| quiz.id == state.id));
        view.notes = app.store.notes_in(user, slug).await?;
    }
    Ok(([(CACHE_CONTROL, "no-store")], axum::Json(view)).into_response())
}

pub async fn mark_read(
    State(app): State<App>,
    visitor: Visitor,
    Name(name): Name,
    Item(section): Item,
    headers: HeaderMap,
) -> ApiResult<Response> {
    expect_json_or_nothing(&headers)?;
    let chapter = chapter(&app.site, &name)?;
    known_section(chapter, &section)?;
    let account = visitor.account(&app).await?;
    app.limiter.check(Action::Read, &account.user)?;
    app.store.mark_read(&account.user, &chapter.meta.slug, &section, UnixMs::now()).await?;
    Ok(with_cookie(StatusCode::NO_CONTENT.into_response(), account.cookie))
}

pub async fn save_place(
    State(app): State<App>,
    visitor: Visitor,
    Name(name): Name,
    Json(asked): Json<SavePlace>,
) -> ApiResult<Response> {
    let chapter = chapter(&app.site, &name)?;
    known_section(chapter, &asked.section)?;
    if asked.permille > 1000 {
        let n = asked.permille;
        let message = Text::new(
            format!("位置以千分之几计，最多 1000，收到 {n}"),
            format!("a place is in thousandths of a section, at most 1000; got {n}"),
        );
        return Err(invalid("permille", message));
    }
    let account = visitor.account(&app).await?;
    app.limiter.check(Action::Read, &account.user)?;
    let place = Place { section: asked.section, permille: asked.permille, at_ms: UnixMs::now().0 };
    app.store.save_place(&account.user, &chapter.meta.slug, &place).await?;
    Ok(with_cookie(StatusCode::NO_CONTENT.into_response(), account.cookie))
}

pub async fn save_quiz(
    State(app): State<App>,
    visitor: Visitor,
    Name(name): Name,
    Item(id): Item,
    Json(asked): Json<SaveQuiz>,
) -> ApiResult<Response> {
    let chapter = chapter(&app.site, &name)?;
    let quiz = quizzes(chapter).find(|quiz| quiz.id == id).ok_or_else(|| {
        unknown(
            "unknown-quiz",
            format!("{name} 里没有测验“{id}”；正文可能已经更新，请刷新页面"),
            format!("{name} has no quiz \"{id}\"; the text may have changed, reload the page."),
        )
    })?;
    let response = &asked.response;
    let long = response.picks.len() > PICKS_MAX || response.text.chars().count() > TYPED_MAX;
    if long || !quiz::fits(&quiz.kind, response) {
        let message = Text::new(
            "答案与这道题的选项对不上；题目可能已经更新，请刷新页面",
            "the response does not fit this question; it may have changed, reload the page",
        );
        return Err(invalid("response", message));
    }
    // The browser shows its own verdict at once; what is stored is the server's.
    let right = match quiz::judge(&quiz.kind, response) {
        Judged::Right => Some(true),
        Judged::Wrong => Some(false),
        Judged::Incomplete | Judged::NotANumber => None,
    };
    let account = visitor.account(&app).await?;
    app.limiter.check(Action::Read, &account.user)?;
    let record = QuizRecord {
        user: &account.user,
        chapter: &chapter.meta.slug,
        quiz: &id,
        chapter_version: &chapter.version,
        response,
        right: right.filter(|_| response.checked),
        base: asked.base,
    };
    match app.store.save_quiz(&record, UnixMs::now()).await? {
        Outcome::Done(state) => Ok(reply(StatusCode::OK, account.cookie, state)),
        Outcome::Conflict(current) => Err(Problem::conflict(
            "quiz-conflict",
            Text::new(
                "这道题在别的标签页或设备上答过了；那边的答案没有被改动",
                "This question was answered in another tab or on another device; that answer is untouched.",
            ),
        )
        .with("current", current)),
    }
}

/// The chapter of a folder, in Chinese: ids are the same in both languages.
pub fn chapter<'a>(site: &'a Site, name: &str) -> ApiResult<&'a Chapter> {
    site.library.readable(Lang::Zh, name).filter(|c| folder(c) == name).ok_or_else(|| {
        unknown(
            "unknown-chapter",
            format!("没有已写成的章节“{name}”；名称形如 12-ring-allreduce"),
            format!("No chapter \"{name}\" is written; a name looks like 12-ring-allreduce."),
        )
    })
}

pub fn folder(chapter: &Chapter) -> String {
    format!("{:02}-{}", chapter.meta.number, chapter.meta.slug)
}

fn has_section(chapter: &Chapter, id: &str) -> bool {
    chapter.toc.iter().any(|entry| entry.id == id)
}

pub fn known_section(chapter: &Chapter, id: &str) -> ApiResult<()> {
    if has_section(chapter, id) {
        return Ok(());
    }
    let name = folder(chapter);
    Err(unknown(
        "unknown-section",
        format!("{name} 里没有小节“{id}”；正文可能已经更新，请刷新页面"),
        format!("{name} has no section \"{id}\"; the text may have changed, reload the page."),
    ))
}

fn quizzes(chapter: &Chapter) -> impl Iterator<Item = &Quiz> {
    chapter.segments.iter().filter_map(|segment| match segment {
        Segment::Quiz(quiz) => Some(quiz),
        _ => None,
    })
}

pub fn unknown(kind: &'static str, zh: String, en: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, kind, &["没有找到", "Not found"], Text::new(zh, en))
}

pub fn invalid(field: &str, message: Text) -> Problem {
    Problem::invalid(vec![FieldError { field: field.to_owned(), message, line: None }])
}

pub fn reply<T: serde::Serialize>(status: StatusCode, cookie: Option<HeaderValue>, value: T) -> Response {
    with_cookie((status, [(CACHE_CONTROL, "no-store")], axum::Json(value)).into_response(), cookie)
}

pub fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
