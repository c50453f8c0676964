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

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::choice::{Candidate, Choice, Cost, Gate, Launched};
pub use self::fit::{FitError, Sample};
pub use self::overrides::{List, OverrideError, Overrides};
pub use self::profile::{Domain, Entry, Origin, Profile, ProfileError, Segment};
pub use self::rules::{RuleError, Rules};
pub use self::select::{Query, SelectError, Tuner};
use crate::types::UnknownName;

/// How data and its arrival are told apart on a connection (NCCL's protocols).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// 8-byte lines, half of them flag.
    #[serde(rename = "LL")]
    Ll,
    /// 128-byte lines with one 8-byte flag.
    #[serde(rename = "LL128")]
    Ll128,
    /// Whole slots, announced by a counter.
    Simple,
}

impl Protocol {
    pub const ALL: [Protocol; 3] = [Protocol::Ll, Protocol::Ll128, Protocol::Simple];

    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Ll => "LL",
            Protocol::Ll128 => "LL128",
            Protocol::Simple => "Simple",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        Protocol::ALL
            .into_iter()
            .find(|protocol| protocol.name().eq_ignore_ascii_case(s))
            .ok_or_else(|| UnknownName { what: "protocol", got: s.into(), known: "LL, LL128, Simple" })
    }
}
