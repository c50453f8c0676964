//! NCCL 2.22.3's tuner, rebuilt from its source (src/graph/tuning.cc and src/enqueue.cc at v2.22.3-1): which of 6 algorithms and 3
//! protocols an operation gets, with how many channels and threads and in which chunks, and why not another.
//!
//! Figures are kept in `f32` and expressions computed in `f64` exactly where NCCL does so, hence the results agree with its log to the
//! last digit. The constants describe machines NCCL was tuned on (DGX, PCI servers), not ranks that share a GPU.

pub mod constants;
mod gates;
mod launch;
mod model;
mod presets;
mod select;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::launch::Launch;
pub use self::model::{Entry, Model};
pub use self::select::{AlgoTime, NoAlgorithm, Operation, nvls_supported};
use crate::types::Collective;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $(#[serde(rename = $text)] $variant),+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// As NCCL prints it and its environment variables take it.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            pub const fn index(self) -> usize {
                self as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named!(
    /// `ncclFunc_t`, those that are tuned.
    Func {
        Broadcast = "Broadcast",
        Reduce = "Reduce",
        AllGather = "AllGather",
        ReduceScatter = "ReduceScatter",
        AllReduce = "AllReduce",
    }
);
named!(
    /// `NCCL_ALGO_*`, in the order ties are decided in.
    Algo {
        Tree = "Tree",
        Ring = "Ring",
        CollNetDirect = "CollNetDirect",
        CollNetChain = "CollNetChain",
        Nvls = "NVLS",
        NvlsTree = "NVLSTree",
    }
);
named!(
    /// `NCCL_PROTO_*`.
    Proto {
        Ll = "LL",
        Ll128 = "LL128",
        Simple = "Simple",
    }
);
named!(
    /// `PATH_*` of src/graph/topo.h: the worst hop between two devices, nearest first.
    Path {
        Loc = "LOC",
        Nvl = "NVL",
        Nvb = "NVB",
        Pix = "PIX",
        Pxb = "PXB",
        Pxn = "PXN",
        Phb = "PHB",
        Sys = "SYS",
        Net = "NET",
        Dis = "DIS",
    }
);
named!(
    /// `NCCL_TOPO_CPU_ARCH_*`.
    CpuArch { X86 = "x86_64", Power = "ppc64", Arm = "arm64" }
);
named!(
    /// `NCCL_TOPO_CPU_VENDOR_*`.
    CpuVendor { Intel = "Intel", Amd = "AMD", Zhaoxin = "Zhaoxin", Other = "other" }
);

impl Func {
    /// NCCL's function for one of the engine's collectives; `None` where NCCL 2.22 builds it out of sends and receives.
    pub fn of(collective: Collective) -> Option<Func> {
        Func::ALL.iter().copied().find(|func| func.engine_name() == collective.name())
    }

    /// [`Collective::name`] of the same collective.
    pub const fn engine_name(self) -> &'static str {
        match self {
            Func::Broadcast => "broadcast",
            Func::Reduce => "reduce",
            Func::AllGather => "all_gather",
            Func::ReduceScatter => "reduce_scatter",
            Func::AllReduce => "all_reduce",
        }
    }
}

/// What the topology search found for an algorithm: `ncclTopoGraph`, the part the model reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Channels the search found, before `ncclTopoPostset` doubles them; 0 where there is no such graph.
    pub channels: u32,
    /// Per channel, inside a node.
    pub bw_intra: f32,
    /// Per channel, between nodes; as `bw_intra` on one node.
    pub bw_inter: f32,
    /// Of the network card, in microseconds.
    pub latency_inter: f32,
    pub type_intra: Path,
    pub type_inter: Path,
    /// Whether all channels visit the ranks in the same order.
    pub same_channels: bool,
    /// `NCCL_TOPO_PATTERN_TREE`: all network traffic of a channel at one GPU.
    pub pattern_tree: bool,
}

/// What a CollNet plugin (SHARP) offers, when there is one and the communicator may use it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollNet {
    /// `collNetHeadsNum`: network cards of a node that can be heads.
    pub heads: u32,
    pub iallgather: bool,
    pub ireducescatter: bool,
    /// `collnetDirect.depth` and `collnetChain.depth`.
    pub direct_depth: u32,
    pub chain_depth: u32,
}

