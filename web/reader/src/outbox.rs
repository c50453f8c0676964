//! What is on its way to the server. A write is kept in this browser until the server has it; a later one of the same thing takes the
//! place of an earlier. Pure.

use ringlab_content::quiz::Response;
use ringlab_content::reading::{ChangeNote, NewNote, SavePlace, SaveQuiz};
use serde::{Deserialize, Serialize};

/// Waits between attempts when no answer comes, in milliseconds.
const BACK_OFF_MS: [i32; 5] = [2_000, 4_000, 8_000, 15_000, 30_000];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Write {
    Section {
        folder: String,
        id: String,
    },
    Place {
        folder: String,
        section: String,
        permille: u16,
    },
    Quiz {
        folder: String,
        id: String,
        base: u64,
        response: Response,
    },
    /// `base`: the version it was made from; 0 for a note that the server does not have.
    Note {
        folder: String,
        base: u64,
        note: NewNote,
    },
    Delete {
        folder: String,
        id: String,
        base: u64,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub body: Option<String>,
}

/// What the server's answer means for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Done,
    /// Tried again later.
    Later,
    /// There is a newer one on the server.
    Conflict,
    /// The server does not have what this changes.
    Unknown,
    /// It will never be taken as it is.
    Refused,
}

impl Write {
    pub fn folder(&self) -> &str {
        match self {
            Write::Section { folder, .. }
            | Write::Place { folder, .. }
            | Write::Quiz { folder, .. }
            | Write::Note { folder, .. }
            | Write::Delete { folder, .. } => folder,
        }
    }

    /// The same for writes of which only the last counts.
    pub fn key(&self) -> String {
        let folder = self.folder();
        match self {
            Write::Section { id, .. } => format!("{folder}/section/{id}"),
            Write::Place { .. } => format!("{folder}/place"),
            Write::Quiz { id, .. } => format!("{folder}/quiz/{id}"),
            Write::Note { note, .. } => note_key(folder, &note.id),
            Write::Delete { id, .. } => note_key(folder, id),
        }
    }

    pub fn request(&self) -> Request {
        let path = |rest: String| format!("/api/v1/reading/{}/{rest}", self.folder());
        match self {
            Write::Section { id, .. } => {
                Request { method: "PUT", path: path(format!("sections/{id}")), body: None }
            }
            Write::Place { section, permille, .. } => {
                let body = SavePlace { section: section.clone(), permille: *permille };
                Request { method: "PUT", path: path("place".into()), body: json(&body) }
            }
            Write::Quiz { id, base, response, .. } => {
                let body = SaveQuiz { base: *base, response: response.clone() };
                Request { method: "PUT", path: path(format!("quiz/{id}")), body: json(&body) }
            }
            Write::Note { base: 0, note, .. } => {
                Request { method: "POST", path: path("notes".into()), body: json(note) }
            }
            Write::Note { base, note, .. } => {
                let body = ChangeNote { base: *base, colour: note.colour, text: note.text.clone() };
                Request { method: "PUT", path: path(format!("notes/{}", note.id)), body: json(&body) }
            }
            // A note that was never acknowledged may have arrived all the same: whatever it is by now, it goes.
            Write::Delete { id, base: 0, .. } => {
                Request { method: "DELETE", path: path(format!("notes/{id}")), body: None }
            }
            Write::Delete { id, base, .. } => {
                Request { method: "DELETE", path: path(format!("notes/{id}?version={base}")), body: None }
            }
        }
    }

    /// Made from `version`, once the one before it was stored.
    pub fn rebased(mut self, version: u64) -> Write {
        match &mut self {
            Write::Quiz { base, .. } | Write::Note { base, .. } | Write::Delete { base, .. } => {
                *base = version
            }
            Write::Section { .. } | Write::Place { .. } => {}
        }
        self
    }
}

pub fn note_key(folder: &str, id: &str) -> String {
    format!("{folder}/note/{id}")
}

fn json(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}

/// `status`: of the answer, or none when none came. `current`: whether a 409 carries what is on the server.
pub fn verdict(status: Option<u16>, current: bool) -> Verdict {
    match status {
        None | Some(408 | 429 | 500..) => Verdict::Later,
        Some(200..=299) => Verdict::Done,
        Some(404) => Verdict::Unknown,
        Some(409) if current => Verdict::Conflict,
        Some(_) => Verdict::Refused,
    }
}

pub fn wait_ms(failures: u32) -> i32 {
    BACK_OFF_MS[(failures as usize).min(BACK_OFF_MS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use ringlab_content::reading::Colour;

    use super::*;

    fn note(base: u64) -> Write {
        let note = NewNote {
            id: "n".into(),
            section: "time".into(),
            lang: "en".into(),
            quote: None,
            colour: Colour::Blue,
            text: "x".into(),
        };
        Write::Note { folder: "12-ring".into(), base, note }
    }

    #[test]
    fn a_note_is_posted_first_and_put_with_its_version_afterwards() {
        let first = note(0).request();
        assert_eq!((first.method, first.path.as_str()), ("POST", "/api/v1/reading/12-ring/notes"));
        let later = note(0).rebased(3).request();
        assert_eq!((later.method, later.path.as_str()), ("PUT", "/api/v1/reading/12-ring/notes/n"));
        assert_eq!(later.body.unwrap(), r#"{"base":3,"colour":"blue","text":"x"}"#);
    }

    #[test]
    fn a_deletion_takes_the_place_of_a_change_and_minds_its_version() {
        let delete = Write::Delete { folder: "12-ring".into(), id: "n".into(), base: 2 };
        assert_eq!(delete.key(), note(1).key());
        assert_eq!(delete.request().path, "/api/v1/reading/12-ring/notes/n?version=2");
    }

    #[test]
    fn what_the_server_cannot_answer_now_is_tried_again_and_what_it_refuses_is_not() {
        for status in [None, Some(500), Some(503), Some(429), Some(408)] {
            assert_eq!(verdict(status, false), Verdict::Later, "{status:?}");
        }
        assert_eq!(verdict(Some(204), false), Verdict::Done);
        assert_eq!(verdict(Some(409), true), Verdict::Conflict);
        for status in [409, 422, 400, 403, 413] {
            assert_eq!(verdict(Some(status), false), Verdict::Refused, "{status}");
        }
        assert!(wait_ms(0) < wait_ms(3) && wait_ms(3) <= wait_ms(99));
    }

    #[test]
    fn a_write_survives_the_browsers_store() {
        let response = Response { picks: vec![1], text: String::new(), checked: true };
        for write in [
            note(7),
            Write::Quiz { folder: "f".into(), id: "q".into(), base: 2, response },
            Write::Section { folder: "f".into(), id: "s".into() },
            Write::Place { folder: "f".into(), section: "s".into(), permille: 5 },
        ] {
            let text = serde_json::to_string(&write).unwrap();
            assert_eq!(serde_json::from_str::<Write>(&text).unwrap(), write);
        }
    }
}
