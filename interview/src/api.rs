//! Types of `/api/v1` for accounts, practice, assessments, sittings, reports and review. Times are milliseconds since 1970 by the server's clock;
//! every reply that concerns a running clock carries `now_ms`, so that a browser never trusts its own.
//!
//! | method and path | body → reply | who |
//! | --- | --- | --- |
//! | `GET /account` | → [`AccountView`] | anyone (a guest is made by the first write) |
//! | `POST /account/sign-up` | [`SignUp`] → [`AccountView`] | guest: what the guest did stays with the account |
//! | `POST /account/sign-in` | [`SignIn`] → [`AccountView`] | the guest's work is merged |
//! | `POST /account/sign-out` | → 204 | |
//! | `POST /account/password` | [`ChangePassword`] → 204 | member; other browsers are signed out |
//! | `GET /account/export` | → JSON of everything stored on the visitor | |
//! | `POST /account/delete` | [`DeleteAccount`] → 204 | |
//! | `GET /accounts?email=` | → `Vec<AccountView>` | admin |
//! | `POST /accounts/{id}/role` | [`ChangeRole`] → [`AccountView`] | admin |
//! | `GET /questions` | → `Vec<QuestionCard>` | anyone |
//! | `GET /practice` | → [`PracticeView`] | anyone |
//! | `POST /practice/{question}/answers` | [`PracticeAnswer`] → [`PracticeResult`] | anyone |
//! | `POST /practice/{question}/reveal` | → [`ModelAnswer`]; the next answer to it within a day counts as seen | anyone |
//! | `POST /assessments` | [`NewAssessment`] → [`AssessmentView`] | instructor |
//! | `GET /assessments`, `GET /assessments/{id}` | → [`AssessmentView`]s | instructor |
//! | `POST /assessments/{id}/close` | → [`AssessmentView`] | instructor |
//! | `POST /assessments/{id}/invitations` | [`NewInvitations`] → `Vec<Invitation>`, each with its code, this once | instructor |
//! | `POST /invitations/{id}/revoke` | → 204 | instructor |
//! | `GET /invitations/by-code/{code}` | → [`InvitationView`] | who has the code |
//! | `POST /invitations/by-code/{code}/start` | [`Start`] → [`SittingView`]; said again by the same visitor, the same sitting | who has the code |
//! | `GET /sittings/{id}` | → [`SittingView`] | its candidate |
//! | `PUT /sittings/{id}/drafts/{question}` | [`SaveDraft`] → [`Saved`]; 409 `draft-conflict` with [`Conflict`]; 410 `time-over` or `submitted` | its candidate |
//! | `GET /sittings/{id}/drafts/{question}/history` | → `Vec<DraftVersion>`, newest first | its candidate |
//! | `POST /sittings/{id}/events` | `Vec<SittingEvent>` → 204 | its candidate |
//! | `POST /sittings/{id}/submit` | → [`SittingView`] | its candidate, once; said again, the same |
//! | `GET /sittings/{id}/report` | → [`Report`] | its candidate after the end; instructors |
//! | `GET /review` | → `Vec<ReviewItem>`, least certain first | instructor |
//! | `GET /review/sittings/{id}` | → [`ReviewView`] | instructor |
//! | `POST /review/sittings/{id}/overrides` | [`Override`] → [`ReviewView`] | instructor |
//! | `POST /review/sittings/{id}/confirm` | [`Confirm`] → [`ReviewView`] | instructor; a second one where the assessment asks for two |
//! | `GET /review/statistics` | → `Vec<QuestionStatistics>` | instructor |

use ringlab_content::report::Grade;
use ringlab_labs::text::Text;
use serde::{Deserialize, Serialize};

use crate::bank::{Band, Topic};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Learner,
    Instructor,
    Admin,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Learner, Role::Instructor, Role::Admin];

    /// As it is written in JSON, in the database and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Learner => "learner",
            Role::Instructor => "instructor",
            Role::Admin => "admin",
        }
    }

    pub fn from_name(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|r| r.name() == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountView {
    /// `None` for a visitor who has not written anything yet.
    pub id: Option<String>,
    pub role: Role,
    /// `None` for a guest.
    pub email: Option<String>,
    pub display_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignUp {
    pub email: String,
    /// 10 to 200 characters.
    pub password: String,
    pub display_name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    pub email: String,
    pub password: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangePassword {
    pub old: String,
    pub new: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteAccount {
    /// Of a member; a guest has none.
    #[serde(default)]
    pub password: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeRole {
    pub role: Role,
    pub why: String,
}

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
