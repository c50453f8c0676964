//! NCCL's C interface over the Ringlab engine. See README.md.
//!
//! Declarations follow `nccl.h` of v2.22.3-1, so that programs built against it load this library in its place.

mod abi;
mod api;
mod comms;
mod config;
mod cuda;
mod engine;
mod fault;
mod group;
mod reduction;

pub use abi::{NCCL_VERSION_CODE, NcclConfig, NcclResult, NcclSimInfo, NcclUniqueId};
pub use api::*;
