//! A connected rank: its connections, its programs and their launches.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringlab_kernels::Scope;

use super::arena::Arena;
use super::fusion::Tally;
use super::group::Fusion;
use super::mailbox::{Card, Mailbox, ROLES, Reached, step_bytes};
use super::ready::{ARENA_BYTES, Key, Ready, SCRATCH_CHUNKS};
use super::windows::{Windows, reads_peers};
use super::{Call, Factor, Message, Opening, Schedule, Shape};
use crate::exec::cuda::device::{self, DeviceInfo};
use crate::exec::cuda::driver::{Device, Memory};
use crate::exec::cuda::foreign::{Event, ForeignStream, Visit};
use crate::exec::cuda::image::{self, Params};
use crate::exec::cuda::kernels::{self, RankLaunch};
use crate::exec::cuda::mapped::Mapped;
use crate::exec::{ExecError, Stall};
use crate::fifo::Protocol;
use crate::plan::Plan;
use crate::types::{ChannelId, Rank};

/// A connected rank.
// Fields drop in order: what kernels use goes after they have ended (`Drop` waits).
pub struct Port {
    pub(super) device: Arc<Device>,
    pub(super) info: DeviceInfo,
    pub(super) shape: Shape,
    pub(super) scope: Scope,
    /// Ranks on this rank's device.
    pub(super) neighbours: u32,
    deadline: Duration,
    pub(super) arena: Arena,
    /// With whether ranks read each other's buffers.
    pub(super) given: Vec<(Arc<Plan>, bool)>,
    pub(super) windows: Windows,
    pub(super) ready: HashMap<Key, Arc<Ready>>,
    /// Times that all programs went: what was prepared before is gone.
    pub(super) forgotten: u64,
    /// Whether a graph may hold launches: programs then stay for good.
    pub(super) captured: bool,
    /// Behind the last launch, and the stream whose next launch is so anyway. Shared with the ranks it was a launch of.
    pub(super) last: Arc<Event>,
    pub(super) last_stream: Option<ForeignStream>,
    /// Recorded behind this rank's own launches only.
    pub(super) own: Arc<Event>,
    pub(super) fusion: Fusion,
    pub(super) tally: Tally,
    /// By protocol and channel.
    pub(super) endpoints: HashMap<Protocol, Vec<Vec<image::Endpoint>>>,
    counts: Memory,
    moved: Memory,
    rounds: Memory,
    meeting: Memory,
    halt: Memory,
    stalls: Mapped<image::Stall>,
    abort: Abort,
    /// Where the device sees `stalls` and the abort word: the driver is not asked at every launch.
    stalls_at: u64,
    abort_at: u64,
    pub(super) scratch: Memory,
    /// What a barrier reduces.
    token: Memory,
    /// Where credits go that nobody is to see ([`Port::starve_senders`]).
    pub(super) sink: Option<Memory>,
    _peers: Vec<Reached>,
    _mailbox: Mailbox,
}

/// Stops a port's kernels, from any thread.
#[derive(Debug, Clone)]
pub struct Abort(Arc<Mutex<Mapped<u32>>>);

impl Abort {
    pub fn raise(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(0, 1);
    }

    pub fn is_raised(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read()[0] != 0
    }

    fn address(&self) -> Result<u64, ExecError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).address()?.0)
    }
}

impl Port {
    pub(super) fn new(opening: Opening, cards: &[Card], deadline: Duration) -> Result<Port, ExecError> {
        let Opening { device, shape, mailbox } = opening;
        let _visit = Visit::begin(&device)?;
        let info = device::describe(device.ordinal)?;
        let own = &cards[shape.rank as usize];
        let neighbours = cards.iter().filter(|card| card.device == own.device).count() as u32;
        let scope = if neighbours == shape.ranks { Scope::Device } else { Scope::System };
        let peers = mailbox.reach(cards)?;
        let endpoints = |protocol| {
            let channels = 0..shape.channels;
            (protocol, channels.map(|channel| mailbox.endpoints(&peers, channel, protocol)).collect())
        };
        let endpoints = Protocol::ALL.into_iter().map(endpoints).collect();
        let table = u64::from(shape.ranks) * ROLES as u64;
        let words = |count: u64| Memory::zeroed(&device, count * 8);
        let stalls = Mapped::zeroed(&device, shape.channels as usize)?;
        let abort = Abort(Arc::new(Mutex::new(Mapped::zeroed(&device, 1)?)));
        Ok(Port {
            arena: Arena::new(&device, ARENA_BYTES)?,
            given: Vec::new(),
            windows: Windows::default(),
            ready: HashMap::new(),
            forgotten: 0,
            captured: false,
            own: Arc::new(Event::new(&device)?),
            last: Arc::new(Event::new(&device)?),
            last_stream: None,
            fusion: Fusion::new(&device)?,
            tally: Tally::new(shape.ranks),
            endpoints,
            counts: words(u64::from(shape.channels) * table)?,
            // A launch for several ranks may have a block for every multiprocessor.
            moved: words(shape.channels.max(info.multiprocessors).into())?,
            rounds: words(shape.channels.into())?,
            meeting: words(1)?,
            halt: Memory::zeroed(&device, image::HALT_BYTES)?,
            stalls_at: stalls.address()?.0,
            abort_at: abort.address()?,
            stalls,
            abort,
            scratch: Memory::zeroed(&device, SCRATCH_CHUNKS * u64::from(shape.channels) * shape.slot_bytes)?,
            token: words(2)?,
            sink: None,
            _peers: peers,
            _mailbox: mailbox,
            device,
            info,
            shape,
            scope,
            neighbours,
            deadline,
        })
    }

