//! Instructors and grades: overrides, confirmations, blind review, statistics, grading again.

mod common;

use common::exam::{assessment, candidate, instructor, review, saved, submit};
use common::{Browser, Server};
use reqwest::StatusCode;
use ringlab_interview::api::{
    AssessmentView, QuestionStatistics, Report, ReviewItem, ReviewView, SittingView,
};
use serde_json::json;

const ANSWER: &str = "NCCL calls are asynchronous. They enqueue a kernel on the CUDA stream and return before the communication is done; \
    the host must synchronise the stream or wait for an event before it reads the result.";

/// A candidate who answered question 6 and submitted.
async fn sat(
    server: &Server,
    teacher: &mut Browser,
    test: &AssessmentView,
    label: &str,
) -> (Browser, SittingView) {
    let (mut one, view) = candidate(server, teacher, test, label).await;
    saved(&mut one, &view, 6, 0, ANSWER).await;
    submit(&mut one, &view).await;
    review(teacher, &view.id).await;
    (one, view)
}

async fn change(teacher: &mut Browser, sitting: &str, point: u32, to: u32, why: &str) -> common::Answer {
    let body = json!({ "question": 6, "point": point, "to": to, "why": why });
    teacher.post(&format!("/api/v1/review/sittings/{sitting}/overrides"), &body).await
}

async fn confirm(teacher: &mut Browser, sitting: &str) -> ReviewView {
    let answer = teacher.post(&format!("/api/v1/review/sittings/{sitting}/confirm"), &json!({})).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn an_override_needs_a_reason_is_logged_and_changes_the_total() {
    let server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    let test = assessment(&mut teacher, json!({})).await;
    let (mut one, view) = sat(&server, &mut teacher, &test, "甲").await;
    let before = review(&mut teacher, &view.id).await;
    let question = &before.report.questions[0];
    let max = question.grade.points[0].max;
    for (point, to, why) in [(0, max + 1, "why"), (99, 1, "why"), (0, 0, " ")] {
        assert_eq!(change(&mut teacher, &view.id, point, to, why).await.problem(), "invalid");
    }
    let from = question.grade.points[0].awarded;
    let to = if from == 0 { max } else { 0 };
    let after: ReviewView = change(&mut teacher, &view.id, 0, to, "the answer says so").await.json();
    let changed = &after.report.questions[0];
    assert_eq!(changed.total + from, question.total + to);
    assert_eq!(changed.grade, question.grade, "the grader's own stays as it was");
    assert_eq!((changed.overrides[0].from, changed.overrides[0].by.as_str()), (from, "teacher"));
    let log = &after.log[0];
    assert_eq!(
        (log.who.as_str(), log.why.as_str(), log.to.clone()),
        ("teacher", "the answer says so", Some(to.to_string()))
    );

    let report = format!("/api/v1/sittings/{}/report", view.id);
    assert_eq!(one.get(&report).await.problem(), "not-final");
    assert!(confirm(&mut teacher, &view.id).await.report.is_final);
    let seen: Report = one.get(&report).await.json();
    assert_eq!((seen.total, seen.is_final, seen.name.as_deref()), (after.report.total, true, Some("甲")));
    assert_eq!(change(&mut teacher, &view.id, 0, from, "again").await.problem(), "final");
    let all: Vec<QuestionStatistics> = teacher.get("/api/v1/review/statistics").await.json();
    let six = all.iter().find(|s| s.question.number == 6).unwrap();
    assert_eq!((six.answers, six.reviewed), (1, 1));
    assert_eq!(six.facility, Some(f64::from(changed.total) / 10.0));
}

#[tokio::test]
async fn two_reviewers_confirm_the_same_marks() {
    let server = Server::start();
    let (mut a, mut b) = (instructor(&server, "a").await, instructor(&server, "b").await);
    let test = assessment(&mut a, json!({ "two_reviewers": true })).await;
    let (_, view) = sat(&server, &mut a, &test, "甲").await;
    assert!(!confirm(&mut a, &view.id).await.report.is_final);
    assert_eq!(confirm(&mut a, &view.id).await.confirmed_by, ["a"], "one person is one reviewer");
    change(&mut b, &view.id, 0, 0, "not said").await;
    let now = confirm(&mut b, &view.id).await;
    assert_eq!(now.confirmed_by, ["b"], "a confirmed other marks");
    assert!(!now.report.is_final);
    let now = confirm(&mut a, &view.id).await;
    assert!(now.report.is_final && now.confirmed_by == ["b", "a"], "{:?}", now.confirmed_by);
}

#[tokio::test]
async fn blind_review_shows_no_name_until_it_is_final() {
    let server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    let test = assessment(&mut teacher, json!({ "blind": true })).await;
    let (_, view) = sat(&server, &mut teacher, &test, "Zebra Candidate").await;
    change(&mut teacher, &view.id, 0, 0, "not said").await;
    let paths = [
        "/api/v1/review".to_owned(),
        format!("/api/v1/review/sittings/{}", view.id),
        format!("/api/v1/sittings/{}/report", view.id),
    ];
    for path in &paths {
        let text = teacher.get(path).await.text;
        assert!(!text.contains("Zebra") && text.contains(&view.id), "{path}: {text}");
    }
    let of_test = format!("/api/v1/assessments/{}", test.id);
    assert!(!teacher.get(&of_test).await.text.contains(&view.id), "no way from the label to the sitting");
    confirm(&mut teacher, &view.id).await;
    for path in &paths {
        assert!(teacher.get(path).await.text.contains("Zebra"), "{path}");
    }
    assert!(teacher.get(&of_test).await.text.contains(&view.id));
}

#[tokio::test]
async fn the_least_certain_waits_first_and_what_is_final_last() {
    let server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    let test = assessment(&mut teacher, json!({})).await;
    let (_, first) = sat(&server, &mut teacher, &test, "甲").await;
    let (_, second) = sat(&server, &mut teacher, &test, "乙").await;
    confirm(&mut teacher, &first.id).await;
    let queue: Vec<ReviewItem> = teacher.get("/api/v1/review").await.json();
    let ids: Vec<&str> = queue.iter().map(|item| item.sitting.as_str()).collect();
    assert_eq!(ids, [&second.id, &first.id]);
    assert!(queue[1].is_final && queue[0].confirmed_by.is_empty());
}

#[tokio::test]
async fn grading_again_lists_what_changes_and_keeps_the_older_grades() {
    let mut server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    let test = assessment(&mut teacher, json!({})).await;
    let (_, view) = sat(&server, &mut teacher, &test, "甲").await;
    let right = review(&mut teacher, &view.id).await.report.total;
    assert!(server.command(&["regrade"]).contains("2 answers, 0 with another grade"));
    // As an older rubric might have graded it.
    server.sql("UPDATE grades SET grade = json_set(grade, '$.total', 1, '$.version', 'older') WHERE question = 6").await;
    let listed = server.command(&["regrade"]);
    assert!(
        listed.contains("question 6: 1 of 10") && listed.contains("1 with another grade (not stored"),
        "{listed}"
    );
    assert_eq!(review(&mut teacher, &view.id).await.report.total, 1, "listed, not stored");
    assert!(server.command(&["regrade", "--apply"]).contains("(stored)"));
    let now = review(&mut teacher, &view.id).await;
    assert_eq!(now.report.total, right);
    assert_eq!(now.log.last().unwrap().what, "regrade question 6");
    server.kill_and_restart();
    assert!(
        server.command(&["regrade"]).contains("0 with another grade"),
        "the older one is there and does not count"
    );
}
