//! The language of `when`: what an answer may say, as a person would write it down. `content/interview/README.md` teaches it.
//!
//! ```text
//! or  := and ('|' and)*          and := seq ('&' seq)*        both within the claim's window
//! seq := adj ('..' adj)*         in this order, not far apart
//! adj := item item*              next to each other; bare words make a phrase
//! item := '@'concept | '!'item (denied) | '?'item (either way) | '-'item (absent) | '(' or ')' | '{' value '}' | word
//! ```

use super::formula::{self, Value};
use super::index::key;
use super::normal::Normal;
use super::phrase::compounds;
use super::text::{Kind, tokens};
use super::words::stem;

#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    Phrase(Phrase),
    Concept(String),
    Value(Value),
    /// Side by side.
    Adjacent(Vec<Pattern>),
    /// In this order.
    Sequence(Vec<Pattern>),
    All(Vec<Pattern>),
    Any(Vec<Pattern>),
    Denied(Box<Pattern>),
    Either(Box<Pattern>),
    Absent(Box<Pattern>),
}

/// Words next to each other.
#[derive(Debug, Clone)]
pub(crate) struct Phrase {
    pub pieces: Vec<Piece>,
    /// The words that it may begin with: the first piece, or several written as one.
    pub beginnings: Vec<Beginning>,
}

#[derive(Debug, Clone)]
pub(crate) struct Beginning {
    pub key: u64,
    pub text: String,
    pub stem: String,
    /// Whether a misspelling is forgiven.
    pub slips: bool,
}

impl Phrase {
    /// As a person would write it, in lower case.
    pub fn written(&self) -> String {
        let mut out = String::new();
        let mut last = Kind::Han;
        for piece in &self.pieces {
            if !out.is_empty() && (last != Kind::Han || piece.kind != Kind::Han) {
                out.push(' ');
            }
            out += &piece.text;
            last = piece.kind;
        }
        out
    }

    fn new(pieces: Vec<Piece>) -> Phrase {
        let first = pieces.iter().take(1).map(|piece| Beginning {
            key: key(&piece.stem),
            text: piece.text.clone(),
            stem: piece.stem.clone(),
            slips: piece.kind == Kind::Word,
        });
        let joined = compounds(&pieces).map(|word| Beginning {
            key: key(&word.stem),
            text: word.text,
            stem: word.stem,
            slips: word.slips,
        });
        Phrase { beginnings: first.chain(joined).collect(), pieces }
    }
}

/// One token of a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub kind: Kind,
    pub text: String,
    pub stem: String,
    /// `synchron*`
    pub prefix: bool,
}

