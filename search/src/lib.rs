//! Full-text search over documents in Chinese and English. See README.md.

#[cfg(feature = "index")]
mod index;
#[cfg(feature = "index")]
mod query;
#[cfg(feature = "index")]
mod words;

use serde::{Deserialize, Serialize};

#[cfg(feature = "index")]
pub use index::{Index, SearchError};

/// What is found as one: a section of a chapter, a question, a term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub kind: Kind,
    /// Where it is shown.
    pub href: String,
    pub title: String,
    /// What it is a part of; may be empty.
    pub context: String,
    pub text: String,
    /// Language of the words, as HTML's `lang` wants it.
    pub lang: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Chapter,
    Question,
    Term,
    Variable,
    Formula,
    SourceMap,
    Lab,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::Chapter,
        Kind::Question,
        Kind::Term,
        Kind::Variable,
        Kind::Formula,
        Kind::SourceMap,
        Kind::Lab,
    ];

    /// As it stands in a URL.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Chapter => "chapter",
            Kind::Question => "question",
            Kind::Term => "term",
            Kind::Variable => "variable",
            Kind::Formula => "formula",
            Kind::SourceMap => "source_map",
            Kind::Lab => "lab",
        }
    }

    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Names of one thing, of which any finds the others.
pub type Synonyms = Vec<String>;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    pub text: &'a str,
    pub kind: Option<Kind>,
    pub offset: usize,
    pub limit: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Results {
    /// How many documents there are, shown or not.
    pub total: usize,
    /// Whether no document holds all the words, and these hold some of them.
    pub partial: bool,
    pub hits: Vec<Hit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    pub kind: Kind,
    pub href: String,
    pub title: Vec<Piece>,
    pub context: String,
    pub snippet: Vec<Piece>,
    pub lang: String,
}

/// A run of text, and whether it is what was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    pub text: String,
    pub found: bool,
}
