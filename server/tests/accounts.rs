//! Accounts as a browser sees them: signing up, in and out, and what stays whose.

mod common;

use std::time::{Duration, Instant};

use common::members::{PASSWORD, make, sign_in, sign_up};
use common::{Browser, Server};
use reqwest::StatusCode;
use ringlab_interview::api::{AccountView, Role};
use ringlab_labs::api::JobView;
use serde_json::{Value, json};

async fn jobs(browser: &mut Browser) -> Vec<String> {
    browser.get("/api/v1/jobs").await.json::<Vec<JobView>>().into_iter().map(|j| j.id).collect()
}

async fn account(browser: &mut Browser) -> AccountView {
    browser.get("/api/v1/account").await.json()
}

#[tokio::test]
async fn a_guest_who_signs_up_keeps_their_work_and_gets_a_new_session() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    assert_eq!(account(&mut browser).await.id, None);
    assert!(browser.cookie.is_none(), "asking makes no account");
    let job = browser.submit().await;
    let guest = account(&mut browser).await;
    assert!(guest.id.is_some() && guest.email.is_none());
    let mut stale = browser.clone();
    sign_up(&mut browser, " Ada@Example.org ").await;
    let member = account(&mut browser).await;
    assert_eq!((member.id, member.email.as_deref()), (guest.id, Some("ada@example.org")));
    assert_eq!(member.role, Role::Learner);
    assert_eq!(jobs(&mut browser).await, [job.id]);
    assert_ne!(stale.cookie, browser.cookie);
    assert_eq!(jobs(&mut stale).await.len(), 0, "the guest's cookie opens nothing any more");

    let again = browser
        .post(
            "/api/v1/account/sign-up",
            &json!({ "email": "b@b", "password": PASSWORD, "display_name": "B" }),
        )
        .await;
    assert_eq!((again.status, again.problem().as_str()), (StatusCode::CONFLICT, "signed-in"));
}

#[tokio::test]
async fn signing_in_brings_the_guests_work_along_and_numbers_it_on() {
    let server = Server::start_with(&["--max-active-jobs", "100"]);
    let (mut home, mut away) = (Browser::new(&server), Browser::new(&server));
    sign_up(&mut home, "ada@example.org").await;
    let mut all = vec![home.submit().await.id, home.submit().await.id];
    all.extend([away.submit().await.id, away.submit().await.id, away.submit().await.id]);
    let mut stale = away.clone();
    sign_in(&mut away, "ada@example.org").await;
    let mut seen = jobs(&mut away).await;
    assert_eq!(seen, jobs(&mut home).await, "both browsers see the same");
    seen.sort();
    all.sort();
    assert_eq!(seen, all);
    assert_eq!(jobs(&mut stale).await.len(), 0);
    let next = away.submit().await;
    assert!(!all.contains(&next.id), "the next run finds its number");
    let export: Value = away.get("/api/v1/account/export").await.json();
    let mut numbers: Vec<i64> =
        export["jobs"].as_array().unwrap().iter().map(|j| j["run_number"].as_i64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_session_from_before_the_sign_in_is_worth_nothing_after_it() {
    let server = Server::start();
    let mut victim = Browser::new(&server);
    sign_up(&mut victim, "ada@example.org").await;
    let signed_out = victim.post("/api/v1/account/sign-out", &json!({})).await;
    assert_eq!(signed_out.status, StatusCode::NO_CONTENT);
    assert_eq!(victim.cookie.as_deref(), Some("ringlab="), "the cookie is taken away");

    let mut attacker = Browser::new(&server);
    attacker.submit().await;
    victim.cookie.clone_from(&attacker.cookie);
    sign_in(&mut victim, "ada@example.org").await;
    assert_ne!(victim.cookie, attacker.cookie);
    assert_eq!(account(&mut attacker).await.id, None, "a planted cookie becomes nobody's");
}

#[tokio::test]
async fn an_unknown_address_and_a_wrong_password_look_the_same() {
    let server = Server::start();
    sign_up(&mut Browser::new(&server), "ada@example.org").await;
    let mut answers = Vec::new();
    for email in ["ada@example.org", "nobody@example.org"] {
        let mut times = Vec::new();
        for _ in 0..5 {
            let body = json!({ "email": email, "password": "not the password" });
            let start = Instant::now();
            let answer = Browser::new(&server).post("/api/v1/account/sign-in", &body).await;
            times.push(start.elapsed());
            assert_eq!((answer.status, answer.problem().as_str()), (StatusCode::UNAUTHORIZED, "credentials"));
            assert_eq!(answer.header("set-cookie"), "");
            answers.push(answer.text);
        }
        times.sort_unstable();
        println!("{email}: {:?}", times[2]);
        assert!(times[0] > Duration::from_millis(5), "{email}: a hash was computed, {times:?}");
    }
    assert!(answers.windows(2).all(|w| w[0] == w[1]), "{answers:?}");
}

#[tokio::test]
async fn guesses_run_out() {
    let server = Server::start();
    sign_up(&mut Browser::new(&server), "ada@example.org").await;
    let guess = json!({ "email": "ADA@example.org", "password": "not the password" });
    let mut refused = 0;
    for _ in 0..15 {
        let answer = Browser::new(&server).post("/api/v1/account/sign-in", &guess).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            assert_eq!(answer.problem(), "too-fast");
            assert!(!answer.header("retry-after").is_empty());
            refused += 1;
        }
    }
    assert!(refused >= 3, "{refused} of 15 refused");
    let other = json!({ "email": "eve@example.org", "password": "not the password" });
    let answer = Browser::new(&server).post("/api/v1/account/sign-in", &other).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "another address is not held up");
}