/// What cannot be read, and at which byte of the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatternError {
    pub at: usize,
    pub message: String,
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let pattern = parser.any()?;
        match parser.peek() {
            None => Ok(pattern),
            Some(c) => parser.fail(format!("`{c}` cannot stand here; join parts with `&`, `|` or `..`")),
        }
    }

    /// Calls `see` with every concept that the pattern names.
    pub fn concepts(&self, see: &mut impl FnMut(&str)) {
        match self {
            Pattern::Concept(name) => see(name),
            Pattern::Phrase(_) | Pattern::Value(_) => {}
            Pattern::Adjacent(parts)
            | Pattern::Sequence(parts)
            | Pattern::All(parts)
            | Pattern::Any(parts) => {
                parts.iter().for_each(|part| part.concepts(see));
            }
            Pattern::Denied(part) | Pattern::Either(part) | Pattern::Absent(part) => part.concepts(see),
        }
    }

    /// Calls `see` with every phrase that stands in the pattern itself.
    pub fn phrases(&self, see: &mut impl FnMut(&Phrase)) {
        match self {
            Pattern::Phrase(phrase) => see(phrase),
            Pattern::Concept(_) | Pattern::Value(_) => {}
            Pattern::Adjacent(parts)
            | Pattern::Sequence(parts)
            | Pattern::All(parts)
            | Pattern::Any(parts) => {
                parts.iter().for_each(|part| part.phrases(see));
            }
            Pattern::Denied(part) | Pattern::Either(part) | Pattern::Absent(part) => part.phrases(see),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, PatternError> {
        Err(PatternError { at: self.at, message: message.into() })
    }

    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, sign: &str) -> bool {
        self.peek();
        let found = self.text[self.at..].starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn list(
        &mut self,
        sign: &str,
        part: fn(&mut Self) -> Result<Pattern, PatternError>,
        make: fn(Vec<Pattern>) -> Pattern,
    ) -> Result<Pattern, PatternError> {
        let mut parts = vec![part(self)?];
        while self.take(sign) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { make(parts) })
    }

    fn any(&mut self) -> Result<Pattern, PatternError> {
        self.depth += 1;
        if self.depth > 32 {
            return self.fail("nested deeper than 32 parentheses; make a concept of the inner part");
        }
        let pattern = self.list("|", Self::all, Pattern::Any);
        self.depth -= 1;
        pattern
    }

    fn all(&mut self) -> Result<Pattern, PatternError> {
        self.list("&", Self::sequence, Pattern::All)
    }

    fn sequence(&mut self) -> Result<Pattern, PatternError> {
        self.list("..", Self::adjacent, Pattern::Sequence)
    }

    fn adjacent(&mut self) -> Result<Pattern, PatternError> {
        let mut parts = Vec::new();
        while let Some(c) = self.peek() {
            if matches!(c, '|' | '&' | ')') || self.text[self.at..].starts_with("..") {
                break;
            }
            parts.push(self.item()?);
        }
        match parts.len() {
            0 => self.fail("words, `@concept`, `(` or `{value}` were expected here"),
            1 => Ok(parts.remove(0)),
            _ => Ok(Pattern::Adjacent(parts)),
        }
    }

    fn item(&mut self) -> Result<Pattern, PatternError> {
        let prefix = |parser: &mut Self, make: fn(Box<Pattern>) -> Pattern| {
            parser.at += 1;
            parser.depth += 1;
            if parser.depth > 32 {
                return parser.fail("too many signs in a row");
            }
            let item = parser.item();
            parser.depth -= 1;
            Ok(make(Box::new(item?)))
        };
        match self.peek() {
            Some('!') => prefix(self, Pattern::Denied),
            Some('?') => prefix(self, Pattern::Either),
            Some('-') => prefix(self, Pattern::Absent),
            Some('(') => {
                self.at += 1;
                let inner = self.any()?;
                if self.take(")") { Ok(inner) } else { self.fail("a `)` is missing here") }
            }
            Some('@') => {
                self.at += 1;
                let rest = &self.text[self.at..];
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
                if end == 0 {
                    return self.fail("`@` is followed by a concept of content/interview/lexicon.toml");
                }
                self.at += end;
                Ok(Pattern::Concept(rest[..end].to_owned()))
            }
            Some('{') => {
                let start = self.at + 1;
                let Some(length) = self.text[start..].find('}') else {
                    return self.fail("a `}` is missing: `{2(N-1)/N}`, `{160}`, `{512 KiB}`");
                };
                let inner = &self.text[start..start + length];
                self.at = start;
                match formula::value(inner) {
                    Ok(value) => {
                        self.at = start + length + 1;
                        Ok(Pattern::Value(value))
                    }
                    Err(message) => self.fail(message),
                }
            }
            Some('}') => self.fail("this `}` closes nothing"),
            Some(_) => self.phrase(),
            None => self.fail("the pattern ends too early"),
        }
    }

    fn phrase(&mut self) -> Result<Pattern, PatternError> {
        let rest = &self.text[self.at..];
        let mut end = rest.find(['|', '&', '(', ')', '{', '}', '@', '!', '?']).unwrap_or(rest.len());
        end = rest[..end].find("..").unwrap_or(end);
        // A minus after white space is a sign, one inside a word is not.
        end = rest[..end].find(" -").unwrap_or(end);
        let mut pieces: Vec<Piece> = Vec::new();
        for part in rest[..end].split('*').enumerate() {
            let (i, words) = part;
            if i > 0
                && let Some(last) = pieces.last_mut()
            {
                last.prefix = true;
            }
            pieces.extend(tokens(&Normal::new(words)).into_iter().map(|token| Piece {
                stem: stem(&token.text),
                kind: token.kind,
                text: token.text,
                prefix: false,
            }));
        }
        if pieces.is_empty() {
            return self.fail("no word can be read here");
        }
        self.at += end;
        Ok(Pattern::Phrase(Phrase::new(pieces)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_and_errors() {
        let pattern = Pattern::parse("@returns .. !@done | 入队 & -@sync").unwrap();
        assert!(
            matches!(&pattern, Pattern::Any(parts) if matches!(&parts[0], Pattern::Sequence(_)) && matches!(&parts[1], Pattern::All(_)))
        );
        assert_eq!(
            Pattern::parse("@a & ").unwrap_err().message,
            "words, `@concept`, `(` or `{value}` were expected here"
        );
        assert!(Pattern::parse("(@a").unwrap_err().message.contains("`)` is missing"));
        assert_eq!(Pattern::parse("@a )").unwrap_err().at, 3);
        assert!(Pattern::parse(&"(".repeat(99)).is_err());
        assert!(Pattern::parse(&"!".repeat(9999)).is_err());
    }
}
