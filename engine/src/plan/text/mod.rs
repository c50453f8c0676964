//! The plan language: what learners read and write. `LANGUAGE.md` beside this folder has the grammar.
//!
//! Life of a text: [`lex`] cuts lines into tokens, [`syntax`] reads statements, [`expand`] runs loops and expressions for every rank and
//! channel and yields the plan with the line of each step. Nothing here trusts its input: every loop has a budget.

mod cursor;
mod expand;
mod expr;
mod lex;
mod parametric;
mod print;
mod suggest;
mod syntax;

use std::fmt;

use crate::plan::{Location, Plan};
use crate::text::Text;

pub use parametric::parametric;
pub use print::print;
pub(super) use syntax::RESERVED;

/// Bounds on what a text may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text.
    pub bytes: usize,
    /// Steps over all ranks and channels after expansion; each source of a reduce counts as one more.
    pub steps: usize,
    /// What is executed while expanding: statements, passes of loops, and the numbers, names and signs of expressions.
    pub work: usize,
    /// Blocks inside blocks, and parentheses inside parentheses.
    pub nesting: usize,
}

impl Default for Limits {
    /// For texts of learners.
    fn default() -> Self {
        Limits { bytes: 64 << 10, steps: 1 << 18, work: 1 << 22, nesting: 16 }
    }
}

/// A plan and where each of its steps stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    pub plan: Plan,
    pub lines: SourceMap,
}

/// Line, from 1, of every step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceMap {
    channels: usize,
    /// By program as in [`Plan::programs`], then step.
    lines: Vec<Vec<u32>>,
}

impl SourceMap {
    pub fn line(&self, at: Location) -> Option<u32> {
        let program = at.rank.index() * self.channels + at.channel.index();
        self.lines.get(program)?.get(at.step as usize).copied()
    }
}

/// What is wrong where, and what to do. Line and column (in characters) count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    pub line: u32,
    pub column: u32,
    pub message: Text,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message.en)
    }
}

impl std::error::Error for ParseError {}

/// Reads a plan within the limits for learners' texts.
pub fn parse(text: &str) -> Result<Parsed, ParseError> {
    parse_within(text, &Limits::default())
}

/// Reads a plan within other limits.
pub fn parse_within(text: &str, limits: &Limits) -> Result<Parsed, ParseError> {
    if text.len() > limits.bytes {
        let (got, most) = (text.len(), limits.bytes);
        return Err(ParseError {
            line: 1,
            column: 1,
            message: Text::new(
                format!("文本有 {got} 字节，上限 {most}；请用 `every rank` 和循环把它写短。"),
                format!(
                    "the text has {got} bytes, the limit is {most}; make it shorter with `every rank` and loops."
                ),
            ),
        });
    }
    let lines = lex::lines(text)?;
    let file = syntax::file(&lines, limits)?;
    expand::expand(&file, limits)
}

#[cfg(test)]
mod tests;
