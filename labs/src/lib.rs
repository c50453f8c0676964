//! Lab catalogue, the types shared by server, runner and web, and the checkers. See README.md.

pub mod api;
pub mod catalogue;
pub mod form;
pub mod job;
pub mod lab;
pub mod seed;
pub mod wire;

pub use lab::{Compiled, check_answers, compile, mark, starting_plan, verify};
pub use ringlab_engine::text;
pub use seed::seed_for;
