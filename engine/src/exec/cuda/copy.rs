//! How fast a GPU copies within its own memory: the bound of whatever ranks that share it exchange.

use std::time::Instant;

use cudarc::driver::result;

use super::driver::{self, Device, Memory, Stream, failed};
use crate::exec::ExecError;

/// Copies queued back to back in a round, so that the launch of one hides behind the others.
const COPIES: u32 = 8;

/// Bytes per second, read plus written, of the driver's copy of `bytes` bytes between two buffers of a device; a value for each round, on
/// the host's clock. An untimed round comes first.
///
/// # Errors
/// Refused when there is no driver; what the driver says when it has no such device or too little memory.
pub fn copy_bandwidth(device: u32, bytes: u64, rounds: u32) -> Result<Vec<f64>, ExecError> {
    driver::start()?;
    let device = Device::open(device)?;
    let (from, to) = (Memory::zeroed(&device, bytes)?, Memory::zeroed(&device, bytes)?);
    let stream = Stream::new(&device)?;
    let round = || {
        let start = Instant::now();
        for _ in 0..COPIES {
            to.copy_of(&stream, &from, bytes)?;
        }
        stream.finish()?;
        Ok(2.0 * bytes as f64 * f64::from(COPIES) / start.elapsed().as_secs_f64())
    };
    round()?;
    (0..rounds).map(|_| round()).collect()
}

impl Memory {
    /// Queues a copy of the first `bytes` bytes of other memory of the device. Both have to live until the stream has finished.
    fn copy_of(&self, stream: &Stream, from: &Memory, bytes: u64) -> Result<(), ExecError> {
        let (to, from) = (self.part(0, bytes), from.part(0, bytes));
        self.device().bind()?;
        // SAFETY: both ranges were checked; the caller keeps them until the stream has finished.
        unsafe { result::memcpy_dtod_async(to, from, bytes as usize, stream.raw()) }
            .map_err(failed("copying within a device"))
    }
}
