//! Finds formulae and quantities in running text, Chinese numerals and `乘`, `times` included.

use std::ops::Range;

use super::formula::{Expr, Unit};
use super::names::Names;
use super::normal::is_han;
use super::text::number_end;

/// A formula or number of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub expr: Expr,
    pub chars: Range<usize>,
}

/// Everything in a text that reads as a value.
pub(crate) fn find(chars: &[char], names: &Names) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let inside_word =
            at > 0 && chars[at - 1].is_ascii_alphanumeric() && chars[at].is_ascii_alphanumeric();
        if inside_word || chars[at].is_whitespace() {
            at += 1;
            continue;
        }
        let mut scanner = Scanner { chars, at, names, depth: 0 };
        match scanner.expression() {
            Some(expr) => {
                let end = scanner.at;
                if !matches!(expr, Expr::Name(_)) || names_alone(&chars[at..end]) {
                    found.push(Found { expr, chars: at..end });
                }
                at = end.max(at + 1);
            }
            None => at += 1,
        }
    }
    found
}

/// Whether a name without a formula around it is meant as one: M and α, but not the article `a`.
fn names_alone(written: &[char]) -> bool {
    match written {
        [only] => !only.is_ascii_lowercase() && *only != 'I' && *only != 'A',
        _ => true,
    }
}

const UNITS: &[(&str, f64, Unit)] = &[
    ("GiB/s", 1_073_741_824.0, Unit::Rate),
    ("GB/s", 1e9, Unit::Rate),
    ("Gb/s", 1.25e8, Unit::Rate),
    ("Gbps", 1.25e8, Unit::Rate),
    ("MB/s", 1e6, Unit::Rate),
    ("TB/s", 1e12, Unit::Rate),
    ("Tb/s", 1.25e11, Unit::Rate),
    ("Tbps", 1.25e11, Unit::Rate),
    ("Gbit/s", 1.25e8, Unit::Rate),
    ("GBps", 1e9, Unit::Rate),
    ("MiB/s", 1_048_576.0, Unit::Rate),
    ("KB/s", 1e3, Unit::Rate),
    ("GB/秒", 1e9, Unit::Rate),
    ("GB 每秒", 1e9, Unit::Rate),
    ("GB per second", 1e9, Unit::Rate),
    ("gigabytes per second", 1e9, Unit::Rate),
    ("gigabytes a second", 1e9, Unit::Rate),
    ("KiB", 1024.0, Unit::Bytes),
    ("MiB", 1_048_576.0, Unit::Bytes),
    ("GiB", 1_073_741_824.0, Unit::Bytes),
    ("TiB", 1_099_511_627_776.0, Unit::Bytes),
    ("KB", 1024.0, Unit::Bytes),
    ("kB", 1024.0, Unit::Bytes),
    ("MB", 1_048_576.0, Unit::Bytes),
    ("GB", 1_073_741_824.0, Unit::Bytes),
    ("TB", 1_099_511_627_776.0, Unit::Bytes),
    ("bytes", 1.0, Unit::Bytes),
    ("byte", 1.0, Unit::Bytes),
    ("B", 1.0, Unit::Bytes),
    ("字节", 1.0, Unit::Bytes),
    ("兆", 1_048_576.0, Unit::Bytes),
    ("微秒", 1e-6, Unit::Time),
    ("毫秒", 1e-3, Unit::Time),
    ("us", 1e-6, Unit::Time),
    ("μs", 1e-6, Unit::Time),
    ("microseconds", 1e-6, Unit::Time),
    ("ms", 1e-3, Unit::Time),
    ("ns", 1e-9, Unit::Time),
    ("纳秒", 1e-9, Unit::Time),
    ("nanoseconds", 1e-9, Unit::Time),
    ("秒", 1.0, Unit::Time),
    ("sec", 1.0, Unit::Time),
    ("second", 1.0, Unit::Time),
    ("seconds", 1.0, Unit::Time),
    ("microsecond", 1e-6, Unit::Time),
    ("millisecond", 1e-3, Unit::Time),
    ("megabytes", 1_048_576.0, Unit::Bytes),
    ("gigabytes", 1_073_741_824.0, Unit::Bytes),
    ("kilobytes", 1024.0, Unit::Bytes),
    ("gigabyte", 1_073_741_824.0, Unit::Bytes),
    ("megabyte", 1_048_576.0, Unit::Bytes),
    ("mb", 1_048_576.0, Unit::Bytes),
    ("kb", 1024.0, Unit::Bytes),
    ("gb", 1_073_741_824.0, Unit::Bytes),
    ("M 字节", 1_048_576.0, Unit::Bytes),
    ("milliseconds", 1e-3, Unit::Time),
];

