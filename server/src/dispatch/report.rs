//! Whether a result can be believed in form: it answers what was asked, and its files are there. Whether it is right is the checker's.

use std::collections::BTreeSet;

use ringlab_labs::job::{Artifact, JobResult, JobSpec, SCHEMA, Task};

use crate::blobs::{BlobError, Blobs, is_sha256};

/// Names of artifacts are parts of URLs and file names.
const NAME_MAX: usize = 100;
const ARTIFACTS_MAX: usize = 256;

/// What is wrong with the result, for the failure's message.
pub async fn fault(spec: &JobSpec, result: &JobResult, blobs: &Blobs) -> Result<Option<String>, BlobError> {
    if let Some(fault) = form(spec, result) {
        return Ok(Some(fault));
    }
    for a in &result.artifacts {
        match blobs.len(&a.sha256).await? {
            Some(bytes) if bytes == a.bytes => {}
            Some(bytes) => {
                return Ok(Some(format!("artifact `{}` has {bytes} bytes, not {}", a.name, a.bytes)));
            }
            None => return Ok(Some(format!("artifact `{}` ({}) was not uploaded", a.name, a.sha256))),
        }
    }
    Ok(None)
}

fn form(spec: &JobSpec, result: &JobResult) -> Option<String> {
    if result.schema != SCHEMA {
        return Some(format!("the result has schema {}, this server reads {SCHEMA}", result.schema));
    }
    let asked: Vec<&str> = spec.tasks.iter().map(|Task::Collective(t)| t.id.as_str()).collect();
    let got: Vec<&str> = result.tasks.iter().map(|t| t.id.as_str()).collect();
    if asked != got {
        return Some(format!("the job has the tasks {asked:?}, the result answers {got:?}"));
    }
    if result.artifacts.len() > ARTIFACTS_MAX {
        return Some(format!("{} artifacts; at most {ARTIFACTS_MAX} are kept", result.artifacts.len()));
    }
    let mut names = BTreeSet::new();
    for a in &result.artifacts {
        if !is_name(&a.name) || !names.insert(a.name.as_str()) || !is_sha256(&a.sha256) || !is_media_type(a) {
            return Some(format!("artifact {a:?} needs a name of its own, a media type and a SHA-256"));
        }
    }
    let missing = result.tasks.iter().filter_map(|t| t.trace.as_deref()).find(|t| !names.contains(t));
    missing.map(|t| format!("trace `{t}` is not among the artifacts"))
}

/// Letters, digits, `.`, `_`, `-`; not `.` or `..`.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_MAX
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        && name.bytes().any(|b| b != b'.')
}

fn is_media_type(a: &Artifact) -> bool {
    let token = |s: &str| {
        !s.is_empty()
            && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+'))
    };
    let (essence, parameter) = a.media_type.split_once(';').unwrap_or((&a.media_type, " charset=utf-8"));
    a.media_type.len() <= NAME_MAX
        && essence.split_once('/').is_some_and(|(kind, sub)| token(kind) && token(sub))
        && parameter.trim() == "charset=utf-8"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_folder_or_header() {
        for name in ["trace.json", "a", "plan_1-b.txt", ".hidden"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a\\b", "a b", "a\"b", "a\r\nb", "é", &"a".repeat(101)] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
