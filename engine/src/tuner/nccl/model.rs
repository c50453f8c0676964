//! `ncclTopoTuneModel`: latency and bandwidth of every combination, and what is left out before any operation is known.

use serde::Serialize;

use super::constants::*;
use super::{Algo, Comm, CpuArch, CpuVendor, Func, InvalidComm, Path, Proto, gates};
use crate::tuner::Gate;
use crate::tuner::overrides::List;

/// One combination for one function.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Entry {
    /// Microseconds; 0 where the combination does not exist.
    pub latency: f32,
    /// Algorithm bandwidth by the formulas, before anything is left out.
    pub modelled: f32,
    /// `comm->bandwidths`: 0 when left out.
    pub bandwidth: f32,
    /// `comm->ringbdw`: what Ring falls back to.
    pub backup: f32,
    /// Why it is left out; empty when it is not.
    pub gates: Vec<Gate>,
}

/// A communicator with its tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    pub comm: Comm,
    /// `[function][algorithm][protocol]`
    pub table: [[[Entry; 3]; 6]; 5],
    /// `comm->maxThreads[algorithm][protocol]`
    pub max_threads: [[u32; 3]; 6],
    /// `comm->threadThresholds[algorithm][protocol]`
    pub thread_thresholds: [[u64; 3]; 6],
}

/// `log2i` of src/include/utils.h: rounds down, -1 for 0.
pub(super) fn log2i(n: u64) -> i32 {
    63 - n.leading_zeros() as i32
}

impl Model {
    /// # Errors
    /// When the communicator's figures contradict each other.
    pub fn new(comm: Comm) -> Result<Model, InvalidComm> {
        comm.check()?;
        let mut model = Model {
            table: Default::default(),
            max_threads: max_threads(&comm),
            thread_thresholds: thread_thresholds(&comm),
            comm,
        };
        if model.comm.ranks > 1 {
            model.fill();
            model.leave_out();
        }
        Ok(model)
    }

    pub fn entry(&self, func: Func, algo: Algo, proto: Proto) -> &Entry {
        &self.table[func.index()][algo.index()][proto.index()]
    }

    fn fill(&mut self) {
        for (func, algo, proto) in combinations() {
            let entry = &mut self.table[func.index()][algo.index()][proto.index()];
            if !gates::has_algorithm(func, algo) {
                entry.gates.push(gates::not_implemented(func, algo));
                continue;
            }
            if matches!(algo, Algo::Nvls | Algo::NvlsTree) && proto != Proto::Simple {
                entry.gates.push(gates::protocol_unused(algo));
                continue;
            }
            entry.latency = latency(&self.comm, func, algo, proto);
            if !gates::has_protocol(algo, proto) {
                entry.gates.push(gates::protocol_unused(algo));
                continue;
            }
            if self.comm.graphs[algo.index()].channels == 0 {
                entry.gates.push(gates::no_graph(algo));
                continue;
            }
            entry.modelled = bandwidth(&self.comm, func, algo, proto);
            entry.bandwidth = entry.modelled;
            if algo == Algo::Ring {
                entry.backup = entry.bandwidth;
            }
            if entry.bandwidth == 0.0 {
                let heads = self.comm.coll_net.as_ref().map_or(0, |net| net.heads);
                entry.gates.push(gates::coll_net_plugin(func, ppn(&self.comm), heads));
            }
        }
    }

