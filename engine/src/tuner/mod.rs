//! Which algorithm, protocol and number of channels an operation gets, and why. See README.md for the parts.
//!
//! Pure but for [`native`], which reads the environment and files: the same question has the same answer everywhere.

pub mod choice;
mod fit;
#[cfg(feature = "native")]
pub mod native;
pub mod nccl;
pub mod overrides;
pub mod profile;
pub mod rules;
mod select;

pub use self::choice::{Candidate, Choice, Cost, Gate, Launched};
pub use self::fit::{FitError, Sample};
pub use self::overrides::{List, OverrideError, Overrides};
pub use self::profile::{Domain, Entry, Origin, Profile, ProfileError, Segment};
pub use self::rules::{RuleError, Rules};
pub use self::select::{Query, RULE_OF_THUMB, RuleOfThumb, SelectError, Tuner};
pub use crate::fifo::Protocol;
