//! Programs for a fused launch: all ranks of a session as blocks of ONE launch on one device. The launch gives for nothing what much of
//! a plan's synchronisation asks for: inputs are ready before any block starts, outputs are read after all blocks have ended. It also
//! lets a block write any rank's buffers as easily as its own.
//!
//! # When programs are left as they are
//! Everything below holds for plans whose result does not depend on timing, so that is shown first ([`Order::of`],
//! [`Accesses::races`]). Otherwise all programs of the plan stay as they are, and are [`Freedom::Bound`]: a learner whose plan
//! deadlocks, races, gives more signals than it takes, or moves no data at all (to measure signals) sees what was written. A plan that
//! passes computes the same elements however its blocks interleave, also if those are not the collective's. Bytes that cross between
//! ranks stay the plan's, too ([`Instr::carried`]); which rank counts them may change.
//!
//! # Terms
//! An event is one chunk of a data step, a signal or a wait, in one tile. `x` precedes `y` if program order, the pairing of the k-th
//! signal with the k-th wait, and that of sent with received chunks lead from `x` to `y`; freed slots order nothing (`plan::Plan`).
//! Two accesses to one place conflict if one writes. A plan has no race if of two conflicting accesses one always precedes the other.
//! Then every read sees the last write that precedes it, and this alone decides all values.
//!
//! Tiles of input and output are different elements, those of scratch the same memory, so scratch is looked at in two consecutive
//! tiles. Two are enough: programs repeat, so `x` in one tile before `y` in the next is before `y` in all later ones.
//!
//! # Rewrites
//! - A chunk copied onto itself, as in place, touches nothing and goes.
//! - Forwarding, [`forward`]: who computes a value writes it where others copied it to. Two-shot all-reduce becomes one reduction with a
//!   destination on every rank.
//! - Scratch that nobody reads any more, because all its copies were forwarded, is not written.
//! - Elision, [`elide`]: signals that no longer order anything go, with their waits.
//!
//! Forwarding goes first: it only removes accesses to a place or moves them to an earlier point, and elision keeps no more order than
//! the remaining accesses need. Elision cannot make more forwarding possible, since forwarding only asks what precedes what.

mod access;
mod elide;
mod forward;
mod order;
pub mod overlap;

use std::collections::BTreeMap;

use self::access::Accesses;
use self::order::Order;
use super::program::{Action, Instr, Operand, Program};
use crate::types::ChannelId;

/// What a launch of the programs has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freedom {
    /// Programs wait for each other, or were left alone: all blocks have to be resident together.
    Bound,
    /// No program waits, but scratch holds one tile: one block runs a program, tile after tile.
    Tiled,
    /// Programs touch nothing of each other's and no scratch: blocks may run in any order, share a program's slices in any cut, each
    /// doing all steps in order for its part, and take whole slices as one tile.
    Free,
}

/// A channel's steps by rank and step; what has been dropped is `None`, so that the others keep their numbers.
type Steps = Vec<Vec<Option<Instr>>>;

/// Programs with the same result in a fused launch. `programs` are those of all ranks and channels, as `compile` gives them; their
/// lengths must have been found consistent as they are (`slices::infer`). `tiles` is how often a channel's program runs, `canonical`
/// gives memory that two names share one name.
pub fn fused(
    programs: Vec<Program>,
    tiles: u64,
    canonical: impl Fn(Operand) -> Operand,
) -> (Vec<Program>, Freedom) {
    let data = |program: &Program| program.steps.iter().any(Instr::moves_data);
    if !programs.iter().any(data) {
        return (programs, Freedom::Bound);
    }
    let mut channels: BTreeMap<ChannelId, Vec<usize>> = BTreeMap::new();
    for (i, program) in programs.iter().enumerate() {
        channels.entry(program.channel).or_default().push(i);
    }
    let mut rewritten = Vec::new();
    for members in channels.into_values() {
        // Connections and places count ranks.
        if members.iter().enumerate().any(|(rank, &i)| programs[i].rank.index() != rank) {
            return (programs, Freedom::Bound);
        }
        let Some(steps) = channel(&programs, &members, tiles, &canonical) else {
            return (programs, Freedom::Bound);
        };
        rewritten.extend(members.into_iter().zip(steps.into_iter().flatten()));
    }
    let mut programs = programs;
    for (i, steps) in rewritten {
        programs[i].steps = steps;
    }
    let freedom = freedom(programs.iter().flat_map(|program| &program.steps));
    (programs, freedom)
}

