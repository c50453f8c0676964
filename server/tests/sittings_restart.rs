//! A killed server loses no acknowledged draft, ends what ended meanwhile, and grades what it owes.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::Server;
use common::exam::{assessment, candidate, draft, ended, instructor, review, save, saved, sitting, submit};
use reqwest::StatusCode;
use ringlab_interview::api::{Saved, SittingState};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_draft_survives_kill_9_in_the_middle_of_saving() {
    let mut server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    let test = assessment(&mut teacher, json!({})).await;
    let mut writers = Vec::new();
    for n in 0..8 {
        let (browser, view) = candidate(&server, &mut teacher, &test, &format!("candidate {n}")).await;
        let last = Arc::new(Mutex::new((0, String::new())));
        let (seen, typing, id) = (last.clone(), browser.clone(), view.clone());
        let task = tokio::spawn(async move {
            for i in 0.. {
                let text = format!("text {i} of {n}");
                let path = format!("/api/v1/sittings/{}/drafts/6", id.id);
                let base = seen.lock().unwrap().0;
                let body = json!({ "tab": "a", "base": base, "text": text }).to_string();
                let request = typing
                    .request(reqwest::Method::PUT, &path)
                    .header("content-type", "application/json")
                    .body(body);
                // The server dies under some request; whatever was answered before must be there.
                let Ok(response) = request.send().await else { return };
                match response.status() {
                    StatusCode::OK => {}
                    // Faster than anyone types.
                    StatusCode::TOO_MANY_REQUESTS => {
                        tokio::time::sleep(Duration::from_millis(250)).await;
                        continue;
                    }
                    status => panic!("{status}"),
                }
                let Ok(saved) = response.json::<Saved>().await else { return };
                *seen.lock().unwrap() = (saved.version, text);
            }
        });
        writers.push((browser, view, last, task));
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    server.kill_and_restart();
    for (browser, view, last, task) in writers {
        task.await.unwrap();
        let mut browser = browser.at(&server);
        let stored = draft(&sitting(&mut browser, &view.id).await, 6);
        let (version, text) = last.lock().unwrap().clone();
        assert!(version > 0, "something was saved");
        // The save whose answer never came may be stored as well.
        assert!(
            stored.version == version && stored.text == text || stored.version == version + 1,
            "{stored:?} {version} {text}"
        );
        let again = save(&mut browser, &view, 6, "a", stored.version, "after the restart").await;
        assert_eq!(again.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn after_a_restart_what_is_over_ends_and_what_is_ungraded_is_graded() {
    let mut server = Server::start();
    let mut teacher = instructor(&server, "teacher").await;
    let short = assessment(&mut teacher, json!({ "seconds": 1 })).await;
    let long = assessment(&mut teacher, json!({})).await;
    let (mut one, first) = candidate(&server, &mut teacher, &short, "甲").await;
    let (mut two, second) = candidate(&server, &mut teacher, &long, "乙").await;
    saved(&mut one, &first, 6, 0, "saved before the kill").await;
    submit(&mut two, &second).await;
    review(&mut teacher, &second.id).await;
    // As a server leaves it that dies between the end and the grades.
    server.sql("DELETE FROM grades").await;
    server.sql("UPDATE sittings SET graded_ms = NULL").await;
    server.kill_and_restart();
    tokio::time::sleep(Duration::from_millis(2_700)).await;
    let (mut teacher, mut one) = (teacher.at(&server), one.at(&server));
    assert_eq!(ended(&mut one, &first.id).await.state, SittingState::TimeOver);
    for id in [&first.id, &second.id] {
        let review = review(&mut teacher, id).await;
        assert_eq!(review.report.questions.len(), 2);
    }
}
