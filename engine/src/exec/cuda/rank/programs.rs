//! Programs of one rank, laid out for a launch whose buffers are known only then.

use super::mailbox::index;
use super::{Call, Message, Shape, Way};
use crate::exec::WaitKind;
use crate::exec::cuda::buffers::{canonical, slice_start};
use crate::exec::cuda::image::{self, Image, OutputSpan, Placed};
use crate::exec::cuda::phases::{self, Move, Part, Phase, Phases, Role, Wait};
use crate::exec::cuda::slices::{self, SliceLens, whole_slices};
use crate::exec::program::{self, Operand, Program};
use crate::plan::layout::Layout;
use crate::plan::{Buffer, Plan};

/// Buffers of a launch, by number ([`image::Params::buffers`]).
pub const INPUT: u32 = 1;
pub const OUTPUT: u32 = 2;

/// Blocks' programs and what they need.
pub struct Laid {
    pub image: Image,
    pub blocks: u32,
    pub tiles: u64,
    pub tile_bytes: u64,
    pub longest_tile: u64,
}

/// What of an address decides how it may be accessed.
fn low_bits(address: u64) -> u64 {
    address % 16
}

/// Scratch of one rank: where it is, and how far apart its chunks are.
#[derive(Debug, Clone, Copy)]
pub struct Scratch {
    pub base: u64,
    pub chunk_bytes: u64,
}

/// This rank's programs of a collective.
///
/// # Errors
/// When the plan reads peers' buffers, which are not mapped here, or exceeds what the device can count.
pub fn collective(
    shape: &Shape,
    plan: &Plan,
    call: &Call,
    scratch: Scratch,
    endpoints: &[Vec<image::Endpoint>],
) -> Result<Laid, String> {
    let (programs, _) = program::compile(plan)?;
    let size = call.dtype.size();
    let lens = SliceLens::new(call.block, size, plan.chunks, plan.channels);
    let slices = slices::infer(&programs, &lens)?;
    let layout = Layout::new(call.block, size, plan.chunks, plan.channels, shape.slot_bytes as usize);
    let places = Places {
        shape,
        plan,
        call,
        scratch,
        slices: whole_slices(call.block, size, plan.chunks, plan.channels),
    };
    let mut image = Image::default();
    for (program, slices) in programs.iter().zip(&slices).filter(|(program, _)| program.rank.0 == shape.rank)
    {
        refuse_foreign(program)?;
        let mut phases = phases::gather(program, slices, |operand| places.canonical(operand))?;
        renumber(&mut phases);
        let channel = program.channel.0;
        let operands = phases.phases.iter().map(|phase| {
            let of_move = |mv: &Move| {
                mv.srcs.iter().chain(&mv.dst).map(|&operand| places.place(operand, channel)).collect()
            };
            phase.moves.iter().map(of_move).collect()
        });
        image.add(Placed {
            operands: operands.collect(),
            phases: &phases,
            endpoints: endpoints[program.channel.index()].clone(),
            spans: places.output_spans(channel),
            elem_size: size as u64,
        });
    }
    Ok(Laid {
        image,
        blocks: plan.channels,
        tiles: layout.tiles(),
        tile_bytes: shape.slot_bytes,
        longest_tile: layout.tile_elems() * size as u64,
    })
}

/// A rank sees its own buffers only.
fn refuse_foreign(program: &Program) -> Result<(), String> {
    let own = program.rank.index();
    let foreign = |instr: &program::Instr| instr.srcs.iter().any(|src| src.rank != own);
    match program.steps.iter().find(|instr| foreign(instr)) {
        None => Ok(()),
        Some(instr) => Err(format!(
            "the plan's step {} reads a peer's buffer, which this communicator does not map; choose an algorithm that sends",
            instr.name
        )),
    }
}

/// From the program's own numbers to the table's.
fn renumber(phases: &mut Phases) {
    let table: Vec<u16> = phases.endpoints.iter().map(|e| index(e.role, e.peer.0)).collect();
    let to = |number: &mut u16| *number = table[usize::from(*number)];
    for phase in &mut phases.phases {
        phase.waits.iter_mut().for_each(|wait| to(&mut wait.endpoint));
        phase.posts.iter_mut().for_each(to);
        for mv in &mut phase.moves {
            mv.recv.as_mut().into_iter().chain(mv.send.as_mut()).for_each(to);
        }
    }
}

struct Places<'a> {
    shape: &'a Shape,
    plan: &'a Plan,
    call: &'a Call,
    scratch: Scratch,
    slices: Layout,
}

