//! `/api/v1/reading/{folder}/notes`, and the page of all notes with its export.

use std::collections::HashMap;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ringlab_content::reading::{CONTEXT_MAX, ChangeNote, NewNote, Note, QUOTE_MAX, TEXT_MAX};
use ringlab_labs::text::{Lang, Text};
use ringlab_web::notes_markdown;
use ringlab_web::page::{ChapterNotes, Page};
use serde::Deserialize;

use super::pages::{Place, page};
use super::reading::{chapter, folder, invalid, known_section, reply, unknown, with_cookie};
use crate::accounts::Visitor;
use crate::app::App;
use crate::clock::UnixMs;
use crate::extract::{Id, Json, Name, expect_json_or_nothing};
use crate::limits::Action;
use crate::problem::{ApiResult, Problem};
use crate::store::notes::{Added, NoteLimits};
use crate::store::reading::Outcome;

const LIMITS: NoteLimits = NoteLimits { in_chapter: 300, in_all: 3_000 };

pub async fn create(
    State(app): State<App>,
    visitor: Visitor,
    Name(name): Name,
    Json(new): Json<NewNote>,
) -> ApiResult<Response> {
    let chapter = chapter(&app.site, &name)?;
    known_section(chapter, &new.section)?;
    check(&new)?;
    let id = uuid::Uuid::try_parse(&new.id).map_err(|_| {
        invalid("id", Text::new("笔记的 id 应为 UUID", "the id of a note is a UUID, made by the browser"))
    })?;
    let new = NewNote { id: id.hyphenated().to_string(), ..new };
    let account = visitor.account(&app).await?;
    app.limiter.check(Action::Annotate, &account.user)?;
    match app.store.add_note(&account.user, &chapter.meta.slug, &new, LIMITS, UnixMs::now()).await? {
        Added::New(note) => Ok(reply(StatusCode::CREATED, account.cookie, note)),
        Added::Again(note) => Ok(reply(StatusCode::OK, account.cookie, note)),
        Added::Taken => Err(Problem::conflict(
            "note-id",
            Text::new("这个 id 已经用过，请换一个新的 UUID", "This id is in use; make a new UUID."),
        )),
        Added::TooMany => {
            let NoteLimits { in_chapter, in_all } = LIMITS;
            Err(Problem::conflict(
                "too-many-notes",
                Text::new(
                    format!("每章最多 {in_chapter} 条笔记，全部最多 {in_all} 条。请先导出并删去一些"),
                    format!(
                        "A chapter holds {in_chapter} notes, all together {in_all}. Export them and delete some first."
                    ),
                ),
            ))
        }
    }
}

pub async fn change(
    State(app): State<App>,
    visitor: Visitor,
    Name(name): Name,
    Id(id): Id,
    Json(asked): Json<ChangeNote>,
) -> ApiResult<Response> {
    let chapter = chapter(&app.site, &name)?;
    short("text", &asked.text, TEXT_MAX)?;
    let user = visitor.user.ok_or_else(gone)?;
    app.limiter.check(Action::Annotate, &user)?;
    let slug = &chapter.meta.slug;
    let has_quote = app.store.notes_in(&user, slug).await?.iter().any(|n| n.id == id && n.quote.is_some());
    if asked.text.trim().is_empty() && !has_quote {
        return Err(empty());
    }
    outcome(app.store.change_note(&user, slug, &id, &asked, UnixMs::now()).await?)
        .map(|note| reply(StatusCode::OK, None, note))
}

#[derive(Debug, Deserialize)]
pub struct Seen {
    #[serde(default)]
    version: Option<u64>,
}

pub async fn delete(
    State(app): State<App>,
    visitor: Visitor,
    Name(name): Name,
    Id(id): Id,
    seen: Result<Query<Seen>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    expect_json_or_nothing(&headers)?;
    let chapter = chapter(&app.site, &name)?;
    let Ok(Query(Seen { version })) = seen else {
        return Err(invalid(
            "version",
            Text::new("version 应为笔记的版本号", "version is the number of the note's version"),
        ));
    };
    let user = visitor.user.ok_or_else(gone)?;
    app.limiter.check(Action::Annotate, &user)?;
    outcome(app.store.delete_note(&user, &chapter.meta.slug, &id, version).await?)
        .map(|_| StatusCode::NO_CONTENT.into_response())
}

fn outcome(outcome: Option<Outcome<Note>>) -> ApiResult<Note> {
    match outcome {
        None => Err(gone()),
        Some(Outcome::Done(note)) => Ok(note),
        Some(Outcome::Conflict(current)) => Err(Problem::conflict(
            "note-conflict",
            Text::new(
                "这条笔记在别的标签页或设备上改过了；那边的内容没有被改动，请选择保留哪一份",
                "This note was changed in another tab or on another device; that text is untouched. Choose which to keep.",
            ),
        )
        .with("current", current)),
    }
}

