//! Device memory of a session: every rank's buffers on its device, slots and counters beside the rank that reads them.

use std::sync::Arc;

use super::driver::{Address, Device, Memory};
use super::image::{ABSOLUTE, Operand as Placed, OutputSpan};
use super::lines;
use super::phases::{Endpoint, Role};
use super::slices::whole_slices;
use crate::exec::program::{Operand, Program, canonical};
use crate::exec::{ExecError, SessionSpec};
use crate::plan::layout::Layout;
use crate::plan::{Buffer, SLOTS};
use crate::types::{Collective, Rank};

/// Distance of counters, so that no two share a line: each is polled by one block while another writes the next.
const LINE: u64 = 128;

pub struct Buffers {
    collective: Collective,
    chunks: u32,
    elem_size: u64,
    block: u64,
    in_place: bool,
    /// Tile 0 is a whole slice.
    slices: Layout,
    pub tiles: u64,
    /// Bytes from one tile to the next.
    pub tile_bytes: u64,
    /// Bytes of the longest tile, rounded up to 16: a chunk of scratch.
    pub chunk_bytes: u64,
    /// Payload bytes of a slice of a tile.
    pub slice_bytes: u64,
    /// Bytes from one step of a FIFO to the next.
    pub step_bytes: u64,
    pub input_elems: u64,
    pub output_elems: u64,
    ranks: Vec<RankMemory>,
    links: Vec<Link>,
    counters: Vec<Memory>,
    slots: Vec<Memory>,
    has_lines: bool,
}

struct RankMemory {
    /// Out of place: the input. In place: the larger buffer, in which the other lies.
    main: Memory,
    output: Option<Memory>,
    scratch: Memory,
    /// First chunk of each scratch buffer within a channel's part, and chunks of a channel's part.
    scratch_starts: Vec<u32>,
    scratch_chunks: u32,
}

/// Addresses of a connection. Tail, slots and signals are with the receiver, which polls and reads them; the head is with the sender.
#[derive(Debug, Clone, Copy)]
struct Link {
    slots: Address,
    tail: Address,
    signals: Address,
    head: Address,
}

/// Both ends of each connection, by index.
pub fn ends(programs: &[Program], links: usize) -> Vec<(Rank, Rank)> {
    let mut ends = vec![(Rank(0), Rank(0)); links];
    for program in programs {
        for instr in &program.steps {
            if let Some(from) = instr.from {
                ends[from.link] = (from.rank, program.rank);
            }
            if let Some(to) = instr.to {
                ends[to.link] = (program.rank, to.rank);
            }
        }
    }
    ends
}

impl Buffers {
    /// `devices` by rank.
    pub fn new(
        spec: &SessionSpec,
        devices: &[Arc<Device>],
        ends: &[(Rank, Rank)],
        carries_data: &[bool],
    ) -> Result<Buffers, ExecError> {
        let plan = &spec.plan;
        let size = spec.dtype.size();
        let slot_bytes = spec.slot_bytes / 16 * 16;
        let tile_bytes = spec.fifo.chunk_bytes(slot_bytes);
        let layout = Layout::new(spec.block, size, plan.chunks, plan.channels, tile_bytes);
        let chunk_bytes = (layout.tile_elems() * size as u64).next_multiple_of(16);
        let slice_bytes = (slot_bytes * spec.fifo.slice_steps as usize) as u64;
        let mut buffers = Buffers {
            collective: plan.collective,
            chunks: plan.chunks,
            elem_size: size as u64,
            block: spec.block,
            in_place: spec.in_place,
            slices: whole_slices(spec.block, size, plan.chunks, plan.channels),
            tiles: layout.tiles(),
            tile_bytes: tile_bytes as u64,
            chunk_bytes,
            slice_bytes,
            step_bytes: lines::step_bytes(&spec.fifo, slice_bytes.min(chunk_bytes)),
            has_lines: spec.fifo.protocol.line().is_some(),
            input_elems: spec.block * u64::from(plan.collective.input_blocks(plan.ranks)),
            output_elems: spec.block * u64::from(plan.collective.output_blocks(plan.ranks)),
            ranks: Vec::new(),
            links: Vec::new(),
            counters: Vec::new(),
            slots: Vec::new(),
        };
        buffers.refuse_too_large(spec, devices, ends, carries_data)?;
        buffers.allocate_ranks(spec, devices)?;
        buffers.connect(devices, ends, carries_data)?;
        Ok(buffers)
    }

    fn scratch_chunks(spec: &SessionSpec) -> u64 {
        spec.plan.scratch.iter().map(|s| u64::from(s.chunks)).sum()
    }

