//! What a reader leaves behind in the course, as `/api/v1/reading` speaks of it. `{folder}` is a chapter's, `12-ring-allreduce`; times are
//! milliseconds since 1970 by the server's clock. Guests and members alike; the first write makes a guest, reading never does.
//!
//! | method and path | body → reply |
//! | --- | --- |
//! | `GET /reading?lang=` | → [`ReadingView`]: every chapter that is written |
//! | `GET /reading/{folder}` | → [`ChapterReading`] |
//! | `PUT /reading/{folder}/sections/{id}` | → 204; said again, the same |
//! | `PUT /reading/{folder}/place` | [`SavePlace`] → 204; the last one counts |
//! | `PUT /reading/{folder}/quiz/{id}` | [`SaveQuiz`] → [`QuizState`]; 409 `quiz-conflict` with `current` |
//! | `POST /reading/{folder}/notes` | [`NewNote`] → 201 [`Note`]; said again, 200 and the note as it is |
//! | `PUT /reading/{folder}/notes/{id}` | [`ChangeNote`] → [`Note`]; 409 `note-conflict` with `current` |
//! | `DELETE /reading/{folder}/notes/{id}?version=` | → 204; 409 `note-conflict` with `current` when it was changed since |
//!
//! A deletion is undone by posting the note again under its id.

use serde::{Deserialize, Serialize};

use crate::quiz::Response;

/// Longest text of a note, in characters.
pub const TEXT_MAX: usize = 4_000;
/// Longest quoted passage, in characters.
pub const QUOTE_MAX: usize = 2_000;
/// Characters kept on either side of a quote, to find it again when the text around it changed.
pub const CONTEXT_MAX: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingView {
    /// By number.
    pub chapters: Vec<ChapterProgress>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChapterProgress {
    pub number: u32,
    pub folder: String,
    /// In the language that was asked for.
    pub title: String,
    pub sections: u32,
    pub read: u32,
    pub quizzes: u32,
    /// Of these, checked at least once.
    pub answered: u32,
    /// Of these, right the last time.
    pub right: u32,
    pub notes: u32,
    pub place: Option<Place>,
}

/// Where the reader was last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub section: String,
    /// How far into the section, in thousandths of its height.
    pub permille: u16,
    pub at_ms: i64,
}

/// What is gone from the text (a section, a quiz) is left out; a note stays, since its words are the reader's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChapterReading {
    pub folder: String,
    /// Ids of the sections that were read.
    pub read: Vec<String>,
    pub place: Option<Place>,
    pub quizzes: Vec<QuizState>,
    /// Oldest first.
    pub notes: Vec<Note>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavePlace {
    pub section: String,
    pub permille: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuizState {
    pub id: String,
    pub response: Response,
    /// Verdict of the last response that was checked.
    pub right: Option<bool>,
    /// Raised by every save, from 1.
    pub version: u64,
    pub at_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaveQuiz {
    /// The version this was made from; 0 where there was none.
    pub base: u64,
    pub response: Response,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// A UUID that the browser makes, so that a note sent twice is one note.
    pub id: String,
    pub section: String,
    /// Language of the text it was made in, `zh` or `en`: a quote is only there.
    pub lang: String,
    pub quote: Option<Quote>,
    pub colour: Colour,
    /// Plain; may be empty where there is a quote.
    pub text: String,
    /// Raised by every change, from 1.
    pub version: u64,
    pub created_ms: i64,
    pub changed_ms: i64,
}

/// A passage of the text, white space collapsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quote {
    pub before: String,
    pub exact: String,
    pub after: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Colour {
    Yellow,
    Green,
    Blue,
    Pink,
}

impl Colour {
    pub const ALL: [Colour; 4] = [Colour::Yellow, Colour::Green, Colour::Blue, Colour::Pink];

    /// As it is written in JSON and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Colour::Yellow => "yellow",
            Colour::Green => "green",
            Colour::Blue => "blue",
            Colour::Pink => "pink",
        }
    }

    pub fn from_name(name: &str) -> Option<Colour> {
        Colour::ALL.into_iter().find(|c| c.name() == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewNote {
    pub id: String,
    pub section: String,
    pub lang: String,
    #[serde(default)]
    pub quote: Option<Quote>,
    pub colour: Colour,
    #[serde(default)]
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeNote {
    /// The version this was made from.
    pub base: u64,
    pub colour: Colour,
    pub text: String,
}
