//! Every page in both languages.

mod common;

use common::{pages, shell};
use ringlab_labs::text::Lang;
use ringlab_web::{assets, render};

fn all() -> Vec<(Lang, &'static str, String)> {
    let of = |lang: Lang| {
        pages().into_iter().map(move |(path, page)| (lang, path, render(shell(lang, path), page)))
    };
    Lang::ALL.into_iter().flat_map(of).collect()
}

fn page(lang: Lang, path: &str) -> String {
    let (_, page) = pages().into_iter().find(|(p, _)| *p == path).expect("a page of that path");
    render(shell(lang, path), page)
}

#[test]
fn every_page_has_its_landmarks_language_and_one_heading() {
    for (lang, path, html) in all() {
        let has = |what: &str| assert!(html.contains(what), "{path} ({}) lacks {what}", lang.code());
        assert!(html.starts_with("<!DOCTYPE html><html"), "{path}");
        has(&format!("<html lang=\"{}\"", lang.tag()));
        has("<main id=\"main\"");
        has("href=\"#main\" class=\"skip\"");
        has("<header class=\"site-header\"");
        has("<footer");
        assert_eq!(html.matches("<h1").count(), 1, "{path}");
        let head = html.split("</head>").next().unwrap_or_default();
        assert_eq!(head.matches("<title>").count(), 1, "{path}");
    }
}

#[test]
fn the_language_switch_keeps_the_path() {
    for (lang, path, html) in all() {
        assert!(html.contains(&format!("href=\"/{}{path}\" hreflang", lang.other().code())), "{path}");
    }
}

#[test]
fn every_script_is_allowed_by_the_nonce_and_no_style_is_inline() {
    for (_, path, html) in all() {
        assert_eq!(html.matches("<script").count(), html.matches("nonce=\"n0nce\"").count(), "{path}");
        assert!(!html.contains("<style"), "{path}");
        assert!(!html.contains(" onclick="), "{path}");
    }
}

#[test]
fn what_was_searched_for_is_marked_and_never_markup() {
    let html = page(Lang::Zh, "/search?found");
    assert!(html.contains("<mark>环</mark>"));
    assert!(html.contains("&lt;AllReduce&gt;") && !html.contains("<AllReduce>"));
    assert!(
        html.contains("value=\"环 &lt;b&gt;\"") || html.contains("value=\"环 <b>\""),
        "an attribute needs only its quotes escaped"
    );
    assert!(html.contains("q=%E7%8E%AF+%3Cb%3E"), "links keep what was asked");
}

#[test]
fn files_a_page_refers_to_exist() {
    let html = page(Lang::Zh, "/");
    let referred: Vec<&str> =
        html.split("\"/assets/").skip(1).map(|rest| rest.split(['?', '"']).next().expect("closed")).collect();
    assert!(referred.len() >= 4);
    for path in referred {
        assert!(assets().iter().any(|a| a.path == path), "{path}");
    }
}

#[test]
fn text_from_outside_is_escaped() {
    let html = page(Lang::En, "/runs/failed");
    assert!(!html.contains("<verified>") && html.contains("&lt;verified&gt;"));
    assert!(!html.contains("took <60 s>"));
    assert!(page(Lang::En, "/").contains("Title 12 &lt;&amp;&gt;"));
}

#[test]
fn a_finished_run_is_complete_without_a_script() {
    for lang in Lang::ALL {
        let html = page(lang, "/runs/done");
        for part in ["1500", "plan &lt;verified&gt;", "2.5 µs", "tsc"] {
            assert!(html.contains(part), "{part}");
        }
        let connections = match lang {
            Lang::Zh => "LL128，连接有 8 步，chunk 占 4 步，slice 占 2 步",
            Lang::En => "LL128, connections of 8 steps, a chunk takes 4 and a slice 2",
        };
        assert!(html.contains(connections));
    }
}

#[test]
fn the_index_links_written_chapters_and_names_the_others() {
    let html = page(Lang::En, "/course");
    assert!(html.contains("href=\"/en/course/12-ring-allreduce\""));
    assert!(html.contains("Announced") && !html.contains("/en/course/01-"));
}

#[test]
fn a_chapter_has_its_contents_twice_and_every_segment() {
    let html = page(Lang::Zh, "/course/12-ring-allreduce");
    assert_eq!(html.matches("href=\"#why\"").count(), 2);
    for part in [
        "fallback of ring-stepper",
        "fallback of not-known-here",
        "Go and run it.",
        "Prompt 4",
        "/zh/labs/ring-allreduce",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_chapter_that_waits_for_its_translation_says_so_and_names_its_language() {
    // The sample's texts are English.
    let notice = "本章还没有这种语言的译文";
    let html = page(Lang::Zh, "/course/12-ring-allreduce");
    let chapter = "<div lang=\"en\" data-reader=\"chapter\" data-lang=\"zh\" data-text-lang=\"en\"";
    assert!(html.contains(notice) && html.contains(chapter), "{html}");
    assert!(!page(Lang::En, "/course/12-ring-allreduce").contains("class=\"notice\""));
    assert!(page(Lang::Zh, "/course").contains("<p lang=\"en\">A summary.</p>"));
}

#[test]
fn a_report_says_everything_and_shows_nothing_as_html_that_somebody_wrote() {
    let report = common::interview::report();
    for lang in Lang::ALL {
        let mut html = ringlab_web::report_html::summary(lang, &report);
        for question in &report.questions {
            html.push_str(&ringlab_web::report_html::question(lang, question));
        }
        html.push_str(&ringlab_web::report_html::after(lang, &report));
        for part in [
            "48 / 80",
            "324 / 540",
            "clear from the figure",
            "/course/12-ring-allreduce",
            "<mark class=\"fatal\"",
        ] {
            assert!(html.contains(part), "{part} is missing: {html}");
        }
        for part in ["<A>", "<everything>"] {
            assert!(!html.contains(part), "{part} is not escaped");
        }
    }
}
