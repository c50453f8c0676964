//! What is wrong with the content, and where. A load collects all of it, so that a writer mends a file in one go.

use std::fmt;

use thiserror::Error;

/// One thing to mend. The message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ContentError {
    /// Path below the root the library was loaded from, with `/`.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// In characters (not bytes), from 1.
    pub column: u32,
    pub message: String,
}

impl ContentError {
    /// About a file as a whole: missing, unreadable, in the wrong place.
    pub(crate) fn of_file(file: impl Into<String>, message: impl Into<String>) -> ContentError {
        ContentError { file: file.into(), line: 1, column: 1, message: message.into() }
    }
}

/// Everything that is wrong, in the order of files and lines. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ContentErrors(pub Vec<ContentError>);

impl fmt::Display for ContentErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}
