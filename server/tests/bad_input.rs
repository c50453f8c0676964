//! Whatever is sent to whichever route: a problem that says what is wrong, never a 500, and a server that goes on.

mod common;

use common::{Browser, Server};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue};

const ID: &str = "0190a0a0-0000-7000-8000-000000000000";

fn routes(own: &str) -> Vec<(Method, String)> {
    let mut routes = Vec::new();
    for id in [own, ID, "1", "%00", "%ff%fe", "..%2f..%2fetc", "🦀", "' OR 1=1 --"] {
        for (method, path) in [
            (Method::GET, ""),
            (Method::GET, "/events?after=nonsense"),
            (Method::GET, "/artifacts/%2e%2e%2fringlab.db"),
            (Method::GET, "/artifacts/%ff"),
            (Method::GET, "/perfetto"),
            (Method::POST, "/answers"),
            (Method::POST, "/cancel"),
        ] {
            routes.push((method, format!("/api/v1/jobs/{id}{path}")));
        }
        routes.push((Method::POST, format!("/api/v1/labs/{id}/verify")));
    }
    for path in ["/jobs", "/labs/busbw/verify", "/labs/ring-allreduce/verify"] {
        routes.push((Method::POST, format!("/api/v1{path}")));
    }
    routes
}

fn bodies() -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = [
        "",
        "null",
        "0",
        "\"\"",
        "[]",
        "{}",
        "{",
        "{\"lab\"",
        "{\"lab\":\"busbw\"}{",
        "{\"lab\":null}",
        "{\"lab\":\"\"}",
        "{\"lab\":\"..\"}",
        "{\"lab\":\"busbw\",\"unknown\":1}",
        "{\"lab\":\"busbw\",\"params\":null}",
        "{\"lab\":\"busbw\",\"params\":{\"backend\":1e308}}",
        "{\"lab\":\"busbw\",\"params\":{\"backend\":1e999}}",
        "{\"lab\":\"busbw\",\"params\":{\"backend\":[[[[]]]],\"x\":{}}}",
        "{\"lab\":\"busbw\",\"params\":{\"\":99999999999999999999999999}}",
        "{\"lab\":\"busbw\",\"prediction\":{\"a\":-0.0}}",
        "{\"lab\":\"busbw\",\"code\":7}",
        "{\"lab\":\"busbw\",\"code\":\"\\u0000\\ud83e\\udd80\"}",
        "{\"lab\":\"busbw\",\"code\":\"\\ud800\"}",
        "{\"lab\":\"ring-allreduce\",\"params\":{\"ranks\":18446744073709551615},\"code\":\"plan\"}",
        "{\"lab\":\"ring-allreduce\",\"params\":{\"ranks\":-1}}",
        "{\"params\":{},\"code\":\"plan x v1\\n\"}",
        "{\"params\":{\"ranks\":4},\"code\":\"plan x v1\\nrank 0:\\n  send\\n\"}",
        "{\"params\":{\"ranks\":1e300},\"code\":\"\"}",
        "{\"answers\":null}",
        "{\"answers\":{\"algbw_a\":\"NaN\"}}",
        "{\"answers\":{\"algbw_a\":1e308,\"broken_row\":9223372036854775808}}",
    ]
    .map(|b| b.as_bytes().to_vec())
    .into();
    bodies.push(b"{\"lab\":\"\xff\xfe\"}".to_vec());
    bodies.push([b"[".repeat(20_000), b"]".repeat(20_000)].concat());
    bodies.push([b"{\"code\":\"".to_vec(), b"x".repeat(300 << 10), b"\"}".to_vec()].concat());
    bodies
}

