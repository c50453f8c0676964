//! Asks the optional judge about graded answers, one at a time, behind everything else. Its opinion changes no mark: it makes a grade
//! less certain for whoever reviews it (`ringlab_interview::opinion`).

use std::time::Duration;

use tokio::time::sleep;

use crate::app::App;
use crate::clock::UnixMs;
use crate::judge::{Case, Judge};
use crate::store::StoreResult;
use crate::store::opinions::Unjudged;

const AT_A_TIME: u32 = 16;
const AFTER_ERROR: Duration = Duration::from_secs(5);

pub async fn run(app: App) {
    let Some(judge) = &app.judge else { return };
    match app.store.forget_failed_opinions().await {
        Ok(0) => {}
        Ok(n) => tracing::info!(answers = n, "asking the judge again about what it failed at"),
        Err(error) => tracing::error!(%error, "failed opinions stay"),
    }
    loop {
        let pause = match all(&app, judge).await {
            Ok(()) => None,
            Err(error) => {
                tracing::error!(%error, "the judge's opinions cannot be stored; trying again");
                Some(AFTER_ERROR)
            }
        };
        tokio::select! {
            () = app.interview.graded.notified(), if pause.is_none() => {}
            () = sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            () = app.shutdown.cancelled() => return,
        }
    }
}

async fn all(app: &App, judge: &Judge) -> StoreResult<()> {
    loop {
        let waiting = app.store.unjudged(AT_A_TIME).await?;
        if waiting.is_empty() {
            return Ok(());
        }
        for answer in waiting {
            tokio::select! {
                done = one(app, judge, &answer) => done?,
                () = app.shutdown.cancelled() => return Ok(()),
            }
        }
    }
}

async fn one(app: &App, judge: &Judge, answer: &Unjudged) -> StoreResult<()> {
    let Unjudged { sitting, question, .. } = answer;
    let result = match app.site.questions.source(*question) {
        Some(source) => {
            let case = Case {
                prompt: &source.en.prompt,
                model_answer: &source.en.core,
                answer: &answer.answer,
                grade: &answer.grade,
            };
            judge.ask(&case).await.map_err(|error| error.to_string())
        }
        None => Err("the question is not in the bank any more".to_owned()),
    };
    if let Err(failure) = &result {
        tracing::warn!(sitting, question, failure, "no opinion of the judge");
    }
    app.store
        .store_opinion(answer, &judge.model, result.as_ref().map_err(String::as_str), UnixMs::now())
        .await
}