    fn user_bytes(&self) -> (u64, u64) {
        let (input, output) = (self.input_elems * self.elem_size, self.output_elems * self.elem_size);
        if self.in_place { (input.max(output), 0) } else { (input, output) }
    }

    fn refuse_too_large(
        &self,
        spec: &SessionSpec,
        devices: &[Arc<Device>],
        ends: &[(Rank, Rank)],
        carries_data: &[bool],
    ) -> Result<(), ExecError> {
        let (main, output) = self.user_bytes();
        let scratch = u128::from(Self::scratch_chunks(spec))
            * u128::from(spec.plan.channels)
            * u128::from(self.chunk_bytes);
        let per_rank = u128::from(main) + u128::from(output) + scratch;
        for device in distinct(devices) {
            let here = |rank: &Rank| devices[rank.index()].ordinal.number == device.ordinal.number;
            let ranks = (0..spec.plan.ranks).map(Rank).filter(here).count() as u128;
            let fifos =
                ends.iter().zip(carries_data).filter(|(end, data)| **data && here(&end.1)).count() as u128;
            let need = ranks * per_rank + fifos * u128::from(SLOTS) * u128::from(self.step_bytes);
            let (free, total) = device.memory()?;
            if need > u128::from(free) {
                let mib = |bytes: u128| bytes.div_ceil(1 << 20);
                return Err(ExecError::Refused(format!(
                    "{ranks} ranks with blocks of {} elements need {} MiB of device {}, {} of {} MiB are free; use a smaller size, \
                     fewer ranks or smaller slots",
                    spec.block,
                    mib(need),
                    device.ordinal.number,
                    mib(free.into()),
                    mib(total.into()),
                )));
            }
        }
        Ok(())
    }

    fn allocate_ranks(&mut self, spec: &SessionSpec, devices: &[Arc<Device>]) -> Result<(), ExecError> {
        let (main, output) = self.user_bytes();
        let scratch_chunks = Self::scratch_chunks(spec) as u32;
        let scratch_bytes = u64::from(scratch_chunks) * u64::from(spec.plan.channels) * self.chunk_bytes;
        let starts = spec.plan.scratch.iter().scan(0, |next, s| {
            let start = *next;
            *next += s.chunks;
            Some(start)
        });
        let scratch_starts: Vec<u32> = starts.collect();
        for device in devices {
            self.ranks.push(RankMemory {
                main: Memory::zeroed(device, main)?,
                output: if self.in_place { None } else { Some(Memory::zeroed(device, output)?) },
                scratch: Memory::zeroed(device, scratch_bytes)?,
                scratch_starts: scratch_starts.clone(),
                scratch_chunks,
            });
        }
        Ok(())
    }

    /// One piece of counters and one of slots a device, shared out over the connections.
    fn connect(
        &mut self,
        devices: &[Arc<Device>],
        ends: &[(Rank, Rank)],
        carries_data: &[bool],
    ) -> Result<(), ExecError> {
        let null =
            Link { slots: Address::NULL, tail: Address::NULL, signals: Address::NULL, head: Address::NULL };
        self.links = vec![null; ends.len()];
        for device in distinct(devices) {
            let here = |rank: Rank| devices[rank.index()].ordinal.number == device.ordinal.number;
            let received: Vec<usize> = (0..ends.len()).filter(|&i| here(ends[i].1)).collect();
            let sent: Vec<usize> = (0..ends.len()).filter(|&i| here(ends[i].0)).collect();
            let fifos: Vec<usize> = received.iter().copied().filter(|&i| carries_data[i]).collect();
            let counters = Memory::zeroed(&device, (2 * received.len() + sent.len()) as u64 * LINE)?;
            let fifo_bytes = u64::from(SLOTS) * self.step_bytes;
            let slots = Memory::zeroed(&device, fifos.len() as u64 * fifo_bytes)?;
            let mut lines = (0..).map(|line| counters.address().plus(line * LINE));
            let mut next = || lines.next().expect("addresses do not run out");
            for &i in &received {
                (self.links[i].tail, self.links[i].signals) = (next(), next());
            }
            for &i in &sent {
                self.links[i].head = next();
            }
            for (nth, &i) in fifos.iter().enumerate() {
                self.links[i].slots = slots.address().plus(nth as u64 * fifo_bytes);
            }
            self.counters.push(counters);
            self.slots.push(slots);
        }
        Ok(())
    }

    /// Forgets what a stopped run left in the connections. Only while no kernel runs.
    pub fn reset_counters(&self) -> Result<(), ExecError> {
        self.counters.iter().try_for_each(Memory::clear)?;
        // Steps are counted from the beginning again, so flags recur.
        if self.has_lines { self.slots.iter().try_for_each(Memory::clear) } else { Ok(()) }
    }

