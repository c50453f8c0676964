//! The alpha-beta model: what a transfer costs, and closed forms of what the standard plans cost. [`crate::sim`] uses the same numbers
//! step by step, so the two can be held against each other.

mod closed;
mod estimate;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use closed::{ClosedForm, closed_form};
pub use estimate::estimate;

/// A machine as a few numbers. Bandwidths in GB/s, 10^9 bytes per second, which is bytes per nanosecond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimModel {
    pub name: String,
    /// From the last byte leaving a rank to the next rank seeing it.
    pub alpha_ns: f64,
    /// Of the way from one rank to one other.
    pub link_gbps: f64,
    /// Of all that a rank sends to, or receives from, all others together.
    pub injection_gbps: f64,
    /// Of reading or writing a rank's own memory.
    pub local_gbps: f64,
    /// Of starting a step.
    pub step_ns: f64,
}

impl Default for SimModel {
    /// Round numbers for a server whose GPUs are joined by a switch: for illustration, measured nowhere.
    fn default() -> Self {
        SimModel {
            name: "switched server, round numbers".into(),
            alpha_ns: 1000.0,
            link_gbps: 100.0,
            injection_gbps: 300.0,
            local_gbps: 2000.0,
            step_ns: 100.0,
        }
    }
}

impl fmt::Display for SimModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SimModel { name, alpha_ns, link_gbps, injection_gbps, local_gbps, step_ns } = self;
        write!(
            f,
            "{name}: alpha {alpha_ns} ns, link {link_gbps} GB/s, injection {injection_gbps} GB/s, local memory {local_gbps} \
             GB/s, step {step_ns} ns"
        )
    }
}

impl SimModel {
    /// Nanoseconds for `bytes` from one rank to another when nothing else moves.
    pub fn transfer_ns(&self, bytes: f64) -> f64 {
        bytes / self.link_gbps.min(self.injection_gbps)
    }

    /// Nanoseconds until a rank has `bytes` from each of `peers` ranks that send at the same time.
    pub fn gather_ns(&self, peers: u32, bytes: f64) -> f64 {
        self.transfer_ns(bytes).max(f64::from(peers) * bytes / self.injection_gbps)
    }
}
