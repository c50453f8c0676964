//! The phrases of `words.txt`, found by their first word.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::grade::normal::is_han;
use crate::grade::text::{Kind, Token};

/// Phrases of one sort. A Han character is a token, so 没有 has two.
#[derive(Debug, Default)]
pub(crate) struct Phrases(HashMap<&'static str, Vec<Vec<&'static str>>>);

impl Phrases {
    fn add(&mut self, phrase: &'static str) {
        let mut tokens = Vec::new();
        for word in phrase.split(' ') {
            match word.starts_with(is_han) {
                true => tokens.extend(word.char_indices().map(|(i, c)| &word[i..i + c.len_utf8()])),
                false => tokens.push(word),
            }
        }
        if let Some(first) = tokens.first() {
            self.0.entry(first).or_default().push(tokens);
        }
    }

    /// Tokens of the longest phrase that stands at `at`.
    pub fn longest(&self, tokens: &[Token], at: usize) -> Option<usize> {
        let first = tokens.get(at)?;
        let here = self.0.get(first.text.as_str())?.iter().filter(|phrase| {
            // A single sign is a word of its own: 不 in 差不多 denies nothing.
            (phrase.len() > 1 || first.kind != Kind::Han || first.begins)
                && phrase.iter().zip(tokens.get(at..).unwrap_or(&[])).filter(|(a, b)| **a == b.text).count()
                    == phrase.len()
        });
        here.map(Vec::len).max()
    }

    /// The first place in a range where one of these stands.
    pub fn find(&self, tokens: &[Token], mut range: std::ops::Range<usize>) -> Option<usize> {
        range.find(|i| self.longest(tokens, *i).is_some())
    }
}

macro_rules! sorts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// `words.txt` says what each sort is.
        #[derive(Debug, Default)]
        pub(crate) struct Words { $($(#[$doc])* pub $name: Phrases,)* }

        impl Words {
            fn sort(&mut self, name: &str) -> Option<&mut Phrases> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

sorts!(
    before,
    innocent,
    not_simply,
    reported,
    warned,
    some,
    many,
    people,
    hedge,
    says,
    opinion,
    naively,
    seeming,
    retracting,
    pointing,
    not_so,
    opposed,
    after,
    otherwise,
    turn,
    asked,
    supposed,
    consequent,
    denying,
    denied_before,
    unavoidable,
    modal,
    stative,
    complement,
    saying,
    when,
    untrue,
    next_statement,
    finite,
    pronoun,
    determiner,
    link,
    rhetorical,
    confirmed,
    tag,
    no,
    yes,
);

pub(crate) static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let mut words = Words::default();
    let mut name = "";
    for line in include_str!("words.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(next) => name = next,
            None => {
                let Some(sort) = words.sort(name) else { continue };
                line.split(',')
                    .map(str::trim)
                    .filter(|phrase| !phrase.is_empty())
                    .for_each(|phrase| sort.add(phrase));
            }
        }
    }
    words
});
