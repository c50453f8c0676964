//! Communicators: ranks of threads and processes that find each other, agree, and call collectives on buffers of their own.

mod error;
mod operation;

pub use error::CommError;
pub use operation::{Config, Operation, Scalar};
