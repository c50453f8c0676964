//! `ncclTopoGetAlgoTime`, `updateCollCostTable` and `topoGetAlgoInfo`: the time of every combination for one operation, and the winner.

use serde::Serialize;

use super::constants::*;
use super::model::log2i;
use super::{Algo, Func, Model, Proto, gates};
use crate::text::Text;
use crate::tuner::Gate;
use crate::tuner::choice::{Candidate, Choice, Cost, Launched};
use crate::types::{DType, RedOp};

/// One operation as `getAlgoInfo` gets it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Operation {
    pub func: Func,
    /// The larger of a rank's two buffers.
    pub bytes: u64,
    /// Operations of one group on a channel; 1 for a call by itself.
    pub num_pipe_ops: u32,
    /// `ncclNvlsSupported`: the switch can do the reduction in the data type.
    pub nvls_supported: bool,
    /// `collNetSupportMatrix`: so can the CollNet plugin.
    pub coll_net_supported: bool,
}

impl Operation {
    /// A sum of floats by itself, which every offload can do.
    pub fn sum(func: Func, bytes: u64) -> Operation {
        Operation { func, bytes, num_pipe_ops: 1, nvls_supported: true, coll_net_supported: true }
    }
}

/// `ncclNvlsSupported` (src/include/device.h): what an NVSwitch reduces. An average is none of it: NCCL scales it before or after.
pub fn nvls_supported(op: RedOp, dtype: DType) -> bool {
    match dtype.name() {
        "int32" | "uint32" | "int64" | "uint64" | "half" | "bfloat16" => {
            matches!(op, RedOp::Sum | RedOp::Min | RedOp::Max)
        }
        "float" | "double" => op == RedOp::Sum,
        _ => false,
    }
}

/// What `ncclTopoGetAlgoTime` finds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AlgoTime {
    /// Microseconds; `None` is NCCL's -1.
    pub time: Option<f32>,
    /// Ring was left out, and this is what it would take if nothing else can run.
    pub backup: bool,
}

/// NCCL's "Error : no algorithm/protocol available".
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "no algorithm and protocol of NCCL 2.22 is left for {func} of {bytes} bytes on {comm}; the settings are NCCL_ALGO={algo} and \
     NCCL_PROTO={proto}: remove one"
)]
pub struct NoAlgorithm {
    pub func: Func,
    pub bytes: u64,
    pub comm: String,
    pub algo: String,
    pub proto: String,
    pub candidates: Vec<Candidate>,
}

/// Latency, bandwidth and total as they apply to one operation, each with what changed it.
struct Priced {
    latency: f32,
    bandwidth: f32,
    time: f32,
    notes: Vec<Text>,
}

impl Model {
    /// Time of a combination.
    pub fn algo_time(&self, op: &Operation, algo: Algo, proto: Proto) -> AlgoTime {
        let entry = self.entry(op.func, algo, proto);
        let backup = algo == Algo::Ring && entry.bandwidth == 0.0;
        let bw = if backup { entry.backup } else { entry.bandwidth };
        AlgoTime { time: (bw != 0.0).then(|| self.price(op, algo, proto, bw).time), backup }
    }

    fn price(&self, op: &Operation, algo: Algo, proto: Proto, bw: f32) -> Priced {
        let comm = &self.comm;
        let mut priced = Priced {
            latency: self.entry(op.func, algo, proto).latency,
            bandwidth: bw,
            time: 0.0,
            notes: Vec::new(),
        };
        let log_size = log2i(op.bytes >> 6);
        if algo == Algo::Tree && (0..23).contains(&log_size) {
            let factor = TREE_CORRECTION_FACTOR[proto.index()][log_size as usize];
            priced.bandwidth *= factor;
            if factor != 1.0 {
                priced.notes.push(Text::new(
                    format!("树的修正系数把带宽乘以 {factor}"),
                    format!("the tree correction multiplies its bandwidth by {factor} at this size"),
                ));
            }
        }
        let per_rank_channel = op.bytes / (u64::from(comm.channels) * u64::from(comm.ranks));
        if (algo, proto, op.func) == (Algo::Ring, Proto::Simple, Func::AllReduce)
            && comm.nodes > 1
            && per_rank_channel >= 64
        {
            let factor: f64 = if comm.min_comp_cap < 80 { 1.9 } else { 1.4 };
            priced.latency = (f64::from(priced.latency) * factor) as f32;
            priced.notes.push(Text::new(
                format!("多机环的平台效应把延迟乘以 {factor}"),
                format!("the plateau of a ring over several nodes multiplies its latency by {factor}"),
            ));
        }
        let count = if algo == Algo::Ring {
            op.num_pipe_ops
        } else {
            op.num_pipe_ops.div_ceil(NCCL_MAX_DEV_WORK_BATCH_COLLS)
        };
        priced.time = priced.latency * count as f32 + op.bytes as f32 / (1000.0 * priced.bandwidth);
        priced
    }

