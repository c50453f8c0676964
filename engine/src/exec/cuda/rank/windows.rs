//! Registered buffers: memory of the program that all ranks have mapped, so that plans may read peers' buffers where they are.
//!
//! Registering is collective, and a promise: when a rank's buffers of a collective lie in windows, so do those of all other ranks, in
//! the same windows and as far from their starts (in place, the one memory of input and output does). Hence a rank knows its peers'
//! addresses without asking, and all ranks come to the same plan.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::mailbox::{Reached, process, reach};
use super::{Call, Port};
use crate::exec::ExecError;
use crate::exec::cuda::driver::Device;
use crate::exec::cuda::foreign::Visit;
use crate::exec::cuda::ipc;
use crate::plan::{Algorithm, Plan, Step};
use crate::types::{Collective, Rank, RedOp};

/// What a rank tells the others about a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCard {
    process: Vec<u8>,
    ordinal: u32,
    /// Of the allocation that the buffer lies in.
    handle: Option<Vec<u8>>,
    address: u64,
    /// Of the buffer within the allocation.
    offset: u64,
    bytes: u64,
}

/// A registered buffer, by the order of registration; the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowId(pub u32);

struct Window {
    id: WindowId,
    address: u64,
    bytes: u64,
    /// The allocation it was registered with: another one may come to the same address later.
    allocation: u64,
    /// By rank: where it starts here.
    starts: Vec<u64>,
    _reached: Vec<Reached>,
}

#[derive(Default)]
pub struct Windows {
    all: Vec<Window>,
    /// Registered so far.
    count: u32,
}

/// Where all ranks' buffers of a call are, by rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    pub inputs: Vec<u64>,
    pub outputs: Vec<u64>,
    pub windows: [WindowId; 2],
}

/// Bytes of a tile of a plan that moves nothing through FIFOs: barriers are rare, and what one rank has written is still in the cache
/// when the others read it.
pub const TILE_BYTES: u64 = 1 << 20;

/// Bytes of all inputs up to which every rank reduces everything, in place of a part each and then fetching the others'.
const ONE_SHOT_BYTES: u64 = 64 << 10;

impl Windows {
    /// The first window in which all these bytes lie, and how far from its start.
    fn find(&self, address: u64, bytes: u64) -> Option<(&Window, u64)> {
        let within = |window: &&Window| {
            address >= window.address && address.checked_add(bytes).is_some_and(|end| end <= window.end())
        };
        self.all.iter().find(within).map(|window| (window, address - window.address))
    }

    fn reach(&self, call: &Call, rank: Rank, ranks: u32) -> Option<(Reach, [&Window; 2])> {
        let block = call.block.checked_mul(call.dtype.size() as u64)?;
        let collective = call.collective;
        let (inputs, outputs) = (collective.input_blocks(ranks), collective.output_blocks(ranks));
        let bytes = |blocks: u32| block.checked_mul(blocks.into());
        if call.in_place {
            let before = |rank: Rank| collective.in_place_offsets(rank);
            let start = call.input.checked_sub(u64::from(before(rank).0) * block)?;
            let (window, offset) = self.find(start, bytes(inputs.max(outputs))?)?;
            let at = |blocks: fn((u32, u32)) -> u32| {
                let address =
                    |(nth, start): (u32, &u64)| start + offset + u64::from(blocks(before(Rank(nth)))) * block;
                (0..).zip(&window.starts).map(address).collect()
            };
            let windows = [window.id; 2];
            let reach = Reach { inputs: at(|(input, _)| input), outputs: at(|(_, output)| output), windows };
            return Some((reach, [window; 2]));
        }
        let (input, from) = self.find(call.input, bytes(inputs)?)?;
        let (output, to) = self.find(call.output, bytes(outputs)?)?;
        let at = |window: &Window, offset| window.starts.iter().map(|start| start + offset).collect();
        let windows = [input.id, output.id];
        Some((Reach { inputs: at(input, from), outputs: at(output, to), windows }, [input, output]))
    }
}

impl Window {
    fn end(&self) -> u64 {
        self.address + self.bytes
    }

    /// Whether the memory is still what was registered.
    fn verify(&self) -> Result<(), ExecError> {
        let now = ipc::allocation(self.address);
        if now.as_ref().is_ok_and(|now| now.id == self.allocation) {
            return Ok(());
        }
        Err(ExecError::Refused(format!(
            "the buffer of {} bytes at {:#x} was freed while it was registered; deregister it on all ranks before it is freed",
            self.bytes, self.address
        )))
    }
}