/// What the user set, by the name of the variable behind `NCCL_`. `Default` is nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub algo: Option<String>,
    pub proto: Option<String>,
    pub nthreads: Option<u32>,
    pub ll128_nthreads: Option<u32>,
    pub net_overhead_ns: Option<u32>,
    /// LL, LL128, Simple of Tree, then of Ring, as `NCCL_THREAD_THRESHOLDS` lists them.
    pub thread_thresholds: [Option<u64>; 6],
    pub nvlstree_max_chunksize: Option<u64>,
}

/// A communicator as the tuner sees it: the part of `ncclComm` the model reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comm {
    pub name: String,
    pub ranks: u32,
    pub nodes: u32,
    /// `comm->nChannels`, after `ncclTopoPostset`.
    pub channels: u32,
    /// Compute capability times ten, as 90 for Hopper.
    pub min_comp_cap: u32,
    pub max_comp_cap: u32,
    pub cpu_arch: CpuArch,
    pub cpu_vendor: CpuVendor,
    /// By [`Algo`].
    pub graphs: [Graph; 6],
    pub coll_net: Option<CollNet>,
    /// NVSwitches seen.
    pub nvs_count: u32,
    /// `comm->nvlsSupport`.
    pub nvls: bool,
    pub nvls_channels: u32,
    /// `nvls.nHeads`.
    pub nvls_heads: u32,
    pub nvls_chunk_size: u64,
    /// By [`Proto`].
    pub buff_sizes: [u64; 3],
    /// As 12050 for CUDA 12.5.
    pub cudart_version: u32,
    pub settings: Settings,
}

/// Most ranks of a communicator that is modelled.
pub const MAX_RANKS: u32 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("communicator `{name}`: {problem}")]
pub struct InvalidComm {
    pub name: String,
    pub problem: String,
}

impl Comm {
    /// # Errors
    /// When figures contradict each other.
    pub fn check(&self) -> Result<(), InvalidComm> {
        let fail = |problem: String| Err(InvalidComm { name: self.name.clone(), problem });
        if self.nodes == 0 || self.ranks < self.nodes {
            return fail(format!(
                "{} ranks on {} nodes; give at least one rank a node",
                self.ranks, self.nodes
            ));
        }
        if self.ranks > MAX_RANKS {
            return fail(format!("{} ranks; the model takes up to {MAX_RANKS}", self.ranks));
        }
        if self.channels == 0 || self.channels > constants::MAXCHANNELS {
            return fail(format!("{} channels; NCCL takes 1 to {}", self.channels, constants::MAXCHANNELS));
        }
        if self.buff_sizes.iter().any(|size| *size < 1 << 14) {
            return fail(format!("buffer sizes {:?}; each is at least 16384 bytes", self.buff_sizes));
        }
        let nvls_graphs = &self.graphs[Algo::Nvls.index()..];
        let nvls_channels = 1..=constants::MAXCHANNELS;
        if nvls_graphs.iter().any(|graph| graph.channels > 0)
            && (!nvls_channels.contains(&self.nvls_channels)
                || self.nvls_heads == 0
                || self.nvls_chunk_size < 1 << 14)
        {
            return fail(format!(
                "an NVLS graph with {} channels, {} heads and chunks of {} bytes; give 1 to {} channels, a head, and 16384 bytes or \
                 more",
                self.nvls_channels,
                self.nvls_heads,
                self.nvls_chunk_size,
                constants::MAXCHANNELS
            ));
        }
        if self.settings.nvlstree_max_chunksize.is_some_and(|size| size < 512) {
            return fail("NCCL_NVLSTREE_MAX_CHUNKSIZE is below 512 bytes".into());
        }
        if self.coll_net.as_ref().is_some_and(|net| net.heads == 0) {
            return fail("a CollNet plugin without heads; leave it out".into());
        }
        for (algo, graph) in Algo::ALL.iter().zip(&self.graphs) {
            let figures = [graph.bw_intra, graph.bw_inter, graph.latency_inter];
            if figures.iter().any(|x| !x.is_finite() || *x < 0.0) || graph.channels > constants::MAXCHANNELS {
                return fail(format!(
                    "the graph of {algo} has {} channels and figures {figures:?}",
                    graph.channels
                ));
            }
        }
        Ok(())
    }
}
