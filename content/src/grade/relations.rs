//! Which parts of an answer relate things to each other, and which only name them.

use std::ops::Range;

use super::normal::is_han;
use super::text::{Kind, Text};

/// Words of English in closed classes: articles, pronouns, prepositions, conjunctions, auxiliaries, quantifiers.
const CLOSED: &[&str] = &[
    "a",
    "an",
    "the",
    "this",
    "that",
    "these",
    "those",
    "it",
    "its",
    "itself",
    "they",
    "their",
    "them",
    "there",
    "here",
    "he",
    "she",
    "we",
    "us",
    "our",
    "you",
    "your",
    "i",
    "my",
    "me",
    "who",
    "whom",
    "whose",
    "which",
    "what",
    "when",
    "where",
    "why",
    "how",
    "be",
    "is",
    "are",
    "was",
    "were",
    "been",
    "being",
    "am",
    "do",
    "does",
    "did",
    "has",
    "have",
    "had",
    "having",
    "will",
    "would",
    "shall",
    "should",
    "can",
    "could",
    "may",
    "might",
    "must",
    "need",
    "needs",
    "of",
    "in",
    "on",
    "at",
    "by",
    "for",
    "with",
    "from",
    "to",
    "into",
    "onto",
    "over",
    "under",
    "above",
    "below",
    "between",
    "among",
    "through",
    "during",
    "before",
    "after",
    "until",
    "since",
    "about",
    "against",
    "across",
    "along",
    "around",
    "behind",
    "beside",
    "beyond",
    "off",
    "out",
    "up",
    "down",
    "via",
    "per",
    "without",
    "within",
    "as",
    "like",
    "than",
    "and",
    "or",
    "but",
    "nor",
    "so",
    "yet",
    "if",
    "unless",
    "because",
    "although",
    "though",
    "while",
    "whereas",
    "whether",
    "not",
    "no",
    "never",
    "none",
    "neither",
    "either",
    "both",
    "each",
    "every",
    "all",
    "any",
    "some",
    "many",
    "much",
    "more",
    "most",
    "few",
    "less",
    "other",
    "another",
    "such",
    "same",
    "only",
    "just",
    "even",
    "also",
    "too",
    "still",
    "already",
    "again",
    "then",
    "thus",
    "hence",
    "therefore",
    "however",
    "otherwise",
    "instead",
    "rather",
    "else",
];

/// Verbs of a closed class: to be, to have, and those that take another verb.
const AUXILIARY: &[&str] = &[
    "是", "有", "没", "没有", "无", "要", "会", "能", "可", "可以", "得", "须", "需", "需要", "应", "应该",
    "该", "让", "使", "成", "为", "到", "来", "去", "等于", "不是", "不会", "不能", "不用", "不要",
];

pub(super) fn latin(word: &str) -> bool {
    CLOSED.contains(&word)
}

pub(super) fn han(word: &str, tag: &str) -> bool {
    matches!(tag.as_bytes().first(), Some(b'u' | b'p' | b'c' | b'd' | b'r' | b'f' | b'y'))
        || AUXILIARY.contains(&word)
        || (word.chars().count() == 1 && (tag.starts_with('v') || tag.starts_with('a')))
}

/// A stretch between separators: commas, stops, slashes with spaces, and a space between two Chinese words, which prose does not have.
#[derive(Debug)]
struct Piece {
    weight: usize,
    /// Whether it says something of what it names.
    says: bool,
}

/// A clause of so much weight needs a relation; a longer one needs more of them.
const REACH: usize = 12;
/// So many things belong to the statement that a colon, or a clause around them, makes of them.
const AFTER_COLON: usize = 4;

fn pieces(text: &Text) -> Vec<Piece> {
    let mut out = Vec::new();
    for sentence in &text.sentences {
        let from = out.len();
        let mut relations = Vec::new();
        let mut start = sentence.start;
        for i in start + 1..=sentence.end {
            if i < sentence.end && !separated(text, i) {
                continue;
            }
            let parts = stretches(text, start..i);
            let single = parts.len() == 1;
            for part in parts {
                let weight = text.weight(part.clone());
                let found = Relations::of(text, part);
                // Words without an end between them are no clause: each stretch of them must say something of its own.
                let says = if single { found.says(weight) } else { found.content >= 2 && found.all() >= 2 };
                out.push(Piece { weight, says });
                relations.push(found);
            }
            start = i;
        }
        whole(&mut out[from..], &relations);
    }
    out
}

/// What a colon introduces, and what the clause at either end of a list says of all of it (count、dtype、root 在各 rank 上必须一致).
fn whole(pieces: &mut [Piece], relations: &[Relations]) {
    let mut left = 0;
    for (piece, found) in pieces.iter_mut().zip(relations) {
        if found.colon {
            left = AFTER_COLON;
        }
        if left > 0 {
            piece.says = true;
            left -= 1;
        }
    }
}

