//! Text to tokens, for documents and queries alike.

use std::ops::Range;
use std::sync::Arc;

use jieba_rs::{Jieba, TokenizeMode};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Words: Chinese by the dictionary, identifiers whole and in parts.
#[derive(Clone)]
pub(crate) struct Words {
    pub jieba: Arc<Jieba>,
}

/// Every Han character, and whole identifiers.
#[derive(Clone)]
pub(crate) struct Characters;

pub(crate) struct Tokens {
    tokens: std::vec::IntoIter<Token>,
    now: Token,
}

impl Tokens {
    fn new(tokens: Vec<Token>) -> Tokens {
        Tokens { tokens: tokens.into_iter(), now: Token::default() }
    }
}

impl TokenStream for Tokens {
    fn advance(&mut self) -> bool {
        match self.tokens.next() {
            Some(token) => {
                self.now = token;
                true
            }
            None => false,
        }
    }

    fn token(&self) -> &Token {
        &self.now
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.now
    }
}

impl Tokenizer for Words {
    type TokenStream<'a> = Tokens;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Tokens {
        let mut out = Vec::new();
        let mut position = 0;
        for run in runs(text) {
            let (at, run_text) = (run.range.start, &text[run.range.clone()]);
            if run.han {
                let offsets: Vec<usize> =
                    run_text.char_indices().map(|(i, _)| i).chain([run_text.len()]).collect();
                let mut last = position;
                for word in self.jieba.tokenize(run_text, TokenizeMode::Search, true) {
                    // Where it begins: the words that a long one is made of stand beside it.
                    let here = position + word.start;
                    last = last.max(here);
                    out.push(token(word.word, at + offsets[word.start]..at + offsets[word.end], here));
                }
                position = last + 1;
            } else {
                for (part, range) in parts(run_text) {
                    out.push(token(&part, at + range.start..at + range.end, position));
                }
                position += 1;
            }
        }
        // A long word comes after its parts, and whoever cuts a snippet counts on offsets that only rise.
        out.sort_by_key(|token| (token.offset_from, token.offset_to));
        Tokens::new(out)
    }
}

impl Tokenizer for Characters {
    type TokenStream<'a> = Tokens;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Tokens {
        let mut out = Vec::new();
        for run in runs(text) {
            if run.han {
                for (i, c) in text[run.range.clone()].char_indices() {
                    let from = run.range.start + i;
                    let position = out.len();
                    out.push(token(&text[from..from + c.len_utf8()], from..from + c.len_utf8(), position));
                }
            } else {
                let position = out.len();
                out.push(token(&text[run.range.clone()].to_lowercase(), run.range.clone(), position));
            }
        }
        Tokens::new(out)
    }
}

fn token(text: &str, range: Range<usize>, position: usize) -> Token {
    Token {
        offset_from: range.start,
        offset_to: range.end,
        position,
        text: text.to_lowercase(),
        position_length: 1,
    }
}

struct Run {
    range: Range<usize>,
    han: bool,
}

/// Runs of Han characters, and of letters, digits and `_` of other scripts; what stands between them is not indexed.
fn runs(text: &str) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    let mut open = false;
    for (at, c) in text.char_indices() {
        let han = is_han(c);
        if !(han || c.is_alphanumeric() || c == '_') {
            open = false;
            continue;
        }
        let end = at + c.len_utf8();
        match out.last_mut() {
            Some(run) if open && run.han == han => run.range.end = end,
            _ => out.push(Run { range: at..end, han }),
        }
        open = true;
    }
    out
}

/// The whole, then what it is made of, if that is more than one: `ncclAllReduce` is also `nccl`, `all`, `reduce` and `allreduce`.
fn parts(word: &str) -> Vec<(String, Range<usize>)> {
    let mut cuts = vec![0];
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    for (i, pair) in chars.windows(2).enumerate() {
        let [(_, a), (at, b)] = [pair[0], pair[1]];
        let next = chars.get(i + 2).map(|(_, c)| *c);
        let camel = a.is_lowercase() && b.is_uppercase();
        // Of `LLProto` the parts are `LL` and `Proto`.
        let acronym = a.is_uppercase() && b.is_uppercase() && next.is_some_and(char::is_lowercase);
        if camel || acronym || a == '_' || b == '_' {
            cuts.push(at);
        }
    }
    cuts.push(word.len());
    let whole = (word.to_lowercase(), 0..word.len());
    let pieces: Vec<Range<usize>> = cuts
        .windows(2)
        .map(|pair| pair[0]..pair[1])
        .filter(|range| !word[range.clone()].chars().all(|c| c == '_'))
        .collect();
    if pieces.len() < 2 {
        return vec![whole];
    }
    let mut out = vec![whole];
    out.extend(pieces.iter().map(|range| (word[range.clone()].to_lowercase(), range.clone())));
    if !word.contains('_') {
        // `AllReduce` inside a name is one word to whoever looks for it.
        for pair in pieces.windows(2) {
            let range = pair[0].start..pair[1].end;
            if range != (0..word.len()) {
                out.push((word[range.clone()].to_lowercase(), range));
            }
        }
    }
    out
}

pub(crate) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(mut stream: Tokens) -> Vec<String> {
        let mut out = Vec::new();
        while stream.advance() {
            out.push(stream.token().text.clone());
        }
        out
    }

    #[test]
    fn an_identifier_is_found_whole_and_in_parts() {
        let mut words = Words { jieba: Arc::new(Jieba::empty()) };
        assert_eq!(
            texts(words.token_stream("NCCL_IB_TIMEOUT")),
            ["nccl", "nccl_ib_timeout", "ib", "timeout"]
        );
        let camel = texts(words.token_stream("ncclAllReduce"));
        assert!(
            ["ncclallreduce", "nccl", "allreduce", "reduce"].iter().all(|w| camel.contains(&(*w).to_owned())),
            "{camel:?}"
        );
        assert_eq!(texts(words.token_stream("LL128")), ["ll128"]);
    }

    #[test]
    fn offsets_point_into_the_text() {
        let text = "环形 AllReduce：每个 rank 发送 2(n−1)/n。中华人民共和国的集合通信研究所，ncclAllReduceRingLL128 比它快。";
        let mut words = Words { jieba: Arc::new(Jieba::new()) };
        for mut stream in [words.token_stream(text), Characters.token_stream(text)] {
            let mut last = 0;
            while stream.advance() {
                let token = stream.token();
                assert_eq!(text[token.offset_from..token.offset_to].to_lowercase(), token.text);
                assert!(token.offset_from >= last, "{token:?}");
                last = token.offset_from;
            }
        }
    }
}
