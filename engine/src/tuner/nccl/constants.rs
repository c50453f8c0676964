//! Numbers of NCCL at v2.22.3-1, under its own names. Latencies in microseconds, bandwidths in GB/s; indices `[algorithm][protocol]`
//! in the order of [`super::Algo`] and [`super::Proto`].

/// src/include/device.h
pub const WARP_SIZE: u32 = 32;
pub const MAXCHANNELS: u32 = 32;
pub const NCCL_STEPS: u32 = 8;
pub const NCCL_MAX_NTHREADS: u32 = 640;
pub const NCCL_SIMPLE_MAX_NTHREADS: u32 = 512;
pub const NCCL_LL_MAX_NTHREADS: u32 = 512;
pub const NCCL_LL128_MAX_NTHREADS: u32 = 640;
const NCCL_LL_LINES_PER_THREAD: u32 = 8;
const NCCL_LL128_ELEMS_PER_THREAD: u32 = 120;
pub const NCCL_LL128_SHMEM_ELEMS_PER_THREAD: u64 = 8;
pub const NCCL_LL128_LINEELEMS: u64 = 16;
pub const NCCL_LL128_DATAELEMS: u64 = 15;
/// `NCCL_MAX_DEV_WORK_BATCH_BYTES / sizeof(ncclDevWorkColl)`: 1024 / 64.
pub const NCCL_MAX_DEV_WORK_BATCH_COLLS: u32 = 16;

/// src/include/comm.h
pub const NCCL_LL_THREAD_THRESHOLD: u64 = 8;
pub const NCCL_LL128_THREAD_THRESHOLD: u64 = 8;
pub const NCCL_SIMPLE_THREAD_THRESHOLD: u64 = 64;

/// src/graph/topo.h
pub const PCI_BW: f32 = 12.0;

/// src/init.cc, `computeBuffSizes`: LL (16-byte lines), LL128 (8-byte elements), Simple.
pub const DEFAULT_BUFFSIZES: [u64; 3] = [
    (NCCL_LL_LINES_PER_THREAD * NCCL_LL_MAX_NTHREADS * NCCL_STEPS * 16) as u64,
    (NCCL_LL128_ELEMS_PER_THREAD * NCCL_LL128_MAX_NTHREADS * NCCL_STEPS * 8) as u64,
    1 << 22,
];

/// src/transport/nvls.cc, defaults of `NCCL_NVLS_NCHANNELS` and `NCCL_NVLS_CHUNKSIZE`.
pub const NVLS_NCHANNELS: u32 = 16;
pub const NVLS_CHUNKSIZE: u64 = 128 * 1024;

// What follows is src/graph/tuning.cc.

pub const BASE_LAT: [[f32; 3]; 6] =
    [[6.8, 14.0, 0.0], [6.6, 14.0, 8.4], [0.0; 3], [0.0; 3], [0.0; 3], [0.0; 3]];

pub const NCCL_HW_NVLINK: usize = 0;
pub const NCCL_HW_PCI: usize = 1;
pub const NCCL_HW_NET: usize = 2;

/// `[NVLink, PCI, network]`
pub const HW_LAT: [[[f32; 3]; 6]; 3] = [
    [
        [0.6, 1.25, 28.0],
        [0.6, 1.9, 3.4],
        [0.0, 0.0, 3.7],
        [0.0, 0.0, 2.8],
        [0.0, 0.0, 25.0],
        [0.0, 0.0, 25.0],
    ],
    [[1.0, 1.9, 28.0], [1.0, 2.5, 5.7], [0.0, 0.0, 3.7], [0.0, 0.0, 2.8], [0.0; 3], [0.0; 3]],
    [
        [5.0, 8.5, 28.0],
        [2.7, 4.0, 14.0],
        [0.0, 0.0, 31.0],
        [0.0, 0.0, 30.0],
        [0.0, 0.0, 18.0],
        [0.0, 0.0, 14.0],
    ],
];

/// `[row][nodes: 1, 2, more]`. The row is the GPU generation on one node and the CPU vendor (0 for Intel, 1 for AMD) on more; NCCL's
/// comment above the table says LL128, its name and its use say LL.
pub const LL_MAX_BWS: [[f64; 3]; 3] = [[39.0, 39.0, 20.4], [87.7, 22.5, 19.0], [141.0, 45.0, 35.0]];

/// `[Volta, Ampere, Hopper][nodes: 1, 2, more]`, per channel.
pub const PER_CH_MAX_RING_LL128_BWS: [[f64; 3]; 3] = [[20.0; 3], [20.0; 3], [36.7; 3]];
pub const PER_CH_MAX_TREE_LL128_BWS: [[f64; 3]; 3] = [[20.0; 3], [20.0; 3], [36.7, 36.7, 29.0]];
pub const PER_CH_MAX_TREE_BWS: [[f64; 3]; 3] = [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [38.7, 41.4, 36.0]];

/// `treeCorrectionFactor[protocol][log2(bytes / 64)]`: 64 B to 256 MB.
pub const TREE_CORRECTION_FACTOR: [[f32; 23]; 3] = [
    [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
        1.0, 1.0, 1.0,
    ],
    [
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9,
        0.9, 1.0, 1.0,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7,
        0.8, 0.9, 0.9,
    ],
];
