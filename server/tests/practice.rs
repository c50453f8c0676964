//! Practice as a browser sees it.

mod common;

use common::members::{sign_in, sign_up};
use common::{Browser, Server};
use reqwest::StatusCode;
use ringlab_interview::api::{ModelAnswer, PracticeItem, PracticeResult, PracticeView};
use ringlab_interview::practice::WAITS;
use serde_json::{Value, json};

/// Of the bank's own samples: the best answer to question 6 earns most of its points.
fn good_answer() -> String {
    let bank =
        ringlab_content::bank::Bank::load(concat!(env!("CARGO_MANIFEST_DIR"), "/..").as_ref()).unwrap();
    let samples = &bank.question(6).unwrap().samples;
    let best = samples.iter().map(|s| (bank.read(&s.text).grade(6).unwrap().total, &s.text)).max().unwrap();
    assert!(best.0 >= 8, "{best:?}");
    best.1.clone()
}

async fn view(browser: &mut Browser) -> PracticeView {
    browser.get("/api/v1/practice").await.json()
}

async fn item(browser: &mut Browser, number: u32) -> PracticeItem {
    view(browser).await.items.into_iter().find(|i| i.question.number == number).unwrap()
}

async fn answer(browser: &mut Browser, number: u32, text: &str) -> PracticeResult {
    let answer = browser.post(&format!("/api/v1/practice/{number}/answers"), &json!({ "text": text })).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn a_guest_practises_and_what_was_weak_comes_back_soon() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let before = view(&mut browser).await;
    assert!(browser.cookie.is_none(), "looking makes no account");
    assert!(before.items.len() >= 8 && before.items.iter().all(|i| i.due_ms.is_none() && i.attempts == 0));
    assert!(before.items.is_sorted_by_key(|i| i.question.number));

    let weak = answer(&mut browser, 6, "I do not know.").await;
    assert!(browser.cookie.is_some(), "the first answer makes a guest");
    assert!(weak.grade.total < 6 && weak.grade.points.len() > 1 && !weak.grade.version.is_empty());
    assert!(!weak.model.core.zh.is_empty() && !weak.model.core.en.is_empty());
    let after = view(&mut browser).await;
    let wait = weak.due_ms.unwrap() - after.now_ms;
    assert!(wait <= WAITS[0] && wait > WAITS[0] - 60_000, "{wait}");
    let last = after.items.last().unwrap();
    assert_eq!((last.question.number, last.attempts), (6, 1), "not due yet: after everything new");
    assert_eq!((last.last_total, last.due_ms), (Some(weak.grade.total), weak.due_ms));

    server.sql("UPDATE practice_answers SET at_ms = at_ms - 700000").await;
    assert_eq!(view(&mut browser).await.items[0].question.number, 6, "overdue: first");

    let strong = answer(&mut browser, 6, &good_answer()).await;
    let now = view(&mut browser).await.now_ms;
    assert!(strong.due_ms.unwrap() > now + WAITS[0], "{strong:?}");
    let item = item(&mut browser, 6).await;
    assert_eq!((item.attempts, item.best_total), (2, Some(strong.grade.total)));
    assert_eq!(strong.grade, answer(&mut Browser::new(&server), 6, &good_answer()).await.grade);
}

#[tokio::test]
async fn an_answer_after_a_reveal_counts_as_weak_once() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let shown = browser.post("/api/v1/practice/6/reveal", &json!({})).await;
    assert_eq!(shown.status, StatusCode::OK);
    let model: ModelAnswer = shown.json();
    let result = answer(&mut browser, 6, &good_answer()).await;
    assert_eq!(result.model, model);
    assert!(result.grade.total >= 8, "it gets its marks");
    let now = view(&mut browser).await.now_ms;
    assert!(result.due_ms.unwrap() <= now + WAITS[0], "but comes back soon");
    server.sql("UPDATE practice_answers SET at_ms = at_ms - 700000").await;
    let again = answer(&mut browser, 6, &good_answer()).await;
    assert!(again.due_ms.unwrap() > now + WAITS[0], "the reveal is used up");

    browser.post("/api/v1/practice/13/reveal", &json!({})).await;
    assert_eq!(item(&mut browser, 13).await.due_ms, None, "a reveal alone is no attempt");
    server.sql("UPDATE practice_reveals SET at_ms = at_ms - 86500000").await;
    let export: Value = browser.get("/api/v1/account/export").await.json();
    assert_eq!(export["practice_reveals"].as_array().unwrap().len(), 1);
    assert_eq!(export["practice_answers"][0]["seen"], 1);
    assert_eq!(export["practice_answers"][0]["version"], again.grade.version);
}

#[tokio::test]
async fn a_follow_up_has_its_own_grade_and_leaves_the_questions_time_alone() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let path = "/api/v1/practice/6/answers";
    let result: PracticeResult =
        browser.post(path, &json!({ "text": "Not so.", "follow_up": 1 })).await.json();
    assert_eq!(result.due_ms, None);
    assert_eq!(item(&mut browser, 6).await.attempts, 0);
    for (body, field) in [
        (json!({ "text": "x", "follow_up": 9 }), "follow_up"),
        (json!({ "text": "x", "follow_up": 0 }), "follow_up"),
        (json!({ "text": "  " }), "text"),
        (json!({ "text": "长".repeat(20_001) }), "text"),
    ] {
        let refused = browser.post(path, &body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
        assert_eq!(refused.json::<ringlab_labs::api::Problem>().errors[0].field, field);
    }
    for number in ["0", "55", "-1", "six", "4294967296"] {
        let path = format!("/api/v1/practice/{number}/reveal");
        assert_eq!(browser.post(&path, &json!({})).await.status, StatusCode::NOT_FOUND, "{number}");
    }
}

#[tokio::test]
async fn a_guests_practice_comes_along_at_sign_in() {
    let server = Server::start();
    let (mut home, mut away) = (Browser::new(&server), Browser::new(&server));
    sign_up(&mut home, "ada@example.org").await;
    answer(&mut home, 6, "I do not know.").await;
    home.post("/api/v1/practice/6/reveal", &json!({})).await;
    answer(&mut away, 6, "I do not know either.").await;
    answer(&mut away, 13, "Nor this.").await;
    away.post("/api/v1/practice/6/reveal", &json!({})).await;
    sign_in(&mut away, "ada@example.org").await;
    assert_eq!(item(&mut home, 6).await.attempts, 2);
    assert_eq!(item(&mut home, 13).await.attempts, 1);
    assert_eq!(
        home.post("/api/v1/account/delete", &json!({ "password": common::members::PASSWORD })).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(item(&mut away, 6).await.attempts, 0);
}
