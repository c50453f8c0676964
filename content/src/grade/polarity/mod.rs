//! Which words stand under a negation, in a reported error, in a question or in a condition.
//!
//! A negator has a place and a scope, both token ranges. What is matched inside a scope is denied by that negator; two negators cancel.

mod questions;
mod reported;
mod retracted;
#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;

use super::text::{Kind, Text, Token};
use words::{Phrases, WORDS};

/// One negation: `不` in 不等于, `isn't`, 有人以为, … is a myth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Negator {
    pub place: Range<usize>,
    pub scope: Range<usize>,
    pub sort: Sort,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// 不, `not`.
    Word,
    /// Denies that a whole statement holds: 并不是说, `it is not the case that`.
    Statement,
    /// Says whose opinion it is, or judges it: 有人以为, … is a myth.
    Opinion,
    /// A verb that denies what it takes (避免, `skips`): what it takes is denied, and spoken of as well.
    Verb,
}

#[derive(Debug, Default)]
pub(crate) struct Polarity {
    pub negators: Vec<Negator>,
    /// Token ranges that only ask or suppose: after 是否, `whether`, `if`.
    pub supposed: Vec<Range<usize>>,
}

impl Polarity {
    pub fn new(text: &Text) -> Polarity {
        let mut reader = Reader { text, tokens: &text.tokens, out: Polarity::default() };
        reader.questions();
        let mut at = 0;
        while at < text.tokens.len() {
            at = reader.step(at).max(at + 1);
        }
        reader.out
    }

    /// The negators that deny a match; none when two of them cancel.
    pub fn denying(&self, span: &Range<usize>) -> Vec<usize> {
        let outside = |place: &Range<usize>| place.end <= span.start || place.start >= span.end;
        let reach = |i: &usize| {
            let negator = &self.negators[*i];
            negator.scope.contains(&span.start) && outside(&negator.place)
        };
        let sort = |i: &usize| self.negators[*i].sort;
        let (soft, hard): (Vec<usize>, Vec<usize>) =
            (0..self.negators.len()).filter(reach).partition(|i| sort(i) == Sort::Verb);
        // Of 并不是说延迟不重要 latency is the topic, and what it says is that it matters.
        let inner = |outer: usize| {
            let scope = &self.negators[outer].scope;
            let word = |other: &Negator| {
                other.sort == Sort::Word
                    && scope.contains(&other.place.start)
                    && other.place.start >= span.end
            };
            sort(&outer) == Sort::Statement && self.negators.iter().any(word)
        };
        let hard: Vec<usize> = hard.into_iter().filter(|i| !inner(*i)).collect();
        match (hard.len() % 2 == 1, soft.len() % 2 == 1) {
            (true, false) => hard,
            (false, true) => soft,
            _ => Vec::new(),
        }
    }

    /// The negators whose words are part of a match: a pattern that spells the negation asks for it.
    pub fn spelled(&self, span: &Range<usize>) -> Vec<usize> {
        let inside = |place: &Range<usize>| span.start <= place.start && place.end <= span.end;
        (0..self.negators.len()).filter(|i| inside(&self.negators[*i].place)).collect()
    }

    /// Whether all of these only deny as a verb does.
    pub fn soft(&self, negators: &[usize]) -> bool {
        negators.iter().all(|i| self.negators[*i].sort == Sort::Verb)
    }

    pub fn is_supposed(&self, token: usize) -> bool {
        self.supposed.iter().any(|range| range.contains(&token))
    }
}

struct Reader<'a> {
    text: &'a Text,
    tokens: &'a [Token],
    out: Polarity,
}

