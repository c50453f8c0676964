//! Gathers what a report is made of.

use std::collections::{BTreeMap, HashMap};

use ringlab_interview::api::{Overridden, Report, SittingEvent, StampedEvent};
use ringlab_interview::opinion::{Opinion, temper};
use ringlab_interview::report::{Answered, Material, report};
use ringlab_interview::timing::{Mark, seconds};

use crate::app::App;
use crate::store::StoreResult;
use crate::store::assessments::Assessment;
use crate::store::reviews::Review;
use crate::store::sittings::Sitting;

/// A sitting with everything that says what it earned.
#[derive(Debug)]
pub struct Graded {
    pub sitting: Sitting,
    pub assessment: Assessment,
    pub report: Report,
    pub confirmed_by: Vec<String>,
    /// Of the optional judge, by question; none for the candidate.
    pub opinions: BTreeMap<u32, Opinion>,
}

/// How many must confirm a sitting of this assessment.
pub fn reviewers_needed(assessment: &Assessment) -> u32 {
    if assessment.two_reviewers { 2 } else { 1 }
}

fn is_final(assessment: &Assessment, review: &Review) -> bool {
    review.confirmed_by.len() >= reviewers_needed(assessment) as usize
}

/// Whether the candidate may see the report of an ended sitting.
pub async fn open_to_candidate(app: &App, sitting: &Sitting, assessment: &Assessment) -> StoreResult<bool> {
    if !sitting.graded {
        return Ok(false);
    }
    Ok(assessment.report_at_once || is_final(assessment, &app.store.review(&sitting.id).await?))
}

/// `None` while grades are missing. `for_reviewer`: without the name while review is blind, and with the judge's opinions, which make
/// grades less certain and never change a mark.
pub async fn graded(app: &App, sitting: Sitting, for_reviewer: bool) -> StoreResult<Option<Graded>> {
    if !sitting.graded {
        return Ok(None);
    }
    let Some(assessment) = app.store.assessment(&sitting.assessment).await? else { return Ok(None) };
    let review = app.store.review(&sitting.id).await?;
    let is_final = is_final(&assessment, &review);
    let hidden = for_reviewer && assessment.blind && !is_final;
    let ended_ms = sitting.ended.unwrap_or(sitting.ends).0;
    let mut grades = app.store.grades(&sitting.id).await?;
    let opinions =
        if for_reviewer { app.store.opinions(&sitting.id, &grades).await? } else { BTreeMap::new() };
    for (question, opinion) in &opinions {
        if let Some(grade) = grades.get_mut(question) {
            *grade = temper(grade, opinion);
        }
    }
    let mut texts: HashMap<u32, String> =
        app.store.drafts(&sitting.id).await?.into_iter().map(|(n, draft)| (n, draft.text)).collect();
    let events = app.store.events_of_sitting(&sitting.id).await?;
    let spent = seconds(sitting.started.0, ended_ms, marks(app, &sitting, &events).await?);
    let mut changes: HashMap<u32, Vec<Overridden>> = HashMap::new();
    for (question, change) in review.overrides {
        changes.entry(question).or_default().push(change);
    }
    let answers = assessment.questions.iter().filter_map(|number| {
        let texts_of = app.site.questions.texts(*number)?;
        Some(Answered {
            question: texts_of.card.clone(),
            prompt: texts_of.prompt.clone(),
            model: texts_of.model.clone(),
            answer: texts.remove(number).unwrap_or_default(),
            seconds: spent.get(number).copied().unwrap_or(0),
            grade: grades.remove(number)?,
            overrides: changes.remove(number).unwrap_or_default(),
        })
    });
    let report = report(Material {
        answers: answers.collect(),
        sitting: sitting.id.clone(),
        title: assessment.title.clone(),
        name: (!hidden).then(|| sitting.name.clone()),
        started_ms: sitting.started.0,
        ended_ms,
        state: sitting.state,
        is_final,
        events: events.into_iter().filter(|e| !matches!(e.event, SittingEvent::Opened { .. })).collect(),
    });
    Ok(Some(Graded { sitting, assessment, report, confirmed_by: review.confirmed_by, opinions }))
}

/// What shows which question was before the candidate.
async fn marks(app: &App, sitting: &Sitting, events: &[StampedEvent]) -> StoreResult<Vec<Mark>> {
    let saves = app.store.save_times(&sitting.id).await?;
    let saves = saves.into_iter().map(|(question, at_ms)| Mark { at_ms, question: Some(question) });
    let seen = events.iter().map(|stamped| {
        let question = match stamped.event {
            SittingEvent::Opened { question }
            | SittingEvent::Returned { question, .. }
            | SittingEvent::Pasted { question, .. }
            | SittingEvent::Offline { question, .. } => Some(question),
            SittingEvent::Left { .. } => None,
        };
        Mark { at_ms: stamped.at_ms, question }
    });
    Ok(saves.chain(seen).collect())
}
