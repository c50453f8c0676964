//! Course content: types for every consumer, and (feature `render`) the parser, checker and renderer. See README.md and FORMAT.md.

pub mod types;
