//! One device of a session: its kernels, its programs and what they report.

use std::sync::Arc;

use ringlab_kernels::Scope;

use super::device::{self, DeviceInfo};
use super::driver::{Device, Memory, Stream};
use super::image::{self, Image, TraceRecord};
use super::kernels::Kernels;
use super::mapped::Mapped;
use crate::exec::{ExecError, SessionSpec};

/// Shared memory a block may use without asking for more. Longer programs are read from global memory.
const SHARED_BYTES: u32 = 40 << 10;

/// Threads of a block: `MOST_THREADS` in kernels/cuda/plan.cu, or fewer.
const MOST_THREADS: u32 = 1024;

/// Bytes of a tile below which fewer threads do: they start and meet sooner.
const SHORT_TILE: u64 = 8 << 10;

/// Bytes of a tile from which more threads move it faster than they cost in barriers.
const LONG_TILE: u64 = 32 << 10;

/// What one device needs to run its ranks.
pub struct Part {
    /// Programs of its blocks, by index into the session's.
    pub local: Vec<usize>,
    pub info: DeviceInfo,
    pub kernels: Kernels,
    pub stream: Stream,
    pub programs: Memory,
    /// Steps every endpoint has taken.
    pub counts: Memory,
    pub spans: Memory,
    pub moved: Memory,
    pub rounds: Memory,
    pub halt: Memory,
    pub stalls: Mapped<image::Stall>,
    pub threads: u32,
    /// Whether there is room for the block that stamps launches.
    pub stamps: bool,
    pub shared_bytes: u32,
    pub program_bytes: u32,
    pub endpoints_per_block: u32,
    pub program_fits: bool,
    pub lag: u32,
    /// Allocated by the first traced run.
    pub recording: Option<Recording>,
}

pub struct Recording {
    pub records: Memory,
    pub kept: Memory,
    pub dropped: Memory,
    pub per_block: u64,
}

impl Part {
    pub fn new(
        spec: &SessionSpec,
        device: &Arc<Device>,
        local: Vec<usize>,
        image: Image,
        scope: Scope,
        longest_tile: u64,
    ) -> Result<Part, ExecError> {
        let info = device::describe(device.ordinal)?;
        let kernels = Kernels::load(device, &info, spec.dtype, spec.op, spec.fifo.protocol, scope)?;
        let states = image.endpoints_per_block * image::ENDPOINT_STATE;
        let program_fits = states + image.program_bytes() <= SHARED_BYTES;
        let shared_bytes = states + if program_fits { image.program_bytes() } else { 0 };
        let blocks = local.len() as u32;
        let fits_with = |threads| kernels.resident_blocks(false, threads, shared_bytes);
        let threads = match longest_tile {
            ..SHORT_TILE => MOST_THREADS / 4,
            LONG_TILE.. if blocks <= fits_with(MOST_THREADS)? => MOST_THREADS,
            _ => MOST_THREADS / 2,
        };
        let fits = fits_with(threads)?;
        if blocks > fits {
            return Err(too_many(spec, device, &info, blocks, fits));
        }
        Ok(Part {
            programs: Memory::holding(device, &image.words())?,
            counts: Memory::zeroed(device, u64::from(blocks * image.endpoints_per_block) * 8)?,
            spans: Memory::holding(device, &image.spans)?,
            moved: Memory::zeroed(device, local.len() as u64 * 8)?,
            rounds: Memory::zeroed(device, local.len() as u64 * 8)?,
            halt: Memory::zeroed(device, image::HALT_BYTES)?,
            stalls: Mapped::zeroed(device, local.len())?,
            stream: Stream::new(device)?,
            recording: None,
            local,
            info,
            kernels,
            threads,
            stamps: blocks < fits,
            shared_bytes,
            program_bytes: image.program_bytes(),
            endpoints_per_block: image.endpoints_per_block,
            program_fits,
            lag: image.lag,
        })
    }

    /// Empty records for at most `per_block` phases of every block.
    pub fn start_recording(&mut self, spec: &SessionSpec, per_block: u64) -> Result<(), ExecError> {
        let device = self.stream.device().clone();
        self.kernels.load_traced(&device)?;
        let blocks = self.local.len() as u32 + u32::from(self.stamps);
        let fits = self.kernels.resident_blocks(true, self.threads, self.shared_bytes)?;
        if blocks > fits {
            return Err(too_many(spec, &device, &self.info, blocks, fits));
        }
        if self.recording.as_ref().is_none_or(|recording| recording.per_block != per_block) {
            let blocks = self.local.len() as u64;
            self.recording = Some(Recording {
                records: Memory::zeroed(&device, blocks * per_block * size_of::<TraceRecord>() as u64)?,
                kept: Memory::zeroed(&device, blocks * 8)?,
                dropped: Memory::zeroed(&device, blocks * 8)?,
                per_block,
            });
        }
        let Some(recording) = &self.recording else { unreachable!("just made") };
        recording.kept.clear()?;
        recording.dropped.clear()
    }
}

fn too_many(spec: &SessionSpec, device: &Device, info: &DeviceInfo, blocks: u32, fits: u32) -> ExecError {
    let channels = spec.plan.channels;
    let ranks = blocks / channels;
    let way_out = match fits / ranks {
        0 => format!("put at most {fits} ranks on this device"),
        most => format!("use {most} channels or fewer, or fewer ranks on this device"),
    };
    ExecError::Refused(format!(
        "{ranks} ranks x {channels} channels on device {} are {blocks} blocks, but only {fits} can run at the same time ({} \
         multiprocessors); {way_out}",
        device.ordinal.number, info.multiprocessors,
    ))
}
