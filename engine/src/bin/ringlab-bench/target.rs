//! What the engine is to reach beside each peer.

use crate::args::{Collective, PeerKind};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// How many times as fast as the peer a row has to be; `None` where nothing was promised.
///
/// CPU: faster at every size. Ranks sharing a GPU, against NCCL: all-reduce at least 3 times its bandwidth from 16 MiB on and at most 0.4,
/// 0.2 and 0.1 of its latency at 2, 4 and 8 ranks up to 256 KiB; the other collectives twice and half.
pub fn times_as_fast(peer: PeerKind, collective: Collective, ranks: u32, size: u64) -> Option<f64> {
    if peer != PeerKind::Nccl {
        return Some(1.0);
    }
    match (collective, size) {
        (Collective::AllReduce, 0..=262_144) => match ranks {
            2 => Some(1.0 / 0.4),
            4 => Some(1.0 / 0.2),
            8 => Some(1.0 / 0.1),
            _ => None,
        },
        (_, ..=262_144) => Some(2.0),
        (Collective::AllReduce, size) if size >= 16 * MIB => Some(3.0),
        (_, size) if size >= 16 * MIB => Some(2.0),
        _ => None,
    }
}

/// A ratio that only equals a peer's is not faster than it.
pub fn met(peer: PeerKind, target: f64, ratio: f64) -> bool {
    if peer == PeerKind::Nccl { ratio >= target } else { ratio > target }
}

const _: () = assert!(256 * KIB == 262_144, "the patterns above");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_depend_on_peer_collective_ranks_and_size() {
        use Collective::{AllGather, AllReduce};
        use PeerKind::{Gloo, Nccl};
        assert_eq!(times_as_fast(Gloo, AllGather, 3, 8), Some(1.0));
        assert_eq!(times_as_fast(Nccl, AllReduce, 4, 256 * KIB), Some(5.0));
        assert_eq!(times_as_fast(Nccl, AllReduce, 4, 512 * KIB), None);
        assert_eq!(times_as_fast(Nccl, AllReduce, 8, 16 * MIB), Some(3.0));
        assert_eq!(times_as_fast(Nccl, AllGather, 2, 1 << 30), Some(2.0));
        assert!(!met(Gloo, 1.0, 1.0) && met(Nccl, 3.0, 3.0));
    }
}