fn freedom<'a>(steps: impl Iterator<Item = &'a Instr> + Clone) -> Freedom {
    if steps.clone().any(|instr| instr.from.is_some() || instr.to.is_some()) {
        Freedom::Bound
    } else if steps.clone().any(Instr::touches_scratch) {
        Freedom::Tiled
    } else {
        Freedom::Free
    }
}

/// The steps of one channel by rank: `Some(None)` if they stay as they are, `None` if the plan has to.
fn channel(
    programs: &[Program],
    members: &[usize],
    tiles: u64,
    canonical: &impl Fn(Operand) -> Operand,
) -> Option<Option<Vec<Vec<Instr>>>> {
    let plain = || -> Steps { members.iter().map(|&i| single_chunks(&programs[i].steps)).collect() };
    if members.iter().map(|&i| chunks(&programs[i].steps)).sum::<usize>() > order::MOST_EVENTS {
        return None;
    }
    let mut steps = plain();
    let order = Order::of(&steps, tiles)?;
    let mut accesses = Accesses::of(&steps, &order, canonical);
    if accesses.races(&order) {
        return None;
    }
    let onto_themselves = access::drop_onto_themselves(&mut steps, canonical);
    let forwarded = forward::forward(&mut steps, &order, &mut accesses, canonical);
    let elided = elide::elide(&mut steps, &order, &accesses);
    let live = || steps.iter().flatten().flatten();
    if forwarded && freedom(live()) == Freedom::Bound {
        let mut unforwarded = plain();
        access::drop_onto_themselves(&mut unforwarded, canonical);
        if busiest(&steps) > busiest(&unforwarded) {
            // Blocks that cannot share a program must not be given each other's work.
            let accesses = Accesses::of(&unforwarded, &order, canonical);
            let elided = elide::elide(&mut unforwarded, &order, &accesses);
            return Some((onto_themselves || elided).then(|| remaining(unforwarded)));
        }
    }
    Some((onto_themselves || forwarded || elided).then(|| remaining(steps)))
}

fn remaining(steps: Steps) -> Vec<Vec<Instr>> {
    steps.into_iter().map(|steps| steps.into_iter().flatten().collect()).collect()
}

/// Most operands that one rank's steps touch.
fn busiest(steps: &Steps) -> usize {
    let touched = |instr: &Instr| {
        let slots = usize::from(instr.from.is_some()) + usize::from(instr.to.is_some());
        if instr.moves_data() { instr.srcs.len() + instr.dsts().count() + slots } else { 0 }
    };
    steps.iter().map(|steps| steps.iter().flatten().map(touched).sum()).max().unwrap_or(0)
}

fn chunks(steps: &[Instr]) -> usize {
    steps.iter().map(|instr| instr.len.max(1) as usize).sum()
}

/// Steps of several chunks run chunk by chunk, one slot each (`plan::Plan`), so one step a chunk is the same program.
fn single_chunks(steps: &[Instr]) -> Vec<Option<Instr>> {
    let mut all = Vec::with_capacity(chunks(steps));
    for instr in steps {
        if !matches!(instr.action, Action::Move | Action::Fold) {
            all.push(Some(instr.clone()));
            continue;
        }
        for nth in 0..instr.len {
            let own = |operand: &Operand| Operand { start: operand.start + nth, ..*operand };
            all.push(Some(Instr {
                srcs: instr.srcs.iter().map(own).collect(),
                dst: instr.dst.as_ref().map(own),
                also: instr.also.iter().map(own).collect(),
                len: 1,
                ..instr.clone()
            }));
        }
    }
    all
}
