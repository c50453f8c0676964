//! What others are said to believe, and what is judged to be wrong.

use std::ops::Range;

use super::words::WORDS;
use super::{Reader, Sort};
use crate::grade::text::Kind;

/// Words between "some" and "say" at most.
const SPEAKER: usize = 10;
const POINTING: &[&str] = &["这", "那", "此", "的", "that", "this", "which", "it", "both"];

impl Reader<'_> {
    /// Tokens of 有人以为, 有同事说, `many engineers also think`, when they stand at `at`.
    pub(super) fn opinion(&self, at: usize, sentence: &Range<usize>) -> Option<usize> {
        let words = &*WORDS;
        let listed = words.reported.longest(self.tokens, at).or_else(|| self.seems(at, sentence));
        let some = self.longest(at, &words.some);
        // Of 有人 and 很多人 some are people already.
        let people = self.longest(at, &words.people);
        let some = some.filter(|length| people.is_none_or(|people| people <= *length));
        let Some(first) = some.or(people) else { return listed };
        // "Many think" has nobody between; 很多说 and "a says" are nothing.
        let mut somebody = some.is_none() || words.many.longest(self.tokens, at).is_some();
        let mut next = at + first;
        while next < sentence.end.min(at + SPEAKER) {
            if let Some(length) = self.longest(next, &words.says) {
                let end = next + length;
                return if somebody && self.tokens[end - 1].ends {
                    listed.max(Some(end - at))
                } else {
                    listed
                };
            }
            let clause = self.text.clause_of(next);
            if somebody && self.is(next, "把") && words.opinion.find(self.tokens, next..clause.end).is_some()
            {
                // 很多人把返回当成做完
                return listed.max(Some(next + 1 - at));
            }
            let people = self.longest(next, &words.people);
            somebody |= people.is_some();
            let Some(length) = people
                .or_else(|| self.longest(next, &words.some))
                .or_else(|| self.longest(next, &words.hedge))
            else {
                break;
            };
            next += length;
        }
        listed
    }

    /// 看起来 and `seems to` when the sentence, or the next one, turns; `naively` at the beginning of a clause.
    fn seems(&self, at: usize, sentence: &Range<usize>) -> Option<usize> {
        let words = &*WORDS;
        if let Some(length) = self.longest(at, &words.naively) {
            let comma = at + length == self.text.clause_of(at).end;
            let subject = self.longest(at + length, &words.pronoun).is_some() || self.is(at + length, "one");
            return (at == self.text.clause_of(at).start && (comma || subject)).then_some(length);
        }
        let length = self.longest(at, &words.seeming)?;
        let turns = words.turn.find(self.tokens, at + length..sentence.end).is_some()
            || words.turn.longest(self.tokens, sentence.end).is_some();
        turns.then_some(length)
    }

    /// Denies what somebody is said to believe: until the sentence turns; after a warning (别以为) only as long as the belief goes on.
    pub(super) fn reported(&mut self, at: usize, length: usize, sentence: &Range<usize>) {
        let after = at + length;
        if self.longest(at, &WORDS.untrue) == Some(length) {
            let end = self.end_of_saying(after, &self.text.clause_of(at));
            self.deny(at..after, after..end.max(after), Sort::Statement);
            return;
        }
        let turn = WORDS.turn.find(self.tokens, after..sentence.end).unwrap_or(sentence.end);
        // 很多人以为 X，这是错的：…
        let clauses =
            self.text.clauses.iter().filter(|clause| after < clause.start && clause.end <= sentence.end);
        let judged =
            clauses.filter(|clause| self.retraction(clause).is_some()).map(|clause| clause.start).next();
        let turn = turn.min(judged.unwrap_or(turn));
        let mut end = turn;
        let clause = self.text.clause_of(at);
        if self.opposes(&clause) {
            // Contrary to what many think, …
            end = turn.min(self.end_of_opposed(&clause));
        } else if self.longest(at, &WORDS.warned).is_some() {
            let clause = self.text.clause_of(after.min(sentence.end - 1));
            // 别以为返回了，数据就能读: the belief has two halves. 别以为返回就完成，要等 event: it has one.
            let then =
                |range: &Range<usize>| self.tokens[range.clone()].iter().any(|token| token.text == "就");
            let next = self.text.clause_of(clause.end.min(sentence.end - 1));
            let halves = !then(&(after..clause.end)) && next.start == clause.end && then(&next);
            end = turn.min(if halves { next.end } else { clause.end });
        }
        self.deny_opinion(at..after, after..end);
    }

    /// Denies what is called wrong: all before it in the sentence when it points there (这是错的), otherwise its own clause, from where an
    /// opinion begins. What goes wrong otherwise, or under a condition, was not said by anybody.
    pub(super) fn judged(
        &mut self,
        at: usize,
        length: usize,
        sentence: &Range<usize>,
        clause: &Range<usize>,
    ) {
        let words = &*WORDS;
        let from = (sentence.start..at)
            .rev()
            .find(|i| self.longest(*i, &words.turn).is_some())
            .unwrap_or(sentence.start);
        let opinion = words.opinion.find(self.tokens, from..at);
        let follows = |i: &usize| {
            self.longest(*i, &words.otherwise).is_some() || self.longest(*i, &words.supposed).is_some()
        };
        if opinion.is_none() && (from..at).any(|i| follows(&i)) {
            return;
        }
        let points = at == clause.start
            || [clause.start, at].iter().any(|i| POINTING.contains(&self.tokens[*i].text.as_str()));
        let start = match opinion {
            _ if points => from,
            Some(opinion) => self.text.clause_of(opinion).start.max(from),
            None => clause.start.max(from),
        };
        self.deny_opinion(at..at + length, start..at);
    }

    /// `not just X` says X when more follows (but also Y), and denies that X is all when nothing does.
    pub(super) fn more_follows(&self, at: usize, sentence: &Range<usize>) -> bool {
        let more = ["but", "also", "too", "additionally", "moreover", "well"];
        self.tokens[at].kind == Kind::Word
            && self.tokens[at..sentence.end].iter().any(|token| more.contains(&token.text.as_str()))
    }
}