#[tokio::test]
async fn a_changed_password_ends_the_other_sessions() {
    let server = Server::start();
    let (mut one, mut two) = (Browser::new(&server), Browser::new(&server));
    sign_up(&mut one, "ada@example.org").await;
    sign_in(&mut two, "ada@example.org").await;
    let path = "/api/v1/account/password";
    let wrong = one.post(path, &json!({ "old": "not the password", "new": "another password" })).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    let problem: ringlab_labs::api::Problem = wrong.json();
    assert_eq!(problem.errors[0].field, "old");
    let weak = one.post(path, &json!({ "old": PASSWORD, "new": "short" })).await;
    assert_eq!(weak.json::<ringlab_labs::api::Problem>().errors[0].field, "new");

    let before = one.cookie.clone();
    let done = one.post(path, &json!({ "old": PASSWORD, "new": "another password" })).await;
    assert_eq!(done.status, StatusCode::NO_CONTENT);
    assert_ne!(one.cookie, before);
    assert!(account(&mut one).await.id.is_some());
    assert_eq!(account(&mut two).await.id, None);
    let old = json!({ "email": "ada@example.org", "password": PASSWORD });
    assert_eq!(two.post("/api/v1/account/sign-in", &old).await.status, StatusCode::UNAUTHORIZED);
    let guest = Browser::new(&server).post(path, &json!({ "old": "x", "new": "y" })).await;
    assert_eq!((guest.status, guest.problem().as_str()), (StatusCode::UNAUTHORIZED, "sign-in"));
}

#[tokio::test]
async fn what_is_wrong_with_a_new_account_stands_at_its_field() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let bad = json!({ "email": "ada", "password": "short", "display_name": " " });
    let answer = browser.post("/api/v1/account/sign-up", &bad).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let problem: ringlab_labs::api::Problem = answer.json();
    let fields: Vec<&str> = problem.errors.iter().map(|e| e.field.as_str()).collect();
    assert_eq!(fields, ["email", "password", "display_name"]);
    assert!(problem.errors.iter().all(|e| !e.message.zh.is_empty() && !e.message.en.is_empty()));

    sign_up(&mut Browser::new(&server), "ada@example.org").await;
    let taken = json!({ "email": "ADA@example.org", "password": PASSWORD, "display_name": "Eve" });
    let answer = browser.post("/api/v1/account/sign-up", &taken).await;
    assert_eq!(answer.json::<ringlab_labs::api::Problem>().errors[0].field, "email");
}

#[tokio::test]
async fn a_guest_is_not_signed_out_of_their_work() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    browser.submit().await;
    let refused = browser.post("/api/v1/account/sign-out", &json!({})).await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::CONFLICT, "guest"));
    assert_eq!(jobs(&mut browser).await.len(), 1);
}

