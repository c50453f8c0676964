//! Where in an answer a word stands, so that a phrase is tried only where it can begin. A rubric has some thousand phrases and an answer is
//! asked by all rubrics of the bank.

use super::text::{Kind, Token};
use super::words::stem;

/// Words of the filter: 4096 bits for the few hundred keys of an answer.
const FILTER: usize = 64;
/// `all to all` and the like: so many words may be written as one.
pub(crate) const JOINED: usize = 4;

/// A stem as a number (FNV-1a). Two stems with one key cost time and nothing else: what is found here is compared as text.
pub(crate) fn key(stem: &str) -> u64 {
    stem.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[derive(Debug)]
pub(crate) struct Index {
    /// Of each token.
    pub stems: Vec<String>,
    /// Keys of tokens, and of neighbours written together, with the token where they begin; in order.
    places: Vec<(u64, usize)>,
    filter: [u64; FILTER],
}

impl Index {
    pub fn new(tokens: &[Token]) -> Index {
        let stems: Vec<String> = tokens.iter().map(|token| stem(&token.text)).collect();
        let mut places: Vec<(u64, usize)> =
            stems.iter().enumerate().map(|(at, stem)| (key(stem), at)).collect();
        for at in 0..tokens.len() {
            let mut text = String::new();
            for (n, token) in tokens[at..].iter().take(JOINED).take_while(|t| t.kind != Kind::Han).enumerate()
            {
                text.push_str(&token.text);
                if n > 0 {
                    places.push((key(&stem(&text)), at));
                }
            }
        }
        places.sort_unstable();
        let mut filter = [0; FILTER];
        for (key, _) in &places {
            let (word, bit) = bit(*key);
            filter[word] |= bit;
        }
        Index { stems, places, filter }
    }

    /// Adds the tokens at which this key begins.
    pub fn find(&self, key: u64, out: &mut Vec<usize>) {
        let (word, bit) = bit(key);
        if self.filter[word] & bit == 0 {
            return;
        }
        let from = self.places.partition_point(|(other, _)| *other < key);
        out.extend(self.places[from..].iter().take_while(|(other, _)| *other == key).map(|(_, at)| *at));
    }
}

/// FNV's high bits are its good ones.
fn bit(key: u64) -> (usize, u64) {
    let hash = key ^ (key >> 32);
    ((hash >> 6) as usize % FILTER, 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::text::Text;

    #[test]
    fn words_are_found_by_their_stem_alone_or_joined() {
        let index = Index::new(&Text::new("ring 入队 all reduces, rings").tokens);
        let at = |word: &str| {
            let mut out = Vec::new();
            index.find(key(&stem(word)), &mut out);
            out
        };
        assert_eq!(at("ring"), [0, 5]);
        assert_eq!(at("队"), [2]);
        assert_eq!(at("allreduce"), [3]);
        assert!(at("tree").is_empty());
    }
}
