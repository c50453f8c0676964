//! Lab catalogue, the types shared by server, runner and web, and the checkers. See README.md.

pub mod api;
pub mod catalogue;
pub mod job;
pub mod wire;

pub use ringlab_engine::text;
