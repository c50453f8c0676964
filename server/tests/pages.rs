//! Pages and files as a browser gets them.

mod common;

use common::{Browser, Server};
use reqwest::{Method, StatusCode};

#[tokio::test]
async fn every_page_is_whole_in_both_languages_and_under_its_policy() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let run = browser.submit().await.id;
    for (lang, tag) in [("zh", "zh-Hans"), ("en", "en")] {
        for path in ["/", "/course", "/labs", "/labs/busbw", &format!("/runs/{run}")] {
            let page = browser.get(&format!("/{lang}{path}")).await;
            assert_eq!(page.status, StatusCode::OK, "/{lang}{path}: {}", page.text);
            assert!(page.header("content-type").starts_with("text/html"));
            assert!(page.text.contains(&format!("<html lang=\"{tag}\"")));
            let policy = page.header("content-security-policy");
            let nonce = policy.split("'nonce-").nth(1).and_then(|p| p.split('\'').next()).expect("a nonce");
            for script in page.text.split("<script").skip(1) {
                let tag = script.split('>').next().unwrap();
                assert!(tag.contains(&format!("nonce=\"{nonce}\"")), "<script{tag}> in {path}");
            }
            for directive in
                ["default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "'wasm-unsafe-eval'"]
            {
                assert!(policy.contains(directive), "{policy}");
            }
            assert!(
                !page.text.contains(" style=\"") || path.contains("course"),
                "style attributes belong to formulas"
            );
        }
    }
    let (one, two) = (browser.get("/en/labs").await, browser.get("/en/labs").await);
    assert_ne!(
        one.header("content-security-policy"),
        two.header("content-security-policy"),
        "a nonce is used once"
    );
}

#[tokio::test]
async fn the_front_door_speaks_the_visitors_language() {
    let server = Server::start();
    let browser = Browser::new(&server);
    for (wanted, to) in [("zh-CN,zh;q=0.9", "/zh/"), ("en-US", "/en/"), ("de", "/en/")] {
        let request = browser.request(Method::GET, "/").header("accept-language", wanted);
        let answer = browser.clone().send(request).await;
        assert_eq!((answer.status, answer.header("location")), (StatusCode::TEMPORARY_REDIRECT, to));
    }
    for (from, to) in [("/zh", "/zh/"), ("/en/course/", "/en/course"), ("/en/labs/busbw/", "/en/labs/busbw")]
    {
        let answer = browser.clone().get(from).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (StatusCode::PERMANENT_REDIRECT, to),
            "{from}"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_gets_a_page_for_people() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let id = "0190a0a0-0000-7000-8000-000000000000";
    for path in [
        "/zh/nothing",
        "/zh/labs/nothing",
        "/zh/course/99",
        "/zh/runs/1",
        &format!("/zh/runs/{id}"),
        "/zh/labs/%ff",
    ] {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
        assert!(page.text.contains("没有找到") && page.text.contains("<html lang=\"zh-Hans\""), "{path}");
    }
    for path in ["/nothing", "//evil.example/", "/assets/nothing.css", "/pkg/ringlab.js", "/zhongwen/"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert!(browser.cookie.is_none(), "none of it makes an account");
    let page = browser.clone().send(browser.request(Method::POST, "/en/labs")).await;
    assert_eq!(page.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_lab_page_makes_a_guest_and_shows_the_instance_that_is_run() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    browser.get("/en/course").await;
    assert!(browser.cookie.is_none(), "reading makes no account");
    let page = browser.get("/en/labs/busbw").await;
    assert!(browser.cookie.is_some());
    let job = browser.submit().await;
    assert!(page.text.contains(&job.seed.to_string()), "the page shows the seed {}", job.seed);
}

#[tokio::test]
async fn files_are_cached_under_their_version_and_compressed() {
    let pkg = std::env::temp_dir().join(format!("ringlab-pkg-{}", uuid::Uuid::now_v7()));
    std::fs::create_dir_all(&pkg).unwrap();
    std::fs::write(pkg.join("ringlab.js"), "export default 1;").unwrap();
    std::fs::write(pkg.join("ringlab_bg.wasm"), b"\0asm\x01\0\0\0".repeat(100)).unwrap();
    std::fs::write(pkg.join("ringlab.d.ts"), "").unwrap();
    let server = Server::start_with(&["--pkg", pkg.to_str().unwrap()]);
    let mut browser = Browser::new(&server);
    let page = browser.get("/en/labs").await.text;
    let linked = page.split('"').filter(|u| u.starts_with("/assets/") && u.contains("?v="));
    let urls: Vec<&str> = linked.chain(["/pkg/ringlab.js?v=1", "/pkg/ringlab_bg.wasm?v=1"]).collect();
    assert!(urls.len() > 4, "{urls:?}");
    for url in &urls {
        let file = browser.request(Method::GET, url).header("accept-encoding", "br");
        let response = file.send().await.unwrap();
        assert_eq!(response.status(), 200, "{url}");
        let header = |name: &str| response.headers().get(name).map_or("", |v| v.to_str().unwrap()).to_owned();
        assert_eq!(header("cache-control"), "public, max-age=31536000, immutable", "{url}");
        if !url.contains("ringlab.js") {
            assert_eq!(
                (header("content-encoding").as_str(), header("vary").as_str()),
                ("br", "accept-encoding"),
                "{url}"
            );
        }
        let again = browser.request(Method::GET, url).header("if-none-match", header("etag"));
        assert_eq!(browser.clone().send(again).await.status, StatusCode::NOT_MODIFIED, "{url}");
    }
    assert_eq!(browser.get("/pkg/ringlab_bg.wasm").await.header("cache-control"), "public, no-cache");
    assert_eq!(browser.get("/pkg/ringlab_bg.wasm").await.header("content-type"), "application/wasm");
    assert_eq!(browser.get("/pkg/ringlab.d.ts").await.status, StatusCode::NOT_FOUND);
    std::fs::remove_dir_all(pkg).unwrap();
}
