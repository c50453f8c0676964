//! Device memory for programs, filled without waiting for kernels: a peer's kernel in the same process may be waiting for this rank.

use std::sync::Arc;

use crate::exec::ExecError;
use crate::exec::cuda::driver::{Device, Memory, Stream};
use crate::exec::cuda::mapped::Mapped;

/// Bytes copied at a time.
const STAGE_BYTES: usize = 256 << 10;

/// What is put here stays until all of it is cleared.
pub struct Arena {
    stream: Stream,
    stage: Mapped<u8>,
    memory: Memory,
    bytes: u64,
    used: u64,
}

impl Arena {
    pub fn new(device: &Arc<Device>, bytes: u64) -> Result<Arena, ExecError> {
        Ok(Arena {
            stream: Stream::new(device)?,
            stage: Mapped::zeroed(device, STAGE_BYTES)?,
            memory: Memory::zeroed(device, bytes)?,
            bytes,
            used: 0,
        })
    }

    /// For three pieces of so many bytes together.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.used + bytes as u64 + 3 * ALIGN <= self.bytes
    }

    /// Copies to the device and returns where it is, on a 16-byte boundary. Complete when it returns.
    pub fn put(&mut self, bytes: &[u8]) -> Result<u64, ExecError> {
        if !self.has_room(bytes.len()) {
            return Err(ExecError::Refused(format!(
                "an operation's programs have {} bytes, a communicator holds {}; use fewer messages in one group",
                bytes.len(),
                self.bytes
            )));
        }
        let at = self.used;
        for (nth, part) in bytes.chunks(STAGE_BYTES).enumerate() {
            self.stage.fill_from(part);
            let offset = at + (nth * STAGE_BYTES) as u64;
            self.memory.copy_from(&self.stream, offset, &self.stage, part.len())?;
            // Waits for the copy alone: this stream orders nothing else.
            self.stream.finish()?;
        }
        self.used = (at + bytes.len() as u64).next_multiple_of(ALIGN);
        Ok(self.memory.address().0 + at)
    }

    /// Only while no kernel uses what was put here.
    pub fn clear(&mut self) {
        self.used = 0;
    }
}

const ALIGN: u64 = 16;
