//! The timeline viewer: summaries and tables for every reader, a canvas for those with a script.

pub mod summary;
pub mod table;
