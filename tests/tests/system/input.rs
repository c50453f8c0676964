//! Bad input at every API: a problem that says what to do, never a 500, and the server goes on.

use ringlab_tests::client::Answer;
use ringlab_tests::system::System;
use serde_json::{Value, json};

const NO_JOB: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

fn assert_problem(answer: &Answer, what: &str) {
    assert!((400..500).contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
    assert_eq!(answer.media_type, "application/problem+json", "{what}: {}", answer.text());
    let problem = answer.json().unwrap();
    assert_eq!(problem["status"], answer.status, "{what}");
    assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{what}: {problem}");
}

#[tokio::test]
async fn every_route_answers_bad_bodies_with_a_problem() {
    let system = System::start().await.unwrap();
    let client = system.client().unwrap();
    let routes = [
        "/api/v1/jobs".to_owned(),
        format!("/api/v1/jobs/{NO_JOB}/answers"),
        format!("/api/v1/jobs/{NO_JOB}/cancel"),
        "/api/v1/labs/ring-allreduce/verify".into(),
        "/api/v1/labs/nothing/verify".into(),
    ];
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("{{\"code\":\"{}\"}}", "x".repeat(3_000_000));
    let bodies: [&[u8]; 12] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\"x\"",
        b"1e999",
        b"{\"lab\":1}",
        b"{\"lab\":\"ring-allreduce\",\"extra\":1}",
        b"\xff\xfe{",
        b"{\"lab\":\"\\u0000\"}",
        deep.as_bytes(),
        long.as_bytes(),
    ];
    for route in &routes {
        for body in bodies {
            let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
            let request = client.request("POST", route).unwrap();
            let request = request.header("content-type", "application/json").body(body.to_vec());
            assert_problem(&client.send(request).await.unwrap(), &format!("POST {route} {shown}"));
        }
        let plain = client.request("POST", route).unwrap().header("content-type", "text/plain").body("{}");
        assert_problem(&client.send(plain).await.unwrap(), &format!("POST {route} as text"));
        assert_problem(
            &client.send(client.request("DELETE", route).unwrap()).await.unwrap(),
            &format!("DELETE {route}"),
        );
    }
    assert_problem(&client.post("/api/v1/nothing", &json!({})).await.unwrap(), "an unknown route");
    for path in [
        "/api/v1/jobs/x",
        "/api/v1/jobs/%00",
        "/api/v1/jobs/../../etc/passwd",
        "/api/v1/jobs/x/events",
        "/api/v1/jobs/x/artifacts/%2e%2e",
    ] {
        assert_problem(&client.get(path).await.unwrap(), path);
    }
    assert_eq!(client.get("/healthz").await.unwrap().status, 200);
}

#[tokio::test]
async fn every_field_of_a_lab_form_is_checked_and_named() {
    let system = System::start().await.unwrap();
    let client = system.client().unwrap();
    let good = serde_json::to_value(crate::ring("107520")).unwrap();
    let nasty = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!("<script>"),
        json!([1, [2]]),
        json!({"a": 1}),
        json!(true),
        json!(4.5),
    ];
    for part in ["params", "prediction"] {
        for field in good[part].as_object().unwrap().keys() {
            for value in &nasty {
                // A parameter that is null takes its default.
                if part == "params" && value.is_null() {
                    continue;
                }
                let mut body = good.clone();
                body[part][field] = value.clone();
                let answer = client.post("/api/v1/jobs", &body).await.unwrap();
                assert_problem(&answer, &format!("{part}.{field} = {value}"));
                assert_eq!(answer.status, 422, "{part}.{field} = {value}: {}", answer.text());
                let problem = answer.json().unwrap();
                let named = problem["errors"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|e| e["field"] == format!("{part}.{field}"));
                assert!(named, "{part}.{field} = {value}: {problem}");
            }
        }
        let mut body = good.clone();
        body[part]["no_such_field"] = json!(1);
        assert_eq!(client.post("/api/v1/jobs", &body).await.unwrap().status, 422);
    }
    let unknown = json!({"lab": "no-such-lab"});
    let answer = client.post("/api/v1/jobs", &unknown).await.unwrap();
    assert_problem(&answer, "unknown lab");
    assert_eq!(
        client
            .get("/api/v1/jobs")
            .await
            .unwrap()
            .json()
            .unwrap_or(Value::Null)
            .as_array()
            .map_or(0, Vec::len),
        0
    );
}

#[tokio::test]
async fn another_site_cannot_write_for_the_visitor() {
    let system = System::start().await.unwrap();
    let client = system.client().unwrap();
    let body = serde_json::to_vec(&crate::ring("107520")).unwrap();
    let request = client.request("POST", "/api/v1/jobs").unwrap().header("content-type", "application/json");
    let answer = client.send(request.header("origin", "https://elsewhere.example").body(body)).await.unwrap();
    assert_problem(&answer, "cross-site POST");
    assert_eq!(answer.status, 403);
}

#[tokio::test]
async fn a_runner_without_the_token_gets_nothing() {
    let system = System::start().await.unwrap();
    let client = system.client().unwrap();
    for token in ["", "Bearer ", "Bearer wrong", "Basic eDp5"] {
        let sha = "0".repeat(64);
        for (method, path) in
            [("GET", "/api/v1/runner".to_owned()), ("PUT", format!("/api/v1/runner/artifacts/{sha}"))]
        {
            let request = client.request(method, &path).unwrap().header("authorization", token).body("x");
            assert_problem(&client.send(request).await.unwrap(), &format!("{method} {path} with {token:?}"));
        }
    }
}
