//! Which questions a set stands for, and how long it takes.

use crate::api::QuestionSet;
use crate::bank::{QUESTIONS, SCREENING, SENIOR, SENIOR_CHOICE};

/// The screening's pace, for sets without a time of their own.
const SECONDS_EACH: u32 = 45 * 60 / SCREENING.len() as u32;

/// Why a set cannot be sat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetError {
    /// A senior interview ends with 53 or 54.
    Last(u32),
    Empty,
    Twice(u32),
    /// Not in the bank, or not written yet.
    Missing(Vec<u32>),
}

impl QuestionSet {
    /// Its questions in the order they are asked; `written` are the ones that exist.
    ///
    /// # Errors
    /// It cannot be sat.
    pub fn questions(&self, written: &[u32]) -> Result<Vec<u32>, SetError> {
        let questions = match self {
            QuestionSet::Screening => SCREENING.to_vec(),
            QuestionSet::Senior { last } if SENIOR_CHOICE.contains(last) => {
                SENIOR.into_iter().chain([*last]).collect()
            }
            QuestionSet::Senior { last } => return Err(SetError::Last(*last)),
            QuestionSet::Full => (1..=QUESTIONS).filter(|n| written.contains(n)).collect(),
            QuestionSet::Custom { questions } => questions.clone(),
        };
        let missing: Vec<u32> = questions.iter().copied().filter(|n| !written.contains(n)).collect();
        if questions.is_empty() {
            return Err(SetError::Empty);
        }
        if !missing.is_empty() {
            return Err(SetError::Missing(missing));
        }
        match (1..questions.len()).find(|&i| questions[..i].contains(&questions[i])) {
            Some(i) => Err(SetError::Twice(questions[i])),
            None => Ok(questions),
        }
    }

    /// The time for `questions` of it.
    pub fn seconds(&self, questions: usize) -> u32 {
        match self {
            QuestionSet::Screening => 45 * 60,
            QuestionSet::Senior { .. } => 90 * 60,
            QuestionSet::Full | QuestionSet::Custom { .. } => {
                SECONDS_EACH * u32::try_from(questions).unwrap_or(QUESTIONS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_whole_or_says_what_is_missing() {
        let all: Vec<u32> = (1..=54).collect();
        assert_eq!(QuestionSet::Screening.questions(&all), Ok(SCREENING.to_vec()));
        assert_eq!(QuestionSet::Screening.questions(&all[4..]), Err(SetError::Missing(vec![1, 4])));
        assert_eq!(QuestionSet::Senior { last: 54 }.questions(&all).unwrap().last(), Some(&54));
        assert_eq!(QuestionSet::Senior { last: 52 }.questions(&all), Err(SetError::Last(52)));
        assert_eq!(QuestionSet::Full.questions(&[7, 3]), Ok(vec![3, 7]), "what is written, in order");
        let custom = |questions: &[u32]| QuestionSet::Custom { questions: questions.to_vec() };
        assert_eq!(custom(&[9, 4]).questions(&all), Ok(vec![9, 4]), "in the order given");
        assert_eq!(custom(&[9, 4, 9]).questions(&all), Err(SetError::Twice(9)));
        assert_eq!(custom(&[]).questions(&all), Err(SetError::Empty));
        assert_eq!((custom(&[4]).seconds(1), QuestionSet::Screening.seconds(8)), (337, 2_700));
    }
}
