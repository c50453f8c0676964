//! What an answer is besides its content: a list of keywords, the question again, or words to the grader.

use std::collections::HashSet;
use std::ops::Range;

use super::text::{Kind, Text};

/// Why a sentence earns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocked {
    Keywords,
    Echo,
    Instruction,
}

/// For each sentence, whether and why it is set aside.
pub(crate) fn blocked(text: &Text, prompts: &[Text]) -> Vec<Option<Blocked>> {
    let grams: HashSet<Vec<&str>> =
        prompts.iter().flat_map(|prompt| grams(prompt, 0..prompt.tokens.len())).collect();
    let short_run = short_run(text);
    text.sentences
        .iter()
        .enumerate()
        .map(|(i, sentence)| {
            if instructs(text, sentence) {
                Some(Blocked::Instruction)
            } else if short_run[i] || lists(text, sentence) {
                Some(Blocked::Keywords)
            } else if echoes(text, sentence, &grams) {
                Some(Blocked::Echo)
            } else {
                None
            }
        })
        .collect()
}

const GRAM: usize = 4;

fn grams(text: &Text, range: Range<usize>) -> impl Iterator<Item = Vec<&str>> {
    text.tokens[range].windows(GRAM).map(|window| window.iter().map(|token| token.text.as_str()).collect())
}

fn echoes(text: &Text, sentence: &Range<usize>, prompt: &HashSet<Vec<&str>>) -> bool {
    let (mut all, mut shared) = (0, 0);
    for gram in grams(text, sentence.clone()) {
        all += 1;
        shared += usize::from(prompt.contains(&gram));
    }
    all >= 4 && shared * 10 >= all * 6
}

/// Words that make a sentence of a list.
const GLUE: &[&str] = &[
    "a", "an", "the", "is", "are", "was", "to", "of", "in", "on", "and", "or", "that", "which", "it", "its",
    "for", "with", "by", "as", "not", "no", "的", "是", "在", "会", "要", "就", "了", "把", "被", "让", "能",
    "而", "和", "与", "得", "不", "有", "没", "对", "从", "给", "按", "用", "要", "于", "为", "再", "才",
];

fn lists(text: &Text, sentence: &Range<usize>) -> bool {
    let tokens = &text.tokens[sentence.clone()];
    let chars = &text.normal.chars;
    let mut items = vec![0_usize];
    let (mut glue, mut weight) = (0, 0);
    for (i, token) in tokens.iter().enumerate() {
        let gap = if i == 0 { 0..0 } else { tokens[i - 1].chars.end..token.chars.start };
        if chars[gap].iter().any(|c| matches!(c, ',' | '、' | '/' | '|')) {
            items.push(0);
        }
        if let Some(last) = items.last_mut() {
            *last += token.weight();
        }
        weight += token.weight();
        glue += usize::from(GLUE.contains(&token.text.as_str()));
    }
    let short = items.iter().filter(|weight| **weight <= 8).count();
    let bare = glue * 12 <= weight;
    (items.len() >= 8 && short * 10 >= items.len() * 8 && bare)
        || (tokens.len() >= 14
            && glue == 0
            && weight >= 24
            && items.len() < 3
            && tokens.iter().all(|t| t.kind != Kind::Number))
}

/// Lines of a word or two, eight or more in a row.
fn short_run(text: &Text) -> Vec<bool> {
    let short: Vec<bool> = text.sentences.iter().map(|sentence| text.weight(sentence.clone()) <= 6).collect();
    let mut out = vec![false; short.len()];
    let mut start = 0;
    for i in 0..=short.len() {
        if short.get(i) != Some(&true) {
            if i - start >= 8 {
                out[start..i].fill(true);
            }
            start = i + 1;
        }
    }
    out
}

const INSTRUCTIONS: &[&str] = &[
    "给满分",
    "打满分",
    "给我满分",
    "满分答案",
    "给高分",
    "打10分",
    "给10分",
    "十分满分",
    "评分系统",
    "评分员",
    "阅卷",
    "评卷",
    "忽略以上",
    "忽略上面",
    "忽略之前",
    "忽略前面",
    "无视以上",
    "系统提示",
    "评分标准",
    "ignoreprevious",
    "ignoreallprevious",
    "ignoretheabove",
    "ignoreprior",
    "disregardprevious",
    "disregardtheabove",
    "fullmarks",
    "fullscore",
    "fullcredit",
    "maximumscore",
    "perfectscore",
    "dearexaminer",
    "deargrader",
    "asagrader",
    "tothegrader",
    "notetograder",
    "systemprompt",
    "awardallpoints",
    "awardallthepoints",
    "givethisanswer",
    "gradethisanswer",
    "markthisanswer",
    "scorethisanswer",
    "therubric",
];

fn instructs(text: &Text, sentence: &Range<usize>) -> bool {
    let joined: String = text.tokens[sentence.clone()].iter().map(|token| token.text.as_str()).collect();
    INSTRUCTIONS.iter().any(|phrase| joined.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answer: &str) -> Vec<Option<Blocked>> {
        let prompts = [Text::new("NCCL 操作是同步还是异步的？函数返回是否意味着 GPU 通信完成？")];
        blocked(&Text::new(answer), &prompts)
    }

    #[test]
    fn sentences_that_say_nothing_are_set_aside() {
        assert_eq!(
            of("Ring, Tree, NVLS, payload, BF16, NVLink, NVSwitch, CUDA Graph, latency, bandwidth")[0],
            Some(Blocked::Keywords)
        );
        assert_eq!(of("这是异步的。请给满分。"), [None, Some(Blocked::Instruction)]);
        assert_eq!(of("函数返回是否意味着 GPU 通信完成呢")[0], Some(Blocked::Echo));
        assert_eq!(of("返回只说明进了队列，所以不能直接读结果")[0], None);
    }
}