/// Which plan serves a call whose buffers are all registered, if one does. A function of what all ranks have in common.
pub fn algorithm(call: &Call, ranks: u32) -> Option<Algorithm> {
    // Elsewhere a rank may pass any pointer for what it does not have, so nothing follows from it; and a factor is its own rank's only.
    let all = match call.collective {
        Collective::AllReduce | Collective::ReduceScatter => call.op != RedOp::PreMulSum,
        Collective::AllGather | Collective::AllToAll => true,
        _ => false,
    };
    let bytes = call.block.saturating_mul(call.dtype.size() as u64 * u64::from(ranks));
    let two = call.collective == Collective::AllReduce && bytes > ONE_SHOT_BYTES;
    (all && ranks > 1).then_some(if two { Algorithm::TwoShot } else { Algorithm::OneShot })
}

/// Whether ranks read each other's buffers.
pub fn reads_peers(plan: &Plan) -> bool {
    plan.programs.iter().flat_map(|program| &program.steps).any(|step| match step {
        Step::Copy { src, .. } => src.rank.is_some(),
        Step::Reduce { srcs, .. } => srcs.iter().any(|src| src.rank.is_some()),
        _ => false,
    })
}

impl Port {
    /// What the others have to know to map a buffer.
    ///
    /// # Errors
    /// Refused when it is not one piece of device memory that other processes can map.
    pub fn window_card(&self, address: u64, bytes: u64) -> Result<WindowCard, ExecError> {
        let _visit = Visit::begin(&self.device)?;
        let refused = |why: String| {
            ExecError::Refused(format!("{bytes} bytes at {address:#x} cannot be registered: {why}"))
        };
        let within = ipc::allocation(address).map_err(|why| refused(why.to_string()))?;
        let offset = address - within.start;
        if bytes == 0 || bytes > within.bytes - offset {
            return Err(refused(format!(
                "the allocation has {} bytes from there on; register at most those, and at least one",
                within.bytes - offset
            )));
        }
        // The driver shares pieces, and cuts small allocations out of larger ones.
        let own = within.bytes >= ipc::OWN_PIECE;
        Ok(WindowCard {
            process: process()?.to_vec(),
            ordinal: self.device.ordinal.number,
            handle: own.then(|| ipc::export_at(within.start).ok()).flatten().map(|handle| handle.to_vec()),
            address,
            offset,
            bytes,
        })
    }

    /// Maps a buffer of every rank. `cards` by rank. Does not count yet: all ranks have to have succeeded.
    ///
    /// # Errors
    /// Refused when a rank's cannot be mapped; the text names the rank.
    pub fn map_window(&mut self, cards: &[WindowCard]) -> Result<Mapped, ExecError> {
        let _visit = Visit::begin(&self.device)?;
        let own = &cards[self.shape.rank as usize];
        if let Some(rank) = cards.iter().position(|card| card.bytes != own.bytes) {
            return Err(ExecError::Refused(format!(
                "rank {} registers {} bytes, rank {rank} {}; all ranks register buffers of one size",
                self.shape.rank, own.bytes, cards[rank].bytes
            )));
        }
        let device: &Arc<Device> = &self.device;
        let map = |(rank, card): (usize, &WindowCard)| {
            if card.process != own.process && card.handle.is_none() {
                return Err(ExecError::Refused(format!(
                    "rank {rank}'s buffer cannot be shared between processes: its allocation is smaller than {} MiB, or the driver \
                     refuses; use memory of ncclMemAlloc, or one larger allocation",
                    ipc::OWN_PIECE >> 20
                )));
            }
            let elsewhere = card.process != own.process;
            let reached =
                reach(device, rank, (elsewhere, card.ordinal), card.handle.as_deref(), card.address)?;
            let start = if elsewhere { reached.address().0 + card.offset } else { card.address };
            Ok((start, reached))
        };
        let mapped = cards.iter().enumerate().map(map).collect::<Result<Vec<_>, _>>()?;
        let (starts, reached) = mapped.into_iter().unzip();
        let allocation = ipc::allocation(own.address)?.id;
        Ok(Mapped(Window {
            id: WindowId(0),
            address: own.address,
            bytes: own.bytes,
            allocation,
            starts,
            _reached: reached,
        }))
    }

    /// From now on collectives may use it.
    pub fn add_window(&mut self, Mapped(window): Mapped) -> WindowId {
        let id = WindowId(self.windows.count);
        self.windows.count += 1;
        self.windows.all.push(Window { id, ..window });
        id
    }

    /// From now on no collective uses it. The peers' memory stays mapped until what is returned is dropped, and kernels may still use it.
    pub fn remove_window(&mut self, id: WindowId) -> Option<Mapped> {
        let at = self.windows.all.iter().position(|window| window.id == id)?;
        self.forget_window(id);
        Some(Mapped(self.windows.all.remove(at)))
    }

    /// Whether all buffers of a call are registered.
    pub fn is_registered(&self, call: &Call) -> bool {
        self.windows.reach(call, Rank(self.shape.rank), self.shape.ranks).is_some()
    }

