//! What a reader leaves behind in the course: sections, places, quizzes, notes; by guests, merged into accounts, exported, deleted.

mod common;

use common::members::{PASSWORD, sign_in, sign_up};
use common::{Answer, Browser, Server};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use ringlab_content::reading::{ChapterReading, Note, QuizState, ReadingView};
use serde_json::{Value, json};

const CHAPTER: &str = "/api/v1/reading/12-ring-allreduce";

async fn write(browser: &mut Browser, method: Method, path: &str, body: &Value) -> Answer {
    let request =
        browser.request(method, path).header(CONTENT_TYPE, "application/json").body(body.to_string());
    browser.send(request).await
}

async fn put(browser: &mut Browser, path: &str, body: &Value) -> Answer {
    write(browser, Method::PUT, &format!("{CHAPTER}{path}"), body).await
}

async fn delete(browser: &mut Browser, path: &str) -> Answer {
    let request = browser.request(Method::DELETE, &format!("{CHAPTER}{path}"));
    browser.send(request).await
}

async fn chapter(browser: &mut Browser) -> ChapterReading {
    browser.get(CHAPTER).await.json()
}

fn new_note(id: &str, text: &str) -> Value {
    let quote = json!({ "before": "every rank ", "exact": "sends S/N", "after": " to the next" });
    json!({ "id": id, "section": "time", "lang": "en", "quote": quote, "colour": "green", "text": text })
}

fn id() -> String {
    uuid::Uuid::now_v7().to_string()
}

async fn add(browser: &mut Browser, id: &str, text: &str) -> Note {
    let answer = browser.post(&format!("{CHAPTER}/notes"), &new_note(id, text)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    answer.json()
}

/// The first quiz of the chapter, as the page's own quiz data have it.
fn answers(picks: &[usize], checked: bool) -> Value {
    json!({ "picks": picks, "text": "", "checked": checked })
}

/// The id of a quiz with options, a right and a wrong pick.
fn choice() -> (String, Vec<usize>, Vec<usize>) {
    use ringlab_content::types::{QuizKind, Segment};
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let library = ringlab_content::Library::load(root).unwrap();
    let chapter = library.chapter(ringlab_labs::text::Lang::Zh, "ring-allreduce").unwrap();
    let found = chapter.segments.iter().find_map(|segment| match segment {
        Segment::Quiz(quiz) => match &quiz.kind {
            QuizKind::Single { options } => {
                let right = options.iter().position(|o| o.correct)?;
                Some((quiz.id.clone(), vec![right], vec![(right + 1) % options.len()]))
            }
            _ => None,
        },
        _ => None,
    });
    found.expect("chapter 12 asks a question with one right option")
}

#[tokio::test]
async fn reading_makes_no_guest_and_the_first_write_does() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let view: ReadingView = browser.get("/api/v1/reading?lang=en").await.json();
    let ring = view.chapters.iter().find(|c| c.folder == "12-ring-allreduce").unwrap();
    assert!(ring.sections > 5 && ring.quizzes > 2 && ring.read == 0 && ring.place.is_none(), "{ring:?}");
    assert!(ring.title.starts_with("Ring AllReduce step by step"), "{ring:?}");
    assert_eq!(chapter(&mut browser).await.read, Vec::<String>::new());
    assert_eq!(browser.get("/en/notes").await.status, StatusCode::OK);
    assert_eq!(browser.cookie, None, "nothing was written yet");

    let marked = put(&mut browser, "/sections/time", &json!({})).await;
    assert_eq!(marked.status, StatusCode::NO_CONTENT, "{marked:?}");
    assert!(browser.cookie.is_some());
    put(&mut browser, "/sections/time", &json!({})).await;
    put(&mut browser, "/sections/channels", &json!({})).await;
    let placed = put(&mut browser, "/place", &json!({ "section": "time", "permille": 300 })).await;
    assert_eq!(placed.status, StatusCode::NO_CONTENT, "{placed:?}");
    put(&mut browser, "/place", &json!({ "section": "channels", "permille": 20 })).await;

    let here = chapter(&mut browser).await;
    assert_eq!(here.read, ["channels", "time"]);
    let place = here.place.unwrap();
    assert_eq!((place.section.as_str(), place.permille), ("channels", 20));
    let view: ReadingView = browser.get("/api/v1/reading").await.json();
    let ring = view.chapters.iter().find(|c| c.number == 12).unwrap();
    assert_eq!((ring.read, ring.place.as_ref()), (2, Some(&place)));
    assert_eq!(
        chapter(&mut Browser::new(&server)).await.read,
        Vec::<String>::new(),
        "another's is another's"
    );
}

