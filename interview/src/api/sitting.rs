//! Assessments, invitations and the sittings they lead to.

use ringlab_labs::text::Text;
use serde::{Deserialize, Serialize};

use super::practice::QuestionCard;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum QuestionSet {
    /// 45 minutes: [`crate::bank::SCREENING`].
    Screening,
    /// 90 minutes: [`crate::bank::SENIOR`] and 53 or 54.
    Senior {
        last: u32,
    },
    /// All that are written.
    Full,
    Custom {
        questions: Vec<u32>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAssessment {
    pub title: String,
    pub set: QuestionSet,
    /// The set's own time by default. In seconds, so that a rehearsal can be short.
    #[serde(default)]
    pub seconds: Option<u32>,
    /// Reviewers see no names.
    #[serde(default)]
    pub blind: bool,
    /// A grade is final once two instructors confirmed it.
    #[serde(default)]
    pub two_reviewers: bool,
    /// Candidates see their report at once; else when it is final.
    #[serde(default)]
    pub report_at_once: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssessmentView {
    pub id: String,
    pub title: String,
    pub set: QuestionSet,
    pub questions: Vec<QuestionCard>,
    pub seconds: u32,
    pub blind: bool,
    pub two_reviewers: bool,
    pub report_at_once: bool,
    pub created_ms: i64,
    pub closed_ms: Option<i64>,
    pub invitations: Vec<Invitation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewInvitations {
    /// One invitation each; a name, a number, whatever the instructor knows the candidate by.
    pub labels: Vec<String>,
    /// 30 days by default.
    #[serde(default)]
    pub valid_seconds: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    pub id: String,
    pub label: String,
    /// For `/zh/invitations/{code}`; only in the reply that made it, since it is stored hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    pub expires_ms: i64,
    pub revoked: bool,
    /// Hidden (`None`) from reviewers of a blind assessment until the grade is final.
    pub sitting: Option<String>,
    pub state: Option<SittingState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitationView {
    pub title: String,
    pub label: String,
    pub questions: u32,
    pub seconds: u32,
    pub now_ms: i64,
    pub expires_ms: i64,
    pub usable: Usable,
    /// The visitor's own sitting, if it began.
    pub sitting: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Usable {
    Yes,
    Expired,
    Revoked,
    Closed,
    /// Someone else began with it.
    Taken,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The name the report will carry; the invitation's label where it is empty.
    #[serde(default)]
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SittingState {
    Running,
    /// By the candidate.
    Submitted,
    /// By the clock: the last saved drafts count.
    TimeOver,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SittingView {
    pub id: String,
    pub title: String,
    pub name: String,
    pub state: SittingState,
    pub now_ms: i64,
    pub started_ms: i64,
    pub ends_ms: i64,
    pub ended_ms: Option<i64>,
    pub questions: Vec<SittingQuestion>,
    /// The candidate may open the report now.
    pub report: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SittingQuestion {
    pub question: QuestionCard,
    /// HTML.
    pub prompt: Text,
    pub draft: Draft,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Draft {
    /// 0 before the first save; raised by each.
    pub version: u64,
    pub text: String,
    pub saved_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaveDraft {
    /// Which tab: random, kept for the tab's life.
    pub tab: String,
    /// The version this text was made from. A save that answers an older version of another tab is refused, nothing is overwritten unseen.
    pub base: u64,
    /// Markdown; at most 20,000 characters.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub version: u64,
    pub saved_ms: i64,
    pub now_ms: i64,
    pub ends_ms: i64,
}

/// In the problem's body beside its usual fields: what is stored now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    pub current: Draft,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftVersion {
    pub version: u64,
    pub saved_ms: i64,
    pub text: String,
}

/// Shown to reviewers, never punished by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SittingEvent {
    /// A question came before the candidate, by any way but a return. Not in the report: its times are what it is for.
    Opened {
        question: u32,
    },
    Left {
        question: u32,
    },
    Returned {
        question: u32,
        away_ms: u64,
    },
    Pasted {
        question: u32,
        characters: u32,
    },
    Offline {
        question: u32,
        for_ms: u64,
    },
}

impl SittingEvent {
    pub fn question(&self) -> u32 {
        match self {
            SittingEvent::Opened { question }
            | SittingEvent::Left { question }
            | SittingEvent::Returned { question, .. }
            | SittingEvent::Pasted { question, .. }
            | SittingEvent::Offline { question, .. } => *question,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StampedEvent {
    pub at_ms: i64,
    #[serde(flatten)]
    pub event: SittingEvent,
}