#[tokio::test]
async fn nothing_makes_the_server_fail() {
    let server = Server::start_with(&["--max-active-jobs", "100000"]);
    let mut browser = Browser::new(&server);
    let own = browser.submit().await.id;
    let bodies = bodies();
    let mut seen = 0;
    for (method, path) in routes(&own) {
        // Text after the path is sent as it is: the client's own escaping would hide what is tested.
        let send = |body: Option<&Vec<u8>>, media_type: &str| {
            let mut request = browser.request(method.clone(), &path);
            if let Some(body) = body {
                request = request.header(CONTENT_TYPE, media_type).body(body.clone());
            }
            request
        };
        let mut requests = vec![send(None, "")];
        if method == Method::POST {
            requests.extend(bodies.iter().map(|b| send(Some(b), "application/json")));
            let wrong_types = [
                "text/plain",
                "application/x-www-form-urlencoded",
                "application/json; charset=latin1",
                "\u{e9}",
            ];
            requests.extend(wrong_types.map(|t| send(bodies.get(5), t)));
        }
        for request in requests {
            let answer = browser.clone().send(request).await;
            let status = answer.status.as_u16();
            assert!(status < 500, "{method} {path}: {answer:?}");
            if status >= 400 {
                answer.problem();
            }
            seen += 1;
        }
    }
    assert!(seen > 900, "{seen} requests");
    assert_eq!(browser.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn every_error_is_a_problem() {
    let server = Server::start();
    let browser = Browser::new(&server);
    let job = format!("/api/v1/jobs/{ID}");
    let plain = [
        (Method::GET, "/api/v1".to_owned(), 404, "not-found"),
        (Method::GET, "/api/v1/".into(), 404, "not-found"),
        (Method::GET, "/api/v1/nothing".into(), 404, "not-found"),
        (Method::DELETE, "/api/v1/jobs".into(), 405, "method"),
        (Method::PUT, job.clone(), 405, "method"),
        (Method::POST, "/api/v1/runners".into(), 405, "method"),
        (Method::GET, "/api/v1/labs/busbw/verify".into(), 405, "method"),
        (Method::GET, "/api/v1/runner".into(), 401, "runner-token"),
        (Method::PUT, format!("/api/v1/runner/artifacts/{}", "0".repeat(64)), 401, "runner-token"),
        (Method::POST, "/api/v1/jobs".into(), 415, "media-type"),
    ];
    for (method, path, status, kind) in plain {
        let answer = browser.clone().send(browser.request(method.clone(), &path)).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (status, kind), "{method} {path}");
        assert_eq!(answer.header("allow").is_empty(), status != 405, "{path}");
    }
    let json = |body: &'static str| {
        browser.request(Method::POST, "/api/v1/jobs").header(CONTENT_TYPE, "application/json").body(body)
    };
    for (request, status, kind) in [
        (json("{"), 400, "malformed"),
        (json("{\"lab\":7}"), 422, "invalid"),
        (json("{\"lab\":\"no such lab\"}"), 422, "invalid"),
        (json("{\"lab\":\"busbw\"}").header("origin", "http://elsewhere"), 403, "cross-site"),
        (json("{\"lab\":\"busbw\"}").header("sec-fetch-site", "cross-site"), 403, "cross-site"),
        (
            json("{\"lab\":\"busbw\"}").header("origin", HeaderValue::from_bytes(b"\xff").unwrap()),
            403,
            "cross-site",
        ),
        (
            browser
                .request(Method::POST, &format!("{job}/cancel"))
                .header(CONTENT_TYPE, "text/plain")
                .body("x"),
            415,
            "media-type",
        ),
    ] {
        let answer = browser.clone().send(request).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (status, kind), "{answer:?}");
        assert!(!answer.header("x-request-id").is_empty());
    }
    let runner = browser.request(Method::GET, "/api/v1/runner").bearer_auth(common::TOKEN);
    let answer = browser.clone().send(runner).await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (426, "websocket"));
}

#[tokio::test]
async fn a_strange_cookie_is_a_strangers() {
    let server = Server::start();
    for cookie in ["ringlab=", "ringlab=x", "; ;=;ringlab", &format!("ringlab={}", "0".repeat(64))] {
        let mut browser = Browser { cookie: Some(cookie.to_owned()), ..Browser::new(&server) };
        assert_eq!(browser.get("/api/v1/jobs").await.text, "[]", "{cookie}");
        browser.submit().await;
        assert_ne!(browser.cookie.as_deref(), Some(cookie), "it gets its own");
    }
}
