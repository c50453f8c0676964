//! Communicators: ranks of threads and processes that find each other, agree, call collectives on buffers of their own, notice what
//! goes wrong, and part.
//!
//! [`UniqueId`] names one that is about to form; [`Bootstrap`] is a rank's line to the others for as long as it lives, and its
//! [`AsyncState`] is where every part of the engine learns that a rank has died, aborted or turned slow. [`debug`] is the log.

mod bootstrap;
mod calls;
mod client;
pub mod debug;
pub mod env;
mod error;
mod fingerprint;
mod hub;
mod id;
mod interface;
mod link;
mod mailbox;
mod operation;
mod recorder;
mod root;
mod split;
mod watch;
mod wire;

pub use bootstrap::{Bootstrap, Options};
pub use error::CommError;
pub use fingerprint::{Fingerprint, compare};
pub use id::UniqueId;
pub use operation::{Config, Operation, Scalar};
pub use recorder::{CallState, FlightRecorder, Record};
pub use split::{Group, group};
pub use watch::{AsyncState, Event, Failure};
pub use wire::{MAX_MESSAGE, MAX_RANKS, Member};
