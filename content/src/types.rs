//! What a rendered chapter is made of. Plain data that compiles to WebAssembly; HTML strings in it are trusted (made by the renderer,
//! which escapes what authors wrote).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One language of one chapter, rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chapter {
    pub meta: ChapterMeta,
    /// Content hash of the source file.
    pub version: String,
    pub toc: Vec<TocEntry>,
    pub segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChapterMeta {
    pub number: u32,
    /// Last part of the URL: `ring-allreduce`.
    pub slug: String,
    pub title: String,
    /// Language of all the texts: `zh` or `en`. Not always that of the page, as a chapter may wait for its translation.
    pub lang: String,
    /// One or two sentences for the index.
    pub summary: String,
    /// Reading time at 300 Chinese characters or 200 words a minute.
    pub minutes: u32,
    /// HTML of one line each (an objective may hold a formula).
    pub objectives: Vec<String>,
    /// HTML of one line each: a link to the chapter and the reason in words.
    pub prerequisites: Vec<String>,
    /// Numbers of the chapters among them.
    #[serde(default)]
    pub requires: Vec<u32>,
    pub lab: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TocEntry {
    pub level: u8,
    pub id: String,
    /// HTML (a heading may hold a formula).
    pub html: String,
}

/// A chapter is a sequence of these: plain HTML between things that are alive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Segment {
    Html {
        html: String,
    },
    Widget(Widget),
    Quiz(Quiz),
    /// Where the chapter sends the reader to its lab.
    Lab {
        id: String,
        html: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Widget {
    /// Which one: `ring-stepper`, `bandwidth-calculator`
    pub kind: String,
    pub params: BTreeMap<String, String>,
    /// HTML shown in its place without JavaScript: says in words and a table what the widget shows.
    pub fallback: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quiz {
    /// Unique in the chapter, the same in both languages.
    pub id: String,
    pub prompt: String,
    pub kind: QuizKind,
    /// HTML, shown with the verdict.
    pub explanation: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum QuizKind {
    Single {
        options: Vec<QuizOption>,
    },
    Multiple {
        options: Vec<QuizOption>,
    },
    /// `tolerance` is relative (0.01 = 1 %); `unit` is shown after the field.
    Numeric {
        answer: f64,
        tolerance: f64,
        unit: String,
    },
    /// `items` in the right order; the reader gets them shuffled.
    Order {
        items: Vec<String>,
    },
    Matching {
        pairs: Vec<(String, String)>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuizOption {
    pub html: String,
    pub correct: bool,
    /// HTML: why it is right, or what one would have to believe to pick it.
    pub why: String,
}
