//! The known word closest to a misspelt one.

/// `None` when nothing is close enough to be meant: at most a third of the letters may differ.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    let word = word.to_ascii_lowercase();
    known
        .into_iter()
        .map(|k| (distance(word.as_bytes(), k.as_bytes()), k))
        .filter(|(d, k)| *d <= (k.len() / 3).max(1) && *d < k.len())
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let width = b.len() + 1;
    let mut table = vec![0usize; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i * width + j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replace = table[(i - 1) * width + j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = replace.min(table[(i - 1) * width + j] + 1).min(table[i * width + j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(table[(i - 2) * width + j - 2] + 1);
                }
                best
            };
        }
    }
    table[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_noise_is_not() {
        let known = ["send", "recv", "recv_reduce_send", "recv_reduce_copy"];
        assert_eq!(closest("sned", known), Some("send"));
        assert_eq!(closest("RecvReduceSend", known), Some("recv_reduce_send"));
        assert_eq!(closest("recieve", known), None);
        assert_eq!(closest("xyz", known), None);
    }
}
