//! Proves a plan, or refuses it with the shortest counter-example. Each channel is executed symbolically for [`TILES`] tiles:
//! - every output chunk holds exactly the contributions its collective promises, each once;
//! - nothing is read before it is written, and no two unordered accesses touch the same memory: reads of a peer's memory, scratch that
//!   the next tile uses again, and input and output that are one buffer in place, are all known. A peer's user buffers may be read only
//!   after hearing from it, and it may finish only after hearing that the reading is over;
//! - no execution stops: sends match receives, signals match waits, and the chunks that a connection holds ([`Fifo::credits`]) are enough;
//! - all operands of a step belong to the same chunk of a block, so that they have the same number of elements.
//!
//! A chunk is moved at once here. Moved in slices, each for itself, it can always follow what is done here, and since no step chooses among
//! partners nothing else can happen: a plan that does not stop here does not stop there.
//!
//! Three tiles are enough for any number: steps of one tile wait only for steps of the same or an earlier tile, each connection carries
//! equally many of both ends per tile, and only scratch leads from one tile to the next.

mod machine;
mod memory;
mod postcondition;
mod refusal;
mod traffic;
mod value;
mod words;

use crate::fifo::Fifo;
use crate::plan::{Malformed, Plan, Step};
use crate::types::{ChannelId, Rank};

pub use refusal::{At, Refusal, RefusalKind, Waiting, WaitingFor};
pub use traffic::{Edge, Fraction, Proof};

/// Tiles that are executed.
pub const TILES: u32 = 3;
/// Most chunk operations over all distinct channels and tiles, and most memory cells of a channel over all tiles.
const MAX_OPERATIONS: u64 = 2_000_000;
const MAX_CELLS: u64 = 1_000_000;

/// Checks a plan for buffers that are apart or, `in_place`, the same, with chunks of one step.
pub fn verify(plan: &Plan, in_place: bool) -> Result<Proof, Refusal> {
    verify_with(plan, in_place, Fifo::default())
}

/// Checks a plan for connections that hold as many chunks as `fifo` says.
pub fn verify_with(plan: &Plan, in_place: bool, fifo: Fifo) -> Result<Proof, Refusal> {
    fifo.check().map_err(|why| Refusal::malformed(Malformed { message: why.text(), location: None }))?;
    plan.check().map_err(Refusal::malformed)?;
    if in_place && plan.collective.alias().is_none() {
        return Err(Refusal::no_in_place(plan.collective));
    }
    let refused = |mut refusal: Refusal| {
        refusal.names = refusal::Names::new(plan);
        refusal.names.in_place = in_place;
        refusal.names.chunk_steps = u8::try_from(fifo.chunk_steps).expect("no more than a connection has");
        refusal
    };
    // Channels are alike more often than not: each different one is executed once.
    let mut distinct: Vec<ChannelId> = Vec::new();
    for channel in (0..plan.channels).map(ChannelId) {
        if !distinct.iter().any(|known| alike(plan, *known, channel)) {
            distinct.push(channel);
        }
    }
    let operations: u64 = distinct.iter().map(|c| operations(plan, *c)).sum();
    if operations * u64::from(TILES) > MAX_OPERATIONS || memory::Memory::size(plan, TILES) > MAX_CELLS {
        return Err(refused(Refusal::too_large()));
    }
    let mut longest_chain = 0;
    for channel in distinct {
        traffic::check_pairs(plan, channel).map_err(refused)?;
        let mut machine = machine::Machine::new(plan, channel, in_place, fifo.credits());
        machine.run().map_err(refused)?;
        postcondition::check(plan, &machine).map_err(refused)?;
        machine.nobody_left_early().map_err(refused)?;
        longest_chain = longest_chain.max(machine.longest_chain);
    }
    Ok(traffic::proof(plan, longest_chain))
}

fn alike(plan: &Plan, a: ChannelId, b: ChannelId) -> bool {
    (0..plan.ranks).map(Rank).all(|rank| plan.program(rank, a).steps == plan.program(rank, b).steps)
}

fn operations(plan: &Plan, channel: ChannelId) -> u64 {
    let cost = |step: &Step| match step {
        Step::Reduce { srcs, dst } => srcs.len() as u64 * u64::from(dst.len),
        step => u64::from(step.chunk_len().max(1)),
    };
    (0..plan.ranks).map(Rank).flat_map(|r| &plan.program(r, channel).steps).map(cost).sum()
}

#[cfg(test)]
mod tests;
