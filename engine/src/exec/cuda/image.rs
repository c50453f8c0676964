//! What the interpreter reads, byte by byte. Device counterpart: kernels/cuda/program.cuh, whose static assertions hold the same sizes.

use std::mem::size_of;

use bytemuck::{Pod, Zeroable};

use super::phases::{Phases, Role};
use crate::exec::WaitKind;

pub const NONE: u16 = u16::MAX;
/// Operands that are not misaligned by the same number of bytes: no 16-byte accesses.
pub const MIXED: u16 = 16;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Phase {
    first_wait: u32,
    first_move: u32,
    first_post: u32,
    waits: u16,
    moves: u16,
    posts: u16,
    steps: u16,
    tiles: u32,
    longest: u64,
    sliced: u32,
    lag: u32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Wait {
    endpoint: u16,
    want: u16,
    step: u32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Move {
    slice: u64,
    first_src: u32,
    srcs: u16,
    dsts: u16,
    recv: u16,
    send: u16,
    crossings: u16,
    misaligned: u16,
}

/// Where an operand's slice starts, and whether tiles advance through it: [`Operand::advances`]. `base` counts from the buffer.
#[derive(Debug, Clone, Copy, Pod, Zeroable, PartialEq, Eq)]
#[repr(C)]
pub struct Operand {
    pub base: u64,
    /// 0 for scratch, which stays put; 1; or 2 + r for what a pre-multiplied sum multiplies: rank r's input.
    pub advances: u32,
    pub buffer: u32,
}

/// Numbers of a launch's buffers ([`Params::buffers`]). The first starts at address 0.
pub const ABSOLUTE: u32 = 0;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Endpoint {
    pub mine: u64,
    pub theirs: u64,
    pub slots: u64,
    pub peer: u32,
    /// [`role`].
    pub role: u32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    phases: u32,
    waits: u32,
    moves: u32,
    posts: u32,
    operands: u32,
    endpoints: u32,
    first_span: u32,
    spans: u32,
}

/// A part of a rank's output that one block averages.
#[derive(Debug, Clone, Copy, Pod, Zeroable, PartialEq, Eq)]
#[repr(C)]
pub struct OutputSpan {
    pub base: u64,
    pub bytes: u64,
    pub buffer: u64,
}

/// What a stopped wait leaves.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Stall {
    pub valid: u32,
    pub want: u32,
    pub peer: u32,
    pub step: u32,
    pub tile: u64,
    pub head: u64,
    pub tail: u64,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct TraceRecord {
    pub tile: u64,
    pub phase: u32,
    pub reserved: u32,
    pub begin: u64,
    pub ready: u64,
    pub moved: u64,
    pub end: u64,
}

/// Bytes of what a device keeps of the abort word.
pub const HALT_BYTES: u64 = 16;

/// The interpreter's only argument.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Params {
    pub programs: u64,
    pub counts: u64,
    pub spans: u64,
    pub tiles: u64,
    pub tile: u64,
    pub slot: u64,
    pub slice: u64,
    pub deadline_ns: u64,
    pub abort: u64,
    pub halt: u64,
    pub stalls: u64,
    pub moved: u64,
    pub stamps: u64,
    pub launches: u64,
    pub stamp_capacity: u64,
    pub meeting: u64,
    pub rounds: u64,
    pub meeting_blocks: u64,
    pub records: u64,
    pub recorded: u64,
    pub dropped: u64,
    pub records_per_block: u64,
    pub buffers: [u64; 3],
    pub factors: u64,
    pub factor: u64,
    pub average: u32,
    pub program_bytes: u32,
    pub endpoints_per_block: u32,
    pub program_fits: u32,
    pub relocates: u32,
    pub slices: u32,
    pub slice_steps: u32,
    pub fences: u32,
    pub replicas: u32,
    pub lag: u32,
}

/// Most ranks of one launch of ranks that each run their own programs.
pub const LOCAL_RANKS: usize = 12;

/// The argument of such a launch. Unused parts have no blocks: their first is beyond all.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Ranks {
    of: [Params; LOCAL_RANKS],
    first: [u32; LOCAL_RANKS],
}

impl Ranks {
    /// Of ranks with so many blocks each, and how many that are together. At most [`LOCAL_RANKS`].
    pub fn new(ranks: &[(Params, u32)]) -> (Ranks, u32) {
        let mut all = Ranks { of: [Params::zeroed(); LOCAL_RANKS], first: [u32::MAX; LOCAL_RANKS] };
        let mut next = 0;
        for ((place, first), (params, blocks)) in all.of.iter_mut().zip(&mut all.first).zip(ranks) {
            *place = params.behind(next);
            *first = next;
            next += blocks;
        }
        (all, next)
    }
}

