//! What instructors see and say of a sitting.

use serde::{Deserialize, Serialize};

use super::practice::QuestionCard;
use super::report::Report;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewItem {
    pub sitting: String,
    pub assessment: String,
    pub title: String,
    /// `None` in blind review.
    pub name: Option<String>,
    pub ended_ms: i64,
    pub total: u32,
    pub max: u32,
    /// The least certain question's.
    pub confidence: f32,
    /// Questions for which the grader asks for a person.
    pub asks: Vec<u32>,
    pub confirmed_by: Vec<String>,
    pub is_final: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewView {
    pub report: Report,
    /// Least certain first.
    pub order: Vec<u32>,
    pub confirmed_by: Vec<String>,
    pub two_reviewers: bool,
    /// Who changed what and why.
    pub log: Vec<AuditEntry>,
    /// Of the optional judge, where one is configured and has looked.
    #[serde(default)]
    pub opinions: Vec<JudgeView>,
}

/// What a language model thinks of an answer. It changed no mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeView {
    pub question: u32,
    pub model: String,
    /// Marks by point.
    pub points: Vec<u32>,
    /// It sees a basic error.
    pub fatal: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub at_ms: i64,
    pub who: String,
    pub what: String,
    pub from: Option<String>,
    pub to: Option<String>,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Override {
    pub question: u32,
    pub point: u32,
    pub to: u32,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirm {
    #[serde(default)]
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionStatistics {
    pub question: QuestionCard,
    pub answers: u32,
    /// Mean share of the points, 0 to 1.
    pub facility: Option<f64>,
    /// Correlation with the rest of the sitting.
    pub discrimination: Option<f64>,
    pub median_seconds: Option<u32>,
    /// Quadratic weighted kappa of the grader's totals and the instructors', over reviewed answers.
    pub agreement: Option<f64>,
    pub reviewed: u32,
}
