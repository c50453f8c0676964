//! Judging a quiz answer. Pure: the browser and the server say the same of it.

use crate::types::QuizKind;
use serde::{Deserialize, Serialize};

/// What the reader has chosen or typed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// Single and multiple: the chosen options. Order: the items, as indices into the right order, in the reader's order.
    /// Matching: for each left side, 1 + the index of the chosen right side, or 0.
    pub picks: Vec<usize>,
    /// Numeric: what was typed.
    pub text: String,
    /// Whether the reader has asked for the verdict.
    pub checked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// Nothing chosen, or not everything that must be.
    Incomplete,
    NotANumber,
    Right,
    Wrong,
}

/// What a fresh quiz shows; shuffled by its key, so that the server and the browser agree.
pub fn fresh(kind: &QuizKind, key: &str) -> Response {
    let picks = match kind {
        QuizKind::Order { items } => shuffled(items.len(), key),
        QuizKind::Matching { pairs } => vec![0; pairs.len()],
        _ => vec![],
    };
    Response { picks, ..Response::default() }
}

/// Whether a remembered response still fits the quiz (its text may have changed since).
pub fn fits(kind: &QuizKind, response: &Response) -> bool {
    let picks = &response.picks;
    match kind {
        QuizKind::Single { options } | QuizKind::Multiple { options } => {
            picks.iter().all(|p| *p < options.len())
        }
        QuizKind::Numeric { .. } => picks.is_empty(),
        QuizKind::Order { items } => {
            let mut sorted = picks.clone();
            sorted.sort_unstable();
            sorted.into_iter().eq(0..items.len())
        }
        QuizKind::Matching { pairs } => picks.len() == pairs.len() && picks.iter().all(|p| *p <= pairs.len()),
    }
}

pub fn judge(kind: &QuizKind, response: &Response) -> Judged {
    let verdict = |right: bool| if right { Judged::Right } else { Judged::Wrong };
    let picks = &response.picks;
    match kind {
        QuizKind::Single { options } | QuizKind::Multiple { options } => {
            if picks.is_empty() {
                return Judged::Incomplete;
            }
            verdict(options.iter().enumerate().all(|(i, o)| o.correct == picks.contains(&i)))
        }
        QuizKind::Numeric { answer, tolerance, .. } => {
            if response.text.trim().is_empty() {
                return Judged::Incomplete;
            }
            match number(&response.text) {
                Some(x) => verdict((x - answer).abs() <= tolerance * answer.abs() + 1e-12),
                None => Judged::NotANumber,
            }
        }
        QuizKind::Order { .. } => verdict(picks.iter().copied().eq(0..picks.len())),
        QuizKind::Matching { .. } => {
            if picks.contains(&0) {
                return Judged::Incomplete;
            }
            verdict(picks.iter().enumerate().all(|(i, p)| *p == i + 1))
        }
    }
}

/// A number as people write it: a comma for thousands, a fraction, a full-width sign.
pub fn number(text: &str) -> Option<f64> {
    let plain: String = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != ',' && *c != '，')
        .map(|c| match c {
            '−' | '－' => '-',
            '．' => '.',
            '０'..='９' => char::from(b'0' + (u32::from(c) - u32::from('０')) as u8),
            other => other,
        })
        .collect();
    let value = match plain.split_once('/') {
        Some((above, below)) => above.parse::<f64>().ok()? / below.parse::<f64>().ok()?,
        None => plain.parse().ok()?,
    };
    value.is_finite().then_some(value)
}

/// A permutation of `0..n` fixed by the key; never the identity when there is another.
pub fn shuffled(n: usize, key: &str) -> Vec<usize> {
    let mut state = key
        .bytes()
        .fold(0x9e37_79b9_7f4a_7c15u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        // xorshift64*: even enough for a handful of items.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let draw = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize;
        order.swap(last, draw % (last + 1));
    }
    if n > 1 && order.iter().copied().eq(0..n) {
        order.rotate_left(1);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::QuizOption;

    fn options(correct: &[bool]) -> Vec<QuizOption> {
        let option = |c: &bool| QuizOption { html: String::new(), correct: *c, why: String::new() };
        correct.iter().map(option).collect()
    }

    fn picks(picks: &[usize]) -> Response {
        Response { picks: picks.to_vec(), ..Response::default() }
    }

    fn typed(text: &str) -> Response {
        Response { text: text.into(), ..Response::default() }
    }

    #[test]
    fn multiple_needs_all_and_only_the_right_ones() {
        let kind = QuizKind::Multiple { options: options(&[true, false, true]) };
        assert_eq!(judge(&kind, &picks(&[2, 0])), Judged::Right);
        assert_eq!(judge(&kind, &picks(&[0])), Judged::Wrong);
        assert_eq!(judge(&kind, &picks(&[0, 1, 2])), Judged::Wrong);
        assert_eq!(judge(&kind, &picks(&[])), Judged::Incomplete);
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let kind = QuizKind::Numeric { answer: 1.75, tolerance: 0.01, unit: String::new() };
        for right in ["1.75", " 1.76 ", "7/4", "１．７５", "14 / 8"] {
            assert_eq!(judge(&kind, &typed(right)), Judged::Right, "{right}");
        }
        assert_eq!(judge(&kind, &typed("1.8")), Judged::Wrong);
        assert_eq!(judge(&kind, &typed("two")), Judged::NotANumber);
        assert_eq!(judge(&kind, &typed("1/0")), Judged::NotANumber);
        assert_eq!(number("1,048,576"), Some(1048576.0));
    }

    #[test]
    fn an_order_starts_wrong_and_is_right_only_in_order() {
        let kind = QuizKind::Order { items: vec!["a".into(), "b".into(), "c".into()] };
        for key in ["a", "b", "c", "d", "12/q1"] {
            assert_eq!(judge(&kind, &fresh(&kind, key)), Judged::Wrong);
        }
        assert_eq!(judge(&kind, &picks(&[0, 1, 2])), Judged::Right);
        assert!(fits(&kind, &picks(&[2, 0, 1])));
        assert!(!fits(&kind, &picks(&[2, 0, 0])));
    }

    #[test]
    fn matching_waits_until_every_side_is_chosen() {
        let pair = |s: &str| (s.to_owned(), s.to_owned());
        let kind = QuizKind::Matching { pairs: vec![pair("a"), pair("b")] };
        assert_eq!(judge(&kind, &fresh(&kind, "k")), Judged::Incomplete);
        assert_eq!(judge(&kind, &picks(&[1, 2])), Judged::Right);
        assert_eq!(judge(&kind, &picks(&[2, 1])), Judged::Wrong);
        assert!(!fits(&kind, &picks(&[3, 1])));
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_the_same_every_time() {
        for n in 0..9 {
            let order = shuffled(n, "key");
            assert_eq!(order, shuffled(n, "key"));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..n));
        }
    }
}
