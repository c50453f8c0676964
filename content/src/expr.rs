//! The arithmetic of `check` blocks: `+ - * / ^ ( )`, `sqrt log2 ceil floor min max`, and names.

use std::collections::BTreeMap;

use thiserror::Error;

/// Values set by `name := expression`.
pub type Names = BTreeMap<String, f64>;

/// Deep enough for anything a person writes, shallow enough for any stack.
const MAX_DEPTH: u32 = 64;

const FUNCTIONS: &str = "sqrt, log2, ceil, floor, min, max";

/// `offset` is in bytes of the expression.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{message}")]
pub struct EvalError {
    pub offset: usize,
    pub message: String,
}

/// The value of an expression.
///
/// # Errors
/// With the place of the first character that cannot be read, of an unknown name, or of an operation without a finite result.
pub fn evaluate(text: &str, names: &Names) -> Result<f64, EvalError> {
    let mut parser = Parser { text, at: 0, names };
    let value = parser.sum(0)?;
    match parser.peek() {
        None => Ok(value),
        Some(')') => parser.fail("this `)` closes nothing"),
        Some(c) => match ascii_of(c) {
            Some(ascii) => parser.fail(format!("write `{ascii}` instead of `{c}`")),
            None => parser.fail(format!("`{c}` cannot stand here; an operator (`+ - * / ^`) was expected")),
        },
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: &'a Names,
}

impl Parser<'_> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, EvalError> {
        fail_at(self.at, message)
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn sum(&mut self, depth: u32) -> Result<f64, EvalError> {
        let mut value = self.product(depth)?;
        loop {
            let at = self.at;
            value = match self.peek() {
                Some('+') if self.take('+') => finite(value + self.product(depth)?, at)?,
                Some('-') if self.take('-') => finite(value - self.product(depth)?, at)?,
                _ => return Ok(value),
            };
        }
    }

    fn product(&mut self, depth: u32) -> Result<f64, EvalError> {
        let mut value = self.signed(depth)?;
        loop {
            let at = self.at;
            value = match self.peek() {
                Some('*') if self.take('*') => finite(value * self.signed(depth)?, at)?,
                Some('/') if self.take('/') => {
                    let divisor = self.signed(depth)?;
                    if divisor == 0.0 {
                        return fail_at(at, "division by zero");
                    }
                    finite(value / divisor, at)?
                }
                _ => return Ok(value),
            };
        }
    }

    fn signed(&mut self, depth: u32) -> Result<f64, EvalError> {
        if depth > MAX_DEPTH {
            return self.fail(format!(
                "nested deeper than {MAX_DEPTH} levels; set a name with `:=` on a line of its own"
            ));
        }
        if self.take('-') {
            return Ok(-self.signed(depth + 1)?);
        }
        let base = self.atom(depth)?;
        let at = self.at;
        if self.take('^') {
            // To the right: 2^3^2 is 2^9, and 2^-1 is a half.
            return finite(base.powf(self.signed(depth + 1)?), at);
        }
        Ok(base)
    }

    fn atom(&mut self, depth: u32) -> Result<f64, EvalError> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let value = self.sum(depth + 1)?;
                if !self.take(')') {
                    return self.fail("a `)` is missing here");
                }
                Ok(value)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() => self.name(depth),
            Some(c) => match ascii_of(c) {
                Some(ascii) => self.fail(format!("write `{ascii}` instead of `{c}`")),
                None => self.fail(format!("`{c}` cannot stand here; a number, a name or `(` was expected")),
            },
            None => self.fail("the expression ends too early; a number, a name or `(` was expected"),
        }
    }

    fn number(&mut self) -> Result<f64, EvalError> {
        let rest = &self.text[self.at..];
        let length = number_length(rest);
        match rest[..length].replace('_', "").parse::<f64>() {
            Ok(value) if value.is_finite() => {
                self.at += length;
                Ok(value)
            }
            _ => self.fail(format!("`{}` is not a number", &rest[..length.max(1)])),
        }
    }

    fn name(&mut self, depth: u32) -> Result<f64, EvalError> {
        let start = self.at;
        let rest = &self.text[start..];
        let length = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        let name = &rest[..length];
        self.at += length;
        if self.peek() == Some('(') {
            self.at += 1;
            let mut arguments = vec![self.sum(depth + 1)?];
            while self.take(',') {
                arguments.push(self.sum(depth + 1)?);
            }
            if !self.take(')') {
                return self.fail("a `)` or `,` is missing here");
            }
            return call(name, &arguments, start);
        }
        match self.names.get(name) {
            Some(value) => Ok(*value),
            None => {
                fail_at(start, format!("`{name}` has no value; set it on an earlier line: `{name} := …`"))
            }
        }
    }
}