#[tokio::test]
async fn an_export_holds_the_work_and_no_secret_and_deletion_ends_both() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let nobody = browser.get("/api/v1/account/export").await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
    sign_up(&mut browser, "ada@example.org").await;
    let job = browser.submit().await;
    let answer = browser.get("/api/v1/account/export").await;
    assert!(!answer.text.contains("argon2") && !answer.text.contains("token_hash"));
    assert!(answer.header("content-disposition").contains("attachment"));
    let export: Value = answer.json();
    assert_eq!(export["account"][0]["email"], "ada@example.org");
    assert_eq!(export["jobs"][0]["id"], job.id);
    assert_eq!(export["jobs"][0]["submission"]["lab"], "busbw");

    let path = "/api/v1/account/delete";
    for body in [json!({}), json!({ "password": "not the password" })] {
        assert_eq!(browser.post(path, &body).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let mut stale = browser.clone();
    let done = browser.post(path, &json!({ "password": PASSWORD })).await;
    assert_eq!(done.status, StatusCode::NO_CONTENT, "{done:?}");
    assert_eq!(account(&mut stale).await.id, None);
    assert_eq!(stale.get(&format!("/api/v1/jobs/{}", job.id)).await.status, StatusCode::NOT_FOUND);
    sign_up(&mut Browser::new(&server), "ada@example.org").await;

    let mut guest = Browser::new(&server);
    guest.submit().await;
    assert_eq!(guest.post(path, &json!({})).await.status, StatusCode::NO_CONTENT, "a guest has no password");
    assert_eq!(account(&mut guest).await.id, None);
}

#[tokio::test]
async fn roles_are_for_admins_to_give_and_every_change_is_logged() {
    let server = Server::start();
    let mut admin = make(&server, "root@example.org", "admin").await;
    let mut learner = Browser::new(&server);
    sign_up(&mut learner, "ada@example.org").await;
    let guest = Browser::new(&server).get("/api/v1/accounts").await;
    assert_eq!((guest.status, guest.problem().as_str()), (StatusCode::UNAUTHORIZED, "sign-in"));
    let refused = learner.get("/api/v1/accounts").await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::FORBIDDEN, "role"));

    let found: Vec<AccountView> = admin.get("/api/v1/accounts?email=ADA@example.org").await.json();
    let id = found[0].id.clone().unwrap();
    let path = format!("/api/v1/accounts/{id}/role");
    let change = json!({ "role": "instructor", "why": "teaches the class of 2026" });
    assert_eq!(learner.post(&path, &change).await.status, StatusCode::FORBIDDEN);
    let silent = admin.post(&path, &json!({ "role": "instructor", "why": " " })).await;
    assert_eq!(silent.status, StatusCode::UNPROCESSABLE_ENTITY);
    let changed: AccountView = admin.post(&path, &change).await.json();
    assert_eq!(changed.role, Role::Instructor);
    assert_eq!(account(&mut learner).await.role, Role::Instructor, "at once");
    let log: Value = learner.get("/api/v1/account/export").await.json();
    let entry = &log["audit_log"][0];
    assert_eq!(
        [&entry["what"], &entry["old"], &entry["new"], &entry["why"]],
        ["account.role", "learner", "instructor", "teaches the class of 2026"]
    );

    let root = account(&mut admin).await.id.unwrap();
    let last = admin
        .post(&format!("/api/v1/accounts/{root}/role"), &json!({ "role": "learner", "why": "tired" }))
        .await;
    assert_eq!((last.status, last.problem().as_str()), (StatusCode::CONFLICT, "last-admin"));
    let gone = admin.post("/api/v1/account/delete", &json!({ "password": PASSWORD })).await;
    assert_eq!((gone.status, gone.problem().as_str()), (StatusCode::CONFLICT, "last-admin"));
}

#[tokio::test]
async fn the_command_line_manages_accounts_beside_a_running_server() {
    let server = Server::start();
    let said = server.command(&["account", "create", "--email", "Root@example.org", "--role", "admin"]);
    let password = said.lines().find_map(|l| l.strip_prefix("password: ")).expect("it is shown once");
    let mut browser = Browser::new(&server);
    let credentials = json!({ "email": "root@example.org", "password": password });
    let answer = browser.post("/api/v1/account/sign-in", &credentials).await;
    assert_eq!(answer.json::<AccountView>().role, Role::Admin);

    let again = server.beside(&["account", "create", "--email", "root@example.org"]);
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("account role"), "{again:?}");
    let list = server.command(&["account", "list"]);
    assert_eq!(list, "admin\troot@example.org\troot\n");
    let last = server.beside(&["account", "role", "--email", "root@example.org", "--role", "learner"]);
    assert!(String::from_utf8_lossy(&last.stderr).contains("last admin"), "{last:?}");

    let said = server.command(&["account", "password", "--email", "root@example.org"]);
    assert!(said.contains("password: ") && !said.contains(password));
    assert_eq!(account(&mut browser).await.id, None, "signed out everywhere");
    let unknown = server.beside(&["account", "password", "--email", "eve@example.org"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("account list"), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_signs_in_does_not_stop_the_others() {
    let server = Server::start();
    let mut other = Browser::new(&server);
    let job = other.submit().await;
    let crowd: Vec<_> = (0..50)
        .map(|n| {
            let mut browser = Browser::new(&server);
            tokio::spawn(async move {
                let body = json!({ "email": format!("{n}@example.org"), "password": "not the password" });
                browser.post("/api/v1/account/sign-in", &body).await.status
            })
        })
        .collect();
    let mut worst = Duration::ZERO;
    let mut asked = 0;
    while crowd.iter().any(|c| !c.is_finished()) {
        let start = Instant::now();
        other.job(&job.id).await;
        worst = worst.max(start.elapsed());
        asked += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("{asked} requests beside the crowd, the slowest took {worst:?}");
    assert!(worst < Duration::from_secs(5), "{worst:?}");
    for status in crowd {
        assert_eq!(status.await.unwrap(), StatusCode::UNAUTHORIZED);
    }
}
