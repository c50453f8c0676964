//! `/api/v1/practice`: one question at a time, graded at once. Guests may.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ringlab_interview::api::{PracticeAnswer, PracticeItem, PracticeResult, PracticeView};
use ringlab_interview::practice::{self, Quality, SEEN};
use ringlab_labs::api::FieldError;
use ringlab_labs::text::Text;

use crate::accounts::Visitor;
use crate::app::App;
use crate::clock::UnixMs;
use crate::extract::{Json, Name, expect_json_or_nothing};
use crate::limits::Action;
use crate::problem::{ApiResult, Problem};
use crate::questions::QuestionTexts;
use crate::store::practice::{Attempt, PracticeRecord};

/// Of an answer, in characters; as in a sitting.
const TEXT_MAX: usize = 20_000;

pub async fn list(State(app): State<App>, visitor: Visitor) -> ApiResult<Response> {
    let attempts = match &visitor.user {
        Some(user) => app.store.practice_of(user, None).await?,
        None => Vec::new(),
    };
    let mut by_question: BTreeMap<u32, Vec<Attempt>> = BTreeMap::new();
    for attempt in attempts {
        by_question.entry(attempt.question).or_default().push(attempt);
    }
    let now = UnixMs::now();
    let mut items: Vec<PracticeItem> = app
        .site
        .questions
        .cards()
        .map(|card| {
            let attempts = by_question.get(&card.number).map_or(&[][..], Vec::as_slice);
            PracticeItem {
                question: card.clone(),
                attempts: u32::try_from(attempts.len()).unwrap_or(u32::MAX),
                last_total: attempts.last().map(|a| a.total),
                best_total: attempts.iter().map(|a| a.total).max(),
                due_ms: due(attempts),
            }
        })
        .collect();
    practice::sort(&mut items, now.0);
    Ok(([(CACHE_CONTROL, "no-store")], axum::Json(PracticeView { now_ms: now.0, items })).into_response())
}

pub async fn answer(
    State(app): State<App>,
    visitor: Visitor,
    Name(number): Name,
    Json(asked): Json<PracticeAnswer>,
) -> ApiResult<Response> {
    let texts = question(&app, &number)?;
    let number = texts.card.number;
    if asked.text.trim().is_empty() || asked.text.chars().count() > TEXT_MAX {
        let message = Text::new(
            format!("请写 1 至 {TEXT_MAX} 个字符的回答；想直接看参考答案，请用“揭示答案”"),
            format!(
                "an answer has 1 to {TEXT_MAX} characters; to see the model answer without one, reveal it"
            ),
        );
        return Err(invalid("text", message));
    }
    if let Some(n) = asked.follow_up.filter(|n| !(1..=texts.model.follow_ups.len()).contains(&(*n as usize)))
    {
        let last = texts.model.follow_ups.len();
        let message = Text::new(
            format!("第 {number} 题没有第 {n} 个追问，共有 {last} 个"),
            format!("question {number} has no follow-up {n}; it has {last}, numbered from 1"),
        );
        return Err(invalid("follow_up", message));
    }
    app.limiter.check(Action::Practise, &visitor.address)?;
    let account = visitor.account(&app).await?;
    let (shared, text, follow_up) = (app.clone(), asked.text.clone(), asked.follow_up);
    let grade = app
        .compute(move || match follow_up {
            None => shared.site.questions.grade(number, &text),
            Some(n) => shared.site.questions.grade_follow_up(number, n as usize, &text),
        })
        .await?
        .ok_or_else(|| Problem::internal(format_args!("question {number} has texts and no rubric")))?;
    let now = UnixMs::now();
    let record = PracticeRecord {
        user: &account.user,
        question: number,
        follow_up: asked.follow_up,
        text: &asked.text,
        grade: &grade,
    };
    app.store.add_practice(&record, UnixMs(now.0.saturating_sub(SEEN)), now).await?;
    let due_ms = due(&app.store.practice_of(&account.user, Some(number)).await?);
    let result = PracticeResult { grade, model: texts.model.clone(), due_ms };
    Ok(reply(StatusCode::CREATED, account.cookie, result))
}

pub async fn reveal(
    State(app): State<App>,
    visitor: Visitor,
    Name(number): Name,
    headers: HeaderMap,
) -> ApiResult<Response> {
    expect_json_or_nothing(&headers)?;
    let texts = question(&app, &number)?;
    app.limiter.check(Action::Practise, &visitor.address)?;
    let account = visitor.account(&app).await?;
    app.store.reveal(&account.user, texts.card.number, UnixMs::now()).await?;
    Ok(reply(StatusCode::OK, account.cookie, texts.model.clone()))
}

fn question<'a>(app: &'a App, number: &str) -> ApiResult<&'a QuestionTexts> {
    let number: u32 = number.parse().map_err(|_| Problem::not_found())?;
    app.site.questions.texts(number).ok_or_else(Problem::not_found)
}

/// Of one question, oldest first.
fn due(attempts: &[Attempt]) -> Option<i64> {
    let answers = attempts.iter().map(|a| (Quality::of(a.total, a.max, a.seen), a.at.0));
    practice::schedule(answers).map(|s| s.due_ms)
}

fn reply<T: serde::Serialize>(status: StatusCode, cookie: Option<HeaderValue>, value: T) -> Response {
    let mut response = (status, [(CACHE_CONTROL, "no-store")], axum::Json(value)).into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

fn invalid(field: &str, message: Text) -> Problem {
    Problem::invalid(vec![FieldError { field: field.to_owned(), message, line: None }])
}
