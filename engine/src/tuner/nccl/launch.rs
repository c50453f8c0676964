//! What an operation is launched with: `topoGetAlgoInfo`'s second half (channels and threads), `scheduleCollTasksToPlan` for one task
//! (bytes by channel) and `calcCollChunking` (chunks), all of src/enqueue.cc.

use serde::Serialize;

use super::constants::*;
use super::model::log2i;
use super::{Algo, Func, Model, Operation, Proto};
use crate::text::Text;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Launch {
    /// `nMaxChannels`, what the message is worth.
    pub max_channels: u32,
    /// Channels that get work: 16-byte cells are handed out, so a small message may need fewer.
    pub channels: u32,
    /// Threads of a block, the synchronisation warps included.
    pub threads: u32,
    /// Payload of a full chunk on a channel in the middle (the first one if there is one).
    pub chunk_bytes: u64,
    /// Payload of a slice: what one flag or counter update covers.
    pub slice_bytes: u64,
    /// Steps (of [`NCCL_STEPS`] in the buffer) of a chunk and of a slice.
    pub chunk_steps: u32,
    pub slice_steps: u32,
    pub notes: Vec<Text>,
}

/// `ncclProtoGrainSize` of src/include/device.h.
fn grain_size(proto: Proto) -> u64 {
    match proto {
        Proto::Ll => 16,
        Proto::Ll128 => {
            u64::from(WARP_SIZE) * NCCL_LL128_SHMEM_ELEMS_PER_THREAD / NCCL_LL128_LINEELEMS
                * NCCL_LL128_DATAELEMS
                * 8
        }
        Proto::Simple => 512,
    }
}

/// `*_CHUNKSTEPS` and `*_SLICESTEPS` of src/include/collectives.h.
fn steps(func: Func) -> (u32, u32) {
    match func {
        Func::AllReduce | Func::AllGather | Func::ReduceScatter => (NCCL_STEPS / 2, NCCL_STEPS / 4),
        Func::Broadcast | Func::Reduce => (1, 1),
    }
}

impl Model {
    pub fn launch(&self, op: &Operation, algo: Algo, proto: Proto) -> Launch {
        let (max_channels, threads, notes) = self.channels_and_threads(op.bytes, algo, proto);
        let (channels, bytes_per_channel) = if self.uses_coll_net(algo) {
            (max_channels, op.bytes)
        } else {
            let is_nvls = matches!(algo, Algo::Nvls | Algo::NvlsTree);
            self.hand_out(
                op,
                max_channels,
                if is_nvls { self.comm.nvls_channels } else { self.comm.channels },
            )
        };
        let chunked_over = if self.uses_coll_net(algo) { max_channels } else { 1 };
        let is_ring_simple = (algo, proto) == (Algo::Ring, Proto::Simple);
        let (chunk_steps, slice_steps) = if is_ring_simple { steps(op.func) } else { (1, 1) };
        let chunk_bytes = self.chunk_size(algo, proto, chunked_over, bytes_per_channel, chunk_steps);
        Launch {
            max_channels,
            channels,
            threads,
            chunk_bytes,
            slice_bytes: chunk_bytes / u64::from(chunk_steps) * u64::from(slice_steps),
            chunk_steps,
            slice_steps,
            notes,
        }
    }

    /// `isCollnet` of `ncclPrepareTasks`.
    fn uses_coll_net(&self, algo: Algo) -> bool {
        matches!(algo, Algo::CollNetChain | Algo::CollNetDirect)
            || (algo == Algo::Nvls && self.comm.nodes > 1)
    }

    /// Channels and threads shrink while a message is too small for them.
    fn channels_and_threads(&self, bytes: u64, algo: Algo, proto: Proto) -> (u32, u32, Vec<Text>) {
        let comm = &self.comm;
        let mut channels = comm.channels;
        let full = self.max_threads[algo.index()][proto.index()];
        let mut threads = full;
        let mut threshold = self.thread_thresholds[algo.index()][proto.index()];
        let worth = |channels: u32, threads: u32, threshold: u64| {
            u64::from(channels).saturating_mul(u64::from(threads)).saturating_mul(threshold)
        };
        match algo {
            Algo::CollNetDirect => {
                let heads = u64::from(comm.coll_net.as_ref().map_or(1, |net| net.heads));
                let mut switch = 16;
                let mut small = true;
                while switch >= 1 && small {
                    loop {
                        small = bytes < worth(channels, threads, threshold).saturating_mul(heads);
                        if !(small && channels > switch) {
                            break;
                        }
                        if channels == switch + switch / 2 {
                            threshold /= 2;
                        }
                        channels -= 1;
                    }
                    switch /= 2;
                }
            }
            Algo::Nvls | Algo::NvlsTree => channels = comm.nvls_channels,
            _ => {
                while channels >= 2 && bytes < worth(channels, threads, threshold) {
                    channels -= 1;
                }
            }
        }
        if !matches!(algo, Algo::Nvls | Algo::NvlsTree | Algo::CollNetDirect) {
            while bytes < worth(channels, threads, threshold) && threads.is_multiple_of(128) {
                threads /= 2;
            }
        }
        let mut notes = Vec::new();
        let offered =
            if matches!(algo, Algo::Nvls | Algo::NvlsTree) { comm.nvls_channels } else { comm.channels };
        if channels < offered || threads < full {
            notes.push(Text::new(
                format!("消息不满 {offered} 个通道 x {full} 线程 x 每线程 {threshold} 字节，减到 {channels} x {threads}"),
                format!(
                    "the message is less than {offered} channels x {full} threads x {threshold} bytes a thread, so they shrink to \
                     {channels} x {threads}"
                ),
            ));
        }
        if proto == Proto::Simple {
            // Warps that only synchronise: one for Ring, four for Tree's two directions.
            threads += match algo {
                Algo::Ring => WARP_SIZE,
                Algo::Tree => 4 * WARP_SIZE,
                _ => 0,
            };
        }
        threads = threads.max(3 * WARP_SIZE);
        if algo == Algo::Tree {
            threads = NCCL_MAX_NTHREADS;
        }
        (channels, threads, notes)
    }

