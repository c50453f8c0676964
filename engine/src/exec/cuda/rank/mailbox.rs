//! Where a rank receives: slots and counters of its connections to every peer, in one allocation that the peers map.
//!
//! The place of everything follows from ranks, channels and slot size alone, so that an address is all a peer has to be told.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::Shape;
use crate::exec::ExecError;
use crate::exec::cuda::driver::{Address, Device, Memory};
use crate::exec::cuda::image::{self, Endpoint};
use crate::exec::cuda::ipc::{self, Opened};
use crate::exec::cuda::lines;
use crate::exec::cuda::phases::Role;
use crate::fifo::{Fifo, Protocol};
use crate::plan::SLOTS;

/// Distance of counters, as in a session's buffers.
const LINE: u64 = 128;

/// Counters of a connection that are kept here: tail and signals of what the peer sends, head of what is sent to it.
const TAIL: u64 = 0;
const SIGNALS: u64 = 1;
const HEAD: u64 = 2;
const COUNTERS: u64 = 3;

/// What a rank tells the others about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Differs between processes, also of different containers.
    process: Vec<u8>,
    pub device: Vec<u8>,
    ordinal: u32,
    handle: Option<Vec<u8>>,
    address: u64,
    shape: (u32, u32, u64),
}

impl Card {
    pub fn is_of_process_of(&self, other: &Card) -> bool {
        self.process == other.process
    }
}

pub struct Mailbox {
    memory: Memory,
    shape: Shape,
}

/// A peer's memory as this process sees it.
pub struct Reached {
    address: Address,
    _opened: Option<Arc<Opened>>,
}

impl Reached {
    pub fn address(&self) -> Address {
        self.address
    }
}

pub fn process() -> Result<&'static [u8], ExecError> {
    static TOKEN: OnceLock<Result<[u8; 16], String>> = OnceLock::new();
    let token = TOKEN.get_or_init(crate::random::bytes);
    token
        .as_ref()
        .map(|token| token.as_slice())
        .map_err(|why| ExecError::Device { context: "starting a communicator".into(), message: why.clone() })
}

impl Mailbox {
    pub fn new(device: &Arc<Device>, shape: Shape) -> Result<Mailbox, ExecError> {
        let bytes = (counter_bytes(&shape) + u64::from(shape.ranks * shape.channels) * fifo_bytes(&shape))
            .max(ipc::OWN_PIECE);
        let (free, _) = device.memory()?;
        if bytes > free {
            return Err(ExecError::Refused(format!(
                "connections to {} ranks with {} channels need {} MiB of device {}, {} MiB are free; use fewer channels \
                 (RINGLAB_MAX_NCHANNELS) or smaller buffers (RINGLAB_BUFFSIZE)",
                shape.ranks,
                shape.channels,
                bytes.div_ceil(1 << 20),
                device.ordinal.number,
                free >> 20
            )));
        }
        Ok(Mailbox { memory: Memory::zeroed(device, bytes)?, shape })
    }

    /// # Errors
    /// When this process has no identity, or its memory cannot be named. A driver that shares no memory is no error: ranks of one
    /// process need none.
    pub fn card(&self) -> Result<Card, ExecError> {
        let ordinal = self.memory.device().ordinal;
        Ok(Card {
            process: process()?.to_vec(),
            device: ordinal.uuid()?.to_vec(),
            ordinal: ordinal.number,
            handle: ipc::export(&self.memory).ok().map(|handle| handle.to_vec()),
            address: self.memory.address().0,
            shape: (self.shape.ranks, self.shape.channels, self.shape.slot_bytes),
        })
    }

    /// Maps every peer's mailbox. `cards` by rank.
    ///
    /// # Errors
    /// When a peer's memory cannot be reached; the text names the rank and the reason.
    pub fn reach(&self, cards: &[Card]) -> Result<Vec<Reached>, ExecError> {
        let own = &cards[self.shape.rank as usize];
        cards.iter().enumerate().map(|(rank, card)| self.reach_one(rank, card, own)).collect()
    }

    fn reach_one(&self, rank: usize, card: &Card, own: &Card) -> Result<Reached, ExecError> {
        let device = self.memory.device();
        if card.shape != own.shape {
            return Err(ExecError::Refused(format!(
                "rank {rank} has (ranks, channels, slot bytes) {:?}, this rank {:?}; give all ranks the same RINGLAB_MAX_NCHANNELS \
                 and RINGLAB_BUFFSIZE",
                card.shape, own.shape
            )));
        }
        let elsewhere = card.process != own.process;
        reach(device, rank, (elsewhere, card.ordinal), card.handle.as_deref(), card.address)
    }

