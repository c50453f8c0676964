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

mod account;
mod practice;
mod report;
mod review;
mod sitting;

pub use account::*;
pub use practice::*;
pub use report::*;
pub use review::*;
pub use sitting::*;