    /// Cells of 16 bytes over channels, for a task alone in its plan of at most `kind_channels`. Returns the channels used and the
    /// bytes (as `calcCollChunking` counts them) of a full one.
    fn hand_out(&self, op: &Operation, max_channels: u32, kind_channels: u32) -> (u32, u64) {
        let ranks = u64::from(self.comm.ranks);
        let (traffic_per_byte, blocks) = match op.func {
            Func::AllReduce => (2, 1),
            Func::AllGather | Func::ReduceScatter => (ranks, ranks),
            Func::Broadcast | Func::Reduce => (1, 1),
        };
        let count_bytes = op.bytes / blocks;
        let cells = count_bytes.div_ceil(16);
        if cells == 0 {
            return (0, 0);
        }
        let traffic_per_channel =
            (count_bytes.saturating_mul(traffic_per_byte) / u64::from(max_channels)).max(512);
        let traffic_per_cell = 16 * traffic_per_byte;
        let cells_per_channel = cells.min(traffic_per_channel.div_ceil(traffic_per_cell));
        let lo = if kind_channels == 1 { cells } else { cells.min(traffic_per_channel / traffic_per_cell) };
        let rest = cells - lo;
        let (mut mid, hi) = (rest / cells_per_channel, rest % cells_per_channel);
        let mut channels = u64::from(lo != 0) + mid + u64::from(hi != 0);
        let mut full = cells_per_channel;
        if channels > u64::from(kind_channels) {
            channels = u64::from(kind_channels);
            mid = channels - 2;
            full = rest / (mid + 1);
        }
        if mid == 0 {
            full = lo.max(hi);
        }
        (channels as u32, full.saturating_mul(16 * blocks))
    }

    fn chunk_size(&self, algo: Algo, proto: Proto, channels: u32, bytes: u64, chunk_steps: u32) -> u64 {
        let comm = &self.comm;
        let mut chunk = comm.buff_sizes[proto.index()] / u64::from(NCCL_STEPS) * u64::from(chunk_steps);
        match proto {
            Proto::Ll => chunk /= 2,
            Proto::Ll128 => chunk = chunk / NCCL_LL128_LINEELEMS * NCCL_LL128_DATAELEMS,
            Proto::Simple => {}
        }
        let channels = u64::from(channels);
        let halve = |chunk: &mut u64, lanes: u64, loops: u64, floor: u64| {
            while bytes / (lanes * *chunk) < loops && *chunk > floor {
                *chunk /= 2;
            }
        };
        let cap = |chunk: &mut u64, lanes: u64, loops: u64, to: u64| {
            if bytes < (loops * lanes).saturating_mul(*chunk) && *chunk > to {
                *chunk = to;
            }
        };
        let coll_net = comm.coll_net.as_ref();
        match (algo, proto) {
            (Algo::CollNetDirect, _) => {
                let lanes = channels * u64::from(coll_net.map_or(1, |net| net.heads)).max(1);
                let depth = u64::from(coll_net.map_or(1, |net| net.direct_depth));
                for (loops, floor) in [(64, 131_072), (8, 65_536), (8, 32_768)] {
                    halve(&mut chunk, lanes, depth * loops, floor);
                }
            }
            (Algo::CollNetChain, _) => {
                let depth = u64::from(coll_net.map_or(1, |net| net.chain_depth));
                let step = comm.buff_sizes[Proto::Simple.index()] / u64::from(NCCL_STEPS);
                chunk = (256 * 1024).min(step * u64::from(chunk_steps));
                for (loops, floor) in [(64, 131_072), (8, 65_536), (1, 32_768)] {
                    halve(&mut chunk, channels, depth * loops, floor);
                }
            }
            (Algo::Nvls, _) => {
                let slow = self.entry(Func::AllReduce, Algo::Nvls, Proto::Simple).bandwidth < 150.0;
                chunk = chunk.min(if comm.nodes > 1 && slow { 32_768 } else { comm.nvls_chunk_size });
                let lanes = channels * u64::from(comm.nvls_heads);
                for (loops, to) in [(64, 65_536), (8, 32_768), (2, 16_384)] {
                    cap(&mut chunk, lanes, loops, to);
                }
            }
            (Algo::NvlsTree, _) => {
                let default = if comm.nodes >= 4 { 65_536 } else { comm.nvls_chunk_size };
                chunk = comm.nvls_chunk_size.min(comm.settings.nvlstree_max_chunksize.unwrap_or(default));
                let lanes = channels * u64::from(comm.nvls_heads);
                for (loops, to) in [(32, 262_144), (16, 131_072), (4, 65_536), (1, 32_768)] {
                    cap(&mut chunk, lanes, loops, to);
                }
            }
            (Algo::Tree, Proto::Ll128) => {
                let ppn = comm.ranks as f32 / comm.nodes as f32;
                let levels = 1 + log2i(u64::from(comm.nodes));
                let steps = (f64::from(levels) + 0.1 * f64::from(ppn)) as f32;
                for (loops, floor) in [(64.0, 131_072), (16.0, 32_768)] {
                    while ((bytes / (channels * chunk)) as f32) < steps * loops / ppn && chunk > floor {
                        chunk /= 2;
                    }
                }
            }
            _ => {}
        }
        chunk / grain_size(proto) * grain_size(proto)
    }
}
