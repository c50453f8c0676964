//! What slots of lines take on a GPU. Device counterpart: kernels/cuda/line.cuh.

use crate::fifo::{Fifo, Protocol};

/// LL128's lines come in groups: two stores of a warp.
const GROUP_PAYLOAD: u64 = 960;
const GROUP_BYTES: u64 = 1024;

/// Bytes of a FIFO's memory for so many payload bytes.
pub const fn wire_bytes(protocol: Protocol, payload: u64) -> u64 {
    match protocol {
        Protocol::Simple => payload,
        Protocol::Ll => 2 * payload,
        Protocol::Ll128 => payload.div_ceil(GROUP_PAYLOAD) * GROUP_BYTES,
    }
}

/// Bytes from one step to the next, so that a slice's steps together hold `slice` payload bytes.
pub const fn step_bytes(fifo: &Fifo, slice: u64) -> u64 {
    wire_bytes(fifo.protocol, slice).div_ceil(fifo.slice_steps as u64).next_multiple_of(128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slices_steps_hold_its_lines() {
        for protocol in Protocol::ALL {
            for slice_steps in [1, 2, 4] {
                let fifo = Fifo { protocol, chunk_steps: 4, slice_steps };
                for slice in [16, 112, 960, 976, 512 << 10] {
                    let held = step_bytes(&fifo, slice) * u64::from(slice_steps);
                    assert!(held >= wire_bytes(protocol, slice) && held >= protocol.wire_bytes(slice));
                }
            }
        }
    }
}
