//! The deterministic grader: an answer and a rubric in, an argument for every mark out. DESIGN §8, layer 1; README.md says how it reads.
//!
//! Pure: no clock, no randomness, no network; the same answer has the same grade. It knows nothing of candidates or sessions.

mod formula;
mod index;
mod kappa;
mod matching;
mod names;
mod normal;
mod pattern;
mod phrase;
mod polarity;
pub(crate) mod read;
mod reading;
mod relations;
pub(crate) mod rubric;
mod scan;
mod score;
mod shape;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub use kappa::{Agreement, agreement};
pub use reading::Reading;
pub use rubric::Rubric;
pub use score::{grade, grade_follow_up};
pub use shape::Prompts;
