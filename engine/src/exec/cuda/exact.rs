//! What the kernels that fill and check are told.

use super::image;
use crate::data::Exact;
use crate::exec::SessionSpec;
use crate::types::{Collective, Rank, RedOp};

/// What `fill` and `check` are told about a rank. The number of ranks was found fit before.
pub fn exact_params(spec: &SessionSpec, seed: u64, rank: Rank) -> image::Exact {
    let SessionSpec { plan, dtype, op, block, .. } = spec;
    let exact = Exact::of(seed, *dtype, *op, plan.ranks, plan.collective);
    let (draw, op) = exact.expect("`open` checked the number of ranks").recipe();
    let root = plan.collective.root().map_or(0, |root| root.0);
    let collective = match plan.collective {
        Collective::AllReduce => 0,
        Collective::AllGather => 1,
        Collective::ReduceScatter => 2,
        Collective::Broadcast { .. } => 3,
        Collective::Reduce { .. } => 4,
        Collective::AllToAll => 5,
        Collective::Gather { .. } => 6,
        Collective::Scatter { .. } => 7,
        Collective::SendRecv => 8,
    };
    let op = RedOp::ALL.iter().position(|&o| o == op).expect("every reduction is in ALL") as u32;
    image::Exact {
        seed,
        block: *block,
        op,
        ranks: plan.ranks,
        most: draw.most,
        givers: draw.givers,
        shifts: draw.shifts,
        bits: draw.bits,
        shape: draw.kind as u32,
        is_signed: draw.signed.into(),
        collective,
        root,
        rank: rank.0,
    }
}