#[tokio::test]
async fn what_the_course_does_not_have_is_named() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    for (path, kind) in [
        ("/api/v1/reading/12-tree", "unknown-chapter"),
        ("/api/v1/reading/12", "unknown-chapter"),
        ("/api/v1/reading/ring-allreduce", "unknown-chapter"),
    ] {
        let answer = browser.get(path).await;
        assert_eq!((answer.status, answer.problem().as_str()), (StatusCode::NOT_FOUND, kind), "{path}");
    }
    for (path, body, kind) in [
        ("/sections/nowhere", json!({}), "unknown-section"),
        ("/place", json!({ "section": "nowhere", "permille": 1 }), "unknown-section"),
        ("/quiz/q99", json!({ "base": 0, "response": answers(&[0], true) }), "unknown-quiz"),
        (&format!("/notes/{}", id()), json!({ "base": 1, "colour": "blue", "text": "x" }), "unknown-note"),
    ] {
        let answer = put(&mut browser, path, &body).await;
        assert_eq!((answer.status, answer.problem().as_str()), (StatusCode::NOT_FOUND, kind), "{path}");
    }
    let wide = put(&mut browser, "/place", &json!({ "section": "time", "permille": 1001 })).await;
    assert_eq!(wide.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(browser.cookie, None, "what is refused makes no guest");
}

#[tokio::test]
async fn a_quiz_is_judged_here_and_two_tabs_do_not_overwrite_each_other() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let (quiz, right, wrong) = choice();
    let path = format!("/quiz/{quiz}");
    let save = |base: u64, response: Value| json!({ "base": base, "response": response });
    let draft: QuizState = put(&mut browser, &path, &save(0, answers(&wrong, false))).await.json();
    assert_eq!((draft.right, draft.version), (None, 1));
    let checked: QuizState = put(&mut browser, &path, &save(1, answers(&wrong, true))).await.json();
    assert_eq!((checked.right, checked.version), (Some(false), 2));

    let late = put(&mut browser, &path, &save(1, answers(&right, true))).await;
    assert_eq!((late.status, late.problem().as_str()), (StatusCode::CONFLICT, "quiz-conflict"));
    assert_eq!(
        serde_json::from_value::<QuizState>(late.json::<Value>()["current"].clone()).unwrap(),
        checked
    );
    let again: QuizState = put(&mut browser, &path, &save(1, answers(&wrong, true))).await.json();
    assert_eq!(again, checked, "said again, nothing new");

    let fresh: QuizState = put(&mut browser, &path, &save(2, answers(&[], false))).await.json();
    assert_eq!(fresh.right, Some(false), "the verdict stays until the next");
    let better: QuizState = put(&mut browser, &path, &save(3, answers(&right, true))).await.json();
    assert_eq!(better.right, Some(true));
    assert_eq!(chapter(&mut browser).await.quizzes, [better]);
    let view: ReadingView = browser.get("/api/v1/reading").await.json();
    let ring = view.chapters.iter().find(|c| c.number == 12).unwrap();
    assert_eq!((ring.answered, ring.right), (1, 1));

    for picks in [vec![99], vec![0; 65]] {
        let odd = put(&mut browser, &path, &save(4, answers(&picks, true))).await;
        assert_eq!(odd.status, StatusCode::UNPROCESSABLE_ENTITY, "{odd:?}");
    }
}

#[tokio::test]
async fn a_note_is_made_once_changed_in_turn_and_its_deletion_can_be_undone() {
    let server = Server::start();
    let (mut browser, mut other) = (Browser::new(&server), Browser::new(&server));
    let id = id();
    let note = add(&mut browser, &id, "why N?").await;
    assert_eq!(note.version, 1);
    let again = browser.post(&format!("{CHAPTER}/notes"), &new_note(&id, "why N?")).await;
    assert_eq!((again.status, again.json::<Note>()), (StatusCode::OK, note.clone()));
    let path = format!("/notes/{id}");
    let change = |base: u64, text: &str| json!({ "base": base, "colour": "pink", "text": text });
    let changed: Note = put(&mut browser, &path, &change(1, "because")).await.json();
    assert_eq!((changed.version, changed.text.as_str()), (2, "because"));
    let late = put(&mut browser, &path, &change(1, "no")).await;
    assert_eq!((late.status, late.problem().as_str()), (StatusCode::CONFLICT, "note-conflict"));
    assert_eq!(serde_json::from_value::<Note>(late.json::<Value>()["current"].clone()).unwrap(), changed);

    add(&mut other, &self::id(), "mine").await;
    assert_eq!(put(&mut other, &path, &change(2, "theirs")).await.problem(), "unknown-note");
    assert_eq!(delete(&mut other, &path).await.problem(), "unknown-note");
    let taken = other.post(&format!("{CHAPTER}/notes"), &new_note(&id, "x")).await;
    assert_eq!((taken.status, taken.problem().as_str()), (StatusCode::CONFLICT, "note-id"));

    assert_eq!(delete(&mut browser, &format!("{path}?version=1")).await.problem(), "note-conflict");
    assert_eq!(delete(&mut browser, &format!("{path}?version=2")).await.status, StatusCode::NO_CONTENT);
    assert_eq!(delete(&mut browser, &path).await.problem(), "unknown-note");
    assert!(chapter(&mut browser).await.notes.is_empty());
    add(&mut browser, &id, "because").await;
    assert_eq!(chapter(&mut browser).await.notes.len(), 1, "undone");
}

