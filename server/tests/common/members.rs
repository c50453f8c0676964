//! Browsers of people with an account.

use std::io::Write as _;
use std::process::Stdio;

use reqwest::StatusCode;
use serde_json::json;

use super::{Browser, Server};

pub const PASSWORD: &str = "correct horse battery";

/// Signs the browser's guest up.
pub async fn sign_up(browser: &mut Browser, email: &str) {
    let body = json!({ "email": email, "password": PASSWORD, "display_name": email });
    let answer = browser.post("/api/v1/account/sign-up", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
}

pub async fn sign_in(browser: &mut Browser, email: &str) {
    let answer =
        browser.post("/api/v1/account/sign-in", &json!({ "email": email, "password": PASSWORD })).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
}

/// Makes an account with a role on the command line, and signs a browser in to it.
pub async fn make(server: &Server, email: &str, role: &str) -> Browser {
    let mut command = server.program();
    command.args(["account", "create", "--email", email, "--role", role, "--password-stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let mut browser = Browser::new(server);
    sign_in(&mut browser, email).await;
    browser
}