impl Places<'_> {
    fn canonical(&self, operand: Operand) -> Operand {
        if self.call.in_place { canonical(self.plan.collective, self.plan.chunks, operand) } else { operand }
    }

    fn place(&self, operand: Operand, channel: u32) -> image::Operand {
        let (buffer, address) = match operand.buffer {
            Buffer::Input => (INPUT, self.call.input),
            Buffer::Output => (OUTPUT, self.call.output),
            Buffer::Scratch(which) => {
                let before: u32 = self.plan.scratch[..usize::from(which)].iter().map(|s| s.chunks).sum();
                let all: u32 = self.plan.scratch.iter().map(|s| s.chunks).sum();
                let cell = u64::from(channel * all + before + operand.start);
                let base = self.scratch.base + cell * self.scratch.chunk_bytes;
                return image::Operand { base, advances: 0, buffer: image::ABSOLUTE };
            }
        };
        image::Operand { base: low_bits(address) + self.offset(operand.start, channel), advances: 1, buffer }
    }

    fn offset(&self, chunk: u32, channel: u32) -> u64 {
        let elem = slice_start(&self.slices, self.call.block, self.plan.chunks, chunk, channel);
        elem * self.call.dtype.size() as u64
    }

    fn output_spans(&self, channel: u32) -> Vec<OutputSpan> {
        let blocks = self.plan.collective.output_blocks(self.shape.ranks);
        let size = self.call.dtype.size() as u64;
        let span = |chunk: u32| OutputSpan {
            base: low_bits(self.call.output) + self.offset(chunk, channel),
            bytes: self.slices.span(chunk % self.plan.chunks, channel, 0).len * size,
            buffer: OUTPUT.into(),
        };
        (0..blocks * self.plan.chunks).map(span).filter(|span| span.bytes > 0).collect()
    }
}

/// Bytes of a message from which it is worth a further block.
const BLOCK_BYTES: u64 = 64 << 10;

/// This rank's sends and receives of one group. The nth send to a peer meets the peer's nth receive; both sides cut a message alike,
/// since they know its length.
///
/// Per tile every block first sends to all peers, then receives from all, messages to one peer one by one: hence a block that waits for
/// a slot waits for a receive of an earlier tile, and no order of calls can lock the group.
///
/// # Errors
/// When a send to this rank itself has no receive of the same length.
pub fn messages(shape: &Shape, all: &[Message], endpoints: &[Vec<image::Endpoint>]) -> Result<Laid, String> {
    let rounds = rounds(shape, all)?;
    let mut image = Image::default();
    let mut tiles = 0;
    let mut longest_tile = 0;
    let cuts: Vec<Cut> = rounds.iter().flatten().map(|exchange| Cut::of(shape, exchange)).collect();
    let blocks = cuts.iter().map(|cut| cut.last_block).max().unwrap_or(0) + 1;
    for block in 0..blocks {
        let mut built = Built::default();
        let mut nth = 0;
        for round in &rounds {
            let cut = &cuts[nth..nth + round.len()];
            nth += round.len();
            for way in [Way::Own, Way::Send, Way::Receive] {
                built.phases(shape, block, round.iter().zip(cut).filter(|(exchange, _)| exchange.way == way));
            }
        }
        tiles = tiles.max(built.tiles);
        longest_tile = longest_tile.max(built.longest_tile);
        let phases = Phases { phases: built.phases, endpoints: vec![] };
        image.add(Placed {
            phases: &phases,
            endpoints: endpoints[block as usize].clone(),
            operands: built.operands,
            spans: vec![],
            elem_size: 1,
        });
    }
    Ok(Laid { image, blocks, tiles, tile_bytes: shape.slot_bytes, longest_tile })
}

/// One message, or a copy from this rank to itself.
struct Exchange {
    way: Way,
    peer: u32,
    source: u64,
    target: u64,
    bytes: u64,
}

/// Messages in rounds: each has at most one to and one from every peer.
fn rounds(shape: &Shape, all: &[Message]) -> Result<Vec<Vec<Exchange>>, String> {
    let mut rounds: Vec<Vec<Exchange>> = Vec::new();
    let mut counts = std::collections::HashMap::new();
    let mut place = |exchange: Exchange| {
        let nth = counts.entry((exchange.way, exchange.peer)).or_insert(0usize);
        if rounds.len() == *nth {
            rounds.push(Vec::new());
        }
        rounds[*nth].push(exchange);
        *nth += 1;
    };
    let to_self = |way| all.iter().filter(move |m| m.peer.0 == shape.rank && m.way == way);
    let (sent, received): (Vec<_>, Vec<_>) = (to_self(Way::Send).collect(), to_self(Way::Receive).collect());
    if sent.len() != received.len() {
        return Err(format!(
            "rank {} sends itself {} messages and receives {} in this group; each send needs its receive",
            shape.rank,
            sent.len(),
            received.len()
        ));
    }
    for (nth, (from, to)) in sent.iter().zip(&received).enumerate() {
        if from.bytes != to.bytes {
            return Err(format!(
                "message {nth} of rank {} to itself has {} bytes, its receive {}",
                shape.rank, from.bytes, to.bytes
            ));
        }
        place(Exchange {
            way: Way::Own,
            peer: shape.rank,
            source: from.address,
            target: to.address,
            bytes: from.bytes,
        });
    }
    for message in all.iter().filter(|m| m.peer.0 != shape.rank) {
        let (source, target) = match message.way {
            Way::Send => (message.address, 0),
            _ => (0, message.address),
        };
        place(Exchange { way: message.way, peer: message.peer.0, source, target, bytes: message.bytes });
    }
    // An empty message has no tile on either side.
    rounds.iter_mut().for_each(|round| round.retain(|exchange| exchange.bytes > 0));
    Ok(rounds)
}

