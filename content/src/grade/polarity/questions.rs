//! Questions: rhetorical ones, ones that the next sentence answers, and ones that stay open.

use std::ops::Range;

use super::words::WORDS;
use super::{Reader, Sort};

impl Reader<'_> {
    /// Reads every question as what it says: its opposite (难道返回就完成了), itself (这不就完成了吗), what the answer after it says, or nothing.
    pub(super) fn questions(&mut self) {
        for i in 0..self.text.sentences.len() {
            let sentence = self.text.sentences[i].clone();
            if self.asks(&sentence) {
                let next = self.text.sentences.get(i + 1).cloned();
                self.question(&sentence, next);
            }
        }
    }

    pub(super) fn asks(&self, sentence: &Range<usize>) -> bool {
        let Some(last) = sentence.end.checked_sub(1).filter(|last| *last >= sentence.start) else {
            return false;
        };
        let chars = &self.text.normal.chars;
        let next = self.tokens.get(sentence.end).map_or(chars.len(), |token| token.chars.start);
        chars[self.tokens[last].chars.end..next].contains(&'?')
            // The 么 of 什么 is none.
            || (matches!(self.tokens[last].text.as_str(), "吗" | "么") && self.tokens[last].begins)
    }

    fn question(&mut self, sentence: &Range<usize>, next: Option<Range<usize>>) {
        let words = &*WORDS;
        if words.confirmed.find(self.tokens, sentence.clone()).is_some() || self.tagged(sentence) {
            return;
        }
        if let Some(at) = words.rhetorical.find(self.tokens, sentence.clone()) {
            let length = self.longest(at, &words.rhetorical).unwrap_or(1);
            self.deny(at..at + length, at + length..sentence.end, Sort::Word);
            return;
        }
        if let Some(next) = next {
            // The answer is the first word or two of the sentence, alone in its clause: 不, `No.`, `It doesn't.`
            let clause = self.text.clause_of(next.start);
            let alone = |length: usize| next.start + length == clause.end;
            if self.longest(next.start, &words.no).is_some_and(alone) {
                let place = next.start..clause.end;
                self.deny_opinion(place, sentence.clone());
                return;
            }
            if self.longest(next.start, &words.yes).is_some_and(alone) {
                return;
            }
        }
        self.out.supposed.push(sentence.clone());
    }

    /// "…, right?", ……对吧？
    fn tagged(&self, sentence: &Range<usize>) -> bool {
        let last = self.text.clause_of(sentence.end - 1);
        let whole =
            |at: usize| self.longest(at, &WORDS.tag).is_some_and(|length| at + length == sentence.end);
        let chinese = ["对吧", "是吧"].iter().any(|tag| {
            sentence.len() > 2
                && tag
                    .chars()
                    .rev()
                    .zip((0..sentence.end).rev())
                    .all(|(c, i)| self.tokens[i].text.starts_with(c))
        });
        chinese
            || (last.start > sentence.start && whole(last.start))
            || self.tokens[sentence.end - 1].text == "吧"
    }
}
