//! The Ringlab collective engine. See README.md for where to start.
//!
//! Pure (no operating system, compiles to WebAssembly): [`types`], [`data`], [`plan`], [`verify`], [`fifo`], [`cost`], [`sim`],
//! [`trace`], [`tuner`]. Native (feature `native`): [`comm`], [`exec`].

mod collective;
#[cfg(feature = "native")]
pub mod comm;
pub mod cost;
pub mod data;
#[cfg(feature = "native")]
pub mod exec;
pub mod fifo;
#[cfg(feature = "native")]
mod fp8;
pub mod plan;
#[cfg(feature = "native")]
mod random;
pub mod sim;
pub mod text;
pub mod trace;
pub mod tuner;
pub mod types;
pub mod verify;
