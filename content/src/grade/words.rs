//! Latin words that mean the same in another form or with a slip of the finger.

/// A light stem: enough that `returns`, `returned` and `returning` are one word. Applied to patterns and answers alike.
pub(crate) fn stem(word: &str) -> String {
    let mut stem = word.to_owned();
    if !word.is_ascii() || word.len() < 4 || word.bytes().any(|b| b.is_ascii_digit()) {
        return stem;
    }
    let cut = |stem: &mut String, suffix: &str, keep: usize, with: &str| {
        let found = stem.len() >= keep + suffix.len() && stem.ends_with(suffix);
        if found {
            stem.truncate(stem.len() - suffix.len());
            stem.push_str(with);
        }
        found
    };
    let _ = cut(&mut stem, "ies", 2, "y")
        || cut(&mut stem, "sses", 2, "ss")
        || (!stem.ends_with("ss")
            && !stem.ends_with("us")
            && !stem.ends_with("is")
            && cut(&mut stem, "s", 3, ""));
    let inflected =
        cut(&mut stem, "ied", 2, "y") || cut(&mut stem, "ing", 3, "") || cut(&mut stem, "ed", 3, "");
    if inflected {
        // stopped, running: the doubled letter goes with the ending.
        let bytes = stem.as_bytes();
        if let [.., a, b] = bytes
            && a == b
            && !matches!(a, b'l' | b's' | b'z' | b'a' | b'e' | b'i' | b'o' | b'u')
        {
            stem.pop();
        }
    }
    if stem.len() > 4 {
        let _ = cut(&mut stem, "isation", 3, "iz")
            || cut(&mut stem, "ization", 3, "iz")
            || cut(&mut stem, "ise", 3, "iz");
        let _ = cut(&mut stem, "ize", 3, "iz") || cut(&mut stem, "ly", 4, "");
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    stem
}

/// Ordinary words one letter away from words of the field (decide and decode, caller and called): no slips of the finger.
const ORDINARY: &[&str] = &[
    "decide", "decided", "decides", "latter", "caller", "called", "quiet", "quite", "though", "through",
    "thought", "their", "there", "these", "those", "where", "which", "while", "would", "could", "should",
    "about", "after", "first", "later", "other", "place", "point", "right", "round", "sound", "still",
    "think", "thing", "under", "using", "value", "whole", "world", "write", "wrote", "broad", "board",
    "coast", "close", "choice", "chance", "change", "charge", "matter", "master", "faster", "slower",
    "shower", "counts", "course", "source", "across", "access", "except", "expect", "accept", "effect",
    "affect", "desire", "device", "remove", "remote", "rather", "gather", "bother",
];

/// Whether this is a word that people mean when they write it.
pub(crate) fn ordinary(word: &str) -> bool {
    ORDINARY.contains(&word)
}

/// Whether two words of five letters or more differ by one insertion, deletion, change or swap of neighbours; long ones by two letters in a row. The first letters agree:
/// `async` and `sync` are different words.
pub(crate) fn slip(a: &str, b: &str) -> bool {
    let (a, b) = if a.len() <= b.len() { (a.as_bytes(), b.as_bytes()) } else { (b.as_bytes(), a.as_bytes()) };
    if a.len() < 5 || b.len() - a.len() > 1 || a[0] != b[0] || !a.is_ascii() || !b.is_ascii() {
        return false;
    }
    if a.iter().chain(b).any(u8::is_ascii_digit) {
        return false;
    }
    let front = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let back = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count().min(a.len() - front);
    // Two slips in a row are forgiven in a long word.
    if front + back >= b.len() - 1 || (a.len() >= 9 && front + back + 2 >= b.len() && back > 1 && front > 2) {
        return true;
    }
    a.len() == b.len() && front + back + 2 == a.len() && a[front] == b[front + 1] && a[front + 1] == b[front]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_share_a_stem() {
        for (a, b) in [
            ("returns", "returned"),
            ("queue", "queued"),
            ("stopping", "stopped"),
            ("copies", "copied"),
            ("synchronise", "synchronized"),
        ] {
            assert_eq!(stem(a), stem(b), "{a} {b}");
        }
        assert_ne!(stem("async"), stem("sync"));
    }

    #[test]
    fn an_ordinary_word_is_no_slip() {
        assert!(slip("decide", "decode") && ordinary("decide") && !ordinary("decod"));
    }

    #[test]
    fn one_slip_is_forgiven() {
        assert!(slip("bandwith", "bandwidth"));
        assert!(slip("recieve", "receive"));
        assert!(slip("comunicator", "communicator"));
        assert!(slip("syncronisation", "synchronisation"));
        assert!(slip("comunnicator", "communicator"));
        assert!(!slip("synchronous", "asynchronous"));
        assert!(!slip("async", "sync"));
        assert!(!slip("gather", "gethur"));
        assert!(!slip("fp16x", "fp32x"));
    }
}
