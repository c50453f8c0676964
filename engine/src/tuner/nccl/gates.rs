//! Why a combination is left out, in words.

use super::{Algo, Comm, Func, Graph, Path, Proto};
use crate::text::Text;
use crate::tuner::Gate;

pub fn not_implemented(func: Func, algo: Algo) -> Gate {
    let has = match func {
        Func::AllReduce => "every algorithm",
        Func::Broadcast | Func::Reduce => "Ring",
        Func::AllGather | Func::ReduceScatter => "Ring, CollNetDirect, NVLS",
    };
    Gate::new(
        "not_implemented",
        Text::new(
            format!("NCCL 2.22 没有用 {algo} 实现 {func}（只有 {has}）"),
            format!("NCCL 2.22 has no {algo} kernel for {func}, only {has}"),
        ),
    )
}

pub fn protocol_unused(algo: Algo) -> Gate {
    Gate::new(
        "protocol_unused",
        Text::new(format!("{algo} 只用 Simple 协议"), format!("{algo} runs with the Simple protocol only")),
    )
}

pub fn no_graph(algo: Algo) -> Gate {
    Gate::new(
        "no_graph",
        Text::new(
            format!("拓扑搜索没有为 {algo} 找到任何通道，带宽为 0"),
            format!("the topology search found no channel for {algo}, so its bandwidth is 0"),
        ),
    )
}

pub fn nvls_tree_one_node() -> Gate {
    Gate::new(
        "one_node",
        Text::new("NVLSTree 只用于多机", "NVLSTree is for several nodes; on one node NVLS does all of it"),
    )
}

pub fn no_coll_net(algo: Algo) -> Gate {
    let (zh, en) = match algo {
        Algo::Nvls => (
            "多机的 NVLS 需要 CollNet（SHARP）插件",
            "NVLS over several nodes needs a CollNet (SHARP) plugin",
        ),
        _ => ("没有可用的 CollNet（SHARP）插件", "no CollNet (SHARP) plugin is in use"),
    };
    Gate::new("no_collnet", Text::new(zh, en))
}

pub fn no_nvswitch() -> Gate {
    Gate::new(
        "no_nvswitch",
        Text::new("CollNetDirect 需要 NVSwitch", "CollNetDirect needs an NVSwitch, and none was found"),
    )
}

pub fn coll_net_plugin(func: Func, ppn: f32, heads: u32) -> Gate {
    Gate::new(
        "collnet_plugin",
        Text::new(
            format!("CollNet 插件不支持 {func}，或每机 {ppn} 个 rank 多于 {heads} 块可用网卡"),
            format!("the CollNet plugin has no {func}, or {ppn} ranks a node exceed its {heads} cards"),
        ),
    )
}

pub fn coll_net_operation() -> Gate {
    Gate::new(
        "collnet_operation",
        Text::new(
            "CollNet 插件不支持这种归约与数据类型",
            "the CollNet plugin cannot do this reduction in this data type",
        ),
    )
}

pub fn nvls_operation() -> Gate {
    Gate::new(
        "nvls_operation",
        Text::new(
            "NVLS 不可用：硬件没有多播，或交换机做不了这种归约与数据类型",
            "NVLS is not there: no multicast in this communicator, or the switch cannot do this reduction in this data type",
        ),
    )
}

pub fn nvls_nodes(func: Func) -> Gate {
    Gate::new(
        "nvls_nodes",
        Text::new(
            format!("NCCL 2.22 的 NVLS {func} 只支持单机"),
            format!("NVLS {func} works on one node only in NCCL 2.22"),
        ),
    )
}

pub fn excluded(variable: &str, value: &str, name: &str) -> Gate {
    Gate::new(
        "environment",
        Text::new(
            format!("{variable}={value} 排除了 {name}"),
            format!("{variable}={value} leaves {name} out"),
        ),
    )
}

/// What keeps LL128 off unless the user asks for it: `ncclTopoTuneModel`'s "enabled by default only in certain cases".
pub fn ll128(comm: &Comm, graph: &Graph, func: Func, algo: Algo) -> Vec<Gate> {
    let mut gates = Vec::new();
    let mut gate = |zh: String, en: String| gates.push(Gate::new("ll128_unsafe", Text::new(zh, en)));
    let (min, max) = (comm.min_comp_cap, comm.max_comp_cap);
    let furthest = if min >= 90 { Path::Pxn } else { Path::Pxb };
    if graph.type_inter > furthest {
        let (found, furthest) = (graph.type_inter, furthest);
        gate(
            format!("机间路径是 {found}，LL128 只在不远于 {furthest} 时验证过"),
            format!("the path between nodes is {found}, and LL128 is trusted up to {furthest} only"),
        );
    }
    if graph.type_intra > Path::Nvb {
        let found = graph.type_intra;
        gate(
            format!("机内路径是 {found}，LL128 要求 NVLink（不远于 NVB），否则 128 字节写入可能被拆开"),
            format!(
                "the path inside the node is {found}: LL128 needs NVLink (NVB at most), or a 128-byte store may be torn"
            ),
        );
    }
    if min != max {
        gate(
            format!("GPU 不同代（计算能力 {min} 与 {max}）"),
            format!("the GPUs differ (compute capability {min} and {max})"),
        );
    }
    if ![70, 80, 90].contains(&min) {
        gate(
            format!("LL128 没有在计算能力 {min} 上验证过（只有 70、80、90）"),
            format!("LL128 is not trusted on compute capability {min}, only on 70, 80 and 90"),
        );
    }
    if min == 90
        && comm.cudart_version == 11080
        && func == Func::AllReduce
        && algo == Algo::Ring
        && comm.ranks == 2
    {
        gate(
            "CUDA 11.8 编译的 2 个 rank 的 Ring AllReduce 关闭了 LL128".into(),
            "a build with CUDA 11.8 turns LL128 off for Ring AllReduce of 2 ranks".into(),
        );
    }
    gates
}

/// Protocols an algorithm has at all.
pub fn has_protocol(algo: Algo, proto: Proto) -> bool {
    matches!(algo, Algo::Tree | Algo::Ring) || proto == Proto::Simple
}

/// The `continue`s at the head of `ncclTopoTuneModel`'s loop.
pub fn has_algorithm(func: Func, algo: Algo) -> bool {
    match func {
        Func::AllReduce => true,
        Func::Broadcast | Func::Reduce => algo == Algo::Ring,
        Func::AllGather | Func::ReduceScatter => {
            matches!(algo, Algo::Ring | Algo::Nvls | Algo::CollNetDirect)
        }
    }
}

pub fn one_rank() -> Gate {
    Gate::new(
        "one_rank",
        Text::new(
            "只有一个 rank，NCCL 直接用 Ring Simple",
            "with one rank NCCL takes Ring Simple without a model",
        ),
    )
}
