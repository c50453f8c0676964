//! What a worker process says to the daemon that started it: JSON lines on its standard output, one [`Line`] each. Both ends are the
//! same binary, so the format needs no version.

use ringlab_labs::job::{Event, TaskResult};
use ringlab_labs::wire::Failure;
use serde::{Deserialize, Serialize};

/// Most bytes of a job specification on a worker's standard input.
pub const MAX_SPEC: u64 = 8 << 20;
/// Most bytes of one line.
pub const MAX_LINE: u64 = 4 << 20;
/// Most bytes of one file of the result.
pub const MAX_ARTIFACT: u64 = 64 << 20;
/// Most files of one result.
pub const MAX_ARTIFACTS: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Event(Event),
    /// The last line of a worker that did what it was asked.
    Result(Outcome),
    /// The last line of a worker that could not, and knows why.
    Failure(Failure),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub tasks: Vec<TaskResult>,
    /// Files it left in its working directory.
    pub artifacts: Vec<Produced>,
    pub engine: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Produced {
    pub name: String,
    pub media_type: String,
}

/// Whether a task id or an artifact's name is safe as a file name and in a URL: letters, digits, `.`, `_`, `-`, not starting with a dot.
pub fn is_plain_name(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::is_plain_name;

    #[test]
    fn a_name_that_could_leave_the_folder_is_not_plain() {
        assert!(is_plain_name("trace-ring.json"));
        for name in ["", ".", "..", "../x", "a/b", "a\0", ".hidden", "空", &"a".repeat(101)] {
            assert!(!is_plain_name(name), "{name:?}");
        }
    }
}
