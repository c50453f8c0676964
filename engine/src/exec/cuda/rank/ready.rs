//! Programs of a port on its device, prepared once and launched again and again.

use std::sync::Arc;

use super::local::{self, Job};
use super::programs::{self, Laid, Scratch};
use super::windows::WindowId;
use super::{Call, Message, Port, Schedule, messages};
use crate::exec::ExecError;
use crate::exec::cuda::driver::Function;
use crate::exec::cuda::{image, kernels};
use crate::fifo::Protocol;
use crate::plan::{Algorithm, Plan, generate};
use crate::types::{Collective, DType, RedOp};

/// What a launch of prepared programs is.
pub struct Ready {
    pub function: Arc<Function>,
    pub programs: u64,
    pub spans: u64,
    /// Where a table of factors by rank is; 0 for none.
    pub factors: u64,
    pub program_bytes: u32,
    pub shared_bytes: u32,
    /// Of each block's table of connections.
    pub endpoints: u32,
    pub blocks: u32,
    pub threads: u32,
    pub tiles: u64,
    pub tile_bytes: u64,
    pub protocol: Protocol,
    pub average: u32,
    /// Whether the plan reads peers' buffers.
    pub fences: bool,
    pub lag: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    Collective {
        collective: Collective,
        schedule: Schedule,
        block: u64,
        dtype: DType,
        op: RedOp,
        in_place: bool,
        low: (u8, u8),
        /// Input, output and their windows, of a plan whose ranks read each other's.
        registered: Option<(u64, u64, [WindowId; 2])>,
    },
    Messages(Vec<Message>),
    /// Between buffers that this process sees; factors by rank.
    Local(Vec<Job>, DType, RedOp, Vec<u64>),
}

/// Shared memory a block may use without asking for more. A program of a port has to fit.
const SHARED_BYTES: u32 = 48 << 10;

/// Device memory for programs. When it is full all of them go, once nothing runs.
pub const ARENA_BYTES: u64 = 32 << 20;

/// Scratch chunks of a plan's channel: what the exchange of all ranks with all needs.
pub const SCRATCH_CHUNKS: u64 = 2;

/// Bytes of a tile below which fewer threads do, and from which more threads move it faster than they cost in barriers.
const SHORT_TILE: u64 = 8 << 10;
const LONG_TILE: u64 = 32 << 10;

/// What a program's kernel is compiled for.
#[derive(Debug, Clone, Copy)]
struct Kind {
    dtype: DType,
    op: RedOp,
    protocol: Protocol,
    average: u32,
}

impl Port {
    /// This rank's programs of a collective.
    pub(super) fn ready_for(&mut self, call: &Call) -> Result<Arc<Ready>, ExecError> {
        let Call { collective, schedule, block, dtype, op, in_place, .. } = *call;
        if op == RedOp::PreMulSum && collective.reduces() && call.factor.is_none() {
            return Err(ExecError::Refused(
                "a pre-multiplied sum needs a factor; give it with the call".into(),
            ));
        }
        crate::exec::refuse_block(block)?;
        let low = ((call.input % 16) as u8, (call.output % 16) as u8);
        let reach = if self.reads_peers(schedule) { Some(self.reach(call)?) } else { None };
        let registered = reach.as_ref().map(|reach| (call.input, call.output, reach.windows));
        let key = Key::Collective { collective, schedule, block, dtype, op, in_place, low, registered };
        if let Some(ready) = self.ready.get(&key) {
            return Ok(ready.clone());
        }
        let plan = self.plan(schedule, collective)?;
        let scratch = self.scratch_for(&plan)?;
        let protocol = schedule.protocol();
        let endpoints = &self.endpoints[&protocol];
        let laid = programs::collective(&self.shape, &plan, call, scratch, endpoints, reach.as_ref())
            .map_err(ExecError::Refused)?;
        let average = if op == RedOp::Avg && collective.reduces() { self.shape.ranks } else { 0 };
        self.prepare(key, &laid, Kind { dtype, op, protocol, average }, &[])
    }

    fn reads_peers(&self, schedule: Schedule) -> bool {
        match schedule {
            Schedule::Standard { algorithm, .. } => {
                self.shape.ranks > 1 && matches!(algorithm, Algorithm::OneShot | Algorithm::TwoShot)
            }
            Schedule::Given(number, _) => self.given.get(number).is_some_and(|(_, reads)| *reads),
        }
    }

    /// No programs that use this window are launched again. Their memory comes back with all other programs'.
    pub(super) fn forget_window(&mut self, id: WindowId) {
        self.ready.retain(|key, _| {
            !matches!(key, Key::Collective { registered: Some((.., windows)), .. } if windows.contains(&id))
        });
    }

