//! The whole system, as its users and its accidents meet it. See ../README.md.

mod browser;
mod chromium;
mod faults;
mod input;
mod interview;
mod job;
mod reading;
mod sittings;

use ringlab_labs::job::Submission;
use serde_json::json;

/// A lab job of the given length: `ring-allreduce` on the CPU.
pub fn ring(size: &str) -> Submission {
    serde_json::from_value(json!({
        "lab": "ring-allreduce",
        "params": {"ranks": 4, "size": size, "dtype": "float", "channels": "2", "backend": "cpu"},
        "prediction": {"steps": 7, "bytes": 6 * size.parse::<u64>().expect("a number") / 4, "chunk": 1},
    }))
    .expect("a submission")
}
