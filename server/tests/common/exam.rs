//! Instructors and candidates of interview sessions.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use ringlab_interview::api::{
    AssessmentView, Draft, Invitation, ReviewView, Saved, SittingState, SittingView,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::Connection as _;

use super::{Answer, Browser, SOON, Server};

/// Someone with an account and a role, made behind the server's back.
pub async fn instructor(server: &Server, name: &str) -> Browser {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(server.data.join("ringlab.db"));
    let mut db = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    let token = format!("{:064x}", u128::from_le_bytes(*uuid::Uuid::now_v7().as_bytes()));
    sqlx::query("INSERT INTO users (id, kind, role, email, display_name, created_ms) VALUES (?1, 'member', 'instructor', ?1, ?1, 0)")
        .bind(name)
        .execute(&mut db)
        .await
        .unwrap();
    sqlx::query(
        "INSERT INTO sessions (token_hash, user_id, created_ms, seen_ms) VALUES (?, ?, 0, 9000000000000)",
    )
    .bind(&Sha256::digest(token.as_bytes())[..])
    .bind(name)
    .execute(&mut db)
    .await
    .unwrap();
    db.close().await.unwrap();
    Browser { cookie: Some(format!("ringlab={token}")), ..Browser::new(server) }
}

/// An assessment of questions 6 and 31, with what `more` says.
pub async fn assessment(instructor: &mut Browser, more: Value) -> AssessmentView {
    let mut body = json!({ "title": "Trial", "set": { "kind": "custom", "questions": [6, 31] } });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = instructor.post("/api/v1/assessments", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    answer.json()
}

pub async fn invite(
    instructor: &mut Browser,
    assessment: &AssessmentView,
    labels: &[&str],
) -> Vec<Invitation> {
    let path = format!("/api/v1/assessments/{}/invitations", assessment.id);
    let answer = instructor.post(&path, &json!({ "labels": labels })).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    answer.json()
}

pub fn code_path(invitation: &Invitation, end: &str) -> String {
    format!("/api/v1/invitations/by-code/{}{end}", invitation.code.as_ref().expect("shown once"))
}

pub async fn begin(candidate: &mut Browser, invitation: &Invitation, name: &str) -> SittingView {
    let answer = candidate.post(&code_path(invitation, "/start"), &json!({ "name": name })).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.json()
}

/// A candidate who began with a fresh invitation.
pub async fn candidate(
    server: &Server,
    instructor: &mut Browser,
    assessment: &AssessmentView,
    label: &str,
) -> (Browser, SittingView) {
    let invitation = invite(instructor, assessment, &[label]).await.remove(0);
    let mut candidate = Browser::new(server);
    let sitting = begin(&mut candidate, &invitation, "").await;
    (candidate, sitting)
}

pub async fn save(
    candidate: &mut Browser,
    sitting: &SittingView,
    question: u32,
    tab: &str,
    base: u64,
    text: &str,
) -> Answer {
    let path = format!("/api/v1/sittings/{}/drafts/{question}", sitting.id);
    let body = json!({ "tab": tab, "base": base, "text": text }).to_string();
    let request = candidate.request(Method::PUT, &path).header(CONTENT_TYPE, "application/json").body(body);
    candidate.send(request).await
}

pub async fn saved(
    candidate: &mut Browser,
    sitting: &SittingView,
    question: u32,
    base: u64,
    text: &str,
) -> Saved {
    let answer = save(candidate, sitting, question, "a", base, text).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.json()
}

pub async fn sitting(candidate: &mut Browser, id: &str) -> SittingView {
    candidate.get(&format!("/api/v1/sittings/{id}")).await.json()
}

pub fn draft(sitting: &SittingView, question: u32) -> Draft {
    sitting.questions.iter().find(|q| q.question.number == question).unwrap().draft.clone()
}

pub async fn submit(candidate: &mut Browser, sitting: &SittingView) -> SittingView {
    let answer = candidate.post(&format!("/api/v1/sittings/{}/submit", sitting.id), &json!(null)).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.json()
}

/// Until the clock ended it.
pub async fn ended(candidate: &mut Browser, id: &str) -> SittingView {
    let start = std::time::Instant::now();
    loop {
        let view = sitting(candidate, id).await;
        if view.state != SittingState::Running {
            return view;
        }
        assert!(start.elapsed() < SOON, "still running");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// The review of a sitting, once it is graded.
pub async fn review(instructor: &mut Browser, sitting: &str) -> ReviewView {
    let start = std::time::Instant::now();
    loop {
        let answer = instructor.get(&format!("/api/v1/review/sittings/{sitting}")).await;
        if answer.status == StatusCode::OK {
            return answer.json();
        }
        assert_eq!(answer.problem(), "not-graded");
        assert!(start.elapsed() < SOON, "not graded");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