#[tokio::test]
async fn a_note_has_its_limits_and_says_which() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let with = |field: &str, value: Value| {
        let mut note = new_note(&id(), "x");
        note[field] = value;
        note
    };
    let quote = |exact: &str, before: &str| json!({ "exact": exact, "before": before, "after": "" });
    for (note, field) in [
        (with("text", "长".repeat(4_001).into()), "text"),
        (with("quote", quote(&"x".repeat(2_001), "")), "quote.exact"),
        (with("quote", quote("x", &"x".repeat(61))), "quote.before"),
        (with("quote", quote(" ", "")), "quote.exact"),
        (with("lang", "fr".into()), "lang"),
        (with("colour", "mauve".into()), "colour"),
        (with("id", "7".into()), "id"),
    ] {
        let refused = browser.post(&format!("{CHAPTER}/notes"), &note).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
        assert_eq!(refused.json::<ringlab_labs::api::Problem>().errors[0].field, field);
    }
    let mut bare = new_note(&id(), " ");
    bare["quote"] = Value::Null;
    assert_eq!(
        browser.post(&format!("{CHAPTER}/notes"), &bare).await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    let full = with("text", "长".repeat(4_000).into());
    assert_eq!(browser.post(&format!("{CHAPTER}/notes"), &full).await.status, StatusCode::CREATED);
    // The same in the database, three hundred times.
    server
        .sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 299)
             INSERT INTO notes SELECT 'copy-' || i, user_id, chapter, section, lang, quote, quote_before, quote_after,
                                      colour, 'copy', version, created_ms, changed_ms FROM notes, n",
        )
        .await;
    let more = browser.post(&format!("{CHAPTER}/notes"), &with("text", "one more".into())).await;
    assert_eq!((more.status, more.problem().as_str()), (StatusCode::CONFLICT, "too-many-notes"));
}

#[tokio::test]
async fn notes_have_a_page_and_a_markdown_file() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    add(&mut browser, &id(), "<b>why</b> *N*?").await;
    for (lang, title) in [("zh", "我的笔记"), ("en", "My notes")] {
        let page = browser.get(&format!("/{lang}/notes")).await;
        assert!(page.text.contains(title) && page.text.contains("sends S/N"), "{}", page.text);
        assert!(page.text.contains("&lt;b&gt;why"), "a note is text");
    }
    let file = browser.get("/en/notes.md").await;
    assert!(file.header("content-type").starts_with("text/markdown"));
    assert!(file.header("content-disposition").contains("attachment"));
    assert!(
        file.text.contains("## 12 · Ring AllReduce") && file.text.contains("\n> sends S/N\n"),
        "{}",
        file.text
    );
    assert!(file.text.contains("\\<b\\>why\\</b\\> \\*N\\*?"), "{}", file.text);
}

#[tokio::test]
async fn a_guests_reading_comes_along_at_sign_in_and_the_newer_state_stays() {
    let server = Server::start();
    let (mut home, mut away) = (Browser::new(&server), Browser::new(&server));
    let (quiz, right, wrong) = choice();
    let path = format!("/quiz/{quiz}");
    add(&mut home, &id(), "at home").await;
    put(&mut home, "/sections/time", &json!({})).await;
    put(&mut home, "/place", &json!({ "section": "time", "permille": 0 })).await;
    put(&mut home, &path, &json!({ "base": 0, "response": answers(&wrong, true) })).await;
    sign_up(&mut home, "ada@example.org").await;
    assert_eq!(chapter(&mut home).await.notes.len(), 1, "a guest who signs up keeps it all");

    add(&mut away, &id(), "away").await;
    put(&mut away, "/sections/time", &json!({})).await;
    put(&mut away, "/sections/channels", &json!({})).await;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    put(&mut away, "/place", &json!({ "section": "channels", "permille": 500 })).await;
    put(&mut away, &path, &json!({ "base": 0, "response": answers(&right, true) })).await;
    sign_in(&mut away, "ada@example.org").await;
    let all = chapter(&mut home).await;
    assert_eq!(all.notes.len(), 2);
    assert_eq!(all.read, ["channels", "time"]);
    assert_eq!(all.place.unwrap().section, "channels");
    assert_eq!(all.quizzes[0].right, Some(true));
    assert!(all.quizzes[0].version > 1, "a page that is open with the older state learns of the newer");

    let export: Value = home.get("/api/v1/account/export").await.json();
    for (section, n) in [("notes", 2), ("sections_read", 2), ("reading_places", 1), ("quiz_states", 1)] {
        assert_eq!(export[section].as_array().unwrap().len(), n, "{section}");
    }
    let gone = home.post("/api/v1/account/delete", &json!({ "password": PASSWORD })).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    assert!(chapter(&mut away).await.notes.is_empty());
}
