//! The node daemon and its worker process. See README.md for how the two fit together.

pub mod config;
pub mod daemon;
pub mod folder;
pub mod hardware;
pub mod line;
pub mod selftest;
pub mod supervise;
pub mod worker;

/// Shown to the server and in results: version, and the commit when the build was told it.
pub fn version() -> String {
    match option_env!("RINGLAB_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    }
}
