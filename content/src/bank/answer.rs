//! An answer before the whole bank: graded by its question's rubric, and compared with the others to see whether it answers one of them.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::{Bank, Question};
use crate::grade::Reading;
use crate::report::{Grade, Label, OtherQuestion, Remark, RemarkKind};

/// What an answer earns in the question that it answers, at least. Over all samples of the bank no right answer earns more than 5 in a
/// question that it was not written for, so that this is one above what facts shared by two questions bring.
pub const FITS: u32 = 6;
/// What it earns at most in the question that it was given to.
const STRANGE: u32 = 5;
/// It fits the other question so much better, in halves of its own marks: by half as much again, twice as well where the two questions name
/// each other as neighbours.
const CLEARLY: u32 = 3;
const CLEARLY_BETWEEN_NEIGHBOURS: u32 = 4;
/// The answer to another question earns no more than this.
const OTHER_CAP: u32 = 2;

/// An answer, read once and ready to be graded in any question.
#[derive(Debug)]
pub struct Answer<'a> {
    bank: &'a Bank,
    reading: Reading<'a>,
    /// Marks by question. Found out when first asked for: an answer that fits its own question is not compared.
    earned: OnceCell<BTreeMap<u32, u32>>,
}

impl Bank {
    /// Reads an answer. It is the same work for one question or for all.
    pub fn read<'a>(&'a self, answer: &'a str) -> Answer<'a> {
        Answer { bank: self, reading: Reading::new(answer), earned: OnceCell::new() }
    }
}

impl Answer<'_> {
    /// Grades it as the answer to this question. `None` when there is no such question.
    pub fn grade(&self, question: u32) -> Option<Grade> {
        let question = self.bank.question(question)?;
        let mut grade = question.grade(&self.reading);
        if let Some(other) = self.other(question, grade.earned()) {
            // Only where it takes marks should a person decide; elsewhere it says what happened.
            grade.person |= grade.total > OTHER_CAP;
            grade.total = grade.total.min(OTHER_CAP);
            grade.remarks.retain(|remark| remark.kind != RemarkKind::OffTopic);
            grade.remarks.push(remark(other.question));
            grade.other_question = Some(other);
        }
        Some(grade)
    }

    /// Grades it as the answer to follow-up `n`, from 1. `None` when there is no such follow-up.
    pub fn grade_follow_up(&self, question: u32, n: usize) -> Option<Grade> {
        self.bank.question(question)?.grade_follow_up(n, &self.reading)
    }

    /// What it earns in every question, before caps: a wrong answer to a question is an answer to it all the same.
    pub fn earned(&self) -> &BTreeMap<u32, u32> {
        self.earned.get_or_init(|| {
            let earned = |question: &Question| (question.number, question.grade(&self.reading).earned());
            self.bank.questions().map(earned).collect()
        })
    }

    fn other(&self, question: &Question, own: u32) -> Option<OtherQuestion> {
        if own > STRANGE {
            return None;
        }
        let better = |(number, earned): (&u32, &u32)| {
            let other = self.bank.question(*number)?;
            let margin = if question.is_neighbour_of(other) { CLEARLY_BETWEEN_NEIGHBOURS } else { CLEARLY };
            (*number != question.number && *earned >= FITS && 2 * *earned >= margin * own)
                .then_some((*earned, other))
        };
        let (_, other) = self.earned().iter().filter_map(better).max_by_key(|(earned, other)| {
            // Of two that fit as well, always the same one.
            (*earned, std::cmp::Reverse(other.number))
        })?;
        Some(OtherQuestion { question: other.number, version: other.rubric.version.clone() })
    }
}

fn remark(question: u32) -> Remark {
    let label = Label {
        zh: format!("这是第 {question} 题的答案，不是本题的；最多 {OTHER_CAP} 分"),
        en: format!("this answers question {question}, not this one; at most {OTHER_CAP} marks"),
    };
    Remark { kind: RemarkKind::OtherQuestion, label, quote: None }
}
