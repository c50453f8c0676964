//! Reading one line from left to right.

use super::expr::{Compare, Expr, Kind, Op};
use super::lex::{Line, Token};
use super::suggest::closest;
use super::syntax::{Condition, FORMS, PlaceText, RESERVED, RangeText, StepText};
use super::{Limits, ParseError};
use crate::text::Text;

/// Most operators of one expression: it is evaluated and freed by recursion.
const MAX_OPERATORS: usize = 64;

pub struct Cursor<'a> {
    line: &'a Line,
    pub at: usize,
    limits: &'a Limits,
    /// Of the expression being read.
    operators: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(line: &'a Line, limits: &'a Limits) -> Cursor<'a> {
        Cursor { line, at: 0, limits, operators: 0 }
    }

    pub fn peek(&self) -> Option<&'a Token> {
        self.line.tokens.get(self.at).map(|(_, token)| token)
    }

    pub fn peek_word(&self) -> Option<&'a str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub fn skip(&mut self) {
        self.at += 1;
    }

    fn column(&self) -> u32 {
        self.line.tokens.get(self.at).map_or(self.line.end, |(column, _)| *column)
    }

    pub fn error(&self, message: Text) -> ParseError {
        ParseError { line: self.line.number, column: self.column(), message }
    }

    pub fn expected(&self, en: &str, zh: &str) -> ParseError {
        let message = match self.peek() {
            Some(token) => {
                let got = token.show();
                Text::new(format!("这里应是{zh}，却是 `{got}`。"), format!("expected {en}, found `{got}`."))
            }
            None => Text::new(
                format!("这一行还没写完，缺{zh}。"),
                format!("the line ends too early: {en} is missing."),
            ),
        };
        self.error(message)
    }

    /// An error at the current token, which is none of `known`.
    pub fn unknown(&self, got: &str, known: &[&str]) -> ParseError {
        let list = known.join(", ");
        let (zh, en) = match closest(got, known.iter().copied()) {
            Some(near) => (format!("是不是 `{near}`？"), format!("did you mean `{near}`?")),
            None => (format!("可用的有：{list}。"), format!("known here: {list}.")),
        };
        self.error(Text::new(format!("不认识 `{got}`；{zh}"), format!("`{got}` is not known; {en}")))
    }

    pub fn unknown_here(&self, known: &[&str]) -> ParseError {
        let got = self.peek().map(Token::show).unwrap_or_default();
        self.unknown(&got, known)
    }

    pub fn keyword(&mut self, word: &str) -> Result<(), ParseError> {
        if self.peek_word() == Some(word) {
            self.skip();
            return Ok(());
        }
        Err(self.expected(&format!("`{word}`"), &format!(" `{word}`")))
    }

    pub fn mark(&mut self, mark: &str) -> Result<(), ParseError> {
        match self.peek() {
            Some(Token::Mark(found)) if *found == mark => {
                self.skip();
                Ok(())
            }
            _ => Err(self.expected(&format!("`{mark}`"), &format!(" `{mark}`"))),
        }
    }

    fn is_mark(&self, mark: &str) -> bool {
        matches!(self.peek(), Some(Token::Mark(found)) if *found == mark)
    }

    pub fn end(&self) -> Result<(), ParseError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the line", "行尾")),
        }
    }

    pub fn word(&mut self, en: &str, zh: &str) -> Result<String, ParseError> {
        let Some(word) = self.peek_word() else { return Err(self.expected(en, zh)) };
        if word.len() > 64 {
            return Err(self.error(Text::new("名字最长 64 个字符。", "names have at most 64 characters.")));
        }
        self.skip();
        Ok(word.into())
    }

    /// A name that the text itself introduces.
    pub fn new_name(&mut self) -> Result<String, ParseError> {
        let at = self.at;
        let name = self.word("a name", "一个名字")?;
        if RESERVED.contains(&name.as_str()) {
            self.at = at;
            return Err(self.error(Text::new(
                format!("`{name}` 是语言的保留字，请换个名字。"),
                format!("`{name}` is a word of the language; choose another name."),
            )));
        }
        Ok(name)
    }

    /// The expression after a keyword, which is skipped unread.
    pub fn after_keyword(&mut self) -> Result<Expr, ParseError> {
        self.skip();
        self.expr()
    }

    /// `WORD EXPR`, or nothing.
    pub fn optional(&mut self, word: &str) -> Result<Option<Expr>, ParseError> {
        if self.peek_word() != Some(word) {
            return Ok(None);
        }
        self.after_keyword().map(Some)
    }

    /// `for NAME in FROM..TO`
    pub fn each(&mut self) -> Result<(String, Expr, Expr), ParseError> {
        self.keyword("for")?;
        let var = self.new_name()?;
        self.keyword("in")?;
        let from = self.expr()?;
        self.mark("..")?;
        Ok((var, from, self.expr()?))
    }

    pub fn condition(&mut self) -> Result<Condition, ParseError> {
        let left = self.expr()?;
        let compare = match self.peek() {
            Some(Token::Mark("==")) => Compare::Eq,
            Some(Token::Mark("!=")) => Compare::Ne,
            Some(Token::Mark("<")) => Compare::Lt,
            Some(Token::Mark("<=")) => Compare::Le,
            Some(Token::Mark(">")) => Compare::Gt,
            Some(Token::Mark(">=")) => Compare::Ge,
            _ => return Err(self.expected("a comparison (== != < <= > >=)", "比较符（== != < <= > >=）")),
        };
        self.skip();
        Ok(Condition { left, compare, right: self.expr()? })
    }

    /// The step `op`, whose name is the current token, up to the end of the line.
    pub fn step(&mut self, op: &'static str) -> Result<StepText, ParseError> {
        let form = FORMS.iter().find(|(name, _)| *name == op).map_or("", |(_, form)| form);
        self.skip();
        let mut step = StepText { op, ..StepText::default() };
        let mut parts = form.split(' ').skip(1);
        while let Some(part) = parts.next() {
            match part {
                "from" => step.from = Some(self.part("from", form, Cursor::expr)?),
                "to" => step.to = Some(self.part("to", form, Cursor::expr)?),
                "with" => step.src = Some(self.part("with", form, Cursor::range)?),
                "into" => step.dst = Some(self.part("into", form, Cursor::range)?),
                "SRC" if step.op == "send" => step.src = Some(self.range()?),
                "PLACE" => step.places.push(self.place()?),
                "PLACE," => {
                    step.places.push(self.place()?);
                    while self.is_mark(",") {
                        self.skip();
                        step.places.push(self.place()?);
                    }
                    parts.next();
                    parts.next();
                }
                // The word after a keyword: read together with it.
                _ => {}
            }
        }
        match self.peek() {
            None => Ok(step),
            Some(_) => Err(self.form_error(form)),
        }
    }

    fn part<T>(
        &mut self,
        word: &str,
        form: &str,
        read: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.peek_word() != Some(word) {
            return Err(self.form_error(form));
        }
        self.skip();
        read(self)
    }

    fn form_error(&self, form: &str) -> ParseError {
        let form =
            form.replace("SRC", "input[k]").replace("DST", "output[k]").replace("PLACE", "input[k] of p");
        let (zh, en) = match self.peek() {
            Some(token) => {
                (format!("`{}` 不该在这里", token.show()), format!("`{}` does not belong here", token.show()))
            }
            None => ("这一步没写完".into(), "the step is not complete".into()),
        };
        self.error(Text::new(format!("{zh}；写法：{form}。"), format!("{en}; write it as: {form}.")))
    }

    /// `BUFFER[EXPR]` or `BUFFER[EXPR..EXPR]`
    fn range(&mut self) -> Result<RangeText, ParseError> {
        let column = self.column();
        let buffer = self.word("a buffer such as `input[0]`", "缓冲区，例如 `input[0]`")?;
        self.mark("[")?;
        let start = self.expr()?;
        let mut end = None;
        if self.is_mark("..") {
            self.skip();
            end = Some(self.expr()?);
        }
        self.mark("]")?;
        Ok(RangeText { buffer, line: self.line.number, column, start, end })
    }

    fn place(&mut self) -> Result<PlaceText, ParseError> {
        let range = self.range()?;
        let of = self.optional("of")?;
        let each = if self.peek_word() == Some("for") { Some(self.each()?) } else { None };
        Ok(PlaceText { range, of, each })
    }

    pub fn expr(&mut self) -> Result<Expr, ParseError> {
        self.operators = 0;
        self.sum(0)
    }

    fn sum(&mut self, depth: usize) -> Result<Expr, ParseError> {
        let mut left = self.product(depth)?;
        loop {
            let op = match self.peek() {
                Some(Token::Mark("+")) => Op::Add,
                Some(Token::Mark("-")) => Op::Sub,
                _ => return Ok(left),
            };
            self.operator()?;
            left = self.binary(left, op, depth, Cursor::product)?;
        }
    }

    fn product(&mut self, depth: usize) -> Result<Expr, ParseError> {
        let mut left = self.factor(depth)?;
        loop {
            let op = match self.peek() {
                Some(Token::Mark("*")) => Op::Mul,
                Some(Token::Mark("/")) => Op::Div,
                Some(Token::Mark("%")) => Op::Mod,
                _ => return Ok(left),
            };
            self.operator()?;
            left = self.binary(left, op, depth, Cursor::factor)?;
        }
    }

    fn binary(
        &mut self,
        left: Expr,
        op: Op,
        depth: usize,
        read: fn(&mut Self, usize) -> Result<Expr, ParseError>,
    ) -> Result<Expr, ParseError> {
        let (line, column) = (left.line, left.column);
        let right = read(self, depth)?;
        let size = left.size + right.size + 1;
        Ok(Expr { line, column, kind: Kind::Binary(Box::new(left), op, Box::new(right)), size })
    }

    fn operator(&mut self) -> Result<(), ParseError> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(self.error(Text::new(
                format!("一个表达式最多 {MAX_OPERATORS} 个运算符；请用 `let` 拆开。"),
                format!("an expression has at most {MAX_OPERATORS} operators; split it with `let`."),
            )));
        }
        self.skip();
        Ok(())
    }

    fn factor(&mut self, depth: usize) -> Result<Expr, ParseError> {
        let (line, column) = (self.line.number, self.column());
        let kind = match self.peek() {
            Some(Token::Number(value)) => {
                self.skip();
                Kind::Number(*value)
            }
            Some(Token::Word(_)) => Kind::Name(self.word("a name", "一个名字")?),
            Some(Token::Mark("-")) => {
                self.operator()?;
                let of = self.factor(depth)?;
                let size = of.size + 1;
                return Ok(Expr { line, column, kind: Kind::Neg(Box::new(of)), size });
            }
            Some(Token::Mark("(")) => {
                if depth >= self.limits.nesting {
                    let most = self.limits.nesting;
                    return Err(self.error(Text::new(
                        format!("括号嵌套超过 {most} 层；请用 `let` 拆开。"),
                        format!(
                            "parentheses are nested more than {most} deep; split the expression with `let`."
                        ),
                    )));
                }
                self.skip();
                let inner = self.sum(depth + 1)?;
                self.mark(")")?;
                return Ok(inner);
            }
            _ => return Err(self.expected("a number or a name", "数或名字")),
        };
        Ok(Expr { line, column, kind, size: 1 })
    }
}
