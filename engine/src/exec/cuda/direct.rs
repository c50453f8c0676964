//! The specialised kernel of the direct plans, for ranks that share a device: what it does with a collective, and how big its launches
//! are. Device counterpart: kernels/cuda/direct.cu, which says why it needs no barrier and no deadline.
//!
//! It carries out a plan without carrying out its steps, so it serves only plans that [`generate`] makes, whose result and rounding it
//! knows: every element is folded once, in rank order, as their `Reduce` does.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use ringlab_kernels::{Count, DIRECT_THREADS};

use super::buffers::Buffers;
use super::device::DeviceInfo;
use super::driver::{Address, Device, Function, Memory, Stream};
use super::foreign::ForeignStream;
use super::kernels;
use crate::exec::{ExecError, SessionSpec};
use crate::plan::{Algorithm, MAX_RANKS, Plan, generate};
use crate::types::{Collective, DType, Rank, RedOp};

/// One side of the pieces.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Side {
    buffers: [u64; MAX_RANKS as usize],
    count: u32,
    pick: [u32; 2],
    step: [u32; 2],
    reserved: u32,
}

/// The kernel's only argument.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct DirectParams {
    sources: Side,
    destinations: Side,
    bytes: u64,
    tile: u64,
    tiles: u64,
    stamps: u64,
    launches: u64,
    stamp_capacity: u64,
    ranks: u32,
    mixed: u32,
    streams: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<Side>() == 536 && size_of::<DirectParams>() == 1136);

/// Whether the plan is one of those this kernel serves. Its name does not matter.
pub fn serves(plan: &Plan) -> bool {
    let same = |algorithm| {
        generate(algorithm, plan.collective, plan.ranks, plan.channels)
            .is_ok_and(|made| Plan { name: plan.name.clone(), ..made } == *plan)
    };
    [Algorithm::OneShot, Algorithm::TwoShot].into_iter().any(same)
}

/// The ranks whose buffers are one side of a collective's pieces (i, j).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ranks {
    ranks: Vec<u32>,
    /// Whether every piece has all of them; else each has the one at `i * pick[0] + j * pick[1]`.
    shared: bool,
    pick: [u32; 2],
    /// The piece's block of the buffer is `i * step[0] + j * step[1]`.
    step: [u32; 2],
}

const I: [u32; 2] = [1, 0];
const J: [u32; 2] = [0, 1];

impl Ranks {
    fn shared(ranks: impl IntoIterator<Item = u32>) -> Ranks {
        Ranks { ranks: ranks.into_iter().collect(), shared: true, pick: [0, 0], step: [0, 0] }
    }

    fn each(pick: [u32; 2], ranks: impl IntoIterator<Item = u32>) -> Ranks {
        Ranks { shared: false, pick, ..Ranks::shared(ranks) }
    }

    fn block(self, step: [u32; 2]) -> Ranks {
        Ranks { step, ..self }
    }

    fn count(&self) -> u32 {
        if self.shared { self.ranks.len() as u32 } else { 1 }
    }

    /// Ranks and blocks of a piece.
    fn places(&self, piece: [u32; 2]) -> Vec<(Rank, u32)> {
        let dot = |a: [u32; 2]| a[0] * piece[0] + a[1] * piece[1];
        let first = dot(self.pick) as usize;
        let ranks = &self.ranks[first..first + self.count() as usize];
        ranks.iter().map(|&rank| (Rank(rank), dot(self.step))).collect()
    }

    fn side(&self, address: impl Fn(Rank) -> u64) -> Side {
        let mut buffers = [0; MAX_RANKS as usize];
        for (buffer, &rank) in buffers.iter_mut().zip(&self.ranks) {
            *buffer = address(Rank(rank));
        }
        Side { buffers, count: self.count(), pick: self.pick, step: self.step, reserved: 0 }
    }
}

/// A collective as copies and folds: a grid of pieces, each a block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Scheme {
    /// Extent of i and of j.
    pieces: [u32; 2],
    from: Ranks,
    to: Ranks,
}

