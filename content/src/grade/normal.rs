//! One spelling for everything: NFKC (which also folds full width), traditional characters to simplified, and the way back to the answer.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

/// Pairs of a traditional character and its simplified form; the file says where they come from.
const PAIRS: &str = include_str!("simplified.txt");

static SIMPLIFIED: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
    let mut chars = PAIRS.lines().filter(|line| !line.starts_with('#')).flat_map(str::chars);
    std::iter::from_fn(|| Some((chars.next()?, chars.next()?))).collect()
});

/// A text as the grader reads it: characters, each with the byte range of the answer it came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Normal {
    pub chars: Vec<char>,
    /// Byte ranges in the original text, one a character, ascending.
    from: Vec<Range<usize>>,
}

impl Normal {
    pub fn new(text: &str) -> Normal {
        let mut normal = Normal::default();
        for (at, c) in text.char_indices() {
            let range = at..at + c.len_utf8();
            if c.is_ascii() {
                normal.push(c, range);
                continue;
            }
            for c in std::iter::once(c).nfkc() {
                normal.push(plain(c), range.clone());
            }
        }
        normal
    }

    fn push(&mut self, c: char, from: Range<usize>) {
        self.chars.push(c);
        self.from.push(from);
    }

    /// The bytes of the original text behind a range of characters.
    pub fn original(&self, chars: Range<usize>) -> Range<usize> {
        match (self.from.get(chars.start), self.from.get(chars.end.wrapping_sub(1))) {
            (Some(first), Some(last)) if chars.start < chars.end => first.start..last.end,
            _ => 0..0,
        }
    }
}

/// Signs that mean the same, and simplified characters.
fn plain(c: char) -> char {
    match c {
        '’' | '‘' | 'ʼ' | '`' | '´' => '\'',
        '“' | '”' | '「' | '」' | '『' | '』' | '《' | '》' => '"',
        '–' | '—' | '−' | '‒' | '‐' | '‑' => '-',
        '×' | '·' | '⋅' | '∗' | '✕' | '•' => '*',
        '÷' | '∕' | '⁄' => '/',
        '≈' | '≃' | '≅' | '≒' => '≈',
        'Α' => 'α',
        'Β' => 'β',
        // The micro sign is already the Greek letter after NFKC.
        'µ' => 'μ',
        c => SIMPLIFIED.get(&c).copied().unwrap_or(c),
    }
}

pub(crate) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '〇')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_and_script_are_folded_and_lead_back() {
        let text = "傳輸ＮＣＣＬ　２×３";
        let normal = Normal::new(text);
        assert_eq!(normal.chars.iter().collect::<String>(), "传输NCCL 2*3");
        let nccl = normal.original(2..6);
        assert_eq!(&text[nccl], "ＮＣＣＬ");
        assert_eq!(normal.original(3..3), 0..0);
    }

    #[test]
    fn the_table_simplifies_and_leaves_simplified_text_alone() {
        let of = |text: &str| Normal::new(text).chars.into_iter().collect::<String>();
        assert_eq!(of("後續與網路頻寬、裡面的執行緒於佇列啟動"), "后续与网路频宽、里面的执行绪于伫列启动");
        assert_eq!(of("环形算法把张量分成块"), "环形算法把张量分成块");
        assert!(SIMPLIFIED.len() > 3000);
    }
}
