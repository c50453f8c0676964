//! Quizzes live in islands of their own, which keep each response in this browser's store and say when it changes. Here it goes to the
//! server, and what another device stored comes back.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use ringlab_content::quiz::Response;
use ringlab_content::reading::QuizState;

use crate::chapter::Reader;
use crate::outbox::Write;
use crate::{dom, store, sync};

/// The island says `KEY\nJSON`.
const CHANGED: &str = "ringlab-quiz-changed";
/// The island is told `KEY\nJSON`: its store has another response.
const RESTORED: &str = "ringlab-quiz-restored";
/// A response that is being put together is sent after a pause.
const PAUSE_MS: i32 = 1_200;

thread_local! {
    /// What the server has, by quiz.
    static KNOWN: RefCell<HashMap<String, QuizState>> = RefCell::new(HashMap::new());
}

fn place(reader: &Reader, id: &str) -> String {
    format!("ringlab.quiz.{}/{id}", reader.folder)
}

pub fn start(reader: &Rc<Reader>) {
    let reader = reader.clone();
    dom::on(&dom::window(), CHANGED, move |event| {
        let Some(told) = dom::told(&event) else { return };
        let Some((key, text)) = told.split_once('\n') else { return };
        let Some(id) = key.strip_prefix(&format!("{}/", reader.folder)) else { return };
        let Ok(response) = serde_json::from_str::<Response>(text) else { return };
        changed(&reader, id, response);
    });
}

fn changed(reader: &Rc<Reader>, id: &str, response: Response) {
    let known = KNOWN.with_borrow(|known| known.get(id).cloned());
    if known.as_ref().is_some_and(|k| k.response == response) {
        // What was just taken from the server.
        return;
    }
    // Without the server's state the version is unknown: it is compared once there is an answer.
    let base = known.map_or(0, |k| k.version);
    let checked = response.checked;
    sync::keep(&Write::Quiz { folder: reader.folder.clone(), id: id.to_owned(), base, response });
    if checked {
        sync::flush();
    } else {
        dom::after(PAUSE_MS, sync::flush);
    }
}

/// The server's state of all quizzes of the chapter.
pub fn take(reader: &Rc<Reader>, states: Vec<QuizState>) {
    let pending = sync::pending();
    let waits = |id: &str| {
        pending.iter().any(
            |w| matches!(w, Write::Quiz { folder, id: other, .. } if *folder == reader.folder && other == id),
        )
    };
    for state in states {
        let id = state.id.clone();
        if !waits(&id) {
            restore(reader, &state);
        }
        KNOWN.with_borrow_mut(|known| known.insert(id, state));
    }
    // Answered in this browser before the server kept such things.
    let prefix = place(reader, "");
    for key in store::keys(&prefix) {
        let id = key.trim_start_matches(&prefix);
        let new = KNOWN.with_borrow(|known| !known.contains_key(id)) && !waits(id);
        let response = store::recall(&key).and_then(|text| serde_json::from_str::<Response>(&text).ok());
        if let Some(response) = response.filter(|r| new && r.checked) {
            changed(reader, id, response);
        }
    }
}

fn restore(reader: &Reader, state: &QuizState) {
    let key = place(reader, &state.id);
    let here = store::recall(&key).and_then(|text| serde_json::from_str::<Response>(&text).ok());
    if here.as_ref() == Some(&state.response) {
        return;
    }
    if let Ok(text) = serde_json::to_string(&state.response) {
        store::remember(&key, &text);
        dom::tell(RESTORED, &format!("{}/{}\n{text}", reader.folder, state.id));
    }
}

pub fn stored(id: &str, body: &str) {
    let Ok(state) = serde_json::from_str::<QuizState>(body) else { return };
    KNOWN.with_borrow_mut(|known| known.insert(id.to_owned(), state));
}

/// Answered elsewhere too. A verdict that was asked for counts more than one that was not; of two, the one that came first.
pub fn conflict(reader: &Rc<Reader>, id: &str, mine: &Response, current: &str) {
    let Ok(theirs) = serde_json::from_str::<QuizState>(current) else { return };
    let version = theirs.version;
    let keep_mine = mine.checked && !theirs.response.checked;
    let write = Write::Quiz {
        folder: reader.folder.clone(),
        id: id.to_owned(),
        base: version,
        response: mine.clone(),
    };
    if !keep_mine {
        sync::drop_key(&write.key());
        KNOWN.with_borrow_mut(|known| known.insert(id.to_owned(), theirs.clone()));
        restore(reader, &theirs);
        return;
    }
    KNOWN.with_borrow_mut(|known| known.insert(id.to_owned(), theirs));
    sync::keep(&write);
    dom::after(0, sync::flush);
}