fn scheme(collective: Collective, n: u32) -> Scheme {
    let all = 0..n;
    let (pieces, from, to) = match collective {
        Collective::AllReduce => ([1, 1], Ranks::shared(all.clone()), Ranks::shared(all)),
        Collective::Broadcast { root } => ([1, 1], Ranks::shared([root.0]), Ranks::shared(all)),
        Collective::AllGather => ([1, n], Ranks::each(J, all.clone()), Ranks::shared(all).block(J)),
        Collective::ReduceScatter => ([1, n], Ranks::shared(all.clone()).block(J), Ranks::each(J, all)),
        Collective::Reduce { root } => ([1, 1], Ranks::shared(all), Ranks::shared([root.0])),
        Collective::AllToAll => ([n, n], Ranks::each(I, all.clone()).block(J), Ranks::each(J, all).block(I)),
        Collective::Gather { root } => ([1, n], Ranks::each(J, all), Ranks::shared([root.0]).block(J)),
        Collective::Scatter { root } => ([1, n], Ranks::shared([root.0]).block(J), Ranks::each(J, all)),
        Collective::SendRecv => {
            ([1, n], Ranks::each(J, all.clone()), Ranks::each(J, all.map(|r| (r + 1) % n)))
        }
    };
    Scheme { pieces, from, to }
}

/// Size of a launch: blocks of [`DIRECT_THREADS`] threads work on tiles of `tile` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    tile: u64,
    tiles: u64,
    /// Whether more is read and written than the L2 cache holds.
    streams: bool,
}

impl Size {
    /// For pieces of so many bytes, each with so many sources and destinations. A message beyond the L2 cache goes fastest with a vector a
    /// thread and blocks in order of address, as memory then sees the longest runs; one within it with two, where it has enough of them.
    fn of(bytes: u64, pieces: u32, (sources, destinations): (u32, u32), device: &DeviceInfo) -> Size {
        const VECTOR: u64 = 16;
        /// Threads that a multiprocessor holds at the registers the kernel takes.
        const RESIDENT: u64 = 1024;
        let moved = bytes.saturating_mul(u64::from(pieces) * u64::from(sources + destinations));
        let streams = moved > device.l2;
        let vectors = bytes.div_ceil(VECTOR).saturating_mul(pieces.into());
        let wave = u64::from(device.multiprocessors) * RESIDENT;
        let depth = if streams || vectors <= wave { 1 } else { depth(sources) };
        let tile = u64::from(DIRECT_THREADS) * VECTOR * depth;
        Size { tile, tiles: bytes.div_ceil(tile), streams }
    }
}

/// Vectors a thread reads of each source before it writes: `DEPTH` in direct.cu.
const fn depth(sources: u32) -> u64 {
    match Count::of(sources) {
        Count::Exactly(1 | 2) => 2,
        Count::Exactly(_) | Count::Any => 1,
    }
}

/// What the kernel is to do, whatever buffers it does it to. No pre-multiplied sum: the kernel knows no factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    pub collective: Collective,
    pub ranks: u32,
    /// Elements.
    pub block: u64,
    pub dtype: DType,
    pub op: RedOp,
}

/// The kernel loaded, and its argument.
pub struct Direct {
    function: Arc<Function>,
    params: DirectParams,
    grid: [u32; 3],
}

impl Direct {
    /// The session's plan is one that this kernel [`serves`].
    pub fn new(
        spec: &SessionSpec,
        device: &Arc<Device>,
        info: &DeviceInfo,
        buffers: &Buffers,
    ) -> Result<Direct, ExecError> {
        let SessionSpec { plan, block, dtype, op, .. } = spec;
        let (collective, ranks) = (plan.collective, plan.ranks);
        let task = Task { collective, ranks, block: *block, dtype: *dtype, op: *op };
        let at = |(memory, offset): (&Memory, u64)| memory.address().plus(offset).0;
        Direct::over(task, device, info, |rank| at(buffers.input(rank)), |rank| at(buffers.output(rank)))
    }