    /// Both directions to every peer on one channel, in the order of [`index`].
    pub fn endpoints(&self, peers: &[Reached], channel: u32, protocol: Protocol) -> Vec<Endpoint> {
        let (me, own) = (self.shape.rank, self.memory.address());
        let mut all = Vec::with_capacity(peers.len() * ROLES);
        for (peer, there) in (0..).zip(peers) {
            let mine = |what| self.counter(there.address, me, channel, what);
            let theirs = |what| self.counter(own, peer, channel, what);
            let slots = |base: Address, from| self.slots(base, from, channel, protocol);
            let mut endpoint = |role, mine: u64, theirs: u64, slots: u64| {
                all.push(Endpoint { mine, theirs, slots, peer, role: image::role(role) });
            };
            endpoint(Role::Sender, mine(TAIL), theirs(HEAD), slots(there.address, me));
            endpoint(Role::Receiver, mine(HEAD), theirs(TAIL), slots(own, peer));
            endpoint(Role::Signaller, mine(SIGNALS), 0, 0);
            endpoint(Role::Waiter, 0, theirs(SIGNALS), 0);
        }
        all
    }

    fn counter(&self, base: Address, peer: u32, channel: u32, what: u64) -> u64 {
        let connection = u64::from(peer * self.shape.channels + channel);
        base.plus((connection * COUNTERS + what) * LINE).0
    }

    fn slots(&self, base: Address, from: u32, channel: u32, protocol: Protocol) -> u64 {
        let connection = u64::from(from * self.shape.channels + channel);
        let before = connection * fifo_bytes(&self.shape) + fifo_offset(&self.shape, protocol);
        base.plus(counter_bytes(&self.shape) + before).0
    }
}

/// A rank's memory as this process sees it: that of a handle when it is of another process (`of.0`), else what it is, on device `of.1`.
pub fn reach(
    device: &Arc<Device>,
    rank: usize,
    of: (bool, u32),
    handle: Option<&[u8]>,
    address: u64,
) -> Result<Reached, ExecError> {
    let (elsewhere, ordinal) = of;
    if !elsewhere {
        if ordinal != device.ordinal.number {
            let peer = Device::open(ordinal)?;
            if !device.ordinal.can_reach(peer.ordinal)? {
                return Err(unreachable_peer(
                    rank,
                    "its device is not reachable from this one (no peer access)",
                ));
            }
            device.reach(&peer)?;
        }
        return Ok(Reached { address: Address(address), _opened: None });
    }
    let handle = handle.and_then(|handle| handle.try_into().ok());
    let handle: ipc::Handle = handle
        .ok_or_else(|| unreachable_peer(rank, "the driver does not share device memory (CUDA IPC) there"))?;
    let opened = Opened::open(device, &handle).map_err(|why| unreachable_peer(rank, &why.to_string()))?;
    Ok(Reached { address: opened.address(), _opened: Some(opened) })
}

/// Roles a rank has towards a peer.
pub const ROLES: usize = 4;

/// Place of an endpoint in a channel's table, the same for every program, since its count outlives them.
pub fn index(role: Role, peer: u32) -> u16 {
    peer as u16 * ROLES as u16 + image::role(role) as u16
}

fn counter_bytes(shape: &Shape) -> u64 {
    u64::from(shape.ranks * shape.channels) * COUNTERS * LINE
}

/// Bytes from one step of a connection's FIFO to the next.
pub fn step_bytes(shape: &Shape, protocol: Protocol) -> u64 {
    lines::step_bytes(&Fifo::of(protocol), shape.payload(protocol))
}

/// A connection has a FIFO for each protocol, one behind the other: what one leaves behind would be flags to another.
fn fifo_offset(shape: &Shape, protocol: Protocol) -> u64 {
    let before = Protocol::ALL.into_iter().take_while(|p| *p != protocol);
    before.map(|p| u64::from(SLOTS) * step_bytes(shape, p)).sum()
}

fn fifo_bytes(shape: &Shape) -> u64 {
    Protocol::ALL.into_iter().map(|p| u64::from(SLOTS) * step_bytes(shape, p)).sum()
}

fn unreachable_peer(rank: usize, why: &str) -> ExecError {
    ExecError::Refused(format!("rank {rank}'s device memory cannot be used from here: {why}"))
}