    /// This rank's programs of a group of messages; none when all are empty.
    pub(super) fn ready_for_messages(&mut self, all: &[Message]) -> Result<Option<Arc<Ready>>, ExecError> {
        if all.iter().all(|message| message.bytes == 0) {
            return Ok(None);
        }
        let key = Key::Messages(all.to_vec());
        if let Some(ready) = self.ready.get(&key) {
            return Ok(Some(ready.clone()));
        }
        let protocol = Protocol::Simple;
        let laid = messages::messages(&self.shape, all, &self.endpoints[&protocol]);
        let kind = Kind { dtype: unit(all), op: RedOp::Sum, protocol, average: 0 };
        self.prepare(key, &laid.map_err(ExecError::Refused)?, kind, &[]).map(Some)
    }

    /// Whether these are ready, without factors.
    pub(super) fn knows_jobs(&self, jobs: &[Job], dtype: DType, op: RedOp) -> bool {
        self.ready.contains_key(&Key::Local(jobs.to_vec(), dtype, op, vec![]))
    }

    /// Programs of copies and folds between buffers that this device sees, with `factors` by rank for a pre-multiplied sum.
    pub(super) fn ready_for_jobs(
        &mut self,
        jobs: &[Job],
        dtype: DType,
        op: RedOp,
        factors: &[u64],
    ) -> Result<Arc<Ready>, ExecError> {
        let key = Key::Local(jobs.to_vec(), dtype, op, factors.to_vec());
        if let Some(ready) = self.ready.get(&key) {
            return Ok(ready.clone());
        }
        let laid = local::lay(jobs, dtype.size() as u64, self.info.multiprocessors);
        let kind = Kind { dtype, op, protocol: Protocol::Simple, average: 0 };
        self.prepare(key, &laid, kind, factors)
    }

    fn plan(&self, schedule: Schedule, collective: Collective) -> Result<Arc<Plan>, ExecError> {
        match schedule {
            Schedule::Standard { algorithm, channels, .. } => {
                let plan = generate(algorithm, collective, self.shape.ranks, channels);
                plan.map(Arc::new).map_err(|why| ExecError::Refused(why.to_string()))
            }
            Schedule::Given(number, _) => match self.given.get(number) {
                Some((plan, _)) if plan.collective == collective => Ok(plan.clone()),
                Some((plan, _)) => Err(ExecError::Refused(format!(
                    "plan {number} is for {}, not for {}",
                    plan.collective.name(),
                    collective.name()
                ))),
                None => Err(ExecError::Refused(format!("no plan {number} was given to this rank"))),
            },
        }
    }

    fn scratch_for(&self, plan: &Plan) -> Result<Scratch, ExecError> {
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
        kind: Kind,
        factors: &[u64],
    ) -> Result<Arc<Ready>, ExecError> {
        let Kind { dtype, op, protocol, average } = kind;
        image::refuse_tiles(laid.tiles, laid.tile_bytes).map_err(ExecError::Refused)?;
        let function = kernels::interpreter(&self.device, &self.info, dtype, op, protocol, self.scope)?;
        if op == RedOp::PreMulSum {
            // Now, as nothing is loaded once a peer's kernel waits for this rank's.
            kernels::multiplier(&self.device, &self.info, dtype)?;
        }
        let program_bytes = laid.image.program_bytes();
        let endpoints = laid.image.endpoints_per_block;
        let shared_bytes = endpoints * image::ENDPOINT_STATE + program_bytes;
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
        let words = laid.image.words();
        let (spans, table) = (bytemuck::cast_slice(&laid.image.spans), bytemuck::cast_slice(factors));
        if !self.arena.has_room(words.len() + spans.len() + table.len()) {
            self.forget()?;
        }
        let ready = Arc::new(Ready {
            function,
            programs: self.arena.put(&words)?,
            spans: self.arena.put(spans)?,
            factors: if factors.is_empty() { 0 } else { self.arena.put(table)? },
            program_bytes,
            shared_bytes,
            endpoints,
            blocks: laid.blocks,
            threads,
            tiles: laid.tiles,
            tile_bytes: laid.tile_bytes,
            protocol,
            average,
            fences: laid.fences,
            lag: laid.image.lag,
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
        self.forgotten += 1;
        Ok(())
    }
}

/// A type for elements that messages and their addresses are whole multiples of: what is copied has no type.
pub fn unit(messages: &[Message]) -> DType {
    match messages.iter().fold(0, |low, m| low | m.bytes | m.address) {
        low if low % 8 == 0 => DType::U64,
        low if low % 4 == 0 => DType::U32,
        low if low % 2 == 0 => DType::F16,
        _ => DType::U8,
    }
}
