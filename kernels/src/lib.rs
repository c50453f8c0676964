//! See README.md.

mod cache;
mod compile;
mod kernel;
mod nvrtc;

pub use cache::{Cache, CacheOutcome};
pub use compile::{Image, KernelError, compile, load};
pub use kernel::{Arch, Count, DIRECT_THREADS, Element, FUSED_THREADS, Kernel, Protocol, Reduction, Scope};
pub use nvrtc::{version, why_missing};