    /// "Protocols/Algorithms enable/disable, and user overrides" and "at least set ring algo available".
    fn leave_out(&mut self) {
        let comm = &self.comm;
        let parse =
            |value: &Option<String>| value.as_deref().map(|text| (text.to_owned(), List::parse(text)));
        let (proto_list, algo_list) = (parse(&comm.settings.proto), parse(&comm.settings.algo));
        let listed = |list: &Option<(String, List)>, name: &str| {
            list.as_ref().is_none_or(|(_, list)| list.allows(name))
        };
        let mut enabled = Algo::ALL.iter().map(|algo| listed(&algo_list, algo.name())).collect::<Vec<_>>();
        let mut machine: Vec<Vec<Gate>> = vec![Vec::new(); Algo::ALL.len()];
        let off = |algo: Algo, gate: Gate, enabled: &mut Vec<bool>, machine: &mut Vec<Vec<Gate>>| {
            enabled[algo.index()] = false;
            machine[algo.index()].push(gate);
        };
        if comm.nodes == 1 {
            off(Algo::NvlsTree, gates::nvls_tree_one_node(), &mut enabled, &mut machine);
        }
        if comm.coll_net.is_none() {
            for algo in [Algo::CollNetDirect, Algo::CollNetChain] {
                off(algo, gates::no_coll_net(algo), &mut enabled, &mut machine);
            }
            if comm.nodes > 1 {
                off(Algo::Nvls, gates::no_coll_net(Algo::Nvls), &mut enabled, &mut machine);
            }
            // A list of nothing but CollNet is ignored.
            if [Algo::Ring, Algo::Tree, Algo::Nvls, Algo::NvlsTree].iter().all(|algo| !enabled[algo.index()])
            {
                enabled[Algo::Ring.index()] = true;
                enabled[Algo::Tree.index()] = true;
            }
        } else if comm.nvs_count == 0 {
            off(Algo::CollNetDirect, gates::no_nvswitch(), &mut enabled, &mut machine);
        }

        for (func, algo, proto) in combinations() {
            let entry = &mut self.table[func.index()][algo.index()][proto.index()];
            let mut closed = machine[algo.index()].clone();
            if let Some((text, list)) = &algo_list
                && !list.allows(algo.name())
                && !enabled[algo.index()]
            {
                closed.push(gates::excluded("NCCL_ALGO", text, algo.name()));
            }
            let mut proto_closed = Vec::new();
            match &proto_list {
                Some((text, list)) if !list.allows(proto.name()) => {
                    proto_closed.push(gates::excluded("NCCL_PROTO", text, proto.name()));
                }
                None if proto == Proto::Ll128 => {
                    proto_closed = gates::ll128(comm, &comm.graphs[algo.index()], func, algo);
                }
                _ => {}
            }
            if !proto_closed.is_empty() {
                entry.backup = 0.0;
            }
            closed.extend(proto_closed);
            if !closed.is_empty() {
                entry.bandwidth = 0.0;
            }
            if entry.gates.is_empty() || closed.iter().any(|gate| gate.code == "environment") {
                entry.gates.extend(closed);
            }
        }

        for functions in &mut self.table {
            if functions.iter().flatten().all(|entry| entry.bandwidth == 0.0) {
                for entry in &mut functions[Algo::Ring.index()] {
                    entry.bandwidth = entry.backup;
                }
            }
        }
    }
}

pub(super) fn combinations() -> impl Iterator<Item = (Func, Algo, Proto)> {
    Func::ALL.iter().flat_map(|func| {
        Algo::ALL.iter().flat_map(move |algo| Proto::ALL.iter().map(move |proto| (*func, *algo, *proto)))
    })
}

fn ppn(comm: &Comm) -> f32 {
    comm.ranks as f32 / comm.nodes as f32
}

/// Ring steps, and those of them that leave the node.
fn steps(comm: &Comm, func: Func) -> (u32, u32) {
    let (ranks, nodes) = (comm.ranks, comm.nodes);
    match func {
        Func::AllReduce => (2 * (ranks - 1), if nodes > 1 { 2 * nodes } else { 0 }),
        Func::AllGather | Func::ReduceScatter => (ranks - 1, nodes - 1),
        Func::Broadcast | Func::Reduce => (ranks, nodes),
    }
}

