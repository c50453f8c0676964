//! Grades what was handed in, in a lane of its own width. What a killed server left ungraded is found at the next start.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use ringlab_content::report::Grade;
use tokio::time::sleep;

use crate::app::App;
use crate::clock::UnixMs;
use crate::store::StoreResult;

const AFTER_ERROR: Duration = Duration::from_secs(1);

pub async fn run(app: App) {
    // One whose rubric breaks the grader waits for the next start instead of being tried for ever.
    let mut broken = HashSet::new();
    loop {
        match grade_all(&app, &mut broken).await {
            Ok(()) => tokio::select! {
                () = app.interview.ended.notified() => {}
                () = app.shutdown.cancelled() => return,
            },
            Err(error) => {
                tracing::error!(%error, "grading failed; trying again");
                tokio::select! {
                    () = sleep(AFTER_ERROR) => {}
                    () = app.shutdown.cancelled() => return,
                }
            }
        }
    }
}

async fn grade_all(app: &App, broken: &mut HashSet<String>) -> StoreResult<()> {
    loop {
        let mut waiting = app.store.ungraded_sittings().await?;
        waiting.retain(|id| !broken.contains(id));
        if waiting.is_empty() || app.shutdown.is_cancelled() {
            return Ok(());
        }
        for id in waiting {
            if app.shutdown.is_cancelled() {
                return Ok(());
            }
            match grades(app, &id).await? {
                Some(grades) => {
                    app.store.store_grades(&id, &grades, UnixMs::now()).await?;
                    app.interview.graded.notify_one();
                    tracing::info!(sitting = id, answers = grades.len(), "graded");
                }
                None => {
                    broken.insert(id);
                }
            }
        }
    }
}

/// The grades of all its answers, by the rubrics as they stand. `None`: the grader broke, and the log says on what.
pub async fn grades(app: &App, sitting: &str) -> StoreResult<Option<Vec<(u32, Grade)>>> {
    let drafts = app.store.drafts(sitting).await?;
    let graded = drafts.into_iter().map(|(number, draft)| grade(app, sitting, number, draft.text));
    // The lane decides how many run at a time.
    Ok(join_all(graded).await.into_iter().collect())
}

async fn grade(app: &App, sitting: &str, number: u32, text: String) -> Option<(u32, Grade)> {
    let held = app.clone();
    let grade = move || held.site.questions.grade(number, &text).unwrap_or_else(withdrawn);
    match app.marking.enter().await.run(grade).await {
        Ok(grade) => Some((number, grade)),
        Err(error) => {
            tracing::error!(sitting, question = number, %error, "no grade: the grader broke");
            None
        }
    }
}

/// Of a question that is not in the bank any more: nobody can say what its answer earns.
fn withdrawn() -> Grade {
    Grade {
        version: "withdrawn".into(),
        total: 0,
        max: 0,
        points: Vec::new(),
        fatal: Vec::new(),
        remarks: Vec::new(),
        other_question: None,
        confidence: 0.0,
        person: true,
    }
}