    #[cfg(test)]
    pub(super) fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    pub fn abort(&self) -> &Abort {
        &self.abort
    }

    /// Channels with which the blocks of all ranks on the device surely run together.
    pub fn resident_channels(&self) -> u32 {
        (self.info.multiprocessors / self.neighbours.max(1)).clamp(1, self.shape.channels)
    }

    /// Queues a collective on the caller's stream.
    ///
    /// # Errors
    /// Refused when the plan cannot run here; the text says why.
    pub fn collective(&mut self, call: &Call, stream: ForeignStream) -> Result<(), ExecError> {
        let _visit = Visit::begin(&self.device)?;
        let ready = self.ready_for(call)?;
        self.queue_call(call, &ready, stream)
    }

    /// Queues what was made ready. The device has to be current.
    pub(super) fn queue_call(
        &mut self,
        call: &Call,
        ready: &Ready,
        stream: ForeignStream,
    ) -> Result<(), ExecError> {
        self.tally.calls += 1;
        self.scale(call, stream)?;
        self.launch(ready, buffers(call), call.factor(), stream)
    }

    /// In place, multiplies the input of a pre-multiplied sum where it lies.
    pub(super) fn scale(&self, call: &Call, stream: ForeignStream) -> Result<(), ExecError> {
        if let Some(factor) = call.factor().filter(|_| call.in_place) {
            let elements = call.block * u64::from(call.collective.input_blocks(self.shape.ranks));
            // No peer reads this rank's input directly, so the order of its own stream is enough.
            let multiplier = kernels::multiplier(&self.device, &self.info, call.dtype)?;
            self.follow(stream)?;
            kernels::multiply(&multiplier, stream, call.input, elements, factor)?;
        }
        Ok(())
    }

    /// Keeps a plan for [`Schedule::Given`]. Whether it computes its collective is the caller's concern, as in a session.
    ///
    /// # Errors
    /// Refused when it is for other ranks or more channels than the port has.
    pub fn give(&mut self, plan: &Plan, protocol: Protocol) -> Result<Schedule, ExecError> {
        if plan.ranks != self.shape.ranks || plan.channels > self.shape.channels {
            return Err(ExecError::Refused(format!(
                "the plan is for {} ranks and {} channels, the communicator has {} and at most {}",
                plan.ranks, plan.channels, self.shape.ranks, self.shape.channels
            )));
        }
        let known = self.given.iter().position(|(given, _)| **given == *plan);
        let number = known.unwrap_or_else(|| {
            self.given.push((Arc::new(plan.clone()), reads_peers(plan)));
            self.given.len() - 1
        });
        Ok(Schedule::Given(number, protocol))
    }

    /// Queues this rank's messages of one group on the caller's stream.
    pub fn messages(&mut self, all: &[Message], stream: ForeignStream) -> Result<(), ExecError> {
        let _visit = Visit::begin(&self.device)?;
        let ready = self.ready_for_messages(all)?;
        self.queue_messages(all, ready.as_deref(), stream)
    }

    /// As [`Port::queue_call`].
    pub(super) fn queue_messages(
        &mut self,
        all: &[Message],
        ready: Option<&Ready>,
        stream: ForeignStream,
    ) -> Result<(), ExecError> {
        self.tally.count(all);
        ready.map_or(Ok(()), |ready| self.launch(ready, [0; 3], None, stream))
    }

    /// Orders what comes next on a stream behind this port's last launch. Returns whether it goes into a graph.
    pub(super) fn follow(&self, stream: ForeignStream) -> Result<bool, ExecError> {
        let capturing = stream.is_capturing()?;
        // Counters of connections are carried from launch to launch, so launches follow each other whatever their streams. A graph's
        // launches are ordered by the graph.
        if !capturing && self.last_stream.is_some_and(|last| last != stream) {
            self.last.block(stream)?;
        }
        Ok(capturing)
    }