    /// Addresses are asked for where the collective has a buffer.
    pub fn over(
        task: Task,
        device: &Arc<Device>,
        info: &DeviceInfo,
        input: impl Fn(Rank) -> u64,
        output: impl Fn(Rank) -> u64,
    ) -> Result<Direct, ExecError> {
        let Task { collective, ranks: n, .. } = task;
        let Scheme { pieces: [rows, columns], from, to } = scheme(collective, n);
        let average = task.op == RedOp::Avg && collective.reduces();
        let counts = (from.count(), to.count());
        // What is only moved is moved alike, whatever reduction was named.
        let op = if collective.reduces() { task.op } else { RedOp::Sum };
        let function = kernels::direct(device, info, task.dtype, op, average, counts)?;
        let bytes = task.block * task.dtype.size() as u64;
        let Size { tile, tiles, streams } = Size::of(bytes, rows * columns, counts, info);
        let sources = from.side(input);
        let destinations = to.side(output);
        let mixed = (misaligned_apart(&sources) || misaligned_apart(&destinations)).into();
        let params = DirectParams {
            sources,
            destinations,
            bytes,
            tile,
            tiles,
            stamps: 0,
            launches: 0,
            stamp_capacity: 0,
            ranks: n,
            mixed,
            streams: streams.into(),
            reserved: 0,
        };
        // A grid has 2^31 - 1 columns, one of which stamps; blocks take further tiles in turns.
        let width = tiles.clamp(1, (1 << 31) - 2) as u32;
        Ok(Direct { function, params, grid: [width, columns, rows] })
    }

    /// One execution, ready to be queued as often as it is wanted.
    pub fn stamped(&self, stamps: Address, launches: Address, stamp_capacity: u64) -> Launch<'_> {
        let params = DirectParams { stamps: stamps.0, launches: launches.0, stamp_capacity, ..self.params };
        Launch { direct: self, params }
    }

    /// Queues one execution on the caller's stream, without stamps. The device has to be current.
    pub fn queue_on(&self, stream: ForeignStream) -> Result<(), ExecError> {
        kernels::run_direct(&self.function, stream, self.grid, &self.params)
    }
}

/// A piece of a collective: what is folded, in order, and where it goes, each as a rank and a block of its input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub from: Vec<(Rank, u32)>,
    pub to: Vec<(Rank, u32)>,
}

/// All pieces of a collective; together they write every output it gives, each once.
pub fn pieces(collective: Collective, ranks: u32) -> Vec<Piece> {
    let Scheme { pieces: [rows, columns], from, to } = scheme(collective, ranks);
    let all = (0..rows).flat_map(|i| (0..columns).map(move |j| [i, j]));
    all.map(|piece| Piece { from: from.places(piece), to: to.places(piece) }).collect()
}

pub struct Launch<'a> {
    direct: &'a Direct,
    params: DirectParams,
}

impl Launch<'_> {
    /// The stream's device has to be current.
    pub fn queue(&self, stream: &Stream) -> Result<(), ExecError> {
        let Direct { function, grid: [x, y, z], .. } = self.direct;
        // One more column: its first block stamps the launch.
        kernels::run_direct(function, stream.into(), [x + 1, *y, *z], &self.params)
    }
}

