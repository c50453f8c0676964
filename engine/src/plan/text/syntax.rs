//! From lines of tokens to statements. Every function reads one rule of the grammar in `LANGUAGE.md`.

use super::cursor::Cursor;
use super::expr::{Compare, Expr};
use super::lex::{Line, Token};
use super::{Limits, ParseError};
use crate::text::Text;
use crate::types::{Collective, Rank};

/// A whole text.
#[derive(Debug)]
pub struct File {
    pub name: String,
    pub settings: Vec<Setting>,
    pub blocks: Vec<Block>,
    /// Of the `plan` line, for errors about the text as a whole.
    pub line: u32,
}

#[derive(Debug)]
pub struct Setting {
    pub line: u32,
    pub kind: SettingKind,
}

#[derive(Debug)]
pub enum SettingKind {
    Collective { name: String, root: Option<Expr> },
    Ranks(Expr),
    Channels(Expr),
    Chunks(Expr),
    Scratch { name: String, chunks: Expr },
}

/// Statements for one rank or all, on one channel or all.
#[derive(Debug)]
pub struct Block {
    pub line: u32,
    pub rank: Option<Expr>,
    pub channel: Option<Expr>,
    pub body: Vec<Stmt>,
}

#[derive(Debug)]
pub struct Stmt {
    pub line: u32,
    pub column: u32,
    pub kind: StmtKind,
}

#[derive(Debug)]
pub enum StmtKind {
    Let { name: String, value: Expr },
    For { var: String, from: Expr, to: Expr, body: Vec<Stmt> },
    If { arms: Vec<(Condition, Vec<Stmt>)>, otherwise: Vec<Stmt> },
    Step(Box<StepText>),
}

#[derive(Debug)]
pub struct Condition {
    pub left: Expr,
    pub compare: Compare,
    pub right: Expr,
}

/// A step with those of its parts that [`FORMS`] names.
#[derive(Debug, Default)]
pub struct StepText {
    pub op: &'static str,
    pub from: Option<Expr>,
    pub to: Option<Expr>,
    pub src: Option<RangeText>,
    pub places: Vec<PlaceText>,
    pub dst: Option<RangeText>,
}

#[derive(Debug)]
pub struct RangeText {
    pub buffer: String,
    pub line: u32,
    pub column: u32,
    pub start: Expr,
    /// First chunk that is not included any more; one chunk when absent.
    pub end: Option<Expr>,
}

#[derive(Debug)]
pub struct PlaceText {
    pub range: RangeText,
    pub of: Option<Expr>,
    /// `for NAME in FROM..TO`: one place per value.
    pub each: Option<(String, Expr, Expr)>,
}

/// How each step is written; also what an error shows. The order is the order of the parts.
pub const FORMS: [(&str, &str); 10] = [
    ("send", "send SRC to RANK"),
    ("recv", "recv from RANK into DST"),
    ("recv_reduce_copy", "recv_reduce_copy from RANK with SRC into DST"),
    ("recv_reduce_send", "recv_reduce_send from RANK with SRC to RANK"),
    ("recv_reduce_copy_send", "recv_reduce_copy_send from RANK with SRC into DST to RANK"),
    ("recv_copy_send", "recv_copy_send from RANK into DST to RANK"),
    ("copy", "copy PLACE into DST"),
    ("reduce", "reduce PLACE, PLACE, ... into DST"),
    ("signal", "signal to RANK"),
    ("wait", "wait from RANK"),
];

const STATEMENTS: [&str; 4] = ["let", "for", "if", "else"];
const SETTINGS: [&str; 5] = ["collective", "ranks", "channels", "chunks", "scratch"];
/// Words that cannot name a `let`, a loop variable or a scratch buffer.
pub const RESERVED: [&str; 21] = [
    "plan", "every", "rank", "channel", "let", "for", "in", "if", "else", "from", "to", "with", "into", "of",
    "input", "output", "r", "n", "c", "root", "scratch",
];

