//! How long a candidate had which question before them, from the little that is known of it.

use std::collections::BTreeMap;

/// Something that shows what a candidate was at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub at_ms: i64,
    /// `None`: away from the page.
    pub question: Option<u32>,
}

/// Seconds by question. Between two marks the candidate stayed where the earlier one shows; before the first, where that one shows.
pub fn seconds(started_ms: i64, ended_ms: i64, mut marks: Vec<Mark>) -> BTreeMap<u32, u32> {
    marks.sort();
    let mut spent: BTreeMap<u32, i64> = BTreeMap::new();
    let (mut from, mut at) = (started_ms, marks.first().and_then(|mark| mark.question));
    let end = Mark { at_ms: ended_ms, question: None };
    for mark in marks.into_iter().chain([end]) {
        let until = mark.at_ms.clamp(from, ended_ms.max(from));
        if let Some(question) = at {
            *spent.entry(question).or_default() += until - from;
        }
        (from, at) = (until, mark.question);
    }
    spent
        .into_iter()
        .map(|(question, ms)| (question, u32::try_from(ms / 1_000).unwrap_or(u32::MAX)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_belongs_to_the_question_last_seen() {
        let mark = |s: i64, question| Mark { at_ms: s * 1_000, question };
        let marks = vec![
            mark(20, Some(4)),
            mark(50, Some(6)),
            mark(60, None),
            mark(90, Some(6)),
            mark(95, Some(4)),
            mark(400, Some(6)),
        ];
        let spent = seconds(0, 100_000, marks);
        assert_eq!(
            spent,
            BTreeMap::from([(4, 20 + 30 + 5), (6, 10 + 5)]),
            "what comes after the end counts for nothing"
        );
        assert!(seconds(0, 100_000, vec![]).is_empty());
    }
}
