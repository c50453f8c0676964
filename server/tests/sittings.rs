//! An interview session from its invitation to its end, over the API.

mod common;

use std::time::Duration;

use common::exam::{
    assessment, begin, candidate, code_path, draft, ended, instructor, invite, save, saved, sitting, submit,
};
use common::{Browser, Server};
use reqwest::StatusCode;
use ringlab_interview::api::{
    AssessmentView, Conflict, DraftVersion, InvitationView, Report, SittingState, Usable,
};
use serde_json::json;

#[tokio::test]
async fn an_invitation_is_for_one_candidate_and_its_code_is_shown_once() {
    let server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    let test = assessment(&mut teacher, json!({})).await;
    assert_eq!(test.seconds, 2 * 337, "a custom set has the screening's pace");
    let invitations = invite(&mut teacher, &test, &["甲", "乙", "丙"]).await;
    assert!(invitations.iter().all(|i| i.code.as_ref().unwrap().len() >= 32));
    let shown: AssessmentView = teacher.get(&format!("/api/v1/assessments/{}", test.id)).await.json();
    assert!(shown.invitations.len() == 3 && shown.invitations.iter().all(|i| i.code.is_none()));

    let (mut one, mut two) = (Browser::new(&server), Browser::new(&server));
    let view: InvitationView = one.get(&code_path(&invitations[0], "")).await.json();
    assert_eq!((view.usable, view.questions, view.label.as_str()), (Usable::Yes, 2, "甲"));
    assert!(one.cookie.is_none(), "looking makes no account");
    let first = begin(&mut one, &invitations[0], "A. Person").await;
    assert_eq!((first.name.as_str(), first.state), ("A. Person", SittingState::Running));
    assert!(first.questions.iter().all(|q| q.prompt.zh.contains("<p>") && q.draft.version == 0));
    assert!(first.ends_ms - first.started_ms == 674_000 && first.now_ms >= first.started_ms);
    assert_eq!(begin(&mut one, &invitations[0], "").await.id, first.id, "said again, the same sitting");
    let answer = two.post(&code_path(&invitations[0], "/start"), &json!({})).await;
    assert_eq!((answer.status, answer.problem().as_str()), (StatusCode::CONFLICT, "invitation-taken"));
    assert!(two.cookie.is_none(), "and no account was made for it");
    assert_eq!(two.get(&format!("/api/v1/sittings/{}", first.id)).await.problem(), "not-found");
    assert_eq!(save(&mut two, &first, 6, "a", 0, "x").await.problem(), "not-found");

    let revoked =
        teacher.post(&format!("/api/v1/invitations/{}/revoke", invitations[1].id), &json!(null)).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    assert_eq!(
        two.post(&code_path(&invitations[1], "/start"), &json!({})).await.problem(),
        "invitation-revoked"
    );
    teacher.post(&format!("/api/v1/assessments/{}/close", test.id), &json!(null)).await;
    assert_eq!(
        two.post(&code_path(&invitations[2], "/start"), &json!({})).await.problem(),
        "invitation-closed"
    );
    assert_eq!(sitting(&mut one, &first.id).await.state, SittingState::Running, "whoever began goes on");
    assert_eq!(two.get("/api/v1/invitations/by-code/nonsense").await.problem(), "invitation");
    for path in ["/api/v1/assessments", "/api/v1/review", "/api/v1/review/statistics"] {
        assert!([401, 403].contains(&one.get(path).await.status.as_u16()), "{path}");
    }
}

#[tokio::test]
async fn an_assessment_that_cannot_be_sat_names_what_is_wrong() {
    let server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    for (set, field) in [
        (json!({ "kind": "custom", "questions": [] }), "set"),
        (json!({ "kind": "custom", "questions": [6, 6] }), "set"),
        (json!({ "kind": "custom", "questions": [99] }), "set"),
        (json!({ "kind": "senior", "last": 3 }), "set"),
    ] {
        let answer = teacher.post("/api/v1/assessments", &json!({ "title": "T", "set": set })).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{set}");
        assert_eq!(answer.json::<serde_json::Value>()["errors"][0]["field"], field);
    }
    let full = teacher.post("/api/v1/assessments", &json!({ "title": " ", "set": { "kind": "full" } })).await;
    assert_eq!(full.json::<serde_json::Value>()["errors"][0]["field"], "title");
}