    #[cfg(test)]
    pub fn fifos(&self) -> (&[Memory], &[Memory]) {
        (&self.counters, &self.slots)
    }

    /// A rank's input: its memory and where it begins.
    pub fn input(&self, rank: Rank) -> (&Memory, u64) {
        let offset = self.in_place_offsets(rank).0;
        (&self.ranks[rank.index()].main, offset)
    }

    /// A rank's output: its memory and where it begins.
    pub fn output(&self, rank: Rank) -> (&Memory, u64) {
        let offset = self.in_place_offsets(rank).1;
        let memory = &self.ranks[rank.index()];
        (memory.output.as_ref().unwrap_or(&memory.main), offset)
    }

    /// The same memory always under the same name.
    pub fn canonical(&self, operand: Operand) -> Operand {
        if self.in_place { canonical(self.collective, self.chunks, operand) } else { operand }
    }

    /// Bytes from the start of a rank's memory to its input and its output.
    fn in_place_offsets(&self, rank: Rank) -> (u64, u64) {
        if !self.in_place {
            return (0, 0);
        }
        let (input, output) = self.collective.in_place_offsets(rank);
        let block = self.block * self.elem_size;
        (u64::from(input) * block, u64::from(output) * block)
    }

    /// Where the slice of an operand's first chunk starts for a channel.
    pub fn place(&self, operand: Operand, channel: u32) -> Placed {
        let rank = Rank(operand.rank as u32);
        let (memory, offset) = match operand.buffer {
            Buffer::Input => self.input(rank),
            Buffer::Output => self.output(rank),
            Buffer::Scratch(index) => {
                let memory = &self.ranks[operand.rank];
                let chunk = memory.scratch_starts[usize::from(index)] + operand.start;
                let cell = u64::from(channel) * u64::from(memory.scratch_chunks) + u64::from(chunk);
                return Placed {
                    base: memory.scratch.address().plus(cell * self.chunk_bytes).0,
                    advances: 0,
                    buffer: ABSOLUTE,
                };
            }
        };
        let elem = self.slice_start(operand.start, channel);
        Placed {
            base: memory.address().plus(offset + elem * self.elem_size).0,
            advances: 1,
            buffer: ABSOLUTE,
        }
    }

    /// First element of a channel's slice of a chunk counted over all blocks.
    fn slice_start(&self, chunk: u32, channel: u32) -> u64 {
        slice_start(&self.slices, self.block, self.chunks, chunk, channel)
    }

    /// The parts of a rank's output that belong to a channel; none where the collective gives the rank no output.
    pub fn output_spans(&self, rank: Rank, channel: u32) -> Vec<OutputSpan> {
        let elems = if self.collective.has_output(rank) { self.output_elems } else { 0 };
        let blocks = elems.checked_div(self.block).unwrap_or(0) as u32;
        let (memory, offset) = self.output(rank);
        (0..blocks * self.chunks)
            .map(|chunk| {
                let elem = self.slice_start(chunk, channel);
                let len = self.slices.span(chunk % self.chunks, channel, 0).len;
                let base = memory.address().plus(offset + elem * self.elem_size).0;
                OutputSpan { base, bytes: len * self.elem_size, buffer: ABSOLUTE.into() }
            })
            .filter(|span| span.bytes > 0)
            .collect()
    }

    /// (counter this side writes, counter it watches, slots).
    pub fn endpoint(&self, endpoint: &Endpoint) -> (Address, Address, Address) {
        let link = &self.links[endpoint.link];
        match endpoint.role {
            Role::Sender => (link.tail, link.head, link.slots),
            Role::Receiver => (link.head, link.tail, link.slots),
            Role::Signaller => (link.signals, Address::NULL, Address::NULL),
            Role::Waiter => (Address::NULL, link.signals, Address::NULL),
        }
    }
}

/// First element of a channel's slice of a chunk counted over all blocks. `slices` has whole slices as its tiles.
pub fn slice_start(slices: &Layout, block: u64, chunks: u32, chunk: u32, channel: u32) -> u64 {
    u64::from(chunk / chunks) * block + slices.span(chunk % chunks, channel, 0).offset
}

/// Each device once, in order of first use.
pub fn distinct(devices: &[Arc<Device>]) -> Vec<Arc<Device>> {
    let mut seen = std::collections::HashSet::new();
    devices.iter().filter(|device| seen.insert(device.ordinal.number)).cloned().collect()
}
