//! What a later clause or sentence takes back (X，这不对. X. Not so.), and what something is set against (Unlike X, …).

use std::ops::Range;

use super::Reader;
use super::words::{Phrases, WORDS};

/// `ring 不是这样`: of so much weight a subject may be.
const SUBJECT: usize = 10;

impl Reader<'_> {
    /// The words with which a clause takes something back, when it says nothing else: 但这不对, `that's wrong`, `not so`, ring 不是这样.
    pub(super) fn retraction(&self, clause: &Range<usize>) -> Option<Range<usize>> {
        let words = &*WORDS;
        let last = |at: usize, phrases: &Phrases| {
            let length = self.longest(at, phrases)?;
            let particle = |at: usize| "的了吧啊呀哦嘛呢".contains(&self.tokens[at].text);
            (at + length..clause.end).all(particle).then_some(at..at + length)
        };
        let mut next = clause.start;
        while next < clause.end {
            if let Some(place) = last(next, &words.retracting) {
                // `Wrong: …` and 错：… are headings of what follows.
                return (next > clause.start || !self.followed_by(clause.end, ':')).then_some(place);
            }
            let Some(length) = self.longest(next, &words.pointing) else { break };
            next += length;
        }
        let subject = (clause.start + 1..clause.end)
            .take_while(|at| self.text.weight(clause.start..*at) <= SUBJECT)
            .find_map(|at| last(at, &words.not_so));
        // Of something it is not so: who says it of a ring may have asserted it of a tree, unless it was an opinion or an assumption.
        subject.filter(|_| {
            let before = self.taken_back(clause);
            words.supposed.find(self.tokens, before.clone()).is_some()
                || before.clone().any(|at| self.opinion(at, &before).is_some())
        })
    }

    pub(super) fn retracted(&mut self, place: Range<usize>, clause: &Range<usize>) -> usize {
        let scope = self.taken_back(clause);
        let end = place.end;
        self.deny_opinion(place, scope);
        end
    }

    /// What stands before a clause: in its sentence, or the sentence before, from where that turned.
    fn taken_back(&self, clause: &Range<usize>) -> Range<usize> {
        let sentence = self.text.sentence_of(clause.start);
        let (start, end) = match clause.start.checked_sub(1) {
            Some(last) if clause.start == sentence.start => (self.text.sentence_of(last).start, clause.start),
            _ => (sentence.start, clause.start),
        };
        let turn = (start..end).rev().find(|at| self.longest(*at, &WORDS.turn).is_some());
        turn.unwrap_or(start)..end
    }

    fn followed_by(&self, end: usize, sign: char) -> bool {
        let chars = &self.text.normal.chars;
        let from = end.checked_sub(1).map_or(0, |last| self.tokens[last].chars.end);
        let to = self.tokens.get(end).map_or(chars.len(), |token| token.chars.start);
        chars[from..to].contains(&sign)
    }

    /// `Unlike X, …`, `Contrary to what many think, …`, 不像 X 那样，…: the clause only names what the next one differs from.
    pub(super) fn opposes(&self, clause: &Range<usize>) -> bool {
        self.longest(clause.start, &WORDS.opposed).is_some()
    }

    /// `Unlike MPI_Send, which blocks, …`: a relative clause belongs to it. Without a comma it ends at the subject.
    pub(super) fn end_of_opposed(&self, clause: &Range<usize>) -> usize {
        let relative = |at: usize| ["which", "who", "where", "whose"].iter().any(|word| self.is(at, word));
        if let Some(subject) = self.subject(clause.start + 2, clause.end) {
            return subject;
        }
        if relative(clause.end) { self.text.clause_of(clause.end).end } else { clause.end }
    }
}