/// What may follow a single Chinese numeral for it to be a number and not part of a word.
const COUNTED: &str = "层次张卡回倍兆步份块条字遍轮趟个元";

/// TeX that says nothing: spaces, delimiters and their sizes.
const TEX_SPACE: &[&str] =
    &["\\,", "\\;", "\\:", "\\!", "\\ ", "\\(", "\\)", "\\[", "\\]", "\\left", "\\right", "\\big", "\\Big"];
const TEX_FRACTIONS: &[&str] = &["\\frac", "\\dfrac", "\\tfrac", "\\cfrac"];
/// TeX around a name: `\text{bytes}`.
const TEX_FONTS: &[&str] = &["\\text", "\\mathrm", "\\mathit", "\\operatorname"];
const TEX_LETTERS: &[(&str, char)] = &[("\\alpha", 'α'), ("\\beta", 'β')];

const MAX_DEPTH: u32 = 24;

pub(crate) struct Scanner<'a> {
    chars: &'a [char],
    at: usize,
    names: &'a Names,
    depth: u32,
}

impl<'a> Scanner<'a> {
    pub fn new(chars: &'a [char], names: &'a Names) -> Scanner<'a> {
        Scanner { chars, at: 0, names, depth: 0 }
    }

    pub fn rest(&self) -> String {
        self.chars[self.at..].iter().collect()
    }

    fn looking_at(&self, at: usize, word: &str) -> bool {
        word.chars().zip(at..).all(|(c, i)| self.chars.get(i) == Some(&c))
    }

    /// Index after white space, which may not hold a line's end, and after signs of TeX that only space and delimit.
    fn skip(&self, mut at: usize) -> usize {
        loop {
            let tex = TEX_SPACE.iter().find(|sign| self.looking_at(at, sign));
            match (self.chars.get(at), tex) {
                (Some(' ' | '\t' | '$'), _) => at += 1,
                (Some('\\'), Some(sign)) => at += sign.len(),
                _ => return at,
            }
        }
    }

    /// One of these signs or words, after optional white space; not consumed unless an operand follows.
    fn operator(&self, signs: &[&str]) -> Option<usize> {
        let at = self.skip(self.at);
        signs.iter().find(|sign| self.looking_at(at, sign)).map(|sign| at + sign.chars().count())
    }

    /// The longest sum that begins here; the scanner stands behind it. `None` leaves the scanner where it was.
    pub fn expression(&mut self) -> Option<Expr> {
        let start = self.at;
        self.at = self.skip(start);
        let sum = self.nested(Self::sum);
        if sum.is_none() {
            self.at = start;
        }
        sum
    }

    fn sum(&mut self) -> Option<Expr> {
        let mut parts = vec![self.product()?];
        loop {
            let before = self.at;
            let (next, minus) = match (self.operator(&["+", "加上"]), self.operator(&["-"])) {
                (Some(next), _) => (next, false),
                (None, Some(next)) => (next, true),
                (None, None) => break,
            };
            self.at = self.skip(next);
            match self.product() {
                Some(part) if minus => parts.push(Expr::Minus(Box::new(part))),
                Some(part) => parts.push(part),
                None => {
                    self.at = before;
                    break;
                }
            }
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Expr::Sum(parts) })
    }

    fn product(&mut self) -> Option<Expr> {
        let mut parts = vec![self.power()?];
        loop {
            let before = self.at;
            let (next, over) = match (
                self.operator(&["*", "乘以", "乘上", "再乘以", "再乘", "乘", "times ", "\\cdot", "\\times"]),
                self.operator(&["/", "除以", "divided by "]),
            ) {
                (Some(next), _) => (next, false),
                (None, Some(next)) => (next, true),
                (None, None) => match self.cross() {
                    Some(next) => (next, false),
                    None if self.juxtaposed(&parts) => (self.at, false),
                    None => break,
                },
            };
            self.at = self.skip(next);
            match self.power() {
                Some(part) if over => parts.push(Expr::Inverse(Box::new(part))),
                Some(part) => parts.push(part),
                None => {
                    self.at = before;
                    break;
                }
            }
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Expr::Product(parts) })
    }

    /// `16 x 8192`, `tokens x hidden`: the letter as a sign.
    fn cross(&self) -> Option<usize> {
        let at = self.skip(self.at);
        let sign = matches!(self.chars.get(at), Some('x' | 'X'));
        let spaced = at > self.at && self.chars.get(at + 1) == Some(&' ');
        let tight = at > 0
            && self.chars[at - 1].is_ascii_digit()
            && self.chars.get(at + 1).is_some_and(char::is_ascii_digit);
        (sign && (spaced || tight)).then_some(at + 1)
    }

    /// `2(N-1)`, `2N`, `(N-1)M`, `2 log N`: nothing between two factors.
    fn juxtaposed(&self, parts: &[Expr]) -> bool {
        let Some(next) = self.chars.get(self.at) else { return false };
        let after_number = matches!(parts.last(), Some(Expr::Number(_, None)));
        let after_paren = self.at > 0 && matches!(self.chars[self.at - 1], ')' | '}');
        let log = self.looking_at(self.skip(self.at), "log");
        match next {
            '(' => true,
            '\\' => {
                let at = self.skip(self.at);
                let factor = self.tex(TEX_FRACTIONS, at).or_else(|| self.tex(&["\\log"], at));
                factor.is_some() || self.letter(at).is_some()
            }
            c if c.is_alphabetic() && !is_han(*c) => after_number || after_paren || !c.is_ascii(),
            ' ' => log && after_number,
            _ => false,
        }
    }

    fn power(&mut self) -> Option<Expr> {
        let base = self.atom()?;
        if self.chars.get(self.at) == Some(&'^') {
            let before = self.at;
            self.at += 1;
            match self.atom() {
                Some(exponent) => return Some(Expr::Power(Box::new(base), Box::new(exponent))),
                None => self.at = before,
            }
        }
        Some(base)
    }

    fn atom(&mut self) -> Option<Expr> {
        let c = *self.chars.get(self.at)?;
        match c {
            '(' | '{' => {
                let start = self.at;
                self.at += 1;
                let inner = self.expression();
                let close = self.skip(self.at);
                if inner.is_some() && matches!(self.chars.get(close), Some(')' | '}')) {
                    self.at = close + 1;
                    return inner;
                }
                self.at = start;
                None
            }
            '-' => {
                let start = self.at;
                self.at += 1;
                if !self.chars.get(self.at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '(') {
                    self.at = start;
                    return None;
                }
                let inner = self.nested(Self::atom);
                if inner.is_none() {
                    self.at = start;
                }
                inner.map(|inner| Expr::Minus(Box::new(inner)))
            }
            c if c.is_ascii_digit() => Some(self.number()),
            '\\' if !self.looking_at(self.at, "\\log") => self.command(),
            _ if self.looking_at(self.at, "log") || self.looking_at(self.at, "\\log") => {
                self.log().or_else(|| self.name())
            }
            c if is_han(c) => self.name().or_else(|| self.numeral()),
            c if c.is_alphabetic() => self.name(),
            _ => None,
        }
    }

    /// `\frac{2(N-1)}{N}`, `\text{bytes}`, `\alpha`.
    fn command(&mut self) -> Option<Expr> {
        let start = self.at;
        let read = if let Some(after) = self.tex(TEX_FRACTIONS, start) {
            self.at = after;
            self.argument().and_then(|over| {
                let under = self.argument()?;
                Some(Expr::Product(vec![over, Expr::Inverse(Box::new(under))]))
            })
        } else if let Some(after) = self.tex(TEX_FONTS, start) {
            self.at = after;
            self.argument()
        } else {
            self.letter(start).map(|(letter, after)| {
                self.at = after;
                Expr::Name(self.names.letter(letter).map_or_else(|| letter.to_string(), str::to_owned))
            })
        };
        if read.is_none() {
            self.at = start;
        }
        read
    }

    /// `{N-1}`, or a single sign: `\frac12`.
    fn argument(&mut self) -> Option<Expr> {
        self.at = self.skip(self.at);
        if self.chars.get(self.at) == Some(&'{') {
            return self.nested(Self::atom);
        }
        let digit = self.chars.get(self.at)?.to_digit(10)?;
        self.at += 1;
        Some(Expr::Number(f64::from(digit), None))
    }

    /// Index after one of these commands.
    fn tex(&self, commands: &[&str], at: usize) -> Option<usize> {
        commands.iter().find(|command| self.looking_at(at, command)).map(|command| at + command.len())
    }

    fn letter(&self, at: usize) -> Option<(char, usize)> {
        let (command, letter) = TEX_LETTERS.iter().find(|(command, _)| self.looking_at(at, command))?;
        Some((*letter, at + command.len()))
    }

    /// One level deeper; nobody writes a formula as deep as this ends.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Expr>) -> Option<Expr> {
        self.depth += 1;
        let read = if self.depth > MAX_DEPTH { None } else { read(self) };
        self.depth -= 1;
        read
    }

    fn number(&mut self) -> Expr {
        let end = number_end(self.chars, self.at);
        let digits: String = self.chars[self.at..end].iter().filter(|c| **c != ',').collect();
        self.at = end;
        self.with_unit(digits.parse().unwrap_or(f64::MAX))
    }

    fn with_unit(&mut self, value: f64) -> Expr {
        let at = self.skip(self.at);
        for (word, factor, unit) in UNITS {
            let end = at + word.chars().count();
            let whole = !self.chars.get(end).is_some_and(char::is_ascii_alphanumeric) || !word.is_ascii();
            if whole && self.looking_at(at, word) {
                self.at = end;
                return Expr::Number(value * factor, Some(*unit));
            }
        }
        Expr::Number(value, None)
    }

    fn log(&mut self) -> Option<Expr> {
        let start = self.at;
        self.at += if self.chars[self.at] == '\\' { 4 } else { 3 };
        if self.chars.get(self.at) == Some(&'_') {
            self.at += 1;
        }
        // The base: log2N, log_2(N).
        if self.chars.get(self.at) == Some(&'2')
            && self.chars.get(self.at + 1).is_some_and(|c| !c.is_ascii_digit())
        {
            self.at += 1;
        }
        self.at = self.skip(self.at);
        match self.atom() {
            Some(inner) => Some(Expr::Log(Box::new(inner))),
            None => {
                self.at = start;
                None
            }
        }
    }

    /// A variable in any of its spellings, or a letter that stands for itself.
    fn name(&mut self) -> Option<Expr> {
        if let Some((length, name)) = self.names.longest(&self.chars[self.at..]) {
            self.at += length;
            return Some(Expr::Name(name.to_owned()));
        }
        let run = self.chars[self.at..]
            .iter()
            .take_while(|c| c.is_alphanumeric() && !is_han(**c) || **c == '_')
            .count();
        let word = &self.chars[self.at..self.at + run];
        if run == 1 || (self.names.is_empty() && run > 1) {
            self.at += run;
            return Some(Expr::Name(word.iter().collect()));
        }
        self.letters(run)
    }

    /// `αB`, `THb`: names of one letter without a sign between them, after a factor or with a Greek letter.
    fn letters(&mut self, run: usize) -> Option<Expr> {
        let word = &self.chars[self.at..self.at + run];
        let greek = word.iter().any(|c| !c.is_ascii());
        let after = self.at > 0 && matches!(self.chars[self.at - 1], '0'..='9' | ')' | '*' | '/');
        if !(2..=4).contains(&run) || !(greek || after) {
            return None;
        }
        let names: Option<Vec<Expr>> =
            word.iter().map(|c| self.names.letter(*c).map(|name| Expr::Name(name.to_owned()))).collect();
        let names = names?;
        self.at += run;
        Some(Expr::Product(names))
    }

    /// 八十, 一百六十, 两, 半.
    fn numeral(&mut self) -> Option<Expr> {
        let digit = |c: char| {
            "零一二三四五六七八九".chars().position(|d| d == c).or(if c == '两' { Some(2) } else { None })
        };
        let end = self.chars[self.at..]
            .iter()
            .position(|c| digit(*c).is_none() && !"十百千万亿半".contains(*c))
            .map_or(self.chars.len(), |n| self.at + n);
        let run = &self.chars[self.at..end];
        let next = self.chars.get(self.skip(end));
        if run.is_empty() || (run.len() == 1 && !next.is_some_and(|c| COUNTED.contains(*c))) || run.len() > 12
        {
            return None;
        }
        let (mut total, mut section, mut last) = (0.0, 0.0, 0.0);
        for c in run {
            match c {
                '半' => last += 0.5,
                '十' | '百' | '千' => {
                    let weight = [("十", 10.0), ("百", 100.0), ("千", 1000.0)]
                        .iter()
                        .find(|(s, _)| s.starts_with(*c))?
                        .1;
                    section += if last == 0.0 { weight } else { last * weight };
                    last = 0.0;
                }
                '万' | '亿' => {
                    total = (total + section + last) * if *c == '万' { 1e4 } else { 1e8 };
                    (section, last) = (0.0, 0.0);
                }
                c => last = digit(*c)? as f64,
            }
        }
        self.at = end;
        Some(self.with_unit(total + section + last))
    }
}
