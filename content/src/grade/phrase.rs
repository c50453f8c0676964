//! Where a phrase stands in an answer: words next to each other, whatever their form, with a particle or an article between them, written
//! together, or with a slip of the finger.

use std::ops::Range;

use super::index::JOINED;
use super::matching::{Match, Matcher};
use super::pattern::{Phrase, Piece};
use super::text::{Kind, Token};
use super::words::{ordinary, slip, stem};

const PARTICLES: &str = "的了着过就也都会才还已要得地把个被所再只";
/// What may follow a verb, or stand before a noun, in one word of the segmentation without another meaning.
const COMPLEMENTS: &str = "到成给掉完开好出入上下了里内中";
const MEASURES: &str = "张个按每各";
/// What may stand before the measure: 每张卡, 两个人.
const COUNTED: &str = "每各这那某几一二两三四五六七八九十";
/// Signs that mean something else in such a word: numerals, and the 流 of 流到 is no stream.
const ELSEWHERE: &str = "一二两三四五六七八九十百流到成给掉完开好出入上下了里内中张个按每各的不也都";
/// Words of the language that only look like these.
const OTHER_WORDS: &[&str] = &[
    "完成", "组成", "构成", "形成", "最好", "只好", "正好", "刚好", "友好", "马上", "以上", "以下", "除了",
    "为了", "算了", "得了", "加入", "收入", "投入", "支出", "得到", "直到", "不到", "没到", "等到", "达到",
    "受到", "感到", "网上", "线上", "早上", "晚上", "公开", "离开", "当下", "当中", "其中", "之中", "之内",
    "国内", "个别", "个体", "个性", "按时", "按需", "按理", "每次", "每当", "各种", "各自", "各位", "各类",
];
const ARTICLES: &[&str] = &[
    "a", "an", "the", "its", "your", "their", "our", "my", "this", "that", "these", "those", "of", "any",
    "each",
];
/// `allreudce` is `all reduce`; shorter compounds are too near to other words.
const LONG_COMPOUND: usize = 8;

/// The words of an answer that may be misspelled ones of this rubric's.
#[derive(Debug)]
pub(crate) struct Strange {
    /// Of each token, whether the rubric or the language has such a word.
    known: Vec<bool>,
    places: Vec<usize>,
    /// By first letter, a bit for each length: most pieces of a rubric are near to none of them.
    lengths: [u32; 26],
}

impl Strange {
    pub fn new(tokens: &[Token], stems: &[String], known: impl Fn(&str) -> bool) -> Strange {
        let known: Vec<bool> = tokens
            .iter()
            .zip(stems)
            .map(|(token, stem)| token.kind != Kind::Word || known(stem) || ordinary(&token.text))
            .collect();
        let places: Vec<usize> = (0..tokens.len()).filter(|at| !known[*at]).collect();
        let mut lengths = [0; 26];
        for at in &places {
            for word in [&stems[*at], &tokens[*at].text] {
                if let Some((letter, length)) = letter(word) {
                    lengths[letter] |= 1 << length;
                }
            }
        }
        Strange { known, places, lengths }
    }

    /// Whether some word begins like this one and is about as long.
    fn near(&self, word: &str) -> bool {
        letter(word).is_some_and(|(letter, length)| self.lengths[letter] & (0b111 << length >> 1) != 0)
    }
}

/// First letter and length, both small.
fn letter(word: &str) -> Option<(usize, usize)> {
    let first = *word.as_bytes().first().filter(|first| first.is_ascii_lowercase())?;
    Some((usize::from(first - b'a'), word.len().min(29)))
}

