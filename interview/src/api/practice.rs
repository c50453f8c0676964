//! Questions one at a time.

use ringlab_content::report::Grade;
use ringlab_labs::text::Text;
use serde::{Deserialize, Serialize};

use crate::bank::Topic;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionCard {
    pub number: u32,
    pub title: Text,
    pub level: u32,
    pub topic: Topic,
    pub gate: bool,
}

/// What there is to practise: what is due first, then what was never tried, by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PracticeView {
    pub now_ms: i64,
    pub items: Vec<PracticeItem>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PracticeItem {
    pub question: QuestionCard,
    pub attempts: u32,
    pub last_total: Option<u32>,
    pub best_total: Option<u32>,
    /// When it should be tried again; `None` when it never was.
    pub due_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PracticeAnswer {
    pub text: String,
    /// Number of the follow-up it answers, from 1; the question itself without.
    #[serde(default)]
    pub follow_up: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PracticeResult {
    pub grade: Grade,
    pub model: ModelAnswer,
    /// Of the question itself, after this answer.
    pub due_ms: Option<i64>,
}

/// HTML in both languages, made by `ringlab_content` and trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    pub core: Text,
    pub deep: Text,
    pub follow_ups: Vec<FollowUp>,
    pub chapters: Vec<ChapterLink>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FollowUp {
    pub prompt: Text,
    pub answer: Text,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChapterLink {
    pub number: u32,
    pub title: Text,
    /// Address after the language, `/course/12-ring-allreduce`; `None` while the chapter is not written.
    pub path: Option<String>,
}
