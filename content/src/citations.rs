//! Citations of other people's source, and whether they hold in a checkout.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::error::ContentError;
use crate::library::Library;

/// `git show` of one file answers in milliseconds; a checkout on a dead network mount never does.
const DEADLINE: Duration = Duration::from_secs(30);

/// One `source` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// `NVIDIA/nccl`
    pub repo: String,
    /// `v2.22.3-1`
    pub tag: String,
    /// Path in the repository.
    pub file: String,
    pub symbol: String,
    /// The place of the block; its message is empty.
    pub at: ContentError,
}

/// Checks every citation of a repository that `checkouts` has (`OWNER/NAME` to a git directory): the file exists at the tag and holds the
/// symbol as a word. Citations of other repositories are not looked at; their count is the second value.
pub fn check_sources(library: &Library, checkouts: &BTreeMap<String, PathBuf>) -> (Vec<ContentError>, usize) {
    let mut files: BTreeMap<(&str, &str, &str), Result<String, String>> = BTreeMap::new();
    let mut errors = Vec::new();
    let mut unchecked = 0;
    for citation in library.citations() {
        let Some(checkout) = checkouts.get(&citation.repo) else {
            unchecked += 1;
            continue;
        };
        let key = (citation.repo.as_str(), citation.tag.as_str(), citation.file.as_str());
        let text = files.entry(key).or_insert_with(|| file_at(checkout, &citation.tag, &citation.file));
        let message = match text {
            Err(message) => message.clone(),
            Ok(text) if holds_word(text, &citation.symbol) => continue,
            Ok(_) => format!(
                "`{}` does not occur in {} of {} {}; name what stands there",
                citation.symbol, citation.file, citation.repo, citation.tag
            ),
        };
        errors.push(ContentError { message, ..citation.at.clone() });
    }
    (errors, unchecked)
}

/// A file's text at a tag.
fn file_at(checkout: &Path, tag: &str, file: &str) -> Result<String, String> {
    if !is_tag(tag) || !is_path(file) {
        return Err(format!("`{tag}` or `{file}` is not well-formed"));
    }
    let git = |object: String| {
        let mut command = Command::new("git");
        command.arg("-C").arg(checkout).args(["show", "--no-textconv", &object]);
        command
    };
    // The tag first, for a message that tells the two faults apart.
    let tag_found = bounded(git(format!("refs/tags/{tag}^{{commit}}")).arg("--no-patch").arg("--format="));
    tag_found.map_err(|error| {
        format!("tag {tag} is not in {}: {error}; fetch the tag or mend its name", checkout.display())
    })?;
    bounded(&mut git(format!("refs/tags/{tag}:{file}")))
        .map_err(|error| format!("{file} is not in tag {tag}: {error}; mend the path"))
}

/// Output of a command that succeeds within [`DEADLINE`].
fn bounded(command: &mut Command) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("git cannot be started: {error}"))?;
    let stdout = child.stdout.take().expect("stdout was asked for as a pipe");
    let stderr = child.stderr.take().expect("stderr was asked for as a pipe");
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let errors = std::thread::spawn(move || read_all(stderr));
        let output = read_all(stdout);
        // The receiver may have given up meanwhile; then nobody wants this.
        let _ = send.send((output, errors.join().unwrap_or_default()));
    });
    let Ok((output, errors)) = receive.recv_timeout(DEADLINE) else {
        let killed = child.kill().and_then(|()| child.wait());
        return Err(format!("git gave no answer within {DEADLINE:?} ({killed:?})"));
    };
    match child.wait() {
        Ok(status) if status.success() => Ok(output),
        Ok(_) => Err(errors.lines().next().unwrap_or("git failed without a word").to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn read_all(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // A broken pipe shows in the exit status.
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn holds_word(text: &str, symbol: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(symbol).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + symbol.len()..].chars().next();
        let glued_before = symbol.starts_with(is_word) && before.is_some_and(is_word);
        let glued_after = symbol.ends_with(is_word) && after.is_some_and(is_word);
        !glued_before && !glued_after
    })
}

pub(crate) fn is_repository(repo: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['-', '.'])
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    repo.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name))
}

pub(crate) fn is_tag(tag: &str) -> bool {
    !tag.is_empty()
        && !tag.starts_with(['-', '.', '/'])
        && !tag.contains("..")
        && tag.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}

pub(crate) fn is_path(path: &str) -> bool {
    !path.is_empty()
        && path.split('/').all(|part| !part.is_empty() && part != ".." && part != ".")
        && path.chars().all(|c| c.is_ascii_alphanumeric() || "-_./+".contains(c))
        && !path.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_found_as_a_word() {
        assert!(holds_word("void runRing(int);", "runRing"));
        assert!(!holds_word("void runRingAll(int);", "runRing"));
        assert!(!holds_word("prerunRing", "runRing"));
        assert!(holds_word("a->head = 1", "->head"));
        assert!(!holds_word("", "x"));
    }

    #[test]
    fn names_cannot_become_options_or_leave_the_repository() {
        assert!(is_tag("v2.22.3-1") && !is_tag("--output=x") && !is_tag("a..b") && !is_tag("a:b"));
        assert!(
            is_path("src/device/all_reduce.h")
                && !is_path("../x")
                && !is_path("/etc/passwd")
                && !is_path("-x")
        );
        assert!(is_repository("NVIDIA/nccl-tests") && !is_repository("nccl") && !is_repository("a/b/c"));
    }
}
