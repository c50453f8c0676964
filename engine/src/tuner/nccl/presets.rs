//! Communicators whose graphs are known without a machine.

use super::constants::{DEFAULT_BUFFSIZES, NVLS_CHUNKSIZE, NVLS_NCHANNELS};
use super::{Comm, CpuArch, CpuVendor, Graph, InvalidComm, Path, Settings};

impl Comm {
    /// A DGX H100: 8 GPUs with 18 NVLinks of 20.6 GB/s to NVSwitches and, between nodes, a 400 Gb/s card per GPU.
    ///
    /// The graphs are derived, not read from a log. One node: 370.8 GB/s a GPU hold 6 rings of 60, which the search duplicates to 12 of
    /// 30 and `ncclTopoPostset` doubles to 24 channels; NVLS needs a head per GPU, and 40 is the fastest speed of which 8 fit. More
    /// nodes: a ring per card at 48 GB/s (PCI Gen5 x16), doubled to 16 channels.
    ///
    /// # Errors
    /// When a node has no rank or more than 8.
    pub fn dgx_h100(nodes: u32, ranks_per_node: u32) -> Result<Comm, InvalidComm> {
        let name = format!("DGX H100, {nodes} x {ranks_per_node} GPUs");
        if nodes == 0 || !(1..=8).contains(&ranks_per_node) {
            let problem = format!(
                "a DGX H100 has 1 to 8 ranks a node on 1 or more nodes, not {ranks_per_node} on {nodes}"
            );
            return Err(InvalidComm { name, problem });
        }
        let one_node = nodes == 1;
        let (channels, bw) = if one_node { (12, 30.0) } else { (8, 48.0) };
        let graph = |channels, bw| Graph {
            channels,
            bw_intra: bw,
            bw_inter: bw,
            latency_inter: 0.0,
            type_intra: if ranks_per_node == 1 { Path::Loc } else { Path::Nvl },
            type_inter: Path::Pix,
            same_channels: one_node,
            pattern_tree: ranks_per_node == 1,
        };
        let standard = graph(channels, bw);
        // A graph that was never searched is all zero, so its GPUs count as joined by PCI. `ncclNvlsInit` wants more than two GPUs.
        let none = Graph {
            type_intra: Path::Loc,
            type_inter: Path::Loc,
            same_channels: false,
            pattern_tree: false,
            ..graph(0, 0.0)
        };
        let nvls = if ranks_per_node > 2 { graph(ranks_per_node, 40.0) } else { none.clone() };
        Ok(Comm {
            name,
            ranks: nodes.saturating_mul(ranks_per_node),
            nodes,
            channels: if one_node { 24 } else { 16 },
            min_comp_cap: 90,
            max_comp_cap: 90,
            cpu_arch: CpuArch::X86,
            cpu_vendor: CpuVendor::Intel,
            graphs: [standard.clone(), standard, none.clone(), none, nvls.clone(), nvls],
            coll_net: None,
            nvs_count: 4,
            nvls: ranks_per_node > 2,
            nvls_channels: NVLS_NCHANNELS,
            nvls_heads: ranks_per_node,
            nvls_chunk_size: NVLS_CHUNKSIZE,
            buff_sizes: DEFAULT_BUFFSIZES,
            cudart_version: 12050,
            settings: Settings::default(),
        })
    }
}
