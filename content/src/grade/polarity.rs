//! Which words stand under a negation, in a reported error, or in a condition.
//!
//! A negator has a place and a scope, both token ranges. What is matched inside a scope is denied by that negator; two negators cancel.

use std::ops::Range;

use super::text::{Kind, Text, Token};

/// One negation: `不` in 不等于, `isn't`, 有人以为, … is a myth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Negator {
    pub place: Range<usize>,
    pub scope: Range<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct Polarity {
    pub negators: Vec<Negator>,
    /// Token ranges that only ask or suppose: after 是否, `whether`, `if`.
    pub supposed: Vec<Range<usize>>,
}

/// Deny what follows in the clause. Chinese ones are matched at the beginning of a word.
const BEFORE: &[&str] = &[
    "不",
    "没",
    "没有",
    "并非",
    "非",
    "未",
    "未必",
    "无",
    "无法",
    "无需",
    "无须",
    "别",
    "勿",
    "莫",
    "毋须",
    "谈不上",
    "绝非",
    "决非",
    "从未",
    "尚未",
    "not",
    "no",
    "never",
    "without",
    "nor",
    "neither",
    "none",
    "nobody",
    "nothing",
    "cannot",
    "hardly",
    "instead of",
    "rather than",
    "far from",
    "fails to",
    "fail to",
    "stop short of",
    "unlike",
];

/// Words that begin like a negator and deny nothing.
const INNOCENT: &[&str] = &[
    "不仅",
    "不光",
    "不但",
    "不只",
    "不单",
    "不止",
    "不过",
    "不同",
    "不少",
    "不断",
    "不管",
    "不论",
    "不妨",
    "不如",
    "不然",
    "不错",
    "不得不",
    "不能不",
    "不可不",
    "不会不",
    "不一致",
    "不匹配",
    "不可避免",
    "不对齐",
    "不对称",
    "不均",
    "不平衡",
    "不足",
    "不稳",
    "不知不觉",
    "不一样",
    "不等长",
    "不利",
    "不良",
    "不确定",
    "不定",
    "无论",
    "无限",
    "无穷",
    "无损",
    "无效",
    "无锁",
    "无关",
    "非常",
    "非法",
    "非阻塞",
    "非对称",
    "非零",
    "非均匀",
    "未定义",
    "未来",
    "未知",
    "没准",
    "没收",
    "别的",
    "别人",
    "别处",
    "别说",
    "别名",
    "差不多",
    "无疑",
    "无非",
    "not only",
    "not just",
    "not merely",
    "not simply",
    "no doubt",
    "no matter",
    "no wonder",
    "no problem",
];

/// What somebody is said to believe is denied until the sentence turns.
const REPORTED: &[&str] = &[
    "误以为",
    "误认为",
    "误当成",
    "错误地认为",
    "有人以为",
    "有人认为",
    "有人说",
    "很多人以为",
    "很多人认为",
    "不少人以为",
    "不少人认为",
    "以为",
    "别以为",
    "常见误解",
    "常见的误解",
    "常见错误",
    "常见误区",
    "people think",
    "people believe",
    "people assume",
    "some think",
    "some believe",
    "some say",
    "one might think",
    "you might think",
    "many think",
    "many assume",
    "many believe",
    "common misconception",
    "common mistake",
    "common error",
    "it is wrong to",
    "it is a mistake to",
    "mistakenly",
    "wrongly",
    "nobody should read",
    "beginners think",
    "newcomers think",
    "tempting to think",
];

/// Deny the part of the sentence that stands before them.
const AFTER: &[&str] = &[
    "这是错的",
    "这是错误的",
    "这不对",
    "这并不对",
    "这种说法不对",
    "这种说法是错的",
    "的说法不对",
    "的说法是错的",
    "的说法不成立",
    "的理解是错的",
    "的想法是错的",
    "的看法是错的",
    "是误解",
    "是个误解",
    "是一种误解",
    "是误区",
    "是个误区",
    "不成立",
    "并不成立",
    "that is wrong",
    "that is false",
    "this is wrong",
    "this is false",
    "is a myth",
    "is a misconception",
    "is not true",
    "is untrue",
    "is not the case",
    "is false",
    "is not implied",
    "is not guaranteed",
    "is not given",
    "is not needed",
    "is not required",
    "is not involved",
    "are not involved",
];

const TURN: &[&str] = &[
    "其实",
    "实际上",
    "事实上",
    "但",
    "但是",
    "可是",
    "然而",
    "而",
    "不过",
    "but",
    "actually",
    "however",
    "in fact",
    "in reality",
    "whereas",
];

const ASKED: &[&str] = &["是否", "是不是", "能否", "会不会", "有没有", "whether"];
const SUPPOSED: &[&str] = &["如果", "假如", "假设", "倘若", "要是", "若", "若是", "if"];

/// Words that begin what follows from a condition.
const CONSEQUENT: &[&str] = &["then", "you", "we", "i", "就", "则", "那么", "那就", "便"];