/// Whether the buffers of each piece have no common misalignment to 16 bytes.
fn misaligned_apart(side: &Side) -> bool {
    let buffers = &side.buffers[..side.count as usize];
    buffers.iter().any(|buffer| buffer % 16 != buffers[0] % 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Exact;
    use crate::plan::Step;
    use crate::types::DType;

    /// The buffers and blocks of one side of piece (i, j), as `Place` in direct.cu finds them.
    fn places(ranks: &Ranks, piece: [u32; 2]) -> Vec<(Rank, u64)> {
        let dot = |a: [u32; 2]| a[0] * piece[0] + a[1] * piece[1];
        let side = ranks.side(|rank| rank.0.into());
        (0..side.count)
            .map(|k| (Rank(side.buffers[(k + dot(side.pick)) as usize] as u32), dot(side.step).into()))
            .collect()
    }

    /// With blocks of one element: every output that a collective gives is written once, with what is expected there.
    #[test]
    fn the_pieces_of_a_collective_make_its_outputs() {
        for n in [1, 2, 3, 8, 64] {
            let exact = Exact::new(3, DType::I64, RedOp::Sum, n).unwrap();
            for collective in Collective::all(Rank(n / 2)) {
                let Scheme { pieces, from, to } = scheme(collective, n);
                let mut written = std::collections::BTreeMap::new();
                for piece in (0..pieces[0]).flat_map(|i| (0..pieces[1]).map(move |j| [i, j])) {
                    let sources = places(&from, piece);
                    assert!(from.places(piece).iter().map(|&(rank, b)| (rank, b.into())).eq(sources.clone()));
                    assert!(sources.iter().all(|(rank, block)| {
                        collective.has_input(*rank) && *block < collective.input_blocks(n).into()
                    }));
                    let elements = sources.iter().map(|&(rank, block)| exact.element(rank, block));
                    let sum = elements.fold(0, i64::wrapping_add);
                    for place in places(&to, piece) {
                        assert_eq!(
                            written.insert(place, sum),
                            None,
                            "{collective:?} {place:?} written twice"
                        );
                    }
                }
                let outputs = (0..n).map(Rank).filter(|&rank| collective.has_output(rank));
                let wanted = outputs.flat_map(|rank| {
                    let blocks = 0..u64::from(collective.output_blocks(n));
                    blocks.map(move |block| ((rank, block), exact.expected_total(collective, rank, block, 1)))
                });
                assert_eq!(written, wanted.collect(), "{collective:?}, {n} ranks");
            }
        }
    }

    #[test]
    fn only_generated_direct_plans_are_served() {
        for collective in Collective::all(Rank(1)) {
            for algorithm in Algorithm::ALL.into_iter().filter(|a| a.supports(collective)) {
                let mut plan = generate(algorithm, collective, 3, 2).unwrap();
                let direct = matches!(algorithm, Algorithm::OneShot | Algorithm::TwoShot);
                assert_eq!(serves(&plan), direct, "{}", plan.name);
                plan.name = "mine".into();
                assert_eq!(serves(&plan), direct, "the name does not matter");
            }
        }
        let mut plan = generate(Algorithm::TwoShot, Collective::AllReduce, 3, 2).unwrap();
        let reduce = plan.programs[4].steps.iter_mut().find(|step| matches!(step, Step::Reduce { .. }));
        let Some(Step::Reduce { srcs, .. }) = reduce else { panic!() };
        srcs.swap(0, 1);
        assert!(!serves(&plan), "another order of the sum has other bits");
    }

    #[test]
    fn two_vectors_a_thread_only_where_the_cache_holds_them() {
        let device = DeviceInfo {
            ordinal: 0,
            name: "132 multiprocessors".into(),
            memory: 1 << 37,
            capability: (9, 0),
            multiprocessors: 132,
            l2: 50 << 20,
            driver: "none".into(),
            cuda: (13, 0),
        };
        let size = |bytes, sources, destinations| Size::of(bytes, 1, (sources, destinations), &device);
        assert_eq!(size(0, 2, 2), Size { tile: 2048, tiles: 0, streams: false });
        assert_eq!(size(1, 2, 2), Size { tile: 2048, tiles: 1, streams: false });
        assert_eq!(size(1 << 20, 2, 2), Size { tile: 2048, tiles: 512, streams: false });
        assert_eq!(size(4 << 20, 2, 2), Size { tile: 4096, tiles: 1024, streams: false });
        assert_eq!(size(4 << 20, 4, 4), Size { tile: 2048, tiles: 2048, streams: false });
        assert_eq!(size(16 << 20, 2, 2), Size { tile: 2048, tiles: 8192, streams: true });
        assert_eq!(size(1 << 30, 8, 8), Size { tile: 2048, tiles: 1 << 19, streams: true });
        assert!(size(u64::MAX / 2, 64, 64).streams);
        for bytes in [15, 16, 17, 2047, 2049, (1 << 33) + 3] {
            let Size { tile, tiles, .. } = size(bytes, 4, 1);
            assert!(tile * tiles >= bytes && tile * (tiles - 1) < bytes, "{bytes}");
        }
    }
}