/// Parts of a stretch without separators, each no heavier than one relation reaches.
fn stretches(text: &Text, range: Range<usize>) -> Vec<Range<usize>> {
    if text.weight(range.clone()) <= 2 * REACH {
        return vec![range];
    }
    let mut out = Vec::new();
    let mut start = range.start;
    for i in range.start + 1..range.end {
        if text.weight(start..i) >= REACH && text.tokens[i].begins {
            out.push(start..i);
            start = i;
        }
    }
    out.push(start..range.end);
    out
}

/// Whether something separates a token from the one before it.
fn separated(text: &Text, at: usize) -> bool {
    let (before, after) = (&text.tokens[at - 1], &text.tokens[at]);
    let gap = &text.normal.chars[before.chars.end..after.chars.start];
    let value = before.kind == Kind::Number || after.kind == Kind::Number;
    let space = gap.iter().any(|c| c.is_whitespace());
    // The ranks of {0,4},{1,5} are no list of names.
    if before.kind == Kind::Number && after.kind == Kind::Number {
        return false;
    }
    if gap.iter().any(|c| matches!(c, ',' | '、' | '|')) || (gap.contains(&'/') && !value && space) {
        return true;
    }
    // Chinese prose has no spaces between its words.
    let han = before.kind == Kind::Han && after.kind == Kind::Han;
    han && space && gap.iter().all(|c| c.is_whitespace())
}

/// The words and signs of a stretch that relate.
#[derive(Debug, Clone, Default)]
struct Relations {
    content: usize,
    /// Between two things, and before or after all of them.
    inner: usize,
    edge: usize,
    colon: bool,
}

impl Relations {
    fn of(text: &Text, range: Range<usize>) -> Relations {
        let tokens = &text.tokens[range.clone()];
        let chars = &text.normal.chars;
        let content = tokens.iter().filter(|token| !token.relates && token.begins).count();
        let first = tokens.iter().position(|token| !token.relates).unwrap_or(tokens.len());
        let last = tokens.iter().rposition(|token| !token.relates).unwrap_or(0);
        let mut out = Relations { content, ..Relations::default() };
        // A clause has the grammar of one language: English terms stand in Chinese prose, English particles do not.
        let (mut inner, mut edge) = ([0; 2], [0; 2]);
        for (i, token) in tokens.iter().enumerate() {
            let language = usize::from(token.kind == Kind::Han);
            if token.relates && token.begins {
                *(if first < i && i <= last { &mut inner[language] } else { &mut edge[language] }) += 1;
            }
            if i > 0 {
                let gap = tokens[i - 1].chars.end..token.chars.start;
                out.colon |= chars[gap.clone()].contains(&':');
                // What an equation says reaches over both its sides.
                let equation = gap.clone().any(|at| matches!(chars[at], '=' | '≈'));
                out.inner += usize::from(sign(chars, gap)) + usize::from(equation);
            }
        }
        let language = usize::from(2 * inner[1] + edge[1] > 2 * inner[0] + edge[0]);
        out.inner += inner[language];
        out.edge += edge[language];
        let after = text.tokens.get(range.end).map_or(chars.len(), |token| token.chars.start);
        let gap = tokens.last().map_or(0, |token| token.chars.end)..after;
        out.colon |= chars[gap.clone()].contains(&':');
        out.edge += usize::from(sign(chars, gap));
        out
    }

    fn all(&self) -> usize {
        self.inner + self.edge
    }

    fn says(&self, weight: usize) -> bool {
        let relates = (self.content >= 2 && self.inner >= 1) || (self.content >= 1 && self.all() >= 2);
        relates && weight <= REACH * self.all()
    }
}

/// Signs that relate what stands around them: an equation, an arrow, a colon, a parenthesis that explains, a sum of things.
fn sign(chars: &[char], gap: Range<usize>) -> bool {
    let letter = |at: usize| chars.get(at).is_some_and(|c| c.is_alphabetic());
    let before = gap.start > 0 && letter(gap.start - 1);
    gap.clone().any(|at| match chars[at] {
        '=' | '≠' | '→' | '⇒' | '<' | '>' | '≈' | '≤' | '≥' | ':' => true,
        // Not the ones of `2(N-1)` and `f(x)`.
        '(' => {
            (before || gap.start < at) && letter(gap.end) && (is_han(chars[gap.end]) || letter(gap.end + 1))
        }
        '+' => before && letter(gap.end) && at + 1 < gap.end,
        _ => false,
    })
}

/// What an answer must weigh before its share of relations says much, in tokens as `Text::weight` counts them.
const LONG: usize = 45;

/// Whether an answer as a whole names things instead of saying something of them, however its words are set apart.
///
/// No sample of the bank that earns more than two marks falls under these shares; `tests/keywords.rs` counts which lists escape.
pub(super) fn names_only(text: &Text) -> bool {
    let pieces = pieces(text);
    let all: usize = pieces.iter().map(|piece| piece.weight).sum();
    let says: usize = pieces.iter().filter(|piece| piece.says).map(|piece| piece.weight).sum();
    // A short answer of a few clauses may be all numbers and units.
    pieces.len() >= 3 && says * 100 < all * if all >= LONG { 50 } else { 36 }
}
