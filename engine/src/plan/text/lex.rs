//! Lines of tokens. Indentation is kept as a number; comments and empty lines are gone.

use super::ParseError;
use crate::text::Text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    Word(String),
    Number(i64),
    /// One of [`MARKS`].
    Mark(&'static str),
}

impl Token {
    pub fn show(&self) -> String {
        match self {
            Token::Word(word) => word.clone(),
            Token::Number(number) => number.to_string(),
            Token::Mark(mark) => (*mark).into(),
        }
    }
}

/// Longest first, so that `..` and `==` are found before their parts.
const MARKS: [&str; 18] =
    ["..", "==", "!=", "<=", ">=", "<", ">", "=", ":", ",", "[", "]", "(", ")", "+", "-", "*", "%"];
const SLASH: &str = "/";

/// What input methods produce in place of ASCII.
const FULL_WIDTH: [(char, char); 14] = [
    ('：', ':'),
    ('，', ','),
    ('（', '('),
    ('）', ')'),
    ('【', '['),
    ('】', ']'),
    ('＋', '+'),
    ('－', '-'),
    ('×', '*'),
    ('＝', '='),
    ('％', '%'),
    ('＃', '#'),
    ('、', ','),
    ('\u{3000}', ' '),
];

#[derive(Debug, Clone)]
pub struct Line {
    /// From 1.
    pub number: u32,
    pub indent: u32,
    /// Each with its column from 1; never empty.
    pub tokens: Vec<(u32, Token)>,
    /// Column just after the last token.
    pub end: u32,
}

pub fn lines(text: &str) -> Result<Vec<Line>, ParseError> {
    let mut lines = Vec::new();
    for (raw, number) in text.lines().zip(1u32..) {
        let line = line(raw.trim_end(), number)?;
        if !line.tokens.is_empty() {
            lines.push(line);
        }
    }
    Ok(lines)
}

fn line(raw: &str, number: u32) -> Result<Line, ParseError> {
    let chars: Vec<char> = raw.chars().collect();
    let column = |i: usize| u32::try_from(i).unwrap_or(u32::MAX - 1) + 1;
    let err = |i: usize, message| ParseError { line: number, column: column(i), message };
    let indent = chars.iter().take_while(|&&c| c == ' ').count();
    let mut tokens = Vec::new();
    let mut i = indent;
    while i < chars.len() {
        let c = chars[i];
        let start = i;
        match c {
            ' ' => i += 1,
            '#' => break,
            '\t' => {
                return Err(err(
                    i,
                    Text::new(
                        "这里有制表符（Tab）；缩进和间隔请用空格。",
                        "there is a tab here; use spaces.",
                    ),
                ));
            }
            '0'..='9' => {
                while i < chars.len() && chars[i].is_ascii_digit() {
                    i += 1;
                }
                let digits: String = chars[start..i].iter().collect();
                // Nine digits keep every sum and product of two literals far from overflow.
                let value = digits.parse::<i64>().ok().filter(|&v| v < 1_000_000_000).ok_or_else(|| {
                    err(
                        start,
                        Text::new(
                            format!("数 {digits} 太大，须小于 10 亿。"),
                            format!("{digits} is too large; stay below 1,000,000,000."),
                        ),
                    )
                })?;
                tokens.push((column(start), Token::Number(value)));
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                while i < chars.len() && (chars[i].is_ascii_alphanumeric() || chars[i] == '_') {
                    i += 1;
                }
                tokens.push((column(start), Token::Word(chars[start..i].iter().collect())));
            }
            '/' if chars.get(i + 1) == Some(&'/') => {
                return Err(err(
                    i,
                    Text::new("注释以 `#` 开头，不用 `//`。", "comments start with `#`, not `//`."),
                ));
            }
            '/' => {
                tokens.push((column(i), Token::Mark(SLASH)));
                i += 1;
            }
            _ => {
                let rest = &chars[i..];
                let mark = MARKS.into_iter().find(|m| m.chars().eq(rest.iter().copied().take(m.len())));
                let Some(mark) = mark else { return Err(err(i, stray(c))) };
                tokens.push((column(i), Token::Mark(mark)));
                i += mark.len();
            }
        }
    }
    Ok(Line { number, indent: column(indent) - 1, tokens, end: column(i) })
}

fn stray(c: char) -> Text {
    if let Some((_, ascii)) = FULL_WIDTH.into_iter().find(|(wide, _)| *wide == c) {
        let ascii = if ascii == ' ' { "空格".to_string() } else { format!("`{ascii}`") };
        let en = if ascii == "空格" { "an ordinary space".to_string() } else { ascii.clone() };
        return Text::new(
            format!("这里是全角字符 `{c}`；请切到英文输入法，改成半角的{ascii}。"),
            format!("`{c}` is a full-width character; switch the input method and type {en}."),
        );
    }
    Text::new(
        format!("`{}` 不属于计划语言，请删去。", c.escape_debug()),
        format!("`{}` has no meaning in the plan language; remove it.", c.escape_debug()),
    )
}
