//! What a sitting came to.

use ringlab_content::report::Grade;
use ringlab_labs::text::Text;
use serde::{Deserialize, Serialize};

use super::practice::{ChapterLink, ModelAnswer, QuestionCard};
use super::sitting::{SittingState, StampedEvent};
use crate::bank::Band;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub sitting: String,
    pub title: String,
    /// `None` in blind review.
    pub name: Option<String>,
    pub started_ms: i64,
    pub ended_ms: i64,
    pub state: SittingState,
    /// Nothing in it will change by review any more.
    pub is_final: bool,
    pub total: u32,
    pub max: u32,
    /// `total` on the scale of 540.
    pub scaled: u32,
    pub band: Band,
    pub gates: Vec<GateResult>,
    pub levels: Vec<Share>,
    pub topics: Vec<Share>,
    pub questions: Vec<QuestionReport>,
    /// Chapters that would bring most, first.
    pub study: Vec<Study>,
    pub events: Vec<StampedEvent>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateResult {
    pub question: u32,
    pub total: u32,
    pub passed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    pub title: Text,
    pub total: u32,
    pub max: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionReport {
    pub question: QuestionCard,
    /// HTML.
    pub prompt: Text,
    pub answer: String,
    /// Seconds spent with this question open.
    pub seconds: u32,
    /// The grader's, as it was.
    pub grade: Grade,
    /// What instructors changed, oldest first; the last one of a point counts.
    pub overrides: Vec<Overridden>,
    /// After them.
    pub total: u32,
    pub model: ModelAnswer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overridden {
    /// Index of the point, from 0.
    pub point: u32,
    pub from: u32,
    pub to: u32,
    pub why: String,
    /// Display name of the instructor.
    pub by: String,
    pub at_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Study {
    pub chapter: ChapterLink,
    /// Points lost in questions that lead there.
    pub lost: u32,
    pub questions: Vec<u32>,
}
