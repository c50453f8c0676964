//! Finding a quoted passage again, also after the text around it changed. White space counts for nothing: a paragraph may be wrapped anew.
//! Positions are UTF-16 units of the raw text, as a browser counts them.

use std::ops::Range;

use ringlab_content::reading::{CONTEXT_MAX, QUOTE_MAX, Quote};

/// A quote this long is taken for itself wherever it stands; a shorter one needs some of its surroundings or its section.
const TELLING: usize = 12;

/// A text without its white space, and the way back.
#[derive(Debug, Default, Clone)]
pub struct Flat {
    chars: Vec<char>,
    /// For each of `chars`, where it begins in the raw text.
    at: Vec<u32>,
    raw: Vec<char>,
    raw_at: Vec<u32>,
}

/// Not seen by a reader: white space, and what only helps breaking lines.
fn is_nothing(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}' | '\u{00ad}' | '\u{feff}' | '\u{2060}')
}

impl Flat {
    pub fn new(raw: &str) -> Flat {
        let mut flat = Flat::default();
        let mut at = 0;
        for c in raw.chars() {
            flat.raw.push(c);
            flat.raw_at.push(at);
            if !is_nothing(c) {
                flat.chars.push(c);
                flat.at.push(at);
            }
            at += c.len_utf16() as u32;
        }
        flat
    }

    /// What stands in `range` of the raw text, with its surroundings; `None` when nothing visible does, or too much.
    pub fn quote(&self, range: Range<u32>) -> Option<Quote> {
        let from = self.raw_at.partition_point(|at| *at < range.start);
        let to = self.raw_at.partition_point(|at| *at < range.end);
        let exact = collapsed(self.raw[from..to].iter().copied());
        if exact.is_empty() || exact.chars().count() > QUOTE_MAX {
            return None;
        }
        let before: Vec<char> = last_visible(&self.raw[..from], CONTEXT_MAX);
        let after: Vec<char> = self.raw[to..].iter().copied().take(CONTEXT_MAX).collect();
        Some(Quote { before: collapsed(before.into_iter()), exact, after: collapsed(after.into_iter()) })
    }

    /// Where the quote stands now, in units of the raw text; `section` is where it stood, if that is still there.
    pub fn find(&self, quote: &Quote, section: Option<Range<u32>>) -> Option<Range<u32>> {
        let needle = visible(&quote.exact);
        let (before, after) = (visible(&quote.before), visible(&quote.after));
        let (first, rest) = needle.split_first()?;
        let mut best: Option<(usize, usize)> = None;
        for start in 0..(self.chars.len() + 1).saturating_sub(needle.len()) {
            if self.chars[start] != *first || self.chars[start + 1..start + needle.len()] != *rest {
                continue;
            }
            let end = start + needle.len();
            let left = self.chars[..start].iter().rev().zip(before.iter().rev()).take_while(|(a, b)| a == b);
            let right = self.chars[end..].iter().zip(&after).take_while(|(a, b)| a == b);
            let home = section.as_ref().is_some_and(|s| s.contains(&self.at[start]));
            // Surroundings count most; the section decides between equals.
            let score = 2 * (left.count() + right.count()) + usize::from(home);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, start));
            }
        }
        let (score, start) = best?;
        if score == 0 && needle.len() < TELLING {
            return None;
        }
        let last = start + needle.len() - 1;
        Some(self.at[start]..self.at[last] + self.chars[last].len_utf16() as u32)
    }
}

fn visible(text: &str) -> Vec<char> {
    text.chars().filter(|c| !is_nothing(*c)).collect()
}

/// The end of a text, at most so many characters.
fn last_visible(text: &[char], most: usize) -> Vec<char> {
    text[text.len().saturating_sub(most)..].to_vec()
}

/// Runs of white space as one space, none at the ends.
fn collapsed(text: impl Iterator<Item = char>) -> String {
    let mut out = String::new();
    let mut gap = false;
    for c in text {
        if c.is_whitespace() {
            gap = !out.is_empty();
        } else if !is_nothing(c) {
            if std::mem::take(&mut gap) {
                out.push(' ');
            }
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, passage: &str) -> Quote {
        let start = text[..text.find(passage).unwrap()].encode_utf16().count() as u32;
        Flat::new(text).quote(start..start + passage.encode_utf16().count() as u32).unwrap()
    }

    fn found(text: &str, quote: &Quote) -> Option<String> {
        let range = Flat::new(text).find(quote, None)?;
        let units: Vec<u16> = text.encode_utf16().collect();
        Some(String::from_utf16(&units[range.start as usize..range.end as usize]).unwrap())
    }

    #[test]
    fn a_passage_is_found_after_lines_are_wrapped_anew() {
        let old = "Each rank sends\n  S/N bytes 𝛼 to the\nnext.";
        let quote = of(old, "S/N bytes 𝛼 to the\nnext");
        assert_eq!(quote.exact, "S/N bytes 𝛼 to the next");
        assert_eq!(quote.before, "Each rank sends");
        let new = "New beginning. 𝛼 Each rank sends S/N\nbytes 𝛼 to the next.";
        assert_eq!(found(new, &quote).unwrap(), "S/N\nbytes 𝛼 to the next");
    }

    #[test]
    fn of_several_the_one_with_the_same_surroundings_is_meant() {
        let old = "send a chunk; then reduce a chunk; then copy a chunk.";
        let at = old.find("reduce a chunk").unwrap() as u32 + 7;
        let quote = Flat::new(old).quote(at..at + 7).unwrap();
        assert_eq!(quote.exact, "a chunk");
        let new = "copy a chunk. Then send a chunk; and then reduce a chunk; the end.";
        let range = Flat::new(new).find(&quote, None).unwrap();
        assert_eq!(range.start as usize, new.find("reduce a chunk").unwrap() + 7);
    }

    #[test]
    fn the_section_decides_between_equals() {
        let text = "环 环 环";
        let quote = Quote { before: String::new(), exact: "环".into(), after: String::new() };
        assert_eq!(Flat::new(text).find(&quote, None), None, "one character alone could be any");
        assert_eq!(Flat::new(text).find(&quote, Some(2..4)), Some(2..3));
    }

    #[test]
    fn what_is_gone_is_not_found() {
        let quote = of("the ring has N steps here", "N steps");
        assert_eq!(found("a tree has depth log N, and that many levels", &quote), None);
        assert_eq!(found("", &quote), None);
        let empty = Quote { before: "a".into(), exact: " ".into(), after: "b".into() };
        assert_eq!(found("a b", &empty), None);
    }

    #[test]
    fn nothing_visible_or_too_much_is_no_quote() {
        assert_eq!(Flat::new("a \u{200b} b").quote(1..4), None);
        let long = "x".repeat(QUOTE_MAX + 1);
        assert_eq!(Flat::new(&long).quote(0..QUOTE_MAX as u32 + 1), None);
        assert!(Flat::new(&long).quote(0..QUOTE_MAX as u32).is_some());
    }
}
