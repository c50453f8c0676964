//! A group of sends and receives as programs of one rank.

use std::collections::{BTreeMap, HashMap};

use super::mailbox::index;
use super::programs::Laid;
use super::{Message, Shape, Way};
use crate::exec::WaitKind;
use crate::exec::cuda::image::{self, Image, Placed};
use crate::exec::cuda::phases::{Move, Part, Phase, Phases, Role, Wait};
use crate::exec::cuda::slices::whole_slices;
use crate::exec::program::Operand;
use crate::plan::Buffer;
use crate::plan::layout::{Layout, MOST_ELEMENTS};

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
    let built = build(shape, all)?;
    let mut image = Image::default();
    for (block, endpoints) in built.iter().zip(endpoints) {
        image.add(Placed {
            phases: &block.phases,
            endpoints: endpoints.clone(),
            operands: block.operands.clone(),
            spans: vec![],
            elem_size: 1,
        });
    }
    Ok(Laid {
        image,
        blocks: built.len() as u32,
        tiles: built.iter().map(|block| block.tiles).max().unwrap_or(0),
        tile_bytes: shape.slot_bytes,
        longest_tile: built.iter().map(|block| block.longest_tile).max().unwrap_or(0),
        fences: false,
    })
}

fn build(shape: &Shape, all: &[Message]) -> Result<Vec<Built>, String> {
    if let Some(message) = all.iter().find(|message| message.bytes > MOST_ELEMENTS) {
        return Err(format!("a message of {} bytes does not fit any memory", message.bytes));
    }
    let rounds = rounds(shape, all)?;
    let cut = |round: Vec<Exchange>| {
        round.into_iter().map(|exchange| (Cut::of(shape, &exchange), exchange)).collect::<Vec<_>>()
    };
    let rounds: Vec<_> = rounds.into_iter().map(cut).collect();
    let blocks = rounds.iter().flatten().map(|(cut, _)| cut.last_block + 1).max().unwrap_or(0);
    let of_block = |block| {
        let mut built = Built::default();
        for round in &rounds {
            for way in [Way::Own, Way::Send, Way::Receive] {
                built.phases(shape, block, round.iter().filter(|(_, exchange)| exchange.way == way));
            }
        }
        built
    };
    Ok((0..blocks).map(of_block).collect())
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
    let mut counts = HashMap::new();
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

/// What one block does for a group.
struct Built {
    phases: Phases,
    operands: Vec<Vec<Vec<image::Operand>>>,
    tiles: u64,
    longest_tile: u64,
}

impl Default for Built {
    fn default() -> Built {
        let phases = Phases { phases: vec![], endpoints: vec![] };
        Built { phases, operands: vec![], tiles: 0, longest_tile: 0 }
    }
}

impl Built {
    /// One phase for all messages of the same number of tiles.
    fn phases<'a>(&mut self, shape: &Shape, block: u32, all: impl Iterator<Item = &'a (Cut, Exchange)>) {
        let mut by_tiles: BTreeMap<u64, (Phase, Vec<Vec<image::Operand>>)> = Default::default();
        for (cut, exchange) in all {
            let Some((offset, len)) = cut.part(shape, block) else { continue };
            let tiles = len.div_ceil(shape.slot_bytes);
            self.tiles = self.tiles.max(tiles);
            self.longest_tile = self.longest_tile.max(len.min(shape.slot_bytes));
            let (phase, operands) = by_tiles.entry(tiles).or_default();
            // More than it counts are refused with all that is laid out ([`image::refuse_tiles`]).
            phase.tiles = Some(u32::try_from(tiles).unwrap_or(u32::MAX));
            let step = self.phases.phases.len() as u32;
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
                dsts: target.iter().map(|_| named).collect(),
                slice: len,
                crossings,
            });
            phase.parts.push((step, Part::Fifo { move_index }));
            operands.push(source.into_iter().chain(target).collect());
        }
        for (phase, operands) in by_tiles.into_values() {
            self.phases.phases.push(phase);
            self.operands.push(operands);
        }
    }
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