pub fn file(lines: &[Line], limits: &Limits) -> Result<File, ParseError> {
    let mut parser = Parser { lines, at: 0, limits };
    let Some(first) = lines.first() else {
        return Err(ParseError {
            line: 1,
            column: 1,
            message: Text::new(
                "文本是空的；第一行写 `plan 名字 v1`。",
                "the text is empty; begin with a line `plan NAME v1`.",
            ),
        });
    };
    let mut cursor = Cursor::new(first, limits);
    cursor.keyword("plan")?;
    let name = cursor.word("a name for the plan", "计划的名字")?;
    match cursor.peek() {
        Some(Token::Word(version)) if version == "v1" => cursor.skip(),
        _ => {
            return Err(cursor.error(Text::new(
                "这里要写语言版本 `v1`：`plan 名字 v1`。",
                "the language version `v1` belongs here: `plan NAME v1`.",
            )));
        }
    }
    cursor.end()?;
    parser.at = 1;
    let settings = parser.settings()?;
    let mut blocks = Vec::new();
    while let Some(line) = parser.line() {
        blocks.push(parser.block(line)?);
    }
    Ok(File { name, settings, blocks, line: first.number })
}

struct Parser<'a> {
    lines: &'a [Line],
    at: usize,
    limits: &'a Limits,
}