fn call(name: &str, arguments: &[f64], at: usize) -> Result<f64, EvalError> {
    let value = match (name, arguments) {
        ("sqrt", [x]) => x.sqrt(),
        ("log2", [x]) => x.log2(),
        ("ceil", [x]) => x.ceil(),
        ("floor", [x]) => x.floor(),
        ("min", [first, rest @ ..]) => rest.iter().copied().fold(*first, f64::min),
        ("max", [first, rest @ ..]) => rest.iter().copied().fold(*first, f64::max),
        ("sqrt" | "log2" | "ceil" | "floor", _) => {
            return fail_at(at, format!("{name} takes one argument, not {}", arguments.len()));
        }
        _ => return fail_at(at, format!("there is no function `{name}`; known: {FUNCTIONS}")),
    };
    finite(value, at)
}

fn fail_at<T>(offset: usize, message: impl Into<String>) -> Result<T, EvalError> {
    Err(EvalError { offset, message: message.into() })
}

fn finite(value: f64, at: usize) -> Result<f64, EvalError> {
    if value.is_finite() { Ok(value) } else { fail_at(at, "this has no finite value") }
}

pub(crate) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Signs that people paste from a formula.
fn ascii_of(c: char) -> Option<char> {
    match c {
        '×' | '·' | '⋅' | '∗' => Some('*'),
        '÷' | '∕' => Some('/'),
        '−' | '–' => Some('-'),
        '（' => Some('('),
        '）' => Some(')'),
        _ => None,
    }
}

/// Bytes of the number literal at the start of `text`: `1_024`, `0.875`, `1.5e9`.
pub(crate) fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut i: usize| {
        while bytes.get(i).is_some_and(|b| b.is_ascii_digit() || *b == b'_') {
            i += 1;
        }
        i
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> f64 {
        evaluate(text, &Names::from([("N".to_owned(), 8.0), ("块".to_owned(), 4.0)])).unwrap()
    }

    #[test]
    fn arithmetic_follows_the_usual_precedence() {
        assert_eq!(value("2 * (8 - 1) / 8"), 1.75);
        assert_eq!(value("-2^2"), -4.0);
        assert_eq!(value("2^3^2"), 512.0);
        assert_eq!(value("2^-1"), 0.5);
        assert_eq!(value("7 - 2 - 1"), 4.0);
        assert_eq!(value("ceil(log2(N + 1)) + max(1, 2, 3) - min(块, 9)"), 3.0);
        assert_eq!(value("1_000 * 1.5e3"), 1.5e6);
    }

    #[test]
    fn an_error_says_where_and_what_to_do() {
        let error = |text: &str| evaluate(text, &Names::new()).unwrap_err();
        assert_eq!(error("2 × 3").message, "write `*` instead of `×`");
        assert_eq!(error("2 3").message, "`3` cannot stand here; an operator (`+ - * / ^`) was expected");
        assert_eq!(error("−3").message, "write `-` instead of `−`");
        assert_eq!(error("1 + K").offset, 4);
        assert_eq!(error("1 / (2 - 2)").message, "division by zero");
        assert_eq!(error("sqrt(-1)").message, "this has no finite value");
        assert!(error("sin(1)").message.contains("there is no function `sin`"));
        assert!(error(&"(".repeat(1_000)).message.contains("nested deeper"));
        assert!(error("").message.contains("ends too early"));
    }
}