/// How a message is shared out over blocks.
struct Cut {
    layout: Layout,
    first_block: u32,
    parts: u32,
    last_block: u32,
}

impl Cut {
    /// Sender and receiver come to the same cut.
    fn of(shape: &Shape, exchange: &Exchange) -> Cut {
        let parts = exchange.bytes.div_ceil(BLOCK_BYTES).clamp(1, u64::from(shape.channels)) as u32;
        let (from, to) = match exchange.way {
            Way::Receive => (exchange.peer, shape.rank),
            _ => (shape.rank, exchange.peer),
        };
        let distance = (to + shape.ranks - from) % shape.ranks;
        // Short messages share the first block, whose warps take one each; long ones are spread.
        let first_block = if parts == 1 { 0 } else { distance * parts % shape.channels };
        let last_block =
            if first_block + parts > shape.channels { shape.channels - 1 } else { first_block + parts - 1 };
        Cut {
            layout: Layout::new(exchange.bytes, 1, 1, parts, shape.slot_bytes as usize),
            first_block,
            parts,
            last_block,
        }
    }

    /// The part of a message that falls to a block: offset and length.
    fn part(&self, shape: &Shape, block: u32) -> Option<(u64, u64)> {
        let part = (block + shape.channels - self.first_block) % shape.channels;
        if part >= self.parts {
            return None;
        }
        let whole = whole_slices(self.layout.block(), 1, 1, self.parts).span(0, part, 0);
        (whole.len > 0).then_some((whole.offset, whole.len))
    }
}

#[derive(Default)]
struct Built {
    phases: Vec<Phase>,
    operands: Vec<Vec<Vec<image::Operand>>>,
    tiles: u64,
    longest_tile: u64,
}

impl Built {
    /// One phase for all messages of the same number of tiles.
    fn phases<'a>(&mut self, shape: &Shape, block: u32, all: impl Iterator<Item = (&'a Exchange, &'a Cut)>) {
        let mut by_tiles: std::collections::BTreeMap<u64, (Phase, Vec<Vec<image::Operand>>)> =
            Default::default();
        for (exchange, cut) in all {
            let Some((offset, len)) = cut.part(shape, block) else { continue };
            let tiles = len.div_ceil(shape.slot_bytes);
            self.tiles = self.tiles.max(tiles);
            self.longest_tile = self.longest_tile.max(len.min(shape.slot_bytes));
            let (phase, operands) = by_tiles.entry(tiles).or_default();
            phase.tiles = Some(tiles as u32);
            let step = self.phases.len() as u32;
            let mut wait = |role, kind| {
                let endpoint = index(role, exchange.peer);
                phase.waits.push(Wait { endpoint, kind, step });
                phase.posts.push(endpoint);
                Some(endpoint)
            };
            let (recv, send) = match exchange.way {
                Way::Own => (None, None),
                Way::Send => (None, wait(Role::Sender, WaitKind::Credit)),
                Way::Receive => (wait(Role::Receiver, WaitKind::Data), None),
            };
            let move_index = phase.moves.len();
            let crossings = u16::from(send.is_some());
            let at =
                |address| image::Operand { base: address + offset, advances: 1, buffer: image::ABSOLUTE };
            let source = (exchange.way != Way::Receive).then(|| at(exchange.source));
            let target = (exchange.way != Way::Send).then(|| at(exchange.target));
            // Only how many there are matters from here on; where they are is in `operands`.
            let named = Operand { rank: shape.rank as usize, buffer: Buffer::Input, start: 0 };
            phase.moves.push(Move {
                recv,
                send,
                srcs: source.iter().map(|_| named).collect(),
                dst: target.map(|_| named),
                slice: len,
                crossings,
            });
            phase.parts.push((step, Part::Fifo { move_index }));
            operands.push(source.into_iter().chain(target).collect());
        }
        for (phase, operands) in by_tiles.into_values() {
            self.phases.push(phase);
            self.operands.push(operands);
        }
    }
}