#[tokio::test]
async fn two_tabs_overwrite_nothing_unseen_and_history_keeps_what_went() {
    let server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    let test = assessment(&mut teacher, json!({})).await;
    let (mut one, view) = candidate(&server, &mut teacher, &test, "甲").await;
    assert_eq!(saved(&mut one, &view, 6, 0, "first").await.version, 1);
    assert_eq!(saved(&mut one, &view, 6, 0, "first").await.version, 1, "said again, nothing new");
    assert_eq!(saved(&mut one, &view, 6, 0, "second").await.version, 2, "its own answer was lost");
    let answer = save(&mut one, &view, 6, "b", 1, "of the other tab").await;
    assert_eq!((answer.status, answer.problem().as_str()), (StatusCode::CONFLICT, "draft-conflict"));
    let Conflict { current } = answer.json();
    assert_eq!((current.version, current.text.as_str()), (2, "second"));
    assert_eq!(save(&mut one, &view, 6, "b", 2, "merged").await.status, StatusCode::OK);
    assert_eq!(save(&mut one, &view, 6, "a", 2, "late").await.problem(), "draft-conflict");
    assert_eq!(save(&mut one, &view, 6, "a", 9, "from nowhere").await.problem(), "draft-conflict");
    assert_eq!(draft(&sitting(&mut one, &view.id).await, 6).text, "merged");
    let path = format!("/api/v1/sittings/{}/drafts/6/history", view.id);
    let history: Vec<DraftVersion> = one.get(&path).await.json();
    let texts: Vec<&str> = history.iter().map(|v| v.text.as_str()).collect();
    assert_eq!(texts, ["merged", "second"], "what another tab replaced");

    assert_eq!(save(&mut one, &view, 7, "a", 0, "x").await.problem(), "not-found", "not asked here");
    let long = "长".repeat(20_001);
    assert_eq!(save(&mut one, &view, 31, "a", 0, &long).await.problem(), "invalid");
    saved(&mut one, &view, 31, 0, &long[3..]).await;
}

#[tokio::test]
async fn a_submission_is_final_and_its_report_comes_at_once_where_promised() {
    let server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    let test = assessment(&mut teacher, json!({ "report_at_once": true })).await;
    let (mut one, view) = candidate(&server, &mut teacher, &test, "甲").await;
    let report = format!("/api/v1/sittings/{}/report", view.id);
    saved(
        &mut one,
        &view,
        6,
        0,
        "NCCL calls are asynchronous: they enqueue work on a stream and return before it is done.",
    )
    .await;
    assert_eq!(one.get(&report).await.problem(), "still-running");
    let events = format!("/api/v1/sittings/{}/events", view.id);
    let body =
        json!([{ "kind": "opened", "question": 6 }, { "kind": "pasted", "question": 6, "characters": 900 }]);
    assert_eq!(one.post(&events, &body).await.status, StatusCode::NO_CONTENT);
    let elsewhere = one.post(&events, &json!([{ "kind": "left", "question": 1 }])).await;
    assert_eq!(elsewhere.problem(), "invalid");
    let done = submit(&mut one, &view).await;
    assert_eq!(done.state, SittingState::Submitted);
    assert_eq!(submit(&mut one, &view).await.ended_ms, done.ended_ms, "said again, the same");
    let answer = save(&mut one, &view, 6, "a", 1, "more").await;
    assert_eq!((answer.status, answer.problem().as_str()), (StatusCode::GONE, "submitted"));
    assert_eq!(one.post(&events, &body).await.problem(), "submitted");
    common::exam::review(&mut teacher, &view.id).await;
    let report: Report = one.get(&report).await.json();
    assert!(report.questions.len() == 2 && report.max == 20 && !report.is_final, "{report:?}");
    assert!(report.questions[0].total > 0 && report.questions[1].total == 0);
    assert_eq!(report.events.len(), 1, "what was opened says only for how long");
    assert!(sitting(&mut one, &view.id).await.report);
}

#[tokio::test]
async fn the_clock_ends_a_sitting_and_refuses_what_comes_later() {
    let server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    let test = assessment(&mut teacher, json!({ "seconds": 1 })).await;
    let (mut one, view) = candidate(&server, &mut teacher, &test, "甲").await;
    saved(&mut one, &view, 6, 0, "in time").await;
    tokio::time::sleep(Duration::from_millis(3_200)).await;
    let answer = save(&mut one, &view, 6, "a", 1, "too late").await;
    assert_eq!((answer.status, answer.problem().as_str()), (StatusCode::GONE, "time-over"));
    let view = ended(&mut one, &view.id).await;
    assert_eq!((view.state, view.ended_ms), (SittingState::TimeOver, Some(view.ends_ms)));
    assert_eq!(draft(&view, 6).text, "in time");
    assert_eq!(submit(&mut one, &view).await.state, SittingState::TimeOver, "stays as it ended");
    let report = format!("/api/v1/sittings/{}/report", view.id);
    common::exam::review(&mut teacher, &view.id).await;
    assert_eq!(one.get(&report).await.problem(), "not-final");
}