fn gone() -> Problem {
    unknown(
        "unknown-note",
        "没有这条笔记，或者它不属于您；它可能已在别处删除".into(),
        "There is no such note, or it is not yours; it may have been deleted elsewhere.".into(),
    )
}

fn check(new: &NewNote) -> ApiResult<()> {
    if Lang::from_code(&new.lang).is_none() {
        return Err(invalid("lang", Text::new("lang 应为 zh 或 en", "lang is zh or en")));
    }
    short("text", &new.text, TEXT_MAX)?;
    match &new.quote {
        None if new.text.trim().is_empty() => Err(empty()),
        None => Ok(()),
        Some(quote) if quote.exact.trim().is_empty() => Err(invalid(
            "quote.exact",
            Text::new(
                "引文是空的；没有引文就不要发送 quote",
                "the quote is empty; leave quote out without one",
            ),
        )),
        Some(quote) => {
            short("quote.exact", &quote.exact, QUOTE_MAX)?;
            short("quote.before", &quote.before, CONTEXT_MAX)?;
            short("quote.after", &quote.after, CONTEXT_MAX)
        }
    }
}

fn short(field: &str, text: &str, most: usize) -> ApiResult<()> {
    let n = text.chars().count();
    if n <= most {
        return Ok(());
    }
    let message = Text::new(
        format!("最多 {most} 个字符，现在有 {n} 个"),
        format!("at most {most} characters; it has {n}"),
    );
    Err(invalid(field, message))
}

fn empty() -> Problem {
    invalid(
        "text",
        Text::new(
            "没有引文的笔记不能是空的",
            "a note without a quote needs a text; delete it if you do not want it",
        ),
    )
}

/// The page of all notes, and the same as a Markdown file.
pub fn add(router: Router<App>, lang: Lang) -> Router<App> {
    let code = lang.code();
    router.route(&format!("/{code}/notes"), get(show)).route(
        &format!("/{code}/notes.md"),
        get(async move |State(app): State<App>, visitor: Visitor| export(&app, visitor, lang).await),
    )
}

async fn show(State(app): State<App>, place: Place, visitor: Visitor) -> ApiResult<Response> {
    let chapters = by_chapter(&app, &visitor, place.lang).await?;
    Ok(page(&app, place, StatusCode::OK, Page::Notes { chapters }))
}

async fn export(app: &App, visitor: Visitor, lang: Lang) -> ApiResult<Response> {
    if let Some(user) = &visitor.user {
        app.limiter.check(Action::Export, user)?;
    }
    let text = notes_markdown(lang, &by_chapter(app, &visitor, lang).await?);
    let headers = [
        (CONTENT_TYPE, "text/markdown; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment; filename=\"ringlab-notes.md\""),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok(with_cookie((headers, text).into_response(), None))
}

/// Notes in the order of the course; within a chapter in the order of its sections. Notes of a chapter that is not written any more come last.
async fn by_chapter(app: &App, visitor: &Visitor, lang: Lang) -> ApiResult<Vec<ChapterNotes>> {
    let notes = match &visitor.user {
        Some(user) => app.store.notes_of(user).await?,
        None => Vec::new(),
    };
    let mut by_slug: HashMap<String, Vec<Note>> = HashMap::new();
    for (slug, note) in notes {
        by_slug.entry(slug).or_default().push(note);
    }
    let mut chapters = Vec::new();
    for title in app.site.library.titles() {
        let Some(mut notes) = by_slug.remove(&title.slug) else { continue };
        let written = app.site.library.readable(lang, &title.slug);
        let place = |note: &Note| written.and_then(|c| c.toc.iter().position(|e| e.id == note.section));
        notes.sort_by_key(|note| (place(note).unwrap_or(usize::MAX), note.created_ms));
        chapters.push(ChapterNotes {
            number: title.number,
            title: title.title(lang).to_owned(),
            folder: written.map(folder),
            sections: written.map_or_else(Vec::new, |c| c.toc.clone()),
            notes,
        });
    }
    let mut rest: Vec<(String, Vec<Note>)> = by_slug.into_iter().collect();
    rest.sort_by(|a, b| a.0.cmp(&b.0));
    chapters.extend(rest.into_iter().map(|(slug, notes)| ChapterNotes {
        number: 0,
        title: slug,
        folder: None,
        sections: vec![],
        notes,
    }));
    Ok(chapters)
}
