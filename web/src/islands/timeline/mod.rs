//! The timeline viewer: summaries and tables for every reader, a canvas for those with a script.

pub mod draw;
pub mod input;
pub mod layout;
pub mod summary;
pub mod table;
pub mod viewer;
