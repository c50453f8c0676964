//! Plans on GPUs. One interpreter kernel runs any plan: one block per rank and channel, all ranks of a device in one cooperative
//! launch. Of ranks that share a device, a specialised kernel ([`direct`]) runs the one-shot and two-shot plans.
//!
//! [`open()`] compiles the plan ([`super::program`]), finds the length of every operand ([`slices`]), gathers steps into phases
//! ([`phases`]), allocates and connects ([`buffers`]), lays the programs out for the device ([`image`]) and loads the kernels
//! ([`kernels`], one [`part`] a device); [`session`] launches and reads back. [`driver`] owns what the driver hands out. The device side is `kernels/cuda`.
//!
//! A plan with races computes nonsense here, as a wrong plan does, but cannot harm the host: hence no promise is asked for.

mod buffers;
mod copy;
mod device;
mod direct;
mod driver;
mod exact;
mod foreign;
mod fused;
mod graph;
mod image;
mod ipc;
mod kernels;
mod lines;
mod mapped;
mod open;
mod part;
mod phases;
pub mod rank;
mod session;
mod timeline;

pub use self::copy::copy_bandwidth;
pub use self::device::{DeviceInfo, devices};
pub use self::foreign::ForeignStream;
pub use self::open::open;
use super::slices;