fn bandwidth(comm: &Comm, func: Func, algo: Algo, proto: Proto) -> f32 {
    let graph = &comm.graphs[algo.index()];
    let gpu = match comm.min_comp_cap {
        90.. => 2,
        80.. => 1,
        _ => 0,
    };
    let nodes = comm.nodes.min(3) as usize - 1;
    let row = if comm.nodes == 1 { gpu } else { usize::from(comm.cpu_vendor == CpuVendor::Amd) };
    let (ppn, channels) = (ppn(comm), f64::from(graph.channels));
    let is_coll_net = matches!(algo, Algo::CollNetDirect | Algo::CollNetChain);
    let bw = match algo {
        Algo::Nvls => graph.bw_intra.min(graph.bw_inter),
        Algo::NvlsTree => {
            graph.bw_intra.min(if comm.nodes <= 2 { graph.bw_inter } else { graph.bw_inter / 2.0 })
        }
        _ if comm.nodes <= 2 || is_coll_net => graph.bw_intra,
        _ => graph.bw_inter,
    };
    let mut bus = graph.channels as f32 * bw;
    match (algo, proto) {
        (Algo::Ring, Proto::Ll) => bus = LL_MAX_BWS[row][nodes].min(f64::from(bus) * 0.5) as f32,
        (Algo::Ring, Proto::Ll128) => {
            let share = if ppn < 2.0 { 0.7 } else { 0.92 };
            bus = (f64::from(bus) * share).min(channels * PER_CH_MAX_RING_LL128_BWS[gpu][nodes]) as f32;
        }
        (Algo::Tree, _) => {
            bus = (f64::from(bus) * 0.92).min(channels * PER_CH_MAX_TREE_BWS[gpu][nodes]) as f32;
            if proto == Proto::Ll {
                bus = (f64::from(bus) * 1.0 / 3.8).min(LL_MAX_BWS[row][nodes]) as f32;
            }
            if proto == Proto::Ll128 {
                let share = if comm.nodes == 1 { 7.0 / 9.0 } else { 120.0 / 128.0 };
                bus = (f64::from(bus) * share).min(channels * PER_CH_MAX_TREE_LL128_BWS[gpu][nodes]) as f32;
            }
            if graph.pattern_tree {
                bus = (f64::from(bus) * 0.85) as f32;
            }
        }
        (Algo::CollNetDirect, _) if matches!(func, Func::AllGather | Func::ReduceScatter) => {
            return coll_net_direct_scatter(comm, func, ppn, bw);
        }
        (Algo::CollNetDirect, _) => {
            // Full speed takes a local card per GPU.
            let factor = (f64::from(ppn) / channels) as f32;
            bus /= factor - (factor - 1.0) / 2.0;
            if comm.min_comp_cap >= 90 {
                bus = (f64::from(bus) * 0.85) as f32;
            }
        }
        _ => {}
    }
    let ratio = match algo {
        Algo::Ring => (1.0 * f64::from(comm.ranks) / f64::from(steps(comm, func).0)) as f32,
        Algo::Nvls | Algo::NvlsTree => (5.0_f64 / 6.0) as f32,
        _ => 0.5,
    };
    bus * ratio
}

/// All-gather and reduce-scatter by CollNetDirect: one GPU a card, no conversion from bus bandwidth.
fn coll_net_direct_scatter(comm: &Comm, func: Func, ppn: f32, bw: f32) -> f32 {
    let offered = comm.coll_net.as_ref().is_some_and(|net| {
        let has = if func == Func::AllGather { net.iallgather } else { net.ireducescatter };
        has && ppn <= net.heads as f32
    });
    if comm.nodes > 1 && !offered {
        return 0.0;
    }
    let w = (ppn - 1.0) / 7.0;
    (f64::from(ppn * bw) * (f64::from(w) * 0.85 + f64::from(1.0 - w) * 0.95)) as f32
}

/// `getNetOverhead`, in microseconds.
fn net_overhead(comm: &Comm) -> f32 {
    match (comm.settings.net_overhead_ns, comm.cpu_arch, comm.cpu_vendor) {
        (Some(ns), ..) => (f64::from(ns) * 0.001) as f32,
        (None, CpuArch::X86, CpuVendor::Amd) => 2.0,
        _ => 1.0,
    }
}

