//! Which schedule a communicator runs. Only those whose ranks send: peers' user buffers are not mapped.

use super::error::CommError;
use super::operation::Config;
use crate::plan::Algorithm;
use crate::types::Collective;

/// Bytes of a channel's slice of a chunk that are worth a block of their own.
const SLICE_BYTES: u64 = 16 << 10;

/// Algorithm and channels for a collective with blocks of so many bytes. A function of what all ranks have in common.
///
/// # Errors
/// When no schedule of this kind exists.
pub fn choose(
    collective: Collective,
    ranks: u32,
    block_bytes: u64,
    config: &Config,
    resident: u32,
) -> Result<(Algorithm, u32), CommError> {
    let algorithm = Algorithm::Ring;
    if !algorithm.supports(collective) {
        return Err(CommError::Unsupported(format!(
            "{} has no schedule that only sends; call it as sends and receives",
            collective.name()
        )));
    }
    let chunk =
        if collective == Collective::AllReduce { block_bytes / u64::from(ranks) } else { block_bytes };
    let most = config.max_channels.min(resident).max(config.min_channels);
    let channels = (chunk / SLICE_BYTES).clamp(config.min_channels.into(), most.into()) as u32;
    Ok((algorithm, channels))
}