impl Matcher<'_> {
    pub(super) fn phrase(&self, phrase: &Phrase, within: &Range<usize>) -> Vec<Match> {
        let (tokens, pieces) = (&self.reading.text.tokens, &phrase.pieces);
        let mut out = Vec::new();
        for at in self.beginnings(phrase) {
            if !within.contains(&at) {
                continue;
            }
            let Some(end) = self.phrase_at(pieces, at, true) else { continue };
            if end > within.end {
                continue;
            }
            let (first, last) = (&tokens[at], &tokens[end - 1]);
            let whole = match pieces.len() {
                1 if end == at + 1 && first.piece => false,
                1 => (first.begins && last.ends) || self.carries(at),
                _ => first.begins || last.ends,
            };
            if whole {
                out.push(self.plain(at..end));
            }
        }
        out
    }

    /// Whether a short Chinese word means this one of its signs: 拆 in 拆到, 卡 in 每张卡, 头 in 按头.
    fn carries(&self, at: usize) -> bool {
        let tokens = &self.reading.text.tokens;
        let start = (0..=at).rev().find(|i| tokens[*i].begins).unwrap_or(at);
        let end = (at..tokens.len()).find(|i| tokens[*i].ends).map_or(at + 1, |i| i + 1);
        let of =
            |range: Range<usize>, signs: &str| tokens[range].iter().all(|token| signs.contains(&token.text));
        let word: String = tokens[start..end].iter().map(|token| token.text.as_str()).collect();
        (2..=3).contains(&(end - start))
            && !ELSEWHERE.contains(&tokens[at].text)
            && !OTHER_WORDS.contains(&word.as_str())
            && ((start == at && of(at + 1..end, COMPLEMENTS))
                || (end == at + 1 && of(at - 1..at, MEASURES) && of(start..at - 1, COUNTED)))
    }

    /// The tokens at which a phrase may begin, in order.
    pub(super) fn beginnings(&self, phrase: &Phrase) -> Vec<usize> {
        let Some(first) = phrase.pieces.first() else { return Vec::new() };
        let tokens = &self.reading.text.tokens;
        if first.prefix {
            return (0..tokens.len()).filter(|at| tokens[*at].text.starts_with(&first.text)).collect();
        }
        let mut out = Vec::new();
        for word in &phrase.beginnings {
            self.reading.index.find(word.key, &mut out);
            if word.slips && (self.strange.near(&word.stem) || self.strange.near(&word.text)) {
                let slipped = |at: &usize| self.slipped(*at, &word.stem, &word.text);
                out.extend(self.strange.places.iter().copied().filter(slipped));
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Where the phrase that begins at token `at` ends.
    fn phrase_at(&self, pieces: &[Piece], at: usize, first: bool) -> Option<usize> {
        let Some(piece) = pieces.first() else { return Some(at) };
        let token = self.reading.text.tokens.get(at)?;
        if piece.kind == Kind::Han {
            if token.kind == Kind::Han && token.text == piece.text {
                let end = self.phrase_at(&pieces[1..], at + 1, false);
                if end.is_some() {
                    return end;
                }
            }
            let skip = !first && token.kind == Kind::Han && PARTICLES.contains(&token.text);
            return if skip { self.phrase_at_strict(pieces, at + 1) } else { None };
        }
        if token.kind == Kind::Han {
            return None;
        }
        if self.same(piece, at)
            && let Some(end) = self.phrase_at(&pieces[1..], at + 1, false)
        {
            return Some(end);
        }
        self.joined(pieces, at).or_else(|| {
            let skip = !first && ARTICLES.contains(&token.text.as_str());
            if skip { self.phrase_at_strict(pieces, at + 1) } else { None }
        })
    }

    /// As `phrase_at`, after a word was skipped: not a second one.
    fn phrase_at_strict(&self, pieces: &[Piece], at: usize) -> Option<usize> {
        let (piece, token) = (pieces.first()?, self.reading.text.tokens.get(at)?);
        let here = if piece.kind == Kind::Han { token.text == piece.text } else { self.same(piece, at) };
        if here { self.phrase_at(&pieces[1..], at + 1, false) } else { None }
    }

    fn same(&self, piece: &Piece, at: usize) -> bool {
        let token = &self.reading.text.tokens[at];
        if token.kind != piece.kind {
            return false;
        }
        match piece.kind {
            Kind::Number => token.text == piece.text,
            _ if piece.prefix => token.text.starts_with(&piece.text),
            _ => self.reading.index.stems[at] == piece.stem || self.slipped(at, &piece.stem, &piece.text),
        }
    }

    fn slipped(&self, at: usize, stem: &str, text: &str) -> bool {
        !self.strange.known[at]
            && (slip(&self.reading.index.stems[at], stem) || slip(&self.reading.text.tokens[at].text, text))
    }

    /// `allreduce`, `all reduce`, `AllReduce`: pieces or tokens written together.
    fn joined(&self, pieces: &[Piece], at: usize) -> Option<usize> {
        let tokens = &self.reading.text.tokens;
        let mut text = tokens[at].text.clone();
        for (n, token) in tokens.iter().enumerate().skip(at + 1).take(JOINED - 1) {
            if token.kind == Kind::Han {
                break;
            }
            text.push_str(&token.text);
            if text.len() > pieces[0].text.len() + 2 {
                break;
            }
            if stem(&text) == pieces[0].stem
                && let Some(end) = self.phrase_at(&pieces[1..], n + 1, false)
            {
                return Some(end);
            }
        }
        compounds(pieces)
            .filter(|word| {
                self.reading.index.stems[at] == word.stem
                    || (word.slips && self.slipped(at, &word.stem, &word.text))
            })
            .find_map(|word| self.phrase_at(&pieces[word.pieces..], at + 1, false))
    }
}

/// The first pieces of a phrase written as one word.
#[derive(Debug)]
pub(crate) struct Compound {
    pub text: String,
    pub stem: String,
    pub slips: bool,
    pieces: usize,
}

/// `all`, `reduce`, … as `allreduce`, two pieces or more.
pub(crate) fn compounds(pieces: &[Piece]) -> impl Iterator<Item = Compound> {
    let mut text = String::new();
    pieces.iter().take(JOINED).take_while(|piece| piece.kind != Kind::Han).enumerate().filter_map(
        move |(n, piece)| {
            text.push_str(&piece.text);
            let word = || Compound {
                stem: stem(&text),
                slips: text.len() >= LONG_COMPOUND,
                text: text.clone(),
                pieces: n + 1,
            };
            (n > 0).then(word)
        },
    )
}
