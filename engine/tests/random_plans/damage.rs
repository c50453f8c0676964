//! Random changes of a plan, harmless and not.

use ringlab_engine::plan::{Buffer, Plan, Range, Step};
use ringlab_engine::types::Rank;

use super::Dice;

/// The ranges and peers of a step, to be changed.
fn parts(step: &mut Step) -> (Vec<&mut Range>, Vec<&mut Rank>) {
    match step {
        Step::Send { to, src } => (vec![src], vec![to]),
        Step::Recv { from, dst } => (vec![dst], vec![from]),
        Step::RecvReduceCopy { from, src, dst } => (vec![src, dst], vec![from]),
        Step::RecvReduceSend { from, src, to } => (vec![src], vec![from, to]),
        Step::RecvReduceCopySend { from, src, dst, to } => (vec![src, dst], vec![from, to]),
        Step::RecvCopySend { from, dst, to } => (vec![dst], vec![from, to]),
        Step::Copy { src, dst } => (vec![&mut src.range, dst], src.rank.iter_mut().collect()),
        Step::Reduce { srcs, dst } => {
            let (mut ranges, mut peers) = (vec![], vec![]);
            for src in srcs {
                ranges.push(&mut src.range);
                peers.extend(&mut src.rank);
            }
            ranges.push(dst);
            (ranges, peers)
        }
        Step::Signal { to } => (vec![], vec![to]),
        Step::Wait { from } => (vec![], vec![from]),
    }
}

/// `b` right behind `a` as one step of longer ranges, if they are the same step of neighbouring chunks.
fn joined(a: &Step, b: &Step) -> Option<Step> {
    let (mut long, same_step) = (a.clone(), a.name() == b.name());
    let mut b = b.clone();
    let (ranges, peers) = parts(&mut long);
    let (next_ranges, next_peers) = parts(&mut b);
    let neighbours = |(a, b): (&&mut Range, &&mut Range)| (a.buffer, a.start + a.len) == (b.buffer, b.start);
    let same = same_step
        && peers == next_peers
        && !ranges.is_empty()
        && ranges.len() == next_ranges.len()
        && ranges.iter().zip(&next_ranges).all(neighbours);
    if !same {
        return None;
    }
    for (range, next) in ranges.into_iter().zip(next_ranges) {
        range.len += next.len;
    }
    Some(long)
}

/// The same plan with every chunk cut into `by`, and every range that much longer.
pub fn widen(plan: &mut Plan, by: u32) {
    plan.chunks *= by;
    plan.scratch.iter_mut().for_each(|scratch| scratch.chunks *= by);
    for step in plan.programs.iter_mut().flat_map(|p| &mut p.steps) {
        for range in parts(step).0 {
            let (start, len) = (range.start * by, range.len * by);
            *range = Range { start, len, ..*range };
        }
    }
}

/// Cuts some steps on several chunks in two.
pub fn split(dice: &mut Dice, steps: &mut Vec<Step>) {
    for i in (0..steps.len()).rev() {
        let len = steps[i].chunk_len();
        if len < 2 || dice.percent(60) {
            continue;
        }
        let first = 1 + dice.below(len as usize - 1) as u32;
        let mut rest = steps[i].clone();
        parts(&mut steps[i]).0.into_iter().for_each(|range| range.len = first);
        for range in parts(&mut rest).0 {
            (range.start, range.len) = (range.start + first, len - first);
        }
        steps.insert(i + 1, rest);
    }
}

/// Makes longer ranges of steps on neighbouring chunks.
pub fn join(dice: &mut Dice, steps: &mut Vec<Step>) {
    let mut i = 0;
    while i + 1 < steps.len() {
        match joined(&steps[i], &steps[i + 1]) {
            Some(long) if dice.percent(70) => {
                steps[i] = long;
                steps.remove(i + 1);
            }
            _ => i += 1,
        }
    }
}

/// One change of one step; the plan may not even be well-formed afterwards.
pub fn damage(dice: &mut Dice, plan: &mut Plan) {
    let (ranks, chunks) = (plan.ranks, plan.chunks);
    let buffers = 2 + plan.scratch.len();
    let chosen = dice.below(plan.programs.len());
    let program = &mut plan.programs[chosen];
    let steps = &mut program.steps;
    if steps.is_empty() {
        return;
    }
    let i = dice.below(steps.len());
    match dice.below(10) {
        0 if i + 1 < steps.len() => steps.swap(i, i + 1),
        1 => {
            let step = steps.remove(i);
            steps.insert(dice.below(steps.len() + 1), step);
        }
        2 => _ = steps.remove(i),
        3 => steps.insert(dice.below(steps.len() + 1), steps[i].clone()),
        4 => {
            let (_, mut peers) = parts(&mut steps[i]);
            if !peers.is_empty() {
                let peer = dice.below(peers.len());
                *peers[peer] = Rank(dice.below(ranks as usize) as u32);
            }
        }
        5 | 6 => {
            let (mut ranges, _) = parts(&mut steps[i]);
            if !ranges.is_empty() {
                let range = dice.below(ranges.len());
                ranges[range].start = dice.below(2 * chunks as usize) as u32;
            }
        }
        7 => {
            let (mut ranges, _) = parts(&mut steps[i]);
            if !ranges.is_empty() {
                let range = dice.below(ranges.len());
                ranges[range].buffer =
                    [Buffer::Input, Buffer::Output, Buffer::Scratch(0), Buffer::Scratch(1)]
                        [dice.below(buffers.min(4))];
            }
        }
        8 => {
            let len = 1 + dice.below(chunks as usize) as u32;
            parts(&mut steps[i]).0.into_iter().for_each(|range| range.len = len);
        }
        _ => {
            // A signal that a peer takes somewhere.
            let (channel, rank) = (program.channel, program.rank);
            let to = Rank((rank.0 + 1 + dice.below(ranks as usize - 1) as u32) % ranks);
            steps.insert(i, Step::Signal { to });
            let other = &mut plan.programs[to.index() * plan.channels as usize + channel.index()].steps;
            let at = dice.below(other.len() + 1);
            other.insert(at, Step::Wait { from: rank });
        }
    }
}
