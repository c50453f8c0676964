//! An answer as tokens in clauses in sentences. A Han character is a token, a Latin word is one, a number is one; jieba says where Chinese
//! words begin and end, so that a pattern does not match across them.

use std::ops::Range;
use std::sync::LazyLock;

use jieba_rs::Jieba;

use super::normal::{Normal, is_han};
use super::relations;

static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Han,
    Word,
    Number,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub kind: Kind,
    /// Lower case, the apostrophe resolved: `isn't` is `is` and `not`.
    pub text: String,
    /// Characters of the normalised text.
    pub chars: Range<usize>,
    /// A Chinese word begins before, or ends after, this token. Always true for what is not Han.
    pub begins: bool,
    pub ends: bool,
    /// A piece of an identifier that names something of its own: `append` in `taskAppend`.
    pub piece: bool,
    /// A word of a closed class: it relates other words and names nothing.
    pub relates: bool,
}

impl Token {
    /// How much reading a token is: a Han character is about half a word.
    pub fn weight(&self) -> usize {
        if self.kind == Kind::Han { 1 } else { 2 }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Text {
    pub normal: Normal,
    pub tokens: Vec<Token>,
    /// Token ranges; they cover all tokens in order.
    pub sentences: Vec<Range<usize>>,
    pub clauses: Vec<Range<usize>>,
}

impl Text {
    pub fn new(text: &str) -> Text {
        let normal = Normal::new(text);
        let tokens = tokens(&normal);
        let breaks = breaks(&normal.chars);
        let mut out = Text { sentences: Vec::new(), clauses: Vec::new(), normal, tokens };
        let (mut sentence, mut clause) = (0, 0);
        for i in 1..=out.tokens.len() {
            let gap = match out.tokens.get(i) {
                Some(next) => strongest(&breaks, out.tokens[i - 1].chars.end..next.chars.start),
                None => Break::Sentence,
            };
            let turn = gap == Break::None
                && i < out.tokens.len()
                && begins_clause(&out.tokens[i..])
                && !denied_reason(&out.tokens, i);
            if gap == Break::Sentence {
                out.sentences.push(sentence..i);
                sentence = i;
            }
            if gap != Break::None || turn {
                out.clauses.push(clause..i);
                clause = i;
            }
        }
        out
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Index of the range that holds a token.
    pub fn index_in(ranges: &[Range<usize>], token: usize) -> usize {
        ranges.partition_point(|range| range.end <= token)
    }

    pub fn clause_of(&self, token: usize) -> Range<usize> {
        self.clauses.get(Self::index_in(&self.clauses, token)).cloned().unwrap_or(0..self.tokens.len())
    }

    pub fn sentence_of(&self, token: usize) -> Range<usize> {
        self.sentences.get(Self::index_in(&self.sentences, token)).cloned().unwrap_or(0..self.tokens.len())
    }

    pub fn weight(&self, tokens: Range<usize>) -> usize {
        self.tokens[tokens].iter().map(Token::weight).sum()
    }

    /// Characters between two tokens, or of a token range.
    pub fn chars(&self, tokens: &Range<usize>) -> Range<usize> {
        match (self.tokens.get(tokens.start), self.tokens.get(tokens.end.wrapping_sub(1))) {
            (Some(first), Some(last)) if tokens.start < tokens.end => first.chars.start..last.chars.end,
            _ => 0..0,
        }
    }

    /// Bytes of the original answer.
    pub fn bytes(&self, tokens: &Range<usize>) -> Range<usize> {
        self.normal.original(self.chars(tokens))
    }

    /// The tokens that overlap a range of characters.
    pub fn tokens_at(&self, chars: &Range<usize>) -> Range<usize> {
        let start = self.tokens.partition_point(|token| token.chars.end <= chars.start);
        let end = self.tokens.partition_point(|token| token.chars.start < chars.end);
        start..end.max(start)
    }
}

/// The tokens of a pattern's literal text: no sentences are needed there.
pub(crate) fn tokens(normal: &Normal) -> Vec<Token> {
    let chars = &normal.chars;
    let mut out = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        if is_han(c) {
            at = han_run(chars, at, &mut out);
        } else if c.is_ascii_digit() {
            let end = number_end(chars, at);
            push(&mut out, Kind::Number, chars[at..end].iter().filter(|c| **c != ',').collect(), at..end);
            at = end;
        } else if c.is_alphabetic() {
            at = word(chars, at, &mut out);
        } else if let Some(length) = unequal(chars, at) {
            push(&mut out, Kind::Word, "not".to_owned(), at..at + length);
            at += length;
        } else {
            at += 1;
        }
    }
    out
}

/// `返回 ≠ 完成`, `return != done`: a sign that is a word.
fn unequal(chars: &[char], at: usize) -> Option<usize> {
    match (chars[at], chars.get(at + 1)) {
        ('≠', _) => Some(1),
        ('!', Some('=')) => Some(2),
        _ => None,
    }
}

fn push(out: &mut Vec<Token>, kind: Kind, text: String, chars: Range<usize>) {
    let relates = kind == Kind::Word && relations::latin(&text);
    out.push(Token { kind, text, chars, begins: true, ends: true, piece: false, relates });
}

fn han_run(chars: &[char], start: usize, out: &mut Vec<Token>) -> usize {
    let end = chars[start..].iter().position(|c| !is_han(*c)).map_or(chars.len(), |n| start + n);
    let run: String = chars[start..end].iter().collect();
    let mut at = start;
    for word in JIEBA.tag(&run, true) {
        let last = at + word.word.chars().count();
        let relates = relations::han(word.word, word.tag);
        for (i, c) in chars.iter().enumerate().take(last).skip(at) {
            let (begins, ends) = (i == at, i + 1 == last);
            out.push(Token {
                kind: Kind::Han,
                text: c.to_string(),
                chars: i..i + 1,
                begins,
                ends,
                piece: false,
                relates,
            });
        }
        at = last;
    }
    end
}

/// `1,024` and `1.75` are one number; the comma in `8,192` groups, the one in `2,3` does not.
pub(crate) fn number_end(chars: &[char], start: usize) -> usize {
    let digits = |from: usize| chars[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut end = start + digits(start);
    while chars.get(end) == Some(&',') && end - start <= 3 + (end - start) / 4 * 4 && digits(end + 1) == 3 {
        end += 4;
    }
    if chars.get(end) == Some(&'.') && chars.get(end + 1).is_some_and(char::is_ascii_digit) {
        end += 1 + digits(end + 1);
    }
    end
}

/// With `'s` they are followed by a verb.
const CONTRACTED: &[&str] = &[
    "it",
    "that",
    "this",
    "there",
    "here",
    "he",
    "she",
    "what",
    "which",
    "who",
    "where",
    "how",
    "everything",
    "nothing",
];

/// Pieces of an identifier: split where case changes, and `n't` taken off.
fn word(chars: &[char], start: usize, out: &mut Vec<Token>) -> usize {
    let inner = |i: usize| {
        let c = chars[i];
        (c.is_alphanumeric() && !is_han(c))
            || (c == '\'' && chars.get(i + 1).is_some_and(|next| next.is_ascii_alphabetic()))
    };
    let end = (start..chars.len()).find(|i| !inner(*i)).unwrap_or(chars.len());
    let text: String = chars[start..end].iter().collect();
    let lower = text.to_lowercase();
    if lower == "cannot" {
        push(out, Kind::Word, "can".to_owned(), start..start + 3);
        push(out, Kind::Word, "not".to_owned(), start + 3..end);
        return end;
    }
    if let Some(quote) = (start..end).find(|i| chars[*i] == '\'') {
        let tail: String = chars[quote + 1..end].iter().collect::<String>().to_lowercase();
        let not = tail == "t" && quote > start + 1;
        let stem_end = if not { quote - 1 } else { quote };
        camel(chars, start, stem_end, out);
        // That's wrong, they're sent; but NCCL's is nobody's verb.
        let stem: String = chars[start..stem_end].iter().collect::<String>().to_lowercase();
        let verb = match tail.as_str() {
            "s" if CONTRACTED.contains(&stem.as_str()) => Some("is"),
            "re" => Some("are"),
            _ => None,
        };
        if let Some(verb) = verb {
            push(out, Kind::Word, verb.to_owned(), stem_end..end);
        }
        if not && let Some(last) = out.last_mut().filter(|last| last.text == "ca") {
            last.text = "can".to_owned();
        }
        if not {
            push(out, Kind::Word, "not".to_owned(), stem_end..end);
        }
        return end;
    }
    camel(chars, start, end, out);
    end
}

fn camel(chars: &[char], start: usize, end: usize, out: &mut Vec<Token>) {
    let (upper, lower) = (|i: usize| chars[i].is_uppercase(), |i: usize| chars[i].is_lowercase());
    let (mut from, first) = (start, out.len());
    for i in start + 1..end {
        let rise = lower(i - 1) && upper(i);
        // GPUDirect, but not GPUs.
        let fall = upper(i - 1) && upper(i) && i + 2 < end && lower(i + 1) && lower(i + 2);
        if rise || fall {
            push(out, Kind::Word, chars[from..i].iter().collect::<String>().to_lowercase(), from..i);
            from = i;
        }
    }
    if from < end {
        push(out, Kind::Word, chars[from..end].iter().collect::<String>().to_lowercase(), from..end);
    }
    let pieces = &mut out[first..];
    let library = pieces.first().is_some_and(|piece| LIBRARIES.contains(&piece.text.as_str()));
    if lower(start) && pieces.len() > 1 && !library {
        pieces.iter_mut().for_each(|piece| piece.piece = true);
    }
}

/// What the public names of a library begin with: they say what they do, and `ncclCommShrink` speaks of shrinking.
const LIBRARIES: &[&str] = &["nccl", "cuda", "cu", "nvml", "ibv", "mpi"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Break {
    None,
    Clause,
    Sentence,
}

/// What each character is as a break.
fn breaks(chars: &[char]) -> Vec<Break> {
    let abbreviation = |dot: usize| {
        let from =
            chars[..dot].iter().rposition(|c| !c.is_ascii_alphabetic() && *c != '.').map_or(0, |i| i + 1);
        let word: String = chars[from..dot].iter().collect::<String>().to_lowercase();
        matches!(word.as_str(), "e.g" | "i.e" | "eg" | "ie" | "vs" | "etc" | "cf" | "approx" | "resp" | "fig")
    };
    let one = |i: usize, c: char| match c {
        '!' if unequal(chars, i).is_some() => Break::None,
        '\n' | '。' | '!' | '?' | ';' | '…' => Break::Sentence,
        // A dot ends a sentence before white space and after Chinese; not in 1.75 or in torch.cuda.
        '.' => {
            let next = chars.get(i + 1);
            let after_han = i > 0 && is_han(chars[i - 1]);
            match next.is_none_or(|c| c.is_whitespace() || is_han(*c) || *c == '"' || *c == ')') || after_han
            {
                true if abbreviation(i) => Break::None,
                true => Break::Sentence,
                false => Break::None,
            }
        }
        ',' if i > 0
            && chars[i - 1].is_ascii_digit()
            && chars.get(i + 1).is_some_and(char::is_ascii_digit) =>
        {
            Break::None
        }
        ',' => Break::Clause,
        ':' if chars.get(i + 1) != Some(&'/') => Break::Clause,
        '-' if i > 0
            && chars[i - 1].is_whitespace()
            && chars.get(i + 1).is_some_and(|c| c.is_whitespace()) =>
        {
            Break::Clause
        }
        _ => Break::None,
    };
    chars.iter().enumerate().map(|(i, c)| one(i, *c)).collect()
}

fn strongest(breaks: &[Break], chars: Range<usize>) -> Break {
    breaks.get(chars).unwrap_or(&[]).iter().copied().max().unwrap_or(Break::None)
}

/// Words that turn a sentence: what was negated before them is not negated after.
const TURNS: &[&str] = &[
    "但",
    "但是",
    "可是",
    "不过",
    "然而",
    "而是",
    "而",
    "其实",
    "实际上",
    "事实上",
    "所以",
    "因此",
    "因为",
    "否则",
    "but",
    "however",
    "although",
    "though",
    "because",
    "so",
    "while",
    "whereas",
    "yet",
    "otherwise",
    "therefore",
    "since",
    "actually",
];

fn begins_clause(tokens: &[Token]) -> bool {
    let first = &tokens[0];
    if first.kind != Kind::Han {
        return TURNS.contains(&first.text.as_str());
    }
    first.begins && {
        let length = tokens.iter().position(|token| token.ends).map_or(tokens.len(), |n| n + 1);
        let word: String = tokens[..length.min(4)].iter().map(|token| token.text.as_str()).collect();
        TURNS.contains(&word.as_str())
    }
}

/// 不是因为, `isn't because`: the reason is what is denied.
fn denied_reason(tokens: &[Token], at: usize) -> bool {
    let text = |back: usize| at.checked_sub(back).map_or("", |i| tokens[i].text.as_str());
    match tokens[at].text.as_str() {
        "because" => {
            text(1) == "not" || (text(2) == "not" && matches!(text(1), "just" | "simply" | "merely"))
        }
        "因" => text(1) == "非" || (text(1) == "是" && matches!(text(2), "不" | "非" | "未")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokens(&Normal::new(text)).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn identifiers_come_apart_and_numbers_stay_whole() {
        assert_eq!(
            words("cudaStreamWaitEvent GPUDirect GPUs"),
            ["cuda", "stream", "wait", "event", "gpu", "direct", "gpus"]
        );
        let pieces = |text: &str| tokens(&Normal::new(text)).iter().filter(|token| token.piece).count();
        assert_eq!((pieces("taskAppend"), pieces("ncclAllReduce AllReduce append")), (2, 0));
        assert_eq!(words("NCCL_SOCKET_IFNAME all-reduce"), ["nccl", "socket", "ifname", "all", "reduce"]);
        assert_eq!(words("it isn't 1,024.5, can't"), ["it", "is", "not", "1024.5", "can", "not"]);
        assert_eq!(words("that's NCCL's, they're"), ["that", "is", "nccl", "they", "are"]);
        assert_eq!(words("返回≠done, a != b"), ["返", "回", "not", "done", "a", "not", "b"]);
        assert_eq!(words("2N x fp16"), ["2", "n", "x", "fp16"]);
    }

    #[test]
    fn sentences_and_clauses() {
        let text = Text::new("不是同步，而是异步。e.g. 1.75 is fine. Next one; last");
        assert_eq!(text.sentences.len(), 4);
        assert_eq!(text.clauses.len(), 5);
        assert_eq!(Text::new("return != done").sentences.len(), 1);
    }
}
