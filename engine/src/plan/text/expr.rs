//! Whole-number expressions over `r`, `n`, `c`, `root`, `let` names and loop variables.

use std::collections::HashMap;

use super::ParseError;
use super::suggest::closest;
use crate::text::Text;

/// Most names that an error lists.
const MAX_LISTED: usize = 12;

#[derive(Debug, Clone)]
pub struct Expr {
    pub line: u32,
    pub column: u32,
    pub kind: Kind,
    /// Numbers, names and signs in it: what evaluating it costs.
    pub size: usize,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Number(i64),
    Name(String),
    Neg(Box<Expr>),
    Binary(Box<Expr>, Op, Box<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Add,
    Sub,
    Mul,
    /// Rounds down, also below zero.
    Div,
    /// Never negative, so that `(r-1) % n` is the previous rank also for rank 0.
    Mod,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Compare::Eq => a == b,
            Compare::Ne => a != b,
            Compare::Lt => a < b,
            Compare::Le => a <= b,
            Compare::Gt => a > b,
            Compare::Ge => a >= b,
        }
    }
}

/// Names in scope. No name hides another, so a look-up takes the same time however many there are.
#[derive(Debug, Default)]
pub struct Scope<'a> {
    values: HashMap<&'a str, i64>,
    /// Innermost last.
    names: Vec<&'a str>,
}

impl<'a> Scope<'a> {
    pub fn get(&self, name: &str) -> Option<i64> {
        self.values.get(name).copied()
    }

    /// `name` is not in scope yet.
    pub fn push(&mut self, name: &'a str, value: i64) {
        self.names.push(name);
        self.values.insert(name, value);
    }

    pub fn depth(&self) -> usize {
        self.names.len()
    }

    pub fn truncate(&mut self, depth: usize) {
        for name in self.names.drain(depth..) {
            self.values.remove(name);
        }
    }
}

impl Expr {
    pub fn error(&self, message: Text) -> ParseError {
        ParseError { line: self.line, column: self.column, message }
    }

    pub fn eval(&self, scope: &Scope<'_>) -> Result<i64, ParseError> {
        match &self.kind {
            Kind::Number(value) => Ok(*value),
            Kind::Name(name) => scope.get(name).ok_or_else(|| self.unknown(name, scope)),
            Kind::Neg(of) => of.eval(scope)?.checked_neg().ok_or_else(|| self.overflow()),
            Kind::Binary(a, op, b) => {
                let (a, b) = (a.eval(scope)?, b.eval(scope)?);
                match op {
                    Op::Add => a.checked_add(b),
                    Op::Sub => a.checked_sub(b),
                    Op::Mul => a.checked_mul(b),
                    Op::Div | Op::Mod if b <= 0 => {
                        let sign = if *op == Op::Div { "/" } else { "%" };
                        return Err(self.error(Text::new(
                            format!("`{sign}` 的右边是 {b}；它必须大于 0。"),
                            format!("the right side of `{sign}` is {b}; it must be above 0."),
                        )));
                    }
                    Op::Div => Some(a.div_euclid(b)),
                    Op::Mod => Some(a.rem_euclid(b)),
                }
                .ok_or_else(|| self.overflow())
            }
        }
    }

    fn unknown(&self, name: &str, scope: &Scope<'_>) -> ParseError {
        let (zh, en) = match closest(name, scope.names.iter().copied()) {
            Some(near) => (format!("是不是 `{near}`？"), format!("did you mean `{near}`?")),
            None => {
                let mut list = scope.names[..scope.names.len().min(MAX_LISTED)].join(", ");
                if scope.names.len() > MAX_LISTED {
                    list += ", ...";
                }
                (format!("这里可用的名字：{list}。"), format!("names known here: {list}."))
            }
        };
        self.error(Text::new(format!("不认识 `{name}`；{zh}"), format!("`{name}` is not known; {en}")))
    }

    fn overflow(&self) -> ParseError {
        self.error(Text::new("算出的数太大了，请改小。", "the result is too large; use smaller numbers."))
    }
}
