//! Names of variables, found in running text by any of their spellings.

use std::collections::{BTreeMap, HashMap};

use super::normal::is_han;

/// How names are spelled: canonical name, and what people write for it.
pub(crate) type Spellings = BTreeMap<String, Vec<String>>;

/// Spellings by their first character in lower case, the longest first.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<char, Vec<(Vec<char>, String)>>);

impl Names {
    pub fn new(spellings: &Spellings) -> Names {
        let mut names: HashMap<char, Vec<(Vec<char>, String)>> = HashMap::new();
        for (name, spellings) in spellings {
            for spelling in spellings {
                let chars: Vec<char> = spelling.chars().collect();
                let Some(first) = chars.first() else { continue };
                names.entry(first.to_ascii_lowercase()).or_default().push((chars, name.clone()));
            }
        }
        names.values_mut().for_each(|list| list.sort_by_key(|(chars, _)| std::cmp::Reverse(chars.len())));
        Names(names)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The longest spelling that begins `text` and ends a word: its length, and the name.
    pub fn longest(&self, text: &[char]) -> Option<(usize, &str)> {
        let list = self.0.get(&text.first()?.to_ascii_lowercase())?;
        let here = list.iter().find(|(spelling, _)| spelled(spelling, text))?;
        Some((here.0.len(), &here.1))
    }

    /// What a letter on its own stands for.
    pub fn letter(&self, letter: char) -> Option<&str> {
        let list = self.0.get(&letter.to_ascii_lowercase())?;
        list.iter().find(|(spelling, _)| *spelling == [letter]).map(|(_, name)| name.as_str())
    }
}

fn spelled(spelling: &[char], text: &[char]) -> bool {
    let Some(here) = text.get(..spelling.len()) else { return false };
    // N and n are two names, Bandwidth and bandwidth are one.
    let equal = match spelling.len() {
        1 => spelling == here,
        _ => spelling.iter().zip(here).all(|(a, b)| a.eq_ignore_ascii_case(b)),
    };
    let letter = |c: &char| c.is_alphanumeric() && !is_han(*c) || *c == '_';
    equal && (here.last().is_some_and(|c| is_han(*c)) || !text.get(spelling.len()).is_some_and(letter))
}
