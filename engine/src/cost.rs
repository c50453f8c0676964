//! The alpha-beta model: what a transfer costs, and closed forms of what the standard plans cost. [`crate::sim`] uses the same numbers
//! step by step, so the two can be held against each other.

mod closed;
mod estimate;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use closed::{ClosedForm, closed_form};
pub use estimate::{estimate, estimate_with};

use crate::fifo::Protocol;

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
    /// As alpha, where lines tell by themselves that they are there.
    #[serde(default = "default_ll_alpha")]
    pub ll_alpha_ns: f64,
    #[serde(default = "default_ll128_alpha")]
    pub ll128_alpha_ns: f64,
    /// Of a rank putting data into lines or taking it out, flags included.
    #[serde(default = "default_line")]
    pub ll_gbps: f64,
    #[serde(default = "default_line")]
    pub ll128_gbps: f64,
}

// The ratios are about those of NCCL 2.22's ring over NVLink: 0.6, 1.9 and 3.4 us a step (`hwLat` in src/graph/tuning.cc).
fn default_ll_alpha() -> f64 {
    200.0
}

fn default_ll128_alpha() -> f64 {
    600.0
}

fn default_line() -> f64 {
    2000.0
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
            ll_alpha_ns: default_ll_alpha(),
            ll128_alpha_ns: default_ll128_alpha(),
            ll_gbps: default_line(),
            ll128_gbps: default_line(),
        }
    }
}

impl fmt::Display for SimModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(Protocol::ALL))
    }
}

impl SimModel {
    /// From the last byte leaving a rank to the next rank seeing it.
    pub const fn alpha(&self, protocol: Protocol) -> f64 {
        match protocol {
            Protocol::Ll => self.ll_alpha_ns,
            Protocol::Ll128 => self.ll128_alpha_ns,
            Protocol::Simple => self.alpha_ns,
        }
    }

    /// Of putting data into a protocol's lines or taking it out; infinite where there are none.
    pub const fn line_gbps(&self, protocol: Protocol) -> f64 {
        match protocol {
            Protocol::Ll => self.ll_gbps,
            Protocol::Ll128 => self.ll128_gbps,
            Protocol::Simple => f64::INFINITY,
        }
    }

    /// In words, without what none of these protocols depends on.
    pub fn describe(&self, protocols: impl IntoIterator<Item = Protocol>) -> String {
        let SimModel { name, alpha_ns, link_gbps, injection_gbps, local_gbps, step_ns, .. } = self;
        let mut text = format!(
            "{name}: alpha {alpha_ns} ns, link {link_gbps} GB/s, injection {injection_gbps} GB/s, local memory {local_gbps} GB/s, \
             step {step_ns} ns"
        );
        for protocol in protocols.into_iter().filter(|protocol| protocol.line().is_some()) {
            let (alpha, gbps) = (self.alpha(protocol), self.line_gbps(protocol));
            text.push_str(&format!("; {protocol} alpha {alpha} ns, lines {gbps} GB/s"));
        }
        text
    }

    /// Nanoseconds for `bytes` from one rank to another when nothing else moves.
    pub fn transfer_ns(&self, bytes: f64) -> f64 {
        bytes / self.link_gbps.min(self.injection_gbps)
    }

    /// Nanoseconds until a rank has `bytes` from each of `peers` ranks that send at the same time.
    pub fn gather_ns(&self, peers: u32, bytes: f64) -> f64 {
        self.transfer_ns(bytes).max(f64::from(peers) * bytes / self.injection_gbps)
    }
}
