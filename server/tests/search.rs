//! Search and reference pages, as everyone may use them.

mod common;

use std::time::Instant;

use common::{Browser, Server};
use reqwest::StatusCode;
use ringlab_search::{Kind, Results};

#[tokio::test]
async fn course_bank_and_reference_are_found_in_both_languages() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    for (asked, kind) in [
        ("q=死锁", Kind::Term),
        ("q=deadlock&lang=en", Kind::Term),
        ("q=NCCL_IB_TIMEOUT", Kind::Variable),
        ("q=ib%20timeout&lang=en", Kind::Variable),
        ("q=ReduceScatter&kind=chapter", Kind::Chapter),
        ("q=ring%20allreduce&kind=lab&lang=en", Kind::Lab),
        ("q=总线带宽&kind=formula", Kind::Formula),
        ("q=ncclAllReduce&kind=question", Kind::Question),
        ("q=calcCollChunking&kind=source_map", Kind::SourceMap),
    ] {
        let found: Results = browser.get(&format!("/api/v1/search?{asked}")).await.json();
        assert!(found.total > 0, "{asked}");
        assert!(found.hits.iter().any(|hit| hit.kind == kind), "{asked}: {found:?}");
        // What is found is there.
        let hit = &found.hits[0];
        let page = browser.get(hit.href.split('#').next().unwrap()).await;
        assert_eq!(page.status, StatusCode::OK, "{}", hit.href);
        if let Some((_, anchor)) = hit.href.split_once('#') {
            assert!(page.text.contains(&format!("id=\"{anchor}\"")), "{} has no {anchor}", hit.href);
        }
    }
    // A whole sentence takes well under the 50 ms that a reader may wait, also unoptimised; the bound is loose for a busy machine.
    let start = Instant::now();
    let asked = "/api/v1/search?q=为什么小消息用树比用环快，而大消息反过来";
    assert_eq!(browser.get(asked).await.status, StatusCode::OK);
    assert!(start.elapsed().as_millis() < 2_000, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_search_that_cannot_be_is_told_so_and_the_page_always_answers() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    for wrong in ["q=a&kind=nothing", "q=a&lang=de", "q=a&limit=1000", "q=a&offset=-1", "q=a&offset=100000"] {
        let answer = browser.get(&format!("/api/v1/search?{wrong}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}: {}", answer.text);
        assert!(answer.text.contains("offset"), "it says what may be asked: {}", answer.text);
    }
    let empty: Results = browser.get("/api/v1/search").await.json();
    assert_eq!(empty, Results::default());
    for asked in
        ["", "?q=", "?q=xyzzyplugh", "?q=%3Cscript%3E&kind=nothing&offset=-3", "?q=环&offset=20", "?%00"]
    {
        for lang in ["zh", "en"] {
            let page = browser.get(&format!("/{lang}/search{asked}")).await;
            assert_eq!(page.status, StatusCode::OK, "{asked}");
            assert!(!page.text.contains("<script>") && page.text.contains("role=\"search\""), "{asked}");
        }
    }
    let switched = browser.get("/zh/search?q=ring&kind=term").await;
    assert!(
        switched.text.contains("/en/search?q=ring&amp;kind=term"),
        "the other language is asked the same"
    );
}

#[tokio::test]
async fn a_search_does_not_tell_answers() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    // Words of a model answer and of a quiz's explanation, which stand nowhere in what is public.
    let questions: Results = browser.get("/api/v1/search?q=厨房&kind=question").await.json();
    assert!(questions.partial || questions.total == 0, "{questions:?}");
}

#[tokio::test]
async fn reference_pages_and_the_learning_path_are_whole() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    for lang in ["zh", "en"] {
        for (path, has) in [
            ("/reference", "/reference/source-map"),
            ("/reference/glossary", "id=\"term-deadlock\""),
            ("/reference/environment", "id=\"NCCL_IB_TIMEOUT\""),
            ("/reference/formulas", "katex"),
            ("/reference/source-map", "calcCollChunking"),
            ("/course/path", "/course/12-ring-allreduce"),
        ] {
            let page = browser.get(&format!("/{lang}{path}")).await;
            assert_eq!(page.status, StatusCode::OK, "/{lang}{path}");
            assert!(page.text.contains(has), "/{lang}{path} lacks {has}");
        }
    }
    let chapter = browser.get("/zh/course/12-ring-allreduce").await;
    assert!(chapter.text.contains("id=\"open-questions\"") && chapter.text.contains("href=\"/zh/practice/"));
    assert!(browser.cookie.is_none(), "reading makes no guest");
}
