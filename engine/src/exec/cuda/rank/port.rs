//! A connected rank: its connections, its programs and their launches.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringlab_kernels::Scope;

use super::arena::Arena;
use super::mailbox::{Card, Mailbox, ROLES, Reached, step_bytes};
use super::programs::{self, Laid, Scratch};
use super::{Call, Factor, Message, Opening, Schedule, Shape, messages};
use crate::exec::cuda::device::{self, DeviceInfo};
use crate::exec::cuda::driver::{Device, Function, Mapped, Memory};
use crate::exec::cuda::foreign::{Event, ForeignStream, Visit};
use crate::exec::cuda::image::{self, Params};
use crate::exec::cuda::kernels::{self, RankLaunch};
use crate::exec::{ExecError, Stall};
use crate::fifo::Protocol;
use crate::plan::{Plan, generate};
use crate::types::{ChannelId, Collective, DType, Rank, RedOp};

/// Programs on the device, ready to be launched again and again.
struct Ready {
    function: Arc<Function>,
    programs: u64,
    spans: u64,
    program_bytes: u32,
    shared_bytes: u32,
    blocks: u32,
    threads: u32,
    tiles: u64,
    tile_bytes: u64,
    protocol: Protocol,
    average: u32,
}

/// Shared memory a block may use without asking for more. A program of a port has to fit.
const SHARED_BYTES: u32 = 48 << 10;

/// Device memory for programs. When it is full all of them go, once nothing runs.
const ARENA_BYTES: u64 = 32 << 20;

/// Scratch chunks of a plan's channel: what the exchange of all ranks with all needs.
const SCRATCH_CHUNKS: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Collective {
        collective: Collective,
        schedule: Schedule,
        block: u64,
        dtype: DType,
        op: RedOp,
        in_place: bool,
        low: (u8, u8),
    },
    Messages(Vec<Message>),
}

