//! `content/reference/`: environment variables, formulas, and where in NCCL's source a concept is written. FORMAT.md has the fields.

#[cfg(feature = "render")]
mod read;
mod types;

#[cfg(feature = "render")]
pub(crate) use read::{FOLDER, Files, read};
pub use types::{Formula, Group, MapEntry, Place, Reference, Variable, VariableKind};
