//! Reading time, and which characters are Chinese.

/// How much prose there is.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Prose {
    pub characters: u32,
    pub words: u32,
}

impl Prose {
    /// Counts Chinese characters and words of other scripts; punctuation counts nothing.
    pub fn add(&mut self, text: &str) {
        let mut in_word = false;
        for c in text.chars() {
            if is_cjk(c) {
                in_word = false;
                self.characters += u32::from(c.is_alphanumeric());
            } else if c.is_alphanumeric() {
                self.words += u32::from(!in_word);
                in_word = true;
            } else if !matches!(c, '-' | '\'' | '’' | '_' | '.') {
                in_word = false;
            }
        }
    }

    /// At 300 Chinese characters or 200 words a minute, rounded up.
    pub fn minutes(self) -> u32 {
        (f64::from(self.characters) / 300.0 + f64::from(self.words) / 200.0).ceil().max(1.0) as u32
    }
}

/// Han, kana, their punctuation and full-width forms: no space belongs between two of these where a line was broken.
pub(crate) fn is_cjk(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_scripts_count_in_one_text() {
        let mut prose = Prose::default();
        prose.add("每个 rank 发送 all-reduce 的数据。");
        assert_eq!((prose.characters, prose.words), (7, 2));
        prose.add(&"环".repeat(300));
        assert_eq!(prose.minutes(), 2);
    }
}