impl Reader<'_> {
    /// A phrase ends with the clause it begins in: of 走不下去，除非 nothing is 去除.
    fn longest(&self, at: usize, phrases: &Phrases) -> Option<usize> {
        let end = self.text.clause_of(at).end;
        phrases.longest(self.tokens.get(..end)?, at)
    }

    fn deny(&mut self, place: Range<usize>, scope: Range<usize>, sort: Sort) {
        self.out.negators.push(Negator { place, scope, sort });
    }

    /// Denies an opinion. One that is reported and judged (有人说…，这不对) is denied once.
    fn deny_opinion(&mut self, place: Range<usize>, scope: Range<usize>) {
        let meets = |other: &&mut Negator| {
            other.sort == Sort::Opinion && other.scope.start < scope.end && scope.start < other.scope.end
        };
        match self.out.negators.iter_mut().find(meets) {
            Some(other) => other.scope = other.scope.start.min(scope.start)..other.scope.end.max(scope.end),
            None => self.deny(place, scope, Sort::Opinion),
        }
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.text == word)
    }

    /// Reads what stands at a token, and says where to go on.
    fn step(&mut self, at: usize) -> usize {
        let words = &*WORDS;
        let sentence = self.text.sentence_of(at);
        let clause = self.text.clause_of(at);
        if at == clause.start
            && let Some(place) = self.retraction(&clause)
        {
            return self.retracted(place, &clause);
        }
        // Of 不同步 the word is 同步, not 不同.
        if let Some(length) = self.longest(at, &words.innocent)
            && self.tokens[at + length - 1].ends
        {
            return at + length;
        }
        if let Some(length) = self.longest(at, &words.not_simply)
            && self.more_follows(at + length, &sentence)
        {
            return at + length;
        }
        if let Some(length) = self.longest(at, &words.confirmed)
            && self.asks(&sentence)
        {
            return at + length;
        }
        if let Some(length) = self.longest(at, &words.asked) {
            self.out.supposed.push(at..clause.end);
            return at + length;
        }
        if let Some(length) = self.opinion(at, &sentence) {
            self.reported(at, length, &sentence);
            return at + length;
        }
        if let Some(length) = self.longest(at, &words.after) {
            let last = self.tokens[at + length - 1].text.as_str();
            if matches!(last, "involved" | "needed" | "required" | "given" | "guaranteed" | "implied") {
                // "the CPU is not involved" denies both in its clause, and nothing before.
                self.deny(at + 1..at + 2, clause, Sort::Word);
                return at + length;
            }
            self.judged(at, length, &sentence, &clause);
            return at + length;
        }
        if let Some(length) = self.longest(at, &words.unavoidable) {
            // 省不掉 and 绕不开 turn the verb round that they are made of.
            self.deny(at + length - 1..at + length, at..at + length - 1, Sort::Word);
            return at + length;
        }
        if let Some(length) = self.longest(at, &words.denied_before) {
            self.deny(at..at + length, clause.start..at, Sort::Verb);
            return at + length;
        }
        if let Some(length) = self.longest(at, &words.denying) {
            return self.denying_verb(at, length, &clause);
        }
        if let Some(length) = self.longest(at, &words.before) {
            return self.negation(at, length, &clause);
        }
        if let Some(length) = self.longest(at, &words.supposed) {
            // What would be, in this clause or the next, is not so.
            let next = self.text.clause_of(clause.end.min(sentence.end - 1));
            let would = (at..next.end).any(|i| self.is(i, "would"));
            let end = if would { next.end } else { self.end_of_condition(at, length, &clause) };
            self.out.supposed.push(at..end);
            return at + length;
        }
        at + 1
    }

    fn denying_verb(&mut self, at: usize, length: usize, clause: &Range<usize>) -> usize {
        let after = at + length;
        let particles = |token: &Token| matches!(token.text.as_str(), "了" | "掉" | "的" | "过" | "吧");
        if self.tokens[after..clause.end].iter().all(particles) {
            // 这次拷贝就省掉了: nothing follows, so it speaks of what stands before.
            self.deny(at..after, clause.start..at, Sort::Verb);
        } else {
            let next = |i: &usize| *i > after && self.longest(*i, &WORDS.next_statement).is_some();
            let end = (after..clause.end).find(next).unwrap_or(clause.end);
            self.deny(at..after, after..end, Sort::Verb);
        }
        after
    }

    fn negation(&mut self, at: usize, length: usize, clause: &Range<usize>) -> usize {
        let after = at + length;
        let mut verb = after;
        // 不能 and 不会 are words; their second sign begins none.
        let within =
            |i: usize| (i == after && "能会可应该得要用需必".contains(&self.tokens[i].text)).then_some(1);
        while verb < clause.end
            && let Some(modal) = self.longest(verb, &WORDS.modal).or_else(|| within(verb))
            && self.longest(verb, &WORDS.denying).is_none()
        {
            verb += modal;
        }
        // 不能跳过 X, `cannot avoid X`: X is there, and nothing skips it.
        if let Some(length) = self.longest(verb, &WORDS.denying) {
            self.deny(at..after, verb..verb + length, Sort::Word);
            return verb + length;
        }
        let end = self.end_of_scope(at, length, clause);
        // 没有 X 不行: X is needed.
        let tail = clause.end.saturating_sub(2);
        let needed =
            tail > after && self.is(tail, "不") && ["行", "可", "成"].iter().any(|w| self.is(tail + 1, w));
        if needed && self.tokens[at].kind == Kind::Han {
            return after;
        }
        let says = self.longest(after, &WORDS.saying);
        let sort = if says.is_some() { Sort::Statement } else { Sort::Word };
        let end = says.map_or(end, |says| end.max(self.end_of_saying(after + says, clause)));
        self.deny(at..after, after..end, sort);
        after
    }

    /// 并不是说返回了，数据就能读, "it does not mean that once it returns, …": what is denied has a condition and its consequence.
    fn end_of_saying(&self, after: usize, clause: &Range<usize>) -> usize {
        let next = self.text.clause_of(clause.end.min(self.tokens.len() - 1));
        let joined =
            next.start == clause.end && next.end <= self.text.sentence_of(after.min(clause.end - 1)).end;
        let begins = self.longest(after, &WORDS.when).is_some();
        let ends =
            (after..clause.end).next_back().is_some_and(|last| "了后时".contains(&self.tokens[last].text));
        let then = (next.clone()).any(|i| ["就", "便", "也", "则"].iter().any(|word| self.is(i, word)));
        let english = self.tokens[clause.end - 1].kind != Kind::Han;
        if joined && ((begins && (english || then)) || (ends && then)) { next.end } else { clause.end }
    }

    /// Where the scope of a negation ends: with the clause, or before it where a new statement begins.
    fn end_of_scope(&self, at: usize, length: usize, clause: &Range<usize>) -> usize {
        let after = at + length;
        let first = &self.tokens[at];
        if first.kind != Kind::Han {
            return self.end_of_english_scope(at, length, clause);
        }
        if self.opposes(clause) {
            return self.end_of_opposed(clause);
        }
        let word_end =
            |from: usize| (from..clause.end).find(|i| self.tokens[*i].ends).map_or(clause.end, |i| i + 1);
        if let Some(stative) = self.longest(at, &WORDS.stative) {
            let end = at + stative;
            // 不够大 denies 大.
            return if self.is(at + 1, "够") && end < clause.end { word_end(end) } else { end };
        }
        if length == 1 && matches!(first.text.as_str(), "无" | "非" | "未" | "莫" | "勿") && !first.ends
        {
            return word_end(after);
        }
        let word = |i: usize, text: &str| self.is(i, text) && self.tokens[i].begins && self.tokens[i].ends;
        let copula = self.is(after - 1, "是") || self.is(after, "是");
        let reason = ["说", "因"].iter().any(|w| self.is(after, w) || self.is(after + 1, w));
        let complement = self.longest(after, &WORDS.complement).is_some() || (copula && length > 1);
        // 就读 is no word here, but 就绪 is one.
        let then = |i: usize| {
            ["才", "便", "则", "也"].iter().any(|w| word(i, w))
                || (self.is(i, "就")
                    && self.tokens[i].begins
                    && !["绪", "是", "近", "地", "此"].iter().any(|w| self.is(i + 1, w)))
        };
        for i in after..clause.end {
            if self.is(i, "的") && self.is(i + 1, "话") {
                return i;
            }
            if i > after && !complement && then(i) {
                return i;
            }
            if i > after + 1
                && copula
                && !reason
                && word(i, "是")
                && !"也还都正就只而更才不".contains(&self.tokens[i - 1].text)
            {
                return i;
            }
            // 不代表可以省掉同步: all of it is what 代表 takes.
            let next = self.longest(i, &WORDS.next_statement).is_some()
                || (!complement && self.longest(i, &WORDS.denying).is_some());
            if i > after + 1 && self.tokens[i].begins && next && !self.is(i + 1, "不") {
                return i;
            }
        }
        clause.end
    }

    fn end_of_english_scope(&self, at: usize, length: usize, clause: &Range<usize>) -> usize {
        let after = at + length;
        if self.opposes(clause) {
            return self.end_of_opposed(clause);
        }
        let leads =
            at == clause.start && ["without", "rather", "instead", "as"].iter().any(|w| self.is(at, w));
        if leads && let Some(subject) = self.subject(after + 1, clause.end) {
            return subject;
        }
        let verbal = self.is(at, "not") || self.is(at, "never") || self.is(at, "no") && length > 1;
        for i in after + 1..clause.end {
            let and = self.is(i, "and") && self.longest(i + 1, &WORDS.finite).is_some();
            // "does not block and avoids a copy", but not "does not mean that NCCL skips it".
            let joined = ["and", "but", "then"].iter().any(|w| self.is(i - 1, w));
            let denying = i > after + 1 && joined && self.longest(i, &WORDS.denying).is_some();
            if verbal && (and || denying) {
                return i;
            }
        }
        clause.end
    }

    /// "if M/B is small you are latency bound", 如果返回了就说明: no comma before what follows.
    fn end_of_condition(&self, at: usize, length: usize, clause: &Range<usize>) -> usize {
        let from = (at + length + 2).min(clause.end);
        let marked = WORDS.consequent.find(self.tokens, from..clause.end);
        let english = self.tokens[at].kind != Kind::Han;
        marked.or_else(|| if english { self.subject(from, clause.end) } else { None }).unwrap_or(clause.end)
    }

    /// Where the subject of an English main clause seems to begin, after a condition that no comma ends.
    fn subject(&self, from: usize, end: usize) -> Option<usize> {
        let free = |i: &usize| {
            *i > 0
                && self.longest(*i - 1, &WORDS.link).is_none()
                && !self.tokens[*i - 1].text.ends_with("ing")
        };
        let begins =
            |phrases: &Phrases| (from..end).filter(free).find(|i| self.longest(*i, phrases).is_some());
        begins(&WORDS.pronoun).or_else(|| begins(&WORDS.determiner))
    }
}
