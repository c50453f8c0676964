//! A real server and real runners as processes, to be used, stopped and killed. See README.md.

pub mod client;
pub mod process;
pub mod sittings;
pub mod stream;
pub mod system;

use std::time::Duration;

/// Longest any single wait of a test may take: a slow machine under load, not a slow program.
pub const PATIENCE: Duration = Duration::from_secs(60);
