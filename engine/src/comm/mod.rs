//! Communicators: ranks of threads and processes that find each other, agree, call collectives on buffers of their own, notice what
//! goes wrong, and part.
//!
//! [`UniqueId`] names one that is about to form; [`Bootstrap`] is a rank's line to the others for as long as it lives, and its
//! [`AsyncState`] is where every part of the engine learns that a rank has died, aborted or turned slow. [`debug`] is the log. On top of
//! them, with the feature `cuda`, `Communicator` queues operations on GPUs, `session` and `grouped` measure them; [`Mps`] lets processes share one.

mod bootstrap;
mod calls;
#[cfg_attr(not(any(feature = "cuda", test)), expect(dead_code, reason = "only ranks on GPUs choose, as yet"))]
mod choice;
mod client;
#[cfg(feature = "cuda")]
mod communicator;
pub mod debug;
pub mod env;
mod error;
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "who reads the variable is the communicator"))]
mod faults;
mod fingerprint;
#[cfg(feature = "cuda")]
pub mod grouped;
mod hub;
mod id;
mod interface;
mod link;
mod mailbox;
mod mps;
mod operation;
mod recorder;
mod root;
#[cfg(feature = "cuda")]
pub mod session;
mod split;
mod watch;
mod wire;

#[cfg(feature = "cuda")]
pub use crate::exec::cuda::rank::WindowId;
pub use bootstrap::{Bootstrap, Options};
pub use choice::Chosen;
#[cfg(feature = "cuda")]
pub use communicator::{Communicator, Part, PartError, Work};
pub use error::CommError;
pub use faults::{Effects, Fault, Faults, Injected};
pub use fingerprint::{Fingerprint, agree, compare};
pub use id::UniqueId;
pub use mps::Mps;
pub use operation::{Config, Operation, Scalar};
pub use recorder::{CallState, FlightRecorder, Record};
pub use split::{Group, group};
pub use watch::{AsyncState, Event, Failure};
pub use wire::{MAX_MESSAGE, MAX_RANKS, Member};
