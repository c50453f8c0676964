//! What a judge (a language model) thinks of an answer, and how little that may do. Pure.
//!
//! The answer may try to instruct the judge, and the judge may be wrong with confidence. So its reply is believed only in form (points
//! within their maxima, quotes that stand in the answer), and an opinion never changes a mark, a cap or a fatal error: where it differs
//! from the grader, the grade is less certain and a person is asked. An opinion that agrees changes nothing.

use ringlab_content::report::Grade;
use serde::{Deserialize, Serialize};

/// What a judge has to reply, and nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// One for every point of the rubric, in its order.
    pub points: Vec<ReplyPoint>,
    /// Pieces of the answer that state a basic error; empty for none.
    pub fatal: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyPoint {
    pub awarded: u32,
    /// Where the answer earns it, word for word.
    pub quotes: Vec<String>,
}

/// A reply that held. It keeps places, not words: what the answer says stays where answers are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opinion {
    /// The model that gave it.
    pub model: String,
    /// Marks by point.
    pub points: Vec<u32>,
    /// Bytes of the answer by point.
    pub quotes: Vec<Vec<Span>>,
    pub fatal: Vec<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

/// Why a reply is not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Points replied, points of the rubric.
    Count(usize, usize),
    /// Point (from 1), marks, maximum.
    Above(usize, u32, u32),
    /// A point (from 1) with marks and no quote.
    Unfounded(usize),
    /// A quote that the answer does not contain.
    Invented(String),
    TooMany,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Count(got, wanted) => write!(f, "it marks {got} points, the rubric has {wanted}"),
            Refusal::Above(point, got, max) => write!(f, "it gives point {point} {got} marks of {max}"),
            Refusal::Unfounded(point) => write!(f, "it quotes nothing for the marks of point {point}"),
            Refusal::Invented(quote) => write!(f, "it quotes {quote:?}, which the answer does not say"),
            Refusal::TooMany => write!(f, "it quotes more than {QUOTES_MAX} pieces for one thing"),
        }
    }
}

impl std::error::Error for Refusal {}

const QUOTES_MAX: usize = 8;
/// A quote must say something: this many letters or digits, at least.
const QUOTE_MIN: usize = 2;

/// Turns a reply into an opinion, if it holds.
///
/// # Errors
/// It cannot be a reading of this answer.
pub fn check(reply: &Reply, grade: &Grade, answer: &str, model: &str) -> Result<Opinion, Refusal> {
    if reply.points.len() != grade.points.len() {
        return Err(Refusal::Count(reply.points.len(), grade.points.len()));
    }
    let folded = Folded::new(answer);
    let spans = |quotes: &[String]| {
        if quotes.len() > QUOTES_MAX {
            return Err(Refusal::TooMany);
        }
        quotes
            .iter()
            .map(|q| folded.find(q).ok_or_else(|| Refusal::Invented(q.chars().take(60).collect())))
            .collect()
    };
    let mut quotes = Vec::with_capacity(reply.points.len());
    for (index, (given, point)) in reply.points.iter().zip(&grade.points).enumerate() {
        if given.awarded > point.max {
            return Err(Refusal::Above(index + 1, given.awarded, point.max));
        }
        if given.awarded > 0 && given.quotes.is_empty() {
            return Err(Refusal::Unfounded(index + 1));
        }
        quotes.push(spans(&given.quotes)?);
    }
    Ok(Opinion {
        model: model.to_owned(),
        points: reply.points.iter().map(|p| p.awarded).collect(),
        quotes,
        fatal: spans(&reply.fatal)?,
    })
}

/// From this difference of the sums on, a person is asked.
const APART: u32 = 3;
/// The confidence that is left where one of the two sees a fatal error and the other none.
const DISPUTED: f32 = 0.3;

/// The grade with the opinion beside it: marks and errors as they were, less certain where the two differ.
pub fn temper(grade: &Grade, opinion: &Opinion) -> Grade {
    let mut tempered = grade.clone();
    if opinion.points.len() != grade.points.len() {
        // Of another version of the rubric.
        return tempered;
    }
    let ours: u32 = grade.points.iter().map(|p| p.awarded).sum();
    let theirs: u32 = opinion.points.iter().sum();
    let apart = ours.abs_diff(theirs);
    let max = grade.max.max(1) as f32;
    let mut trust = 1.0 - apart as f32 / max;
    if grade.fatal.is_empty() != opinion.fatal.is_empty() {
        trust = trust.min(DISPUTED);
        tempered.person = true;
    }
    tempered.confidence = tempered.confidence.min(trust.max(0.0));
    tempered.person |= apart >= APART;
    tempered
}

/// Text without blanks and case, with the place of every character in the original: models mend spacing when they quote.
struct Folded {
    text: String,
    /// For every byte of `text`: the byte range of its character in the original.
    origin: Vec<Span>,
}

impl Folded {
    fn new(original: &str) -> Folded {
        let (mut text, mut origin) = (String::new(), Vec::new());
        for (start, c) in original.char_indices().filter(|(_, c)| !c.is_whitespace()) {
            let before = text.len();
            text.extend(c.to_lowercase());
            origin
                .extend(std::iter::repeat_n(Span { start, end: start + c.len_utf8() }, text.len() - before));
        }
        Folded { text, origin }
    }

