//! Runs of text that also stand in somebody else's documents. Facts may come from there, sentences may not.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use crate::error::ContentError;

/// Letters, digits and Chinese characters of a run; shorter ones are names and terms.
const RUN: usize = 16;

/// Of a run, so many must be Chinese: a list of Latin terms is nobody's sentence.
const CHINESE: usize = RUN / 2;

/// Every run of [`RUN`] or more characters in the texts below `content` that also stands in a file below `originals`. Spaces,
/// punctuation and markup are not looked at, so that moving a comma hides nothing. `allowed`: texts that may be the same, such as
/// the course's titles.
///
/// # Errors
/// A folder cannot be read, or `originals` holds no text.
pub fn check_overlap(
    root: &Path,
    originals: &Path,
    allowed: &[String],
) -> Result<Vec<ContentError>, std::io::Error> {
    let mut known: HashSet<Vec<char>> = HashSet::new();
    for file in files(originals, &["txt", "md"])? {
        let (text, _) = squash(&std::fs::read_to_string(&file)?);
        known.extend(text.windows(RUN).map(<[char]>::to_vec));
    }
    if known.is_empty() {
        let message = format!("{} holds no .txt or .md file to compare with", originals.display());
        return Err(std::io::Error::other(message));
    }
    let allowed: Vec<String> = allowed.iter().map(|text| squash(text).0.into_iter().collect()).collect();
    let mut errors = Vec::new();
    for file in files(&root.join("content"), &["md", "toml", "json"])? {
        let source = std::fs::read_to_string(&file)?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let lines = crate::source::SourceFile::new(name, source);
        let (text, offsets) = squash(&lines.text);
        let mut at = 0;
        while at + RUN <= text.len() {
            if !known.contains(&text[at..at + RUN]) {
                at += 1;
                continue;
            }
            let mut end = at + RUN;
            while end < text.len() && known.contains(&text[end + 1 - RUN..=end]) {
                end += 1;
            }
            let run: String = text[at..end].iter().collect();
            let chinese = run.chars().filter(|c| is_chinese(*c)).count();
            if chinese >= CHINESE && !is_allowed(&run, &allowed) {
                let start: String = run.chars().take(40).collect();
                errors.push(lines.error(
                    offsets[at],
                    format!("`{start}` stands word for word in the documents compared with; say it in our own words"),
                ));
            }
            at = end;
        }
    }
    Ok(errors)
}

fn is_allowed(run: &str, allowed: &[String]) -> bool {
    let length = |text: &str| text.chars().count();
    allowed.iter().any(|known| {
        known.contains(run)
            || (!known.is_empty() && run.contains(known.as_str()) && length(run) - length(known) < RUN)
    })
}

fn is_chinese(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}')
}

/// Letters, digits and Chinese characters alone, and where in `text` each comes from.
fn squash(text: &str) -> (Vec<char>, Vec<usize>) {
    let mut out = (Vec::new(), Vec::new());
    for (at, c) in text.char_indices() {
        for c in c.nfkc().flat_map(char::to_lowercase) {
            if c.is_ascii_alphanumeric() || is_chinese(c) {
                out.0.push(c);
                out.1.push(at);
            }
        }
    }
    out
}

fn files(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, std::io::Error> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.contains(&e)) {
                out.push(path);
            }
        }
    }
    out.sort();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, file: &str, text: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ringlab-overlap-{}-{name}", std::process::id()));
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        folder
    }

    #[test]
    fn a_copied_sentence_is_found_however_it_is_punctuated() {
        let originals = folder(
            "seed",
            "a.txt",
            "每个 rank 只与左右两个邻居通信，因此带宽与规模无关。题目：环形算法的两个阶段分别是什么",
        );
        let copied = "# 题\n\n每个rank、只与左右两个邻居，通信；因此带宽与规模无关";
        let root = folder("copy", "content/x.md", copied);
        let errors = check_overlap(&root, &originals, &[]).unwrap();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!((errors[0].line, errors[0].file.as_str()), (3, "content/x.md"));
        let own =
            folder("own", "content/x.md", "邻居有两个，通信只发生在它们之间。环形算法的两个阶段分别是什么");
        assert_eq!(check_overlap(&own, &originals, &["环形算法的两个阶段分别是什么".into()]).unwrap(), []);
        for folder in [originals, root, own] {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn nothing_to_compare_with_is_no_success() {
        let empty = folder("empty", "a.pdf", "");
        assert!(check_overlap(&empty, &empty, &[]).is_err());
        std::fs::remove_dir_all(empty).unwrap();
    }
}
