//! A job from submission to marks, through the API alone.

use ringlab_labs::api::JobState;
use ringlab_labs::job::Verdict;
use ringlab_tests::system::System;
use serde_json::{Value, json};

use crate::ring;

#[tokio::test]
async fn a_right_prediction_earns_its_marks_on_a_real_run() {
    let system = System::with_runner().await.unwrap();
    let client = system.client().unwrap();
    let job = client.submit(&ring("860160")).await.unwrap();
    let done = client.finished(&job.id).await.unwrap();
    assert!(matches!(done.state, JobState::Done), "{:?}\n{}", done.state, system.logs());
    let result = done.result.expect("a result");
    assert!(result.tasks.iter().all(|task| task.wrong == 0 && task.elements > 0), "{result:?}");
    let marks = done.marks.expect("marks");
    let verdict = |id: &str| marks.checks.iter().find(|check| check.id == id).map(|check| check.verdict);
    for id in ["correct", "steps", "bytes", "traffic"] {
        assert_eq!(verdict(id), Some(Verdict::Pass), "{id}: {marks:?}");
    }
    // The lab's own plan ran, not one the learner wrote.
    assert_eq!(verdict("own_plan"), Some(Verdict::Fail));

    for artifact in &done.artifacts {
        let file = client.get(&format!("/api/v1/jobs/{}/artifacts/{}", job.id, artifact.name)).await.unwrap();
        assert_eq!((file.status, file.body.len() as u64), (200, artifact.bytes), "{artifact:?}");
    }
    let perfetto = client.get(&format!("/api/v1/jobs/{}/perfetto", job.id)).await.unwrap();
    assert_eq!(perfetto.status, 200);
    assert!(perfetto.json().unwrap()["traceEvents"].as_array().is_some_and(|events| events.len() > 24));
}

#[tokio::test]
async fn a_wrong_plan_is_refused_with_its_line_before_anything_runs() {
    let system = System::start().await.unwrap();
    let client = system.client().unwrap();
    let lab = "ring-allreduce";
    let mut submission = ring("860160");
    // Two ranks that each wait for the other first.
    let plan = "plan mine v1\ncollective all_reduce\nranks 2\nchannels 1\nchunks 2\n\nrank 0:\n  recv from 1 output[0]\nrank 1:\n  recv from 0 output[0]\n";
    submission.params.insert("ranks".into(), json!(2));
    submission.params.insert("channels".into(), json!("1"));
    submission.code = Some(plan.into());
    let answer = client.post("/api/v1/jobs", &serde_json::to_value(&submission).unwrap()).await.unwrap();
    assert_eq!(answer.status, 422, "{}", answer.text());
    let problem = answer.json().unwrap();
    let error = &problem["errors"][0];
    assert_eq!(error["field"], "code", "{problem}");
    assert!(error["line"].is_u64(), "{problem}");
    assert!(error["message"]["zh"].is_string() && error["message"]["en"].is_string());

    let verify = json!({"params": submission.params, "code": plan});
    let report = client.post(&format!("/api/v1/labs/{lab}/verify"), &verify).await.unwrap().json().unwrap();
    assert_eq!(report["accepted"], Value::Bool(false), "{report}");
}

#[tokio::test]
async fn a_job_is_its_owners_alone() {
    let system = System::with_runner().await.unwrap();
    let (owner, stranger) = (system.client().unwrap(), system.client().unwrap());
    let job = owner.submit(&ring("107520")).await.unwrap();
    owner.finished(&job.id).await.unwrap();
    for path in ["", "/events", "/perfetto", "/artifacts/plan.txt"] {
        let answer = stranger.get(&format!("/api/v1/jobs/{}{path}", job.id)).await.unwrap();
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
}
