//! What a grade is made of: an argument for every mark. Plain data that compiles to WebAssembly.

use serde::{Deserialize, Serialize};

/// Words in both languages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Label {
    pub zh: String,
    pub en: String,
}

/// The grade of one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grade {
    /// Content hash of the rubric and the lexicon it was given under.
    pub version: String,
    /// The points' sum, or the cap where one applies.
    pub total: u32,
    pub max: u32,
    pub points: Vec<PointGrade>,
    /// Basic errors of the question that the answer states. One of them caps the total at 2.
    pub fatal: Vec<Remark>,
    /// What was set aside, or limits the total.
    pub remarks: Vec<Remark>,
    /// The question that this answers instead: caps the total at 2.
    #[serde(default)]
    pub other_question: Option<OtherQuestion>,
    /// 0 to 1: how far the reading can be trusted.
    pub confidence: f32,
    /// The grader asks a person to look.
    pub person: bool,
}

impl Grade {
    /// The points' sum, before any cap.
    pub fn earned(&self) -> u32 {
        self.points.iter().map(|point| point.awarded).sum()
    }
}

/// The question that an answer fits clearly better than the one it was given to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherQuestion {
    /// From 1 to 54.
    pub question: u32,
    /// Content hash of that question's rubric and the lexicon.
    pub version: String,
}

/// One point of the rubric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointGrade {
    pub label: Label,
    pub max: u32,
    pub awarded: u32,
    pub reasons: Vec<Reason>,
}

/// Why a claim of a point earned what it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// Id of the claim, or of the contradiction.
    pub claim: String,
    /// What the claim says.
    pub label: Label,
    pub verdict: Verdict,
    /// Marks this claim brings, before the point's maximum and rounding down.
    pub marks: f32,
    /// Where the answer says it; none for what is missing.
    pub quotes: Vec<Quote>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Full,
    Partial,
    Missing,
    /// Said, and contradicted elsewhere in the answer.
    Cancelled,
}

/// A piece of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// Bytes of the answer.
    pub start: usize,
    pub end: usize,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    pub kind: RemarkKind,
    pub label: Label,
    pub quote: Option<Quote>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkKind {
    Fatal,
    Keywords,
    Echo,
    Instruction,
    /// No idea of the question was found in a text of some length.
    OffTopic,
    /// It answers another question of the bank.
    OtherQuestion,
    Contradiction,
}
