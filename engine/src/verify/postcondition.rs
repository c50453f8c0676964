//! What a collective promises, held against what the symbolic run left in the outputs.

use super::TILES;
use super::machine::Machine;
use super::refusal::{At, Refusal, RefusalKind};
use super::value::count;
use crate::plan::{Buffer, Plan, Range};
use crate::types::{Collective, Rank};

/// Most wrong outputs whose causes are compared for the shortest.
const COMPARED: usize = 64;
/// Most steps in the causes that are compared: a plan with long ones has none that a person would read to the end.
const MAX_STEPS: usize = 100_000;

/// Contributions that chunk `chunk` of the output of `rank` must hold, each once: (rank, chunk of its input).
fn wanted(plan: &Plan, rank: u32, chunk: u32) -> Vec<(u32, u32)> {
    let chunks = plan.chunks;
    match plan.collective {
        Collective::AllReduce => (0..plan.ranks).map(|q| (q, chunk)).collect(),
        Collective::AllGather => vec![(chunk / chunks, chunk % chunks)],
        Collective::ReduceScatter => (0..plan.ranks).map(|q| (q, rank * chunks + chunk)).collect(),
        Collective::Broadcast { root } => vec![(root.0, chunk)],
        Collective::Reduce { .. } => (0..plan.ranks).map(|q| (q, chunk)).collect(),
        Collective::AllToAll => vec![(chunk / chunks, rank * chunks + chunk % chunks)],
        Collective::Gather { .. } => vec![(chunk / chunks, chunk % chunks)],
        Collective::Scatter { root } => vec![(root.0, rank * chunks + chunk)],
        Collective::SendRecv => vec![((rank + plan.ranks - 1) % plan.ranks, chunk)],
    }
}

/// Checks all outputs after a run; of several mistakes, reports the one with the shortest cause.
pub fn check(plan: &Plan, machine: &Machine<'_>) -> Result<(), Refusal> {
    let chunks = plan.collective.output_blocks(plan.ranks) * plan.chunks;
    let mut refusals: Vec<Refusal> = Vec::new();
    let mut steps = 0;
    for tile in 0..TILES {
        for rank in (0..plan.ranks).filter(|rank| plan.collective.has_output(Rank(*rank))) {
            for chunk in 0..chunks {
                if refusals.len() < COMPARED
                    && steps <= MAX_STEPS
                    && let Some(refusal) = check_one(plan, machine, rank, chunk, tile)
                {
                    steps += refusal.slice.len();
                    refusals.push(refusal);
                }
            }
        }
        // A later tile is of interest only when the first is right.
        if let Some(shortest) = refusals.into_iter().min_by_key(|refusal| refusal.slice.len()) {
            return Err(shortest);
        }
        refusals = Vec::new();
    }
    Ok(())
}

fn check_one(plan: &Plan, machine: &Machine<'_>, rank: u32, chunk: u32, tile: u32) -> Option<Refusal> {
    let cell = &machine.memory.cells[machine.memory.index(rank, Buffer::Output, chunk, tile)];
    let range = Range { buffer: Buffer::Output, start: chunk, len: 1 };
    let (owner, wanted) = (Rank(rank), wanted(plan, rank, chunk));
    let Some(value) = cell.value else {
        return Some(Refusal {
            kind: RefusalKind::NeverWritten { owner, range },
            location: None,
            slice: Vec::new(),
            names: super::refusal::Names::new(plan),
        });
    };
    let terms = machine.values.terms(value);
    let maker = machine.values.maker(value);
    let about = |kind, location: Option<At>, slice| {
        Some(Refusal {
            kind,
            location: location.map(At::location),
            slice,
            names: super::refusal::Names::new(plan),
        })
    };
    if let Some(foreign) = terms.iter().find(|t| !wanted.iter().any(|&(q, k)| t.is(q, k, tile))) {
        let slice = machine.values.history(value, |terms| count(terms, foreign) > 0);
        let kind = RefusalKind::Foreign {
            owner,
            range,
            rank: Rank(foreign.rank()),
            chunk: foreign.chunk(),
            stale: foreign.tile() != tile,
        };
        return about(kind, maker, slice);
    }
    if let Some(twice) = terms.iter().find(|t| t.count > 1) {
        let origin = machine.values.origin(value, |terms| count(terms, twice) > 1);
        let slice = machine.values.history(origin, |terms| count(terms, twice) > 0);
        let kind = RefusalKind::Twice { owner, range, rank: Rank(twice.rank()), count: twice.count };
        return about(kind, machine.values.maker(origin), slice);
    }
    let missing = wanted.iter().find(|&&(q, k)| !terms.iter().any(|t| t.is(q, k, tile)))?;
    let missing = Rank(missing.0);
    let slice = machine.values.history(value, |_| true);
    // Where the missing rank had the data in its hands.
    let passed = slice.iter().copied().find(|at| at.rank == missing);
    about(RefusalKind::Missing { owner, range, rank: missing, passed }, passed.or(maker), slice)
}