    /// Why a combination is skipped for this operation though the communicator has it.
    fn skipped(&self, op: &Operation, algo: Algo) -> Option<Gate> {
        let comm = &self.comm;
        let reduces = op.func != Func::AllGather && op.func != Func::Broadcast;
        let coll_net = comm.coll_net.is_some() && (op.coll_net_supported || !reduces);
        let nvls = comm.nvls && (op.nvls_supported || op.func == Func::AllGather);
        let scatter = matches!(op.func, Func::AllGather | Func::ReduceScatter);
        match algo {
            Algo::CollNetDirect | Algo::CollNetChain if !coll_net => Some(if comm.coll_net.is_none() {
                gates::no_coll_net(algo)
            } else {
                gates::coll_net_operation()
            }),
            // All-gather is let through here; without NVLS its graph has no channels.
            Algo::Nvls | Algo::NvlsTree if !nvls && op.func != Func::AllGather => {
                Some(gates::nvls_operation())
            }
            Algo::Nvls if !coll_net && comm.nodes > 1 => Some(gates::no_coll_net(Algo::Nvls)),
            Algo::Nvls if scatter && comm.nodes > 1 => Some(gates::nvls_nodes(op.func)),
            _ => None,
        }
    }

    /// What NCCL 2.22.3 would run for an operation, with every combination it weighed.
    ///
    /// # Errors
    /// [`NoAlgorithm`] where NCCL fails as well.
    pub fn choose(&self, op: &Operation) -> Result<Choice, NoAlgorithm> {
        let mut candidates = Vec::with_capacity(18);
        // (time, candidate), the regular one and Ring as a last resort; the first of equals wins.
        let mut best: Option<(f32, usize)> = None;
        let mut backup = best;
        for algo in Algo::ALL.iter().copied() {
            for proto in Proto::ALL.iter().copied() {
                let at = candidates.len();
                let mut candidate = self.candidate(op, algo, proto);
                let skipped = self.skipped(op, algo).filter(|_| self.comm.ranks > 1);
                let timed = self.algo_time(op, algo, proto);
                let time = if self.comm.ranks == 1 {
                    ((algo, proto) == (Algo::Ring, Proto::Simple)).then_some(0.0)
                } else {
                    timed.time.filter(|_| skipped.is_none())
                };
                if let Some(gate) =
                    skipped.filter(|gate| !candidate.gates.iter().any(|known| known.code == gate.code))
                {
                    candidate.gates.push(gate);
                }
                let slot = if timed.backup && self.comm.ranks > 1 { &mut backup } else { &mut best };
                if let Some(time) = time
                    && slot.is_none_or(|(least, _)| time < least)
                {
                    *slot = Some((time, at));
                }
                candidates.push(candidate);
            }
        }
        let Some((_, chosen)) = best.or(backup) else {
            let or_unset = |set: &Option<String>| set.clone().unwrap_or_else(|| "(unset)".into());
            return Err(NoAlgorithm {
                func: op.func,
                bytes: op.bytes,
                comm: self.comm.name.clone(),
                algo: or_unset(&self.comm.settings.algo),
                proto: or_unset(&self.comm.settings.proto),
                candidates,
            });
        };
        let (algo, proto) = (Algo::ALL[chosen / 3], Proto::ALL[chosen % 3]);
        candidates[chosen].fallback = !candidates[chosen].gates.is_empty();
        let launch = self.launch(op, algo, proto);
        Ok(Choice {
            profile: format!("NCCL 2.22.3, {}", self.comm.name),
            collective: op.func.engine_name().into(),
            ranks: self.comm.ranks,
            bytes: op.bytes,
            why: self.why(&candidates[chosen], op),
            candidates,
            chosen,
            launched: Launched {
                channels: launch.channels,
                threads: Some(launch.threads),
                chunk_bytes: Some(launch.chunk_bytes),
                slice_bytes: Some(launch.slice_bytes),
                notes: launch.notes,
            },
        })
    }

    fn candidate(&self, op: &Operation, algo: Algo, proto: Proto) -> Candidate {
        let mut candidate = Candidate::new(algo.name(), proto.name());
        if self.comm.ranks == 1 {
            if (algo, proto) == (Algo::Ring, Proto::Simple) {
                candidate.cost = Some(Cost::default());
            } else {
                candidate.gates.push(gates::one_rank());
            }
            return candidate;
        }
        let entry = self.entry(op.func, algo, proto);
        candidate.gates.clone_from(&entry.gates);
        if entry.modelled > 0.0 {
            let priced = self.price(op, algo, proto, entry.modelled);
            candidate.cost = Some(Cost {
                time_us: priced.time.into(),
                latency_us: priced.latency.into(),
                bandwidth_gbps: priced.bandwidth.into(),
                notes: priced.notes,
            });
        }
        candidate
    }

    fn why(&self, chosen: &Candidate, op: &Operation) -> Text {
        if self.comm.ranks == 1 {
            return Text::new("只有一个 rank，没有数据要传输", "there is one rank and nothing to send");
        }
        if chosen.fallback {
            return Text::new(
                format!(
                    "设置排除了 {} 能用的一切，NCCL 退回 Ring：环境变量没有按字面生效（见 nccl#1304、#1595）",
                    op.func
                ),
                format!(
                    "the settings leave nothing that {} can run, so NCCL falls back to Ring against their wording (nccl#1304, #1595)",
                    op.func
                ),
            );
        }
        Text::new(
            "在剩下的组合里，预测时间 = 延迟 + 字节数 / 带宽 最小；相等时取表中靠前的",
            "of what is left its predicted time, latency + bytes / bandwidth, is the least; the earlier in the table wins a tie",
        )
    }
}