/// A connected rank.
// Fields drop in order: what kernels use goes after they have ended (`Drop` waits).
pub struct Port {
    device: Arc<Device>,
    info: DeviceInfo,
    shape: Shape,
    scope: Scope,
    /// Ranks on this rank's device.
    neighbours: u32,
    deadline: Duration,
    arena: Arena,
    given: Vec<Arc<Plan>>,
    ready: HashMap<Key, Arc<Ready>>,
    /// Whether a graph may hold launches: programs then stay for good.
    captured: bool,
    last: Event,
    last_stream: Option<ForeignStream>,
    /// By protocol and channel.
    endpoints: HashMap<Protocol, Vec<Vec<image::Endpoint>>>,
    counts: Memory,
    moved: Memory,
    rounds: Memory,
    meeting: Memory,
    halted: Memory,
    stalls: Mapped<image::Stall>,
    abort: Abort,
    scratch: Memory,
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
        Ok(Port {
            arena: Arena::new(&device, ARENA_BYTES)?,
            given: Vec::new(),
            ready: HashMap::new(),
            captured: false,
            last: Event::new(&device)?,
            last_stream: None,
            endpoints,
            counts: words(u64::from(shape.channels) * table)?,
            moved: words(shape.channels.into())?,
            rounds: words(shape.channels.into())?,
            meeting: words(1)?,
            halted: words(1)?,
            stalls: Mapped::zeroed(&device, shape.channels as usize)?,
            abort: Abort(Arc::new(Mutex::new(Mapped::zeroed(&device, 1)?))),
            scratch: Memory::zeroed(&device, SCRATCH_CHUNKS * u64::from(shape.channels) * shape.slot_bytes)?,
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
        if call.op == RedOp::PreMulSum && call.collective.reduces() && call.factor.is_none() {
            return Err(ExecError::Refused(
                "a pre-multiplied sum needs a factor; give it with the call".into(),
            ));
        }
        let low = ((call.input % 16) as u8, (call.output % 16) as u8);
        let Call { collective, schedule, block, dtype, op, in_place, .. } = *call;
        let key = Key::Collective { collective, schedule, block, dtype, op, in_place, low };
        let ready = match self.ready.get(&key) {
            Some(ready) => ready.clone(),
            None => {
                let plan = self.plan(schedule, collective)?;
                let scratch = self.scratch(&plan)?;
                let endpoints = &self.endpoints[&schedule.protocol()];
                let laid = programs::collective(&self.shape, &plan, call, scratch, endpoints)
                    .map_err(ExecError::Refused)?;
                let average = if op == RedOp::Avg && collective.reduces() { self.shape.ranks } else { 0 };
                self.prepare(key, &laid, (dtype, op), schedule.protocol(), average)?
            }
        };
        let base = |address: u64| address - address % 16;
        let buffers = [0, base(call.input), base(call.output)];
        let Some(factor) = call.factor() else { return self.launch(&ready, buffers, None, stream) };
        if in_place {
            let elements = block * u64::from(collective.input_blocks(self.shape.ranks));
            // No peer reads this rank's input directly, so the order of its own stream is enough.
            let multiplier = kernels::multiplier(&self.device, &self.info, dtype)?;
            self.follow(stream)?;
            kernels::multiply(&multiplier, stream, call.input, elements, factor)?;
        }
        self.launch(&ready, buffers, Some(factor), stream)
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
        let known = self.given.iter().position(|given| **given == *plan);
        let number = known.unwrap_or_else(|| {
            self.given.push(Arc::new(plan.clone()));
            self.given.len() - 1
        });
        Ok(Schedule::Given(number, protocol))
    }

    fn plan(&self, schedule: Schedule, collective: Collective) -> Result<Arc<Plan>, ExecError> {
        match schedule {
            Schedule::Standard { algorithm, channels, .. } => {
                let plan = generate(algorithm, collective, self.shape.ranks, channels);
                plan.map(Arc::new).map_err(|why| ExecError::Refused(why.to_string()))
            }
            Schedule::Given(number, _) => match self.given.get(number) {
                Some(plan) if plan.collective == collective => Ok(plan.clone()),
                Some(plan) => Err(ExecError::Refused(format!(
                    "plan {number} is for {}, not for {}",
                    plan.collective.name(),
                    collective.name()
                ))),
                None => Err(ExecError::Refused(format!("no plan {number} was given to this rank"))),
            },
        }
    }

    /// Queues this rank's messages of one group on the caller's stream.
    pub fn messages(&mut self, all: &[Message], stream: ForeignStream) -> Result<(), ExecError> {
        if all.iter().all(|message| message.bytes == 0) {
            return Ok(());
        }
        let _visit = Visit::begin(&self.device)?;
        let key = Key::Messages(all.to_vec());
        let ready = match self.ready.get(&key) {
            Some(ready) => ready.clone(),
            None => {
                let laid = messages::messages(&self.shape, all, &self.endpoints[&Protocol::Simple])
                    .map_err(ExecError::Refused)?;
                self.prepare(key, &laid, (unit(all), RedOp::Sum), Protocol::Simple, 0)?
            }
        };
        self.launch(&ready, [0; 3], None, stream)
    }

    fn scratch(&self, plan: &Plan) -> Result<Scratch, ExecError> {
        let chunks: u64 = plan.scratch.iter().map(|s| u64::from(s.chunks)).sum();
        if chunks > SCRATCH_CHUNKS {
            return Err(ExecError::Refused(format!(
                "the plan {} needs {chunks} chunks of scratch, a communicator has {SCRATCH_CHUNKS}; choose another algorithm",
                plan.name
            )));
        }
        Ok(Scratch { base: self.scratch.address().0, chunk_bytes: self.shape.slot_bytes })
    }

    fn prepare(
        &mut self,
        key: Key,
        laid: &Laid,
        (dtype, op): (DType, RedOp),
        protocol: Protocol,
        average: u32,
    ) -> Result<Arc<Ready>, ExecError> {
        let function = kernels::interpreter(&self.device, &self.info, dtype, op, protocol, self.scope)?;
        if op == RedOp::PreMulSum {
            // Now, as nothing is loaded once a peer's kernel waits for this rank's.
            kernels::multiplier(&self.device, &self.info, dtype)?;
        }
        let program_bytes = laid.image.program_bytes();
        let shared_bytes = laid.image.endpoints_per_block * image::ENDPOINT_STATE + program_bytes;
        if shared_bytes > SHARED_BYTES {
            return Err(ExecError::Refused(format!(
                "a program of {program_bytes} bytes does not fit a block's shared memory ({SHARED_BYTES} bytes); split the group, or \
                 choose an algorithm with fewer steps"
            )));
        }
        let threads = match laid.longest_tile {
            ..SHORT_TILE => 256,
            LONG_TILE.. if laid.blocks * self.neighbours <= self.info.multiprocessors => 1024,
            _ => 512,
        };
        let (words, spans) = (laid.image.words(), bytemuck::cast_slice(&laid.image.spans));
        if !self.arena.has_room(words.len() + spans.len()) {
            self.forget()?;
        }
        let ready = Arc::new(Ready {
            function,
            programs: self.arena.put(&words)?,
            spans: self.arena.put(spans)?,
            program_bytes,
            shared_bytes,
            blocks: laid.blocks,
            threads,
            tiles: laid.tiles,
            tile_bytes: laid.tile_bytes,
            protocol,
            average,
        });
        self.ready.insert(key, ready.clone());
        Ok(ready)
    }

    /// Makes the arena empty again.
    fn forget(&mut self) -> Result<(), ExecError> {
        if self.captured {
            return Err(ExecError::Refused(format!(
                "{} different operations fill the {} MiB for programs, and a graph holds some of them; make a new communicator",
                self.ready.len(),
                ARENA_BYTES >> 20
            )));
        }
        self.last.finish()?;
        self.ready.clear();
        self.arena.clear();
        Ok(())
    }

    /// Orders what comes next on a stream behind this port's last launch. Returns whether it goes into a graph.
    fn follow(&self, stream: ForeignStream) -> Result<bool, ExecError> {
        let capturing = stream.is_capturing()?;
        // Counters of connections are carried from launch to launch, so launches follow each other whatever their streams. A graph's
        // launches are ordered by the graph.
        if !capturing && self.last_stream.is_some_and(|last| last != stream) {
            self.last.block(stream)?;
        }
        Ok(capturing)
    }

    fn launch(
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
        let params = Params {
            programs: ready.programs,
            counts: self.counts.address().0,
            spans: ready.spans,
            tiles: ready.tiles,
            tile: ready.tile_bytes,
            slot: step_bytes(&self.shape, ready.protocol),
            slice: ready.tile_bytes,
            deadline_ns: u64::try_from(self.deadline.as_nanos()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2),
            abort: self.abort.address()?,
            halted: self.halted.address().0,
            stalls: self.stalls.address()?.0,
            moved: self.moved.address().0,
            stamps: 0,
            launches: 0,
            stamp_capacity: 0,
            meeting: self.meeting.address().0,
            rounds: self.rounds.address().0,
            // No peer reads this rank's output directly: an average needs no meeting.
            meeting_blocks: 0,
            records: 0,
            recorded: 0,
            dropped: 0,
            records_per_block: 0,
            buffers,
            factors: if let Some(Factor::Device(at)) = factor { at } else { 0 },
            factor: if let Some(Factor::Bits(bits)) = factor { bits } else { 0 },
            average: ready.average,
            program_bytes: ready.program_bytes,
            endpoints_per_block: self.shape.ranks * ROLES as u32,
            program_fits: 1,
            relocates: 1,
            slices: 1,
            slice_steps: 1,
            reserved: 0,
        };
        let launch =
            RankLaunch { blocks: ready.blocks, threads: ready.threads, shared_bytes: ready.shared_bytes };
        kernels::run_rank(&ready.function, launch, stream, &params)?;
        self.captured |= capturing;
        if !capturing {
            self.last.record(stream)?;
            self.last_stream = Some(stream);
        }
        Ok(())
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

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("device", &self.device.ordinal)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// A type for elements that messages and their addresses are whole multiples of: what is copied has no type.
fn unit(messages: &[Message]) -> DType {
    match messages.iter().fold(0, |low, m| low | m.bytes | m.address) {
        low if low % 8 == 0 => DType::U64,
        low if low % 4 == 0 => DType::U32,
        low if low % 2 == 0 => DType::F16,
        _ => DType::U8,
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

/// Bytes of a tile below which fewer threads do, and from which more threads move it faster than they cost in barriers.
const SHORT_TILE: u64 = 8 << 10;
const LONG_TILE: u64 = 32 << 10;