    pub(super) fn launch(
        &mut self,
        ready: &Ready,
        buffers: [u64; 3],
        factor: Option<Factor>,
        stream: ForeignStream,
    ) -> Result<(), ExecError> {
        if ready.tiles == 0 {
            return Ok(());
        }
        let capturing = self.follow(stream)?;
        let params = self.params(ready, buffers, factor);
        let launch =
            RankLaunch { blocks: ready.blocks, threads: ready.threads, shared_bytes: ready.shared_bytes };
        kernels::run_rank(&ready.function, launch, stream, &params)?;
        self.captured |= capturing;
        if !capturing {
            self.renew_event()?;
            self.own.record(stream)?;
            self.last = self.own.clone();
            self.last_stream = Some(stream);
        }
        Ok(())
    }

    /// What a launch tells the kernel.
    pub(super) fn params(&self, ready: &Ready, buffers: [u64; 3], factor: Option<Factor>) -> Params {
        Params {
            programs: ready.programs,
            counts: self.counts.address().0,
            spans: ready.spans,
            tiles: ready.tiles,
            tile: ready.tile_bytes,
            slot: step_bytes(&self.shape, ready.protocol),
            slice: ready.tile_bytes,
            deadline_ns: u64::try_from(self.deadline.as_nanos()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2),
            abort: self.abort_at,
            halt: self.halt.address().0,
            stalls: self.stalls_at,
            moved: self.moved.address().0,
            stamps: 0,
            launches: 0,
            stamp_capacity: 0,
            meeting: self.meeting.address().0,
            rounds: self.rounds.address().0,
            // Whoever reads this rank's output has told it that the reading is over before its program ends: an average needs no meeting.
            meeting_blocks: 0,
            records: 0,
            recorded: 0,
            dropped: 0,
            records_per_block: 0,
            buffers,
            factors: if let Some(Factor::Device(at)) = factor { at } else { ready.factors },
            factor: if let Some(Factor::Bits(bits)) = factor { bits } else { 0 },
            average: ready.average,
            program_bytes: ready.program_bytes,
            endpoints_per_block: ready.endpoints,
            program_fits: 1,
            relocates: 1,
            slices: 1,
            slice_steps: 1,
            fences: ready.fences.into(),
            replicas: 1,
            lag: ready.lag,
        }
    }

    /// A few bytes of the port's own that its barriers may reduce.
    pub fn token(&self) -> u64 {
        self.token.address().0
    }

    /// Waits for everything queued outside graphs. Bounded, since every kernel ends by its deadline.
    pub fn finish(&self) -> Result<(), ExecError> {
        let _visit = Visit::begin(&self.device)?;
        if self.last_stream.is_none() { Ok(()) } else { self.last.finish() }
    }

    /// Whether everything queued outside graphs has ended.
    pub fn is_idle(&self) -> Result<bool, ExecError> {
        let _visit = Visit::begin(&self.device)?;
        if self.last_stream.is_none() { Ok(true) } else { self.last.has_passed() }
    }

    /// Payload bytes this rank's blocks carried to or from peers in the last launch. Only while the port is idle.
    pub fn moved_bytes(&self, blocks: u32) -> Result<u64, ExecError> {
        let _visit = Visit::begin(&self.device)?;
        Ok(self.moved.values::<u64>(blocks.min(self.shape.channels) as usize)?.iter().sum())
    }

    pub(crate) fn device(&self) -> (&Arc<Device>, &DeviceInfo, Scope) {
        (&self.device, &self.info, self.scope)
    }

    /// Whether a kernel of this port was stopped, and what its blocks were waiting for.
    pub fn stalls(&self) -> Option<Vec<Stall>> {
        self.abort.is_raised().then(|| {
            let stall = |(channel, left): (usize, image::Stall)| {
                (left.valid != 0).then(|| Stall {
                    rank: Rank(self.shape.rank),
                    channel: ChannelId(channel as u32),
                    peer: Rank(left.peer),
                    step: left.step,
                    tile: left.tile,
                    waiting_for: image::wanted(left.want),
                    head: left.head,
                    tail: left.tail,
                })
            };
            self.stalls.read().into_iter().enumerate().filter_map(stall).collect()
        })
    }
}

/// Where a launch's buffers are, down to 16 bytes; the rest is in the programs.
pub(super) fn buffers(call: &Call) -> [u64; 3] {
    let base = |address: u64| address - address % 16;
    [0, base(call.input), base(call.output)]
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("device", &self.device.ordinal)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // Kernels still running hold addresses of what goes now; a peer's kernel ends by itself or with the abort of its own port.
        if self.is_idle().is_ok_and(|idle| !idle) {
            self.abort.raise();
        }
        let _ = self.device.finish();
    }
}