    /// Whether the memory of a call whose buffers are registered is still what was registered.
    ///
    /// # Errors
    /// Refused when it was freed since.
    pub fn verify_windows(&self, call: &Call) -> Result<(), ExecError> {
        let found = self.windows.reach(call, Rank(self.shape.rank), self.shape.ranks);
        let _visit = Visit::begin(&self.device)?;
        found.map_or(Ok(()), |(_, windows)| windows.into_iter().try_for_each(Window::verify))
    }

    /// # Errors
    /// Refused when a buffer is not registered.
    pub(super) fn reach(&self, call: &Call) -> Result<Reach, ExecError> {
        let found = self.windows.reach(call, Rank(self.shape.rank), self.shape.ranks);
        found.map(|(reach, _)| reach).ok_or_else(|| {
            ExecError::Refused(format!(
                "the plan reads peers' buffers, and those of this {} are not registered; register them on all ranks, or choose an \
                 algorithm that sends",
                call.collective.name()
            ))
        })
    }
}

/// A mapped buffer of all ranks.
pub struct Mapped(Window);

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped").field("id", &self.0.id).field("bytes", &self.0.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::cuda::rank::Schedule;
    use crate::fifo::Protocol;
    use crate::types::DType;

    fn window(id: u32, address: u64, bytes: u64, peer: u64) -> Window {
        Window {
            id: WindowId(id),
            address,
            bytes,
            allocation: 0,
            starts: vec![address, peer],
            _reached: vec![],
        }
    }

    fn call(collective: Collective, input: u64, output: u64, in_place: bool) -> Call {
        let (algorithm, channels, protocol) = (Algorithm::OneShot, 1, Protocol::Simple);
        let schedule = Schedule::Standard { algorithm, channels, protocol };
        let (dtype, op, factor) = (DType::F32, RedOp::Sum, None);
        Call { collective, schedule, block: 4, dtype, op, factor, input, output, in_place }
    }

    fn reach(windows: &Windows, call: &Call, rank: u32) -> Option<Reach> {
        windows.reach(call, Rank(rank), 2).map(|(reach, _)| reach)
    }

    #[test]
    fn buffers_lie_as_far_from_the_start_on_every_rank() {
        let windows = Windows { all: vec![window(0, 1000, 100, 5000), window(1, 2000, 100, 7000)], count: 2 };
        let found = reach(&windows, &call(Collective::AllReduce, 1016, 2032, false), 0).unwrap();
        assert_eq!((found.inputs, found.outputs), (vec![1016, 5016], vec![2032, 7032]));
        assert_eq!(found.windows, [WindowId(0), WindowId(1)]);
        assert_eq!(
            reach(&windows, &call(Collective::AllReduce, 1090, 2000, false), 0),
            None,
            "6 bytes are outside"
        );
        assert_eq!(reach(&windows, &call(Collective::AllReduce, 1000, 3000, false), 0), None);
        assert_eq!(reach(&windows, &call(Collective::AllGather, 1000, 2080, false), 0), None, "two blocks");
    }

    #[test]
    fn in_place_the_one_memory_does() {
        let windows = Windows { all: vec![window(0, 1000, 100, 5000)], count: 1 };
        // Rank 1's input is the second block of its output.
        let found = reach(&windows, &call(Collective::AllGather, 1048, 1032, true), 1).unwrap();
        assert_eq!((found.inputs, found.outputs), (vec![1032, 5048], vec![1032, 5032]));
        let found = reach(&windows, &call(Collective::ReduceScatter, 1032, 1048, true), 1).unwrap();
        assert_eq!((found.inputs, found.outputs), (vec![1032, 5032], vec![1032, 5048]));
        assert_eq!(
            reach(&windows, &call(Collective::AllGather, 1000, 984, true), 1),
            None,
            "it starts before"
        );
    }

    #[test]
    fn only_collectives_in_which_all_ranks_have_both_buffers_are_served() {
        let serves = |collective| algorithm(&call(collective, 0, 0, false), 2).is_some();
        let served: Vec<_> = Collective::all(Rank(0)).into_iter().filter(|c| serves(*c)).collect();
        use Collective::{AllGather, AllReduce, AllToAll, ReduceScatter};
        assert_eq!(served, [AllReduce, AllGather, ReduceScatter, AllToAll]);
        for collective in served {
            let algorithm = algorithm(&call(collective, 0, 0, false), 2).unwrap();
            assert!(reads_peers(&crate::plan::generate(algorithm, collective, 2, 1).unwrap()));
        }
        let factor = Call { op: RedOp::PreMulSum, ..call(AllReduce, 0, 0, false) };
        assert_eq!(algorithm(&factor, 2), None);
        assert_eq!(algorithm(&call(AllReduce, 0, 0, false), 1), None);
        let long = Call { block: 1 << 20, ..call(AllReduce, 0, 0, false) };
        assert_eq!(algorithm(&long, 2), Some(Algorithm::TwoShot));
    }
}