    fn find(&self, quote: &str) -> Option<Span> {
        let quote = Folded::new(quote).text;
        if quote.chars().filter(|c| c.is_alphanumeric()).count() < QUOTE_MIN {
            return None;
        }
        let at = self.text.find(&quote)?;
        Some(Span { start: self.origin[at].start, end: self.origin[at + quote.len() - 1].end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ringlab_content::report::{Label, PointGrade, Remark, RemarkKind};

    const ANSWER: &str = "AllReduce sums  the tensors.\n每个 rank 都得到结果。";

    fn grade(awarded: &[u32], fatal: bool, confidence: f32, person: bool) -> Grade {
        let points = awarded.iter().map(|&awarded| {
            serde_json::from_value::<PointGrade>(
                serde_json::json!({ "label": Label::default(), "max": 5, "awarded": awarded, "reasons": [] }),
            )
            .unwrap()
        });
        let points: Vec<PointGrade> = points.collect();
        let remark = Remark { kind: RemarkKind::Fatal, label: Label::default(), quote: None };
        serde_json::from_value(serde_json::json!({
            "version": "v", "total": awarded.iter().sum::<u32>(), "max": 10, "points": points,
            "fatal": if fatal { vec![remark] } else { vec![] }, "remarks": [], "confidence": confidence, "person": person,
        }))
        .unwrap()
    }

    fn reply(points: &[(u32, &[&str])], fatal: &[&str]) -> Reply {
        let own = |quotes: &[&str]| quotes.iter().map(|q| (*q).to_owned()).collect();
        Reply {
            points: points
                .iter()
                .map(|(awarded, quotes)| ReplyPoint { awarded: *awarded, quotes: own(quotes) })
                .collect(),
            fatal: own(fatal),
        }
    }

    #[test]
    fn a_reply_that_quotes_the_answer_holds_and_keeps_places() {
        let reply = reply(&[(5, &["allreduce SUMS the tensors"]), (2, &["每个rank都得到结果"])], &[]);
        let opinion = check(&reply, &grade(&[5, 5], false, 1.0, false), ANSWER, "m").unwrap();
        let text = |s: Span| &ANSWER[s.start..s.end];
        assert_eq!(text(opinion.quotes[0][0]), "AllReduce sums  the tensors");
        assert_eq!(text(opinion.quotes[1][0]), "每个 rank 都得到结果");
        assert_eq!(opinion.points, [5, 2]);
    }

    #[test]
    fn a_reply_that_cannot_be_a_reading_of_the_answer_is_refused() {
        let of = |r: Reply| check(&r, &grade(&[0, 0], false, 1.0, false), ANSWER, "m").unwrap_err();
        assert_eq!(of(reply(&[(0, &[])], &[])), Refusal::Count(1, 2));
        assert_eq!(of(reply(&[(6, &["sums"]), (0, &[])], &[])), Refusal::Above(1, 6, 5));
        assert_eq!(of(reply(&[(0, &[]), (1, &[])], &[])), Refusal::Unfounded(2));
        for invented in ["ring", "", ".", "。", " "] {
            assert_eq!(of(reply(&[(1, &[invented]), (0, &[])], &[])), Refusal::Invented(invented.into()));
        }
        assert!(matches!(of(reply(&[(0, &[]), (0, &[])], &["it deadlocks"])), Refusal::Invented(_)));
        assert_eq!(of(reply(&[(1, &["sums"; 9]), (0, &[])], &[])), Refusal::TooMany);
    }

    #[test]
    fn a_fatal_error_that_one_of_the_two_does_not_see_is_for_a_person() {
        let quote = Span { start: 0, end: 3 };
        for (ours, theirs) in [(true, false), (false, true)] {
            let grade = grade(&[1, 1], ours, 0.9, false);
            let opinion = Opinion {
                model: "m".into(),
                points: vec![1, 1],
                quotes: vec![],
                fatal: vec![quote; usize::from(theirs)],
            };
            let tempered = temper(&grade, &opinion);
            assert!(tempered.person && tempered.confidence <= DISPUTED);
            assert_eq!((tempered.total, tempered.fatal), (grade.total, grade.fatal));
        }
    }

    proptest! {
        #[test]
        fn an_opinion_moves_no_mark_and_makes_nothing_more_certain(
            ours in prop::collection::vec(0u32..=5, 2), theirs in prop::collection::vec(0u32..=5, 0..4),
            fatal: (bool, bool), confidence in 0f32..=1.0, person: bool,
        ) {
            let before = grade(&ours, fatal.0, confidence, person);
            let opinion = Opinion { model: "m".into(), points: theirs, quotes: vec![], fatal: vec![Span { start: 0, end: 1 }; usize::from(fatal.1)] };
            let after = temper(&before, &opinion);
            prop_assert!(after.confidence <= before.confidence && after.confidence >= 0.0);
            prop_assert!(after.person || !before.person);
            prop_assert_eq!(Grade { confidence, person, ..after }, Grade { confidence, person, ..before });
        }

        #[test]
        fn any_quote_of_the_answer_is_found_where_it_says_so(answer in "\\PC{0,60}", from in 0usize..60, length in 0usize..60) {
            let quote: String = answer.chars().skip(from).take(length).collect();
            if let Some(span) = Folded::new(&answer).find(&quote) {
                let fold = |t: &str| Folded::new(t).text;
                prop_assert!(fold(&answer[span.start..span.end]).contains(&fold(&quote)));
            } else {
                prop_assert!(quote.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).count() < QUOTE_MIN);
            }
        }
    }
}