impl<'a> Parser<'a> {
    fn line(&self) -> Option<&'a Line> {
        self.lines.get(self.at)
    }

    fn settings(&mut self) -> Result<Vec<Setting>, ParseError> {
        let mut settings = Vec::new();
        while let Some(line) = self.line() {
            let mut cursor = Cursor::new(line, self.limits);
            if line.indent > 0 {
                return Err(cursor.error(indent_message()));
            }
            let word = cursor.peek_word().unwrap_or_default();
            let kind = match word {
                "every" | "rank" => break,
                "collective" => {
                    cursor.skip();
                    let at = cursor.at;
                    let name = cursor.word("a collective", "集合操作的名字")?;
                    let known = Collective::all(Rank(0)).map(Collective::name);
                    if !known.contains(&name.as_str()) {
                        cursor.at = at;
                        return Err(cursor.unknown(&name, &known));
                    }
                    let root = cursor.optional("root")?;
                    SettingKind::Collective { name, root }
                }
                "ranks" => SettingKind::Ranks(cursor.after_keyword()?),
                "channels" => SettingKind::Channels(cursor.after_keyword()?),
                "chunks" => SettingKind::Chunks(cursor.after_keyword()?),
                "scratch" => {
                    cursor.skip();
                    SettingKind::Scratch { name: cursor.new_name()?, chunks: cursor.expr()? }
                }
                other => {
                    let mut known = SETTINGS.to_vec();
                    known.extend(["every rank", "rank"]);
                    if FORMS.iter().any(|(op, _)| *op == other) || STATEMENTS.contains(&other) {
                        return Err(cursor.error(Text::new(
                            format!("`{other}` 要写在 `every rank:` 或 `rank 0:` 之下，并缩进。"),
                            format!("`{other}` belongs, indented, below `every rank:` or `rank 0:`."),
                        )));
                    }
                    return Err(cursor.unknown_here(&known));
                }
            };
            cursor.end()?;
            settings.push(Setting { line: line.number, kind });
            self.at += 1;
        }
        Ok(settings)
    }

    fn block(&mut self, line: &'a Line) -> Result<Block, ParseError> {
        let mut cursor = Cursor::new(line, self.limits);
        if line.indent > 0 {
            return Err(cursor.error(indent_message()));
        }
        let rank = match cursor.peek_word() {
            Some("every") => {
                cursor.skip();
                cursor.keyword("rank")?;
                None
            }
            Some("rank") => Some(cursor.after_keyword()?),
            Some(word) if SETTINGS.contains(&word) => {
                return Err(cursor.error(Text::new(
                    format!("`{word}` 要写在所有 rank 块之前。"),
                    format!("`{word}` belongs above all rank blocks."),
                )));
            }
            _ => return Err(cursor.unknown_here(&["every rank", "rank"])),
        };
        let channel = cursor.optional("channel")?;
        cursor.mark(":")?;
        cursor.end()?;
        self.at += 1;
        let body = self.body(line, 1)?;
        Ok(Block { line: line.number, rank, channel, body })
    }

    /// The lines below `opener` that are indented further.
    fn body(&mut self, opener: &Line, depth: usize) -> Result<Vec<Stmt>, ParseError> {
        let indent = match self.line() {
            Some(line) if line.indent > opener.indent => line.indent,
            _ => {
                return Err(ParseError {
                    line: opener.number,
                    column: opener.end,
                    message: Text::new(
                        "`:` 之后要有缩进的内容；请在下一行缩进两个空格写步骤。",
                        "something indented must follow `:`; write the steps on the next lines, indented by two spaces.",
                    ),
                });
            }
        };
        if depth > self.limits.nesting {
            return Err(ParseError {
                line: opener.number,
                column: opener.indent + 1,
                message: Text::new(
                    format!("块嵌套超过 {} 层；请拆开。", self.limits.nesting),
                    format!("blocks are nested more than {} deep; take them apart.", self.limits.nesting),
                ),
            });
        }
        let mut body = Vec::new();
        while let Some(line) = self.line() {
            if line.indent <= opener.indent {
                break;
            }
            if line.indent != indent {
                return Err(Cursor::new(line, self.limits).error(indent_message()));
            }
            body.push(self.stmt(line, depth)?);
        }
        Ok(body)
    }

    fn stmt(&mut self, line: &'a Line, depth: usize) -> Result<Stmt, ParseError> {
        let mut cursor = Cursor::new(line, self.limits);
        let column = line.indent + 1;
        let word = match cursor.peek_word() {
            Some(word) => word.to_string(),
            None => return Err(cursor.expected("a step", "一个步骤")),
        };
        let kind = match word.as_str() {
            "let" => {
                cursor.skip();
                let name = cursor.new_name()?;
                cursor.mark("=")?;
                let value = cursor.expr()?;
                cursor.end()?;
                self.at += 1;
                StmtKind::Let { name, value }
            }
            "for" => {
                let (var, from, to) = cursor.each()?;
                cursor.mark(":")?;
                cursor.end()?;
                self.at += 1;
                StmtKind::For { var, from, to, body: self.body(line, depth + 1)? }
            }
            "if" => self.branches(line, depth)?,
            "else" => {
                return Err(cursor.error(Text::new(
                    "这个 `else` 前面没有同样缩进的 `if`。",
                    "there is no `if` of the same indentation before this `else`.",
                )));
            }
            _ => {
                let Some((op, _)) = FORMS.iter().find(|(op, _)| *op == word) else {
                    let known: Vec<&str> = FORMS.iter().map(|(op, _)| *op).chain(STATEMENTS).collect();
                    return Err(cursor.unknown(&word, &known));
                };
                let step = cursor.step(op)?;
                self.at += 1;
                StmtKind::Step(Box::new(step))
            }
        };
        Ok(Stmt { line: line.number, column, kind })
    }

    fn branches(&mut self, line: &'a Line, depth: usize) -> Result<StmtKind, ParseError> {
        let mut arms = Vec::new();
        let mut cursor = Cursor::new(line, self.limits);
        let mut line = line;
        loop {
            cursor.keyword("if")?;
            let condition = cursor.condition()?;
            cursor.mark(":")?;
            cursor.end()?;
            self.at += 1;
            arms.push((condition, self.body(line, depth + 1)?));
            match self.line() {
                Some(next) if next.indent == line.indent => {
                    cursor = Cursor::new(next, self.limits);
                    if cursor.peek_word() != Some("else") {
                        return Ok(StmtKind::If { arms, otherwise: Vec::new() });
                    }
                    line = next;
                    cursor.skip();
                }
                _ => return Ok(StmtKind::If { arms, otherwise: Vec::new() }),
            }
            if cursor.peek() == Some(&Token::Mark(":")) {
                cursor.skip();
                cursor.end()?;
                self.at += 1;
                return Ok(StmtKind::If { arms, otherwise: self.body(line, depth + 1)? });
            }
        }
    }
}

fn indent_message() -> Text {
    Text::new(
        "这一行的缩进和上面的块对不上；同一块的行要缩进得一样多。",
        "this line's indentation fits no block above; lines of one block are indented alike.",
    )
}