impl Params {
    /// The same for blocks that are numbered from `first` on.
    fn behind(&self, first: u32) -> Params {
        let first = u64::from(first);
        let back = |address: u64, bytes: u64| address.wrapping_sub(first * bytes);
        Params {
            programs: back(self.programs, self.program_bytes.into()),
            counts: back(self.counts, u64::from(self.endpoints_per_block) * 8),
            stalls: back(self.stalls, size_of::<Stall>() as u64),
            moved: back(self.moved, 8),
            rounds: back(self.rounds, 8),
            ..*self
        }
    }
}

/// Parameters of `fill` and `check`. Device counterpart: kernels/cuda/exact.cuh.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Exact {
    pub seed: u64,
    pub block: u64,
    pub most: u64,
    pub givers: u32,
    pub shifts: u32,
    pub bits: u32,
    pub shape: u32,
    pub is_signed: u32,
    pub op: u32,
    pub ranks: u32,
    pub collective: u32,
    pub root: u32,
    pub rank: u32,
}

const _: () = {
    assert!(size_of::<Phase>() == 40 && size_of::<Wait>() == 8 && size_of::<Move>() == 24);
    assert!(size_of::<Operand>() == 16 && size_of::<Endpoint>() == 32 && size_of::<Header>() == 32);
    assert!(size_of::<Stall>() == 40 && size_of::<TraceRecord>() == 48 && size_of::<Params>() == 256);
    assert!(size_of::<Ranks>() == 3120);
    assert!(size_of::<Exact>() == 64 && size_of::<OutputSpan>() == 24);
};

/// Refuses more tiles than a phase counts: the device would take those beyond for tiles that have none of its phases.
///
/// # Errors
/// Says how many there are, and of how many bytes.
pub fn refuse_tiles(tiles: u64, tile_bytes: u64) -> Result<(), String> {
    match u32::try_from(tiles) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "a message of {tiles} tiles of {tile_bytes} bytes, and the GPU counts {} of them; use larger slots",
            u32::MAX
        )),
    }
}

pub const fn role(role: Role) -> u32 {
    match role {
        Role::Sender => 0,
        Role::Receiver => 1,
        Role::Signaller => 2,
        Role::Waiter => 3,
    }
}

/// Bytes of shared memory one connection's state takes.
pub const ENDPOINT_STATE: u32 = 16;

pub const fn want(kind: WaitKind) -> u16 {
    match kind {
        WaitKind::Data => 0,
        WaitKind::Credit => 1,
        WaitKind::Signal => 2,
    }
}

pub fn wanted(want: u32) -> WaitKind {
    [WaitKind::Data, WaitKind::Credit, WaitKind::Signal][want as usize % 3]
}

/// Programs of one device.
#[derive(Debug, Default)]
pub struct Image {
    programs: Vec<Vec<u8>>,
    /// Most of any program.
    pub endpoints_per_block: u32,
    /// Most turns that any phase is put off.
    pub lag: u32,
    pub spans: Vec<OutputSpan>,
}

/// A program with addresses in place of names.
pub struct Placed<'a> {
    pub phases: &'a Phases,
    pub endpoints: Vec<Endpoint>,
    /// By phase and move: sources, then destinations.
    pub operands: Vec<Vec<Vec<Operand>>>,
    pub spans: Vec<OutputSpan>,
    pub elem_size: u64,
}

impl Image {
    pub fn add(&mut self, program: Placed<'_>) {
        let (mut phases, mut moves, mut waits) = (Vec::new(), Vec::new(), Vec::new());
        let (mut posts, mut operands): (Vec<u16>, Vec<Operand>) = (Vec::new(), Vec::new());
        let mut last_step = None;
        for (phase, placed) in program.phases.phases.iter().zip(&program.operands) {
            phases.push(Phase {
                first_wait: waits.len() as u32,
                first_move: moves.len() as u32,
                first_post: posts.len() as u32,
                waits: phase.waits.len() as u16,
                moves: phase.moves.len() as u16,
                posts: phase.posts.len() as u16,
                steps: beginning(phase, &mut last_step),
                tiles: phase.tiles.unwrap_or(u32::MAX),
                longest: phase.moves.iter().map(|m| m.slice).max().unwrap_or(0) * program.elem_size,
                sliced: phase.moves.iter().any(|m| m.recv.is_some() || m.send.is_some()).into(),
                lag: phase.lag,
            });
            waits.extend(phase.waits.iter().map(|w| Wait {
                endpoint: w.endpoint,
                want: want(w.kind),
                step: w.step,
            }));
            posts.extend(&phase.posts);
            for (mv, places) in phase.moves.iter().zip(placed) {
                let fifo = mv.recv.is_some() || mv.send.is_some();
                moves.push(Move {
                    slice: mv.slice * program.elem_size,
                    first_src: operands.len() as u32,
                    srcs: mv.srcs.len() as u16,
                    dsts: mv.dsts.len() as u16,
                    recv: mv.recv.unwrap_or(NONE),
                    send: mv.send.unwrap_or(NONE),
                    crossings: mv.crossings,
                    misaligned: misalignment(places, fifo),
                });
                operands.extend(places);
            }
        }
        let header = Header {
            phases: phases.len() as u32,
            waits: waits.len() as u32,
            moves: moves.len() as u32,
            posts: posts.len() as u32,
            operands: operands.len() as u32,
            endpoints: program.endpoints.len() as u32,
            first_span: self.spans.len() as u32,
            spans: program.spans.len() as u32,
        };
        // The order of `Program` in program.cuh: strictest alignment first.
        let parts: [&[u8]; 7] = [
            bytemuck::bytes_of(&header),
            bytemuck::cast_slice(&operands),
            bytemuck::cast_slice(&program.endpoints),
            bytemuck::cast_slice(&phases),
            bytemuck::cast_slice(&moves),
            bytemuck::cast_slice(&waits),
            bytemuck::cast_slice(&posts),
        ];
        self.programs.push(parts.concat());
        self.endpoints_per_block = self.endpoints_per_block.max(header.endpoints);
        self.lag = phases.iter().map(|phase| phase.lag).fold(self.lag, u32::max);
        self.spans.extend(program.spans);
    }