impl Polarity {
    pub fn new(text: &Text) -> Polarity {
        let tokens = &text.tokens;
        let mut out = Polarity::default();
        let mut at = 0;
        while at < tokens.len() {
            let sentence = text.sentence_of(at);
            let clause = text.clause_of(at);
            if let Some(length) = longest(tokens, at, INNOCENT) {
                at += length;
            } else if let Some(length) = longest(tokens, at, ASKED) {
                out.supposed.push(at..clause.end);
                at += length;
            } else if let Some(length) = longest(tokens, at, REPORTED) {
                let end = find(tokens, at + length..sentence.end, TURN).unwrap_or(sentence.end);
                out.negators.push(Negator { place: at..at + length, scope: at + length..end });
                at += length;
            } else if let Some(length) = longest(tokens, at, AFTER) {
                let from = (sentence.start..at).rev().find(|i| longest(tokens, *i, TURN).is_some());
                out.negators
                    .push(Negator { place: at..at + length, scope: from.unwrap_or(sentence.start)..at });
                at += length;
            } else if let Some(length) = longest(tokens, at, BEFORE) {
                out.negators.push(Negator { place: at..at + length, scope: at + length..clause.end });
                at += length;
            } else if let Some(length) = longest(tokens, at, SUPPOSED) {
                let would = find(tokens, at..sentence.end, &["would"]).is_some();
                let end = if would {
                    sentence.end
                } else {
                    // "if M/B is small you are latency bound": no comma before what follows.
                    let follows = (at + length + 2).min(clause.end)..clause.end;
                    find(tokens, follows, CONSEQUENT).unwrap_or(clause.end)
                };
                out.supposed.push(at..end);
                at += length;
            } else {
                at += 1;
            }
        }
        out
    }

    /// The negators that deny a match; none when two of them cancel.
    pub fn denying(&self, span: &Range<usize>) -> Vec<usize> {
        let outside = |place: &Range<usize>| place.end <= span.start || place.start >= span.end;
        let mut found: Vec<usize> = (0..self.negators.len())
            .filter(|i| {
                let negator = &self.negators[*i];
                negator.scope.contains(&span.start) && outside(&negator.place)
            })
            .collect();
        if found.len().is_multiple_of(2) {
            found.clear();
        }
        found
    }

    pub fn is_supposed(&self, token: usize) -> bool {
        self.supposed.iter().any(|range| range.contains(&token))
    }
}

fn find(tokens: &[Token], range: Range<usize>, phrases: &[&str]) -> Option<usize> {
    range.into_iter().find(|i| longest(tokens, *i, phrases).is_some())
}

/// Tokens of the longest of these phrases that stands at `at`.
pub(crate) fn longest(tokens: &[Token], at: usize, phrases: &[&str]) -> Option<usize> {
    phrases.iter().filter_map(|phrase| starts(tokens, at, phrase)).max()
}

fn starts(tokens: &[Token], at: usize, phrase: &str) -> Option<usize> {
    let first = tokens.get(at)?;
    if first.kind != Kind::Han {
        let mut length = 0;
        for word in phrase.split(' ') {
            if tokens.get(at + length)?.text != word {
                return None;
            }
            length += 1;
        }
        return Some(length);
    }
    let mut length = 0;
    for c in phrase.chars() {
        let token = tokens.get(at + length)?;
        if token.kind != Kind::Han || !token.text.starts_with(c) {
            return None;
        }
        length += 1;
    }
    // A single sign is a word of its own: 不 in 不同 or 非 in 非常 denies nothing.
    (length > 1 || first.begins).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(text: &str, word: &str) -> bool {
        let parsed = Text::new(text);
        let polarity = Polarity::new(&parsed);
        let joined: Vec<String> = parsed.tokens.iter().map(|token| token.text.clone()).collect();
        let wanted: Vec<String> = Text::new(word).tokens.into_iter().map(|token| token.text).collect();
        let at = joined.windows(wanted.len()).position(|window| window == wanted).unwrap();
        !polarity.denying(&(at..at + wanted.len())).is_empty()
    }

    #[test]
    fn scope_ends_where_the_sentence_turns() {
        assert!(denied("返回并不代表完成", "完成"));
        assert!(!denied("不仅异步，完成也要等", "异步"));
        assert!(denied("不是同步的，而是异步的", "同步"));
        assert!(!denied("不是同步的，而是异步的", "异步"));
        assert!(denied("it does not mean completion", "completion"));
        assert!(!denied("not synchronous but asynchronous", "asynchronous"));
        assert!(denied("uses sockets rather than verbs", "verbs"));
        assert!(!denied("不能不完成", "完成"));
    }

    #[test]
    fn reported_errors_are_denied() {
        assert!(denied("很多人以为返回就是完成，其实只是入队", "完成"));
        assert!(!denied("很多人以为返回就是完成，其实只是入队", "入队"));
        assert!(denied("People think the call blocks, but it only enqueues", "blocks"));
        assert!(denied("返回就代表做完，这是错的", "做完"));
    }
}
