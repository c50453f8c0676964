//! Which schedule a communicator runs. Only those whose ranks send: peers' user buffers are not mapped.

use super::operation::Config;
use crate::plan::Algorithm;
use crate::types::Collective;

/// Bytes of a channel's slice of a chunk that are worth a block of their own.
const SLICE_BYTES: u64 = 16 << 10;

/// Bytes that a rank sends in all up to which one hop to every peer beats few bytes in many hops.
const ONE_HOP_BYTES: u64 = 256 << 10;

/// Most ranks whose mutual connections a block waits for in one go: a warp has so many lanes.
const ONE_HOP_RANKS: u32 = 32;

/// Algorithm and channels for a collective with blocks of so many bytes. A function of what all ranks have in common.
pub fn choose(
    collective: Collective,
    ranks: u32,
    block_bytes: u64,
    config: &Config,
    resident: u32,
) -> (Algorithm, u32) {
    let blocks = u64::from(collective.input_blocks(ranks).max(collective.output_blocks(ranks)));
    let sent = match collective {
        Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
            block_bytes * u64::from(ranks - 1)
        }
        _ => block_bytes * (blocks - 1),
    };
    let one_hop = (sent <= ONE_HOP_BYTES && ranks <= ONE_HOP_RANKS) || !Algorithm::Ring.supports(collective);
    let algorithm = if one_hop { Algorithm::Exchange } else { Algorithm::Ring };
    let cut = if collective == Collective::AllReduce && !one_hop { u64::from(ranks) } else { 1 };
    let most = config.max_channels.min(resident).max(config.min_channels);
    let channels = (block_bytes / cut / SLICE_BYTES).clamp(config.min_channels.into(), most.into());
    (algorithm, channels as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Rank;

    #[test]
    fn short_messages_take_one_hop_and_long_ones_the_ring() {
        let config = Config::default();
        let choose = |collective, ranks, bytes| choose(collective, ranks, bytes, &config, 16);
        assert_eq!(choose(Collective::AllReduce, 8, 4096), (Algorithm::Exchange, 1));
        assert_eq!(choose(Collective::AllReduce, 8, 1 << 30), (Algorithm::Ring, 16));
        assert_eq!(choose(Collective::AllReduce, 64, 8), (Algorithm::Ring, 1), "more peers than lanes");
        assert_eq!(
            choose(Collective::AllToAll, 4, 1 << 30).0,
            Algorithm::Exchange,
            "a ring does not do that"
        );
        assert_eq!(choose(Collective::Reduce { root: Rank(1) }, 2, 64 << 10), (Algorithm::Exchange, 4));
    }

    #[test]
    fn every_choice_has_a_plan() {
        let config = Config::default();
        for ranks in [1, 2, 3, 33, 64] {
            for collective in Collective::all(Rank(0)) {
                for bytes in [1, 1 << 14, 1 << 20, 1 << 30] {
                    let (algorithm, channels) = choose(collective, ranks, bytes, &config, 4);
                    assert!(crate::plan::generate(algorithm, collective, ranks, channels).is_ok());
                }
            }
        }
    }
}
