//! Files, pieces of them, and where a byte of a piece stands in its file.
//!
//! Markdown sits in TOML strings in fenced blocks in Markdown. A [`Fragment`] carries text together with the way back, so that an error
//! four levels down still names the line and column a writer's editor shows.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::error::ContentError;

/// A text file with Unix line ends.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Path below the root, with `/`.
    pub path: String,
    pub text: String,
    /// Byte offset of the first character of each line.
    lines: Vec<usize>,
}

impl SourceFile {
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> SourceFile {
        let text = text.into();
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        SourceFile { path: path.into(), text, lines }
    }

    /// An error at a byte offset; offsets past the end or inside a character mean the nearest character before.
    pub fn error(&self, offset: usize, message: impl Into<String>) -> ContentError {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.lines.partition_point(|&start| start <= offset) - 1;
        let column = self.text[self.lines[line]..offset].chars().count() + 1;
        ContentError {
            file: self.path.clone(),
            line: line as u32 + 1,
            column: column as u32,
            message: message.into(),
        }
    }

    pub fn whole(&self) -> Fragment<'_> {
        self.slice(0..self.text.len())
    }

    pub fn slice(&self, range: Range<usize>) -> Fragment<'_> {
        Fragment { file: self, text: Cow::Borrowed(&self.text[range.clone()]), steps: vec![(0, range.start)] }
    }
}

/// Text that was cut out of, or decoded from, a file.
#[derive(Debug, Clone)]
pub(crate) struct Fragment<'a> {
    pub file: &'a SourceFile,
    pub text: Cow<'a, str>,
    /// `(offset in text, offset in file)` where the difference of the two changes; sorted, starts at text offset 0.
    steps: Vec<(usize, usize)>,
}

impl<'a> Fragment<'a> {
    pub fn error(&self, offset: usize, message: impl Into<String>) -> ContentError {
        self.file.error(self.file_offset(offset), message)
    }

    fn file_offset(&self, offset: usize) -> usize {
        let step = self.steps.partition_point(|&(text, _)| text <= offset).saturating_sub(1);
        let (text, file) = self.steps[step];
        file + (offset - text)
    }

    #[cfg(any(test, feature = "render"))]
    /// A piece of this fragment. The range must lie on character boundaries.
    pub fn slice(&self, range: Range<usize>) -> Fragment<'a> {
        let mut steps = vec![(0, self.file_offset(range.start))];
        let inside = self.steps.iter().filter(|(text, _)| range.contains(text) && *text > range.start);
        steps.extend(inside.map(|&(text, file)| (text - range.start, file)));
        let text = match &self.text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
            Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
        };
        Fragment { file: self.file, text, steps }
    }

    /// The decoded text of a TOML string that `self` (a TOML document) holds.
    pub fn toml_string(&self, value: &Spanned<String>) -> Fragment<'a> {
        let raw = self.text.get(value.span()).unwrap_or("");
        let base = value.span().start;
        let steps =
            string_steps(raw).into_iter().map(|(text, raw)| (text, self.file_offset(base + raw))).collect();
        Fragment { file: self.file, text: Cow::Owned(value.get_ref().clone()), steps }
    }

    /// Reads a TOML document; an error names the place of the offending key or value.
    pub fn toml<T: DeserializeOwned>(&self, what: &str) -> Result<T, ContentError> {
        toml::from_str(&self.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            self.error(offset, format!("{what} cannot be read as TOML: {}", error.message().trim()))
        })
    }
}

/// Where decoding a TOML string token shifts the text: `(decoded offset, offset in the token)`.
fn string_steps(raw: &str) -> Vec<(usize, usize)> {
    let (open, escapes) = match raw {
        _ if raw.starts_with("\"\"\"") => (3, true),
        _ if raw.starts_with("'''") => (3, false),
        _ if raw.starts_with('"') => (1, true),
        _ => (1, false),
    };
    let mut at = open.min(raw.len());
    if open == 3 && raw[at..].starts_with('\n') {
        at += 1;
    }
    let mut steps = vec![(0, at)];
    if !escapes {
        return steps;
    }
    let mut decoded = 0;
    while let Some(next) = raw[at..].find('\\') {
        at += next;
        decoded += next;
        let tail = &raw[at + 1..];
        let hex = |digits: usize| tail.get(1..1 + digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let (length, value) = match tail.chars().next() {
            Some('x') => (4, hex(2).and_then(char::from_u32)),
            Some('u') => (6, hex(4).and_then(char::from_u32)),
            Some('U') => (10, hex(8).and_then(char::from_u32)),
            // A line-ending backslash swallows the white space after it.
            Some(c) if c.is_whitespace() => (1 + tail.len() - tail.trim_start().len(), None),
            Some(_) => (2, Some('\\')),
            None => break,
        };
        if raw.len() < at + length {
            break;
        }
        at += length;
        decoded += value.map_or(0, char::len_utf8);
        steps.push((decoded, at));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let file = SourceFile::new("a.md", "环\n带宽 x");
        let error = file.error(file.text.find('x').unwrap(), "here");
        assert_eq!((error.line, error.column), (2, 4));
        let past = file.error(1_000, "here");
        assert_eq!((past.line, past.column), (2, 5));
    }

    #[test]
    fn a_string_in_a_block_leads_back_to_its_file() {
        let text = "前言\n\nkey = \"a\\t环\\u73afz\"\nlong = \"\"\"\nx \\\n   y\n\"\"\"\n";
        let file = SourceFile::new("a.md", text);
        let body = file.slice(text.find("key").unwrap()..text.len());
        #[derive(serde::Deserialize)]
        struct Body {
            key: Spanned<String>,
            long: Spanned<String>,
        }
        let parsed: Body = body.toml("body").unwrap();
        let key = body.toml_string(&parsed.key);
        assert_eq!(key.text, "a\t环环z");
        let error = key.error(key.text.find('z').unwrap(), "z");
        assert_eq!((error.line, error.column), (3, 18));
        let long = body.toml_string(&parsed.long);
        assert_eq!(long.text, "x y\n");
        let error = long.error(2, "y");
        assert_eq!((error.line, error.column), (6, 4));
        let piece = long.slice(2..3);
        assert_eq!(piece.error(0, "y").line, 6);
    }
}
