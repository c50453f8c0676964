//! Interview sessions: what happens beside the requests. SESSIONS.md tells how a sitting lives.

use tokio::sync::Notify;

use crate::app::App;
use crate::store::Store;

pub mod clock;
pub mod drafts;
pub mod grading;
pub mod judging;
pub mod regrade;
pub mod reports;

/// What handlers of sessions share.
#[derive(Debug)]
pub struct Interview {
    pub drafts: drafts::Drafts,
    /// A sitting began: the clock looks at its end.
    pub began: Notify,
    /// A sitting ended: its answers wait for grades.
    pub ended: Notify,
    /// Answers got grades: the judge, if there is one, may look at them.
    pub graded: Notify,
}

impl Interview {
    pub fn new(store: Store) -> Interview {
        Interview {
            drafts: drafts::Drafts::new(store),
            began: Notify::new(),
            ended: Notify::new(),
            graded: Notify::new(),
        }
    }
}

/// Starts what runs until the server stops.
pub fn start(app: &App) {
    app.tasks.spawn(clock::run(app.clone()));
    app.tasks.spawn(grading::run(app.clone()));
    app.tasks.spawn(judging::run(app.clone()));
}
