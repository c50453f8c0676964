//! Course content: types for every consumer, and (feature `render`) the parser, checker and renderer. See README.md and FORMAT.md.

pub mod quiz;
pub mod reading;
pub mod reference;
pub mod report;
pub mod types;

#[cfg(feature = "grade")]
pub mod bank;
#[cfg(feature = "grade")]
pub mod grade;

#[cfg(feature = "render")]
mod block;
#[cfg(feature = "render")]
mod chapter;
#[cfg(feature = "render")]
mod citations;
#[cfg(feature = "render")]
mod complete;
#[cfg(feature = "render")]
mod course;
#[cfg(any(feature = "render", feature = "grade"))]
mod error;
#[cfg(feature = "render")]
mod expr;
#[cfg(feature = "render")]
mod figure;
#[cfg(feature = "render")]
mod glossary;
#[cfg(feature = "render")]
pub mod highlight;
#[cfg(feature = "render")]
mod html;
#[cfg(any(feature = "render", feature = "grade"))]
mod ids;
#[cfg(feature = "render")]
mod library;
#[cfg(feature = "render")]
mod markdown;
#[cfg(feature = "render")]
mod outline;
#[cfg(all(feature = "render", feature = "grade"))]
mod overlap;
#[cfg(feature = "render")]
pub mod plain;
#[cfg(any(feature = "render", feature = "grade"))]
mod source;
#[cfg(feature = "render")]
mod words;

#[cfg(feature = "render")]
pub use citations::{Citation, check_sources};
#[cfg(feature = "render")]
pub use complete::check_complete;
#[cfg(feature = "render")]
pub use course::ChapterTitle;
#[cfg(any(feature = "render", feature = "grade"))]
pub use error::{ContentError, ContentErrors};
#[cfg(feature = "render")]
pub use expr::{EvalError, Names, evaluate};
#[cfg(feature = "render")]
pub use glossary::Term;
#[cfg(feature = "render")]
pub use library::{Library, Summary};
#[cfg(all(feature = "render", feature = "grade"))]
pub use overlap::check_overlap;
