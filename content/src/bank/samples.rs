//! Graded sample answers: the tests of a rubric.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::Spanned;

use crate::error::ContentError;
use crate::grade::Rubric;
use crate::source::SourceFile;

/// The fewest samples a question has.
const FEWEST: usize = 4;

/// An answer with the marks a person gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub id: String,
    pub text: String,
    /// Marks by point.
    pub points: Vec<u32>,
    pub fatal: bool,
    /// Kept aside while the rubric was written: shows how it does on what it was not tuned on.
    pub held: bool,
    /// Id of the sample that this one translates.
    pub translates: Option<String>,
    /// For an answer to a follow-up, which one, from 1.
    pub follow_up: Option<usize>,
}

impl Sample {
    pub fn total(&self) -> u32 {
        let sum = self.points.iter().sum();
        if self.fatal { u32::min(sum, 2) } else { sum }
    }

    /// Whether it answers its question, be it wrongly: of few marks, it may really be about something else.
    pub fn is_an_answer(&self) -> bool {
        self.follow_up.is_none() && (self.total() > 2 || self.fatal)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sample: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    id: Spanned<String>,
    text: Spanned<String>,
    points: Spanned<Vec<u32>>,
    #[serde(default)]
    fatal: bool,
    #[serde(default)]
    held: bool,
    translates: Option<Spanned<String>>,
    follow_up: Option<Spanned<usize>>,
}

pub(super) fn read(file: &SourceFile, rubric: &Rubric, errors: &mut Vec<ContentError>) -> Vec<Sample> {
    let parsed: File = match file.whole().toml("the samples") {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.push(error);
            return Vec::new();
        }
    };
    if parsed.sample.len() < FEWEST {
        errors.push(file.error(
            0,
            format!(
                "there are {} samples; write at least {FEWEST} of different quality",
                parsed.sample.len()
            ),
        ));
    }
    let ids: BTreeSet<&String> = parsed.sample.iter().map(|entry| entry.id.get_ref()).collect();
    if ids.len() < parsed.sample.len() {
        errors.push(file.error(0, "two samples have the same id; give each its own"));
    }
    for entry in &parsed.sample {
        if let Some(of) = &entry.translates
            && !ids.contains(of.get_ref())
        {
            errors.push(
                file.error(
                    of.span().start,
                    format!("there is no sample `{}` to be translated", of.get_ref()),
                ),
            );
        }
        let points = match &entry.follow_up {
            None => Some(&rubric.points),
            Some(n) => n.get_ref().checked_sub(1).and_then(|n| rubric.follow_ups.get(n)),
        };
        let Some(points) = points else {
            let at = entry.follow_up.as_ref().map_or(0, |n| n.span().start);
            errors.push(file.error(at, "there is no such follow-up in rubric.toml; they are counted from 1"));
            continue;
        };
        let maxima: Vec<u32> = points.iter().map(|point| point.max).collect();
        let given = entry.points.get_ref();
        if given.len() != maxima.len() || given.iter().zip(&maxima).any(|(given, max)| given > max) {
            let message = format!(
                "`points` is {given:?}, but the rubric has {} points with the maxima {maxima:?}",
                maxima.len()
            );
            errors.push(file.error(entry.points.span().start, message));
        }
    }
    let sample = |entry: Entry| Sample {
        id: entry.id.into_inner(),
        text: entry.text.into_inner(),
        points: entry.points.into_inner(),
        fatal: entry.fatal,
        held: entry.held,
        translates: entry.translates.map(Spanned::into_inner),
        follow_up: entry.follow_up.map(Spanned::into_inner),
    };
    parsed.sample.into_iter().map(sample).collect()
}