fn latency(comm: &Comm, func: Func, algo: Algo, proto: Proto) -> f32 {
    let (a, p) = (algo.index(), proto.index());
    let graph = &comm.graphs[a];
    let hw_lat = |hw: usize, algo: Algo, proto: Proto| {
        // On POWER, Tree Simple over PCI takes Ring's figure.
        let power =
            comm.cpu_arch == CpuArch::Power && (hw, algo, proto) == (NCCL_HW_PCI, Algo::Tree, Proto::Simple);
        HW_LAT[hw][if power { Algo::Ring } else { algo }.index()][proto.index()]
    };
    let intra_hw = if graph.type_intra == Path::Nvl { NCCL_HW_NVLINK } else { NCCL_HW_PCI };
    let hw = if comm.nodes == 1 { intra_hw } else { NCCL_HW_NET };
    let intra = hw_lat(intra_hw, algo, proto);
    let mut inter = hw_lat(NCCL_HW_NET, algo, proto) + graph.latency_inter;
    if proto == Proto::Simple {
        // The flush.
        inter += graph.latency_inter;
    }
    let base = BASE_LAT[a][p];
    let (steps, inter_steps) = steps(comm, func);
    let hops = (comm.ranks / comm.nodes - 1) as f32;
    let levels = log2i(u64::from(comm.nodes)) as f32;
    match algo {
        Algo::Ring if matches!(func, Func::Broadcast | Func::Reduce) => {
            if graph.same_channels {
                return base + hw_lat(hw, algo, proto);
            }
            // "Add some chunk latency": a Simple hop counts as Tree's.
            let hop = hw_lat(hw, if proto == Proto::Simple { Algo::Tree } else { algo }, proto);
            base + steps as f32 * hop
        }
        Algo::Ring => {
            let post = match proto {
                _ if comm.nodes == 1 => 0.0,
                Proto::Simple => net_overhead(comm) * 3.0,
                _ => net_overhead(comm),
            };
            // Signed as in NCCL: with few ranks on many nodes it has more steps between nodes than steps.
            let inside = steps as i32 - inter_steps as i32;
            base + (inside as f32 * intra.max(post) + inter_steps as f32 * inter)
        }
        Algo::Tree => base + 2.0 * (hops * intra + levels * inter),
        Algo::CollNetDirect => {
            let arity = f64::from(hops.min(1.0) * intra) + f64::from(hops) * 0.4;
            (f64::from(base) + (2.0 * arity + f64::from(inter))) as f32
        }
        Algo::CollNetChain => base + (2.0 * hops * intra + inter),
        Algo::Nvls => intra + if comm.nodes > 1 { inter } else { 0.0 },
        Algo::NvlsTree => base + (intra + 2.0 * levels * inter),
    }
}

/// `getNthreads`: what cannot be used becomes the nearest that can.
fn nthreads(set: Option<u32>, min: u32, max: u32, default: u32) -> u32 {
    match set {
        None | Some(0) => default,
        Some(n) if !n.is_multiple_of(WARP_SIZE) => max,
        Some(n) => n.clamp(min, max),
    }
}

fn max_threads(comm: &Comm) -> [[u32; 3]; 6] {
    let ring = &comm.graphs[Algo::Ring.index()];
    let slow = ring.bw_intra * ring.channels as f32 <= PCI_BW;
    let (set, ll128_set) = (comm.settings.nthreads, comm.settings.ll128_nthreads);
    let simple = |default| nthreads(set, 2 * WARP_SIZE, NCCL_SIMPLE_MAX_NTHREADS, default);
    let ll = nthreads(set, 2 * WARP_SIZE, NCCL_LL_MAX_NTHREADS, NCCL_LL_MAX_NTHREADS);
    let ll128 =
        nthreads(ll128_set, NCCL_LL128_MAX_NTHREADS / 4, NCCL_LL128_MAX_NTHREADS, NCCL_LL128_MAX_NTHREADS);
    let mut threads = [[0, 0, NCCL_MAX_NTHREADS]; 6];
    threads[Algo::Tree.index()] = [ll, ll128, simple(NCCL_SIMPLE_MAX_NTHREADS)];
    threads[Algo::Ring.index()] = [ll, ll128, simple(if slow { 256 } else { NCCL_SIMPLE_MAX_NTHREADS })];
    threads
}

fn thread_thresholds(comm: &Comm) -> [[u64; 3]; 6] {
    let mut thresholds =
        [[NCCL_LL_THREAD_THRESHOLD, NCCL_LL128_THREAD_THRESHOLD, NCCL_SIMPLE_THREAD_THRESHOLD]; 6];
    thresholds[Algo::Ring.index()][Proto::Ll.index()] *= u64::from(comm.ranks);
    thresholds[Algo::CollNetDirect.index()][Proto::Simple.index()] = 512;
    thresholds[Algo::CollNetChain.index()][Proto::Simple.index()] = 512;
    for (i, set) in comm.settings.thread_thresholds.iter().enumerate() {
        if let Some(threshold) = set {
            thresholds[i / 3][i % 3] = *threshold;
        }
    }
    thresholds
}