    /// Bytes from one program to the next: a multiple of 16, as the device copies them.
    pub fn program_bytes(&self) -> u32 {
        self.programs.iter().map(Vec::len).max().unwrap_or(0).next_multiple_of(16) as u32
    }

    /// All programs, as far apart as the longest needs.
    pub fn words(&self) -> Vec<u8> {
        let distance = self.program_bytes() as usize;
        let mut words = Vec::with_capacity(distance * self.programs.len());
        for program in &self.programs {
            words.extend_from_slice(program);
            words.resize(words.len().next_multiple_of(distance), 0);
        }
        words
    }
}

/// Steps that begin in a phase: the chunks of one step may be phases of their own, but are one span of the timeline.
fn beginning(phase: &super::phases::Phase, last: &mut Option<u32>) -> u16 {
    phase.parts.iter().filter(|(step, _)| last.replace(*step) != Some(*step)).count() as u16
}

/// Tiles advance by multiples of 16 bytes, so what holds for a slice's start holds for all its tiles. Slots are aligned.
fn misalignment(places: &[Operand], fifo: bool) -> u16 {
    let mut all = places.iter().map(|place| (place.base % 16) as u16).chain(fifo.then_some(0));
    let first = all.next().unwrap_or(0);
    if all.all(|other| other == first) { first } else { MIXED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_later_ranks_find_their_own_words() {
        let params = |base: u64| Params {
            programs: base,
            counts: base + 1000,
            stalls: base + 2000,
            moved: base + 3000,
            rounds: base + 4000,
            program_bytes: 48,
            endpoints_per_block: 4,
            ..Params::zeroed()
        };
        let (all, blocks) = Ranks::new(&[(params(10_000), 3), (params(20_000), 2)]);
        assert_eq!((blocks, &all.first[..3]), (5, &[0, 3, u32::MAX][..]));
        // As the device finds what belongs to block 4, the second of the second rank.
        let (p, block) = (&all.of[1], 4);
        assert_eq!(p.programs.wrapping_add(block * 48), 20_048);
        assert_eq!(p.counts.wrapping_add(block * 4 * 8), 21_032);
        assert_eq!(p.stalls.wrapping_add(block * 40), 22_040);
        assert_eq!((p.moved.wrapping_add(block * 8), p.rounds.wrapping_add(block * 8)), (23_008, 24_008));
        assert_eq!(all.of[0].programs, 10_000);
    }

    #[test]
    fn more_tiles_than_a_phase_counts_are_refused() {
        assert_eq!(refuse_tiles(u32::MAX.into(), 16), Ok(()));
        let why = refuse_tiles(1 << 32, 16).unwrap_err();
        assert!(why.contains("4294967296 tiles of 16 bytes") && why.contains("larger slots"), "{why}");
    }

    #[test]
    fn the_chunks_of_a_step_count_once() {
        use super::super::phases::{Part, Phase};
        let phase = |steps: &[u32]| Phase {
            parts: steps.iter().map(|step| (*step, Part::Signal)).collect(),
            ..Phase::default()
        };
        let mut last = None;
        let counts =
            [phase(&[0]), phase(&[0]), phase(&[1, 2]), phase(&[2, 3])].map(|p| beginning(&p, &mut last));
        assert_eq!(counts, [1, 0, 2, 1]);
    }

    #[test]
    fn vectors_need_one_misalignment() {
        let at = |base| Operand { base, advances: 1, buffer: ABSOLUTE };
        assert_eq!(misalignment(&[at(32), at(48)], true), 0);
        assert_eq!(misalignment(&[at(36), at(52)], false), 4);
        assert_eq!(misalignment(&[at(36), at(52)], true), MIXED, "a slot is aligned");
        assert_eq!(misalignment(&[at(32), at(40)], false), MIXED);
    }
}
