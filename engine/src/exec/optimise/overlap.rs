//! Programs of two halves that run side by side: while a rank works on a tile's second half, it works on later tiles' first half. A tree's
//! all-reduce sends sums up and results down on connections of their own; done tile by tile, each rank would wait for the way up and down
//! before it begins with the next tile. NCCL gives each direction threads of its own; here one block takes the halves in turns.
//!
//! # When it is allowed
//! Every program is cut in two so that each connection is used in the first half of both its programs, or in the second half of both. No
//! step signals or touches a peer's buffer, and no scratch is used in both halves.
//!
//! # Why it ends, and with the same bits
//! Turn `t` of every rank does the first half of tile `t`, then the second half of tile `t - lag`. A rank's steps keep their order on each
//! connection, so each message meets its own receiver. Tiles of input and output are different elements, and scratch is not shared by the
//! halves, so what steps read does not change. What runs out of slots or waits for data can run: a tile by itself ends, since the plan's
//! does; nothing in its first half waits for anything in its second, so first halves by themselves end, and leave every connection
//! empty, as second halves do then. All first halves of turn 0, all second halves of turn 0, and so on is thus an order in which all ranks
//! get to their end; and as each rank's order is fixed and a wait once over stays over, none of them can miss it.

use std::collections::{HashMap, HashSet};

use crate::exec::program::{Action, Instr, Operand, Peer, Program};
use crate::plan::Buffer;
use crate::types::{ChannelId, Rank};

/// How programs are cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halves {
    /// By program: the first step of its second half.
    pub cuts: Vec<usize>,
    /// Tiles by which second halves are behind.
    pub lag: u32,
}

/// `None` where it is not allowed, or a plan has no two ways.
pub fn halves(programs: &[Program]) -> Option<Halves> {
    let mut steps = programs.iter().flat_map(|program| &program.steps);
    let bound =
        |instr: &Instr| matches!(instr.action, Action::Signal | Action::Wait) || !instr.also.is_empty();
    if programs.iter().any(Program::reads_peers) || steps.any(bound) {
        return None;
    }
    let cuts = programs.iter().map(cut).collect::<Option<Vec<usize>>>()?;
    // By connection: whether it is used in second halves.
    let mut second: HashMap<usize, bool> = HashMap::new();
    for (program, &cut) in programs.iter().zip(&cuts) {
        for (i, instr) in program.steps.iter().enumerate() {
            if !peers(instr).all(|peer| *second.entry(peer.link).or_insert(i >= cut) == (i >= cut)) {
                return None;
            }
        }
    }
    let (first, second): (Vec<_>, Vec<_>) = programs
        .iter()
        .zip(&cuts)
        .map(|(program, &cut)| (program, program.steps.split_at(cut)))
        .map(|(program, (first, second))| ((program, first), (program, second)))
        .unzip();
    let hops = longest_way(&first)? + longest_way(&second)?;
    // Chunks of a tile follow each other up and down, so a way takes as many steps as it has hops and chunks.
    let chunks = first.iter().map(|(_, steps)| most_uses(steps)).max().unwrap_or(1).max(1);
    Some(Halves { cuts, lag: hops.div_ceil(chunks) + 1 })
}

/// What only one half may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Thing {
    Link(usize),
    Scratch(u16, u32),
}

fn things(instr: &Instr) -> Vec<Thing> {
    let links = peers(instr).map(|peer| Thing::Link(peer.link));
    let cells = |operand: &Operand| {
        let scratch = match operand.buffer {
            Buffer::Scratch(which) => Some(which),
            Buffer::Input | Buffer::Output => None,
        };
        let cells = operand.start..operand.start + instr.len;
        scratch.into_iter().flat_map(move |which| cells.clone().map(move |cell| Thing::Scratch(which, cell)))
    };
    links.chain(instr.srcs.iter().chain(instr.dsts()).flat_map(cells)).collect()
}

fn peers(instr: &Instr) -> impl Iterator<Item = &Peer> {
    instr.from.iter().chain(&instr.to)
}

/// The first step on a connection from which on nothing is used any more that was used before.
fn cut(program: &Program) -> Option<usize> {
    let all = || program.steps.iter().map(things).enumerate();
    let last_use: HashMap<Thing, usize> =
        all().flat_map(|(i, used)| used.into_iter().map(move |thing| (thing, i))).collect();
    let on_link = |instr: &Instr| peers(instr).next().is_some();
    let first = program.steps.iter().position(on_link)?;
    let mut busy_until = 0;
    for (i, used) in all() {
        if i > first && i > busy_until && on_link(&program.steps[i]) {
            return Some(i);
        }
        busy_until = used.iter().map(|thing| last_use[thing]).fold(busy_until, usize::max);
    }
    None
}

/// Most chunks that a connection carries in these steps.
fn most_uses(steps: &[Instr]) -> u32 {
    let mut uses: HashMap<usize, u32> = HashMap::new();
    for instr in steps {
        for peer in peers(instr) {
            *uses.entry(peer.link).or_default() += instr.len;
        }
    }
    uses.into_values().max().unwrap_or(0)
}

/// Hops of the longest way that a half's connections make; `None` where they make a circle.
fn longest_way(half: &[(&Program, &[Instr])]) -> Option<u32> {
    let mut next: HashMap<(ChannelId, Rank), HashSet<Rank>> = HashMap::new();
    for (program, steps) in half {
        let to = steps.iter().filter_map(|instr| instr.to).map(|peer| peer.rank);
        next.entry((program.channel, program.rank)).or_default().extend(to);
    }
    let mut hops: HashMap<(ChannelId, Rank), u32> = next.keys().map(|&at| (at, 0)).collect();
    // A way without a circle has fewer hops than there are ranks.
    for _ in 0..=next.len() {
        let before = hops.clone();
        for (&(channel, rank), peers) in &next {
            for &peer in peers {
                let far = before[&(channel, rank)] + 1;
                let hop = hops.get_mut(&(channel, peer))?;
                *hop = far.max(*hop);
            }
        }
        if hops == before {
            return hops.into_values().max();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::program::compile;
    use crate::plan::{Algorithm, generate};
    use crate::types::Collective;

    fn of(algorithm: Algorithm, collective: Collective, ranks: u32, channels: u32) -> Option<Halves> {
        let plan = generate(algorithm, collective, ranks, channels).unwrap();
        halves(&compile(&plan).unwrap().0)
    }

    #[test]
    fn what_goes_up_and_down_has_two_halves() {
        for ranks in [2, 3, 5, 8, 16] {
            let tree = of(Algorithm::Tree, Collective::AllReduce, ranks, 2).unwrap();
            let plan = generate(Algorithm::Tree, Collective::AllReduce, ranks, 2).unwrap();
            for (program, &cut) in plan.programs.iter().zip(&tree.cuts) {
                // All four chunks go up first; then they come down.
                let up =
                    |step: &crate::plan::Step| step.name().contains("recv_reduce") || step.name() == "send";
                assert!(cut >= 4 && program.steps[..cut].iter().all(up), "rank {}: {cut}", program.rank);
                assert!(program.steps[cut..].iter().all(|step| !step.name().contains("reduce")));
            }
        }
        let lag = |ranks| of(Algorithm::Tree, Collective::AllReduce, ranks, 2).unwrap().lag;
        assert_eq!([2, 4, 8, 16].map(lag), [2, 2, 3, 3]);
    }

    /// The steps of a program in the order of its turns: tile and step.
    fn turns(program: &Program, cut: usize, lag: u32, tiles: u32) -> Vec<(u32, usize)> {
        let half = |turn: u32, steps: std::ops::Range<usize>, lag: u32| {
            let tile = turn.checked_sub(lag).filter(|tile| *tile < tiles);
            tile.into_iter().flat_map(move |tile| steps.clone().map(move |step| (tile, step)))
        };
        let of_turn = |turn| half(turn, 0..cut, 0).chain(half(turn, cut..program.steps.len(), lag));
        (0..tiles + lag).flat_map(of_turn).collect()
    }

    /// Every rank goes as far as data and credits let it; messages must meet receivers of their own tile and chunk.
    #[test]
    fn halves_in_turns_get_to_their_end() {
        for (ranks, credits) in [(2, 1), (3, 2), (5, 8), (8, 1), (13, 2)] {
            let plan = generate(Algorithm::Tree, Collective::AllReduce, ranks, 2).unwrap();
            let programs = compile(&plan).unwrap().0;
            let Halves { cuts, lag } = halves(&programs).unwrap();
            let todo: Vec<_> = programs.iter().zip(&cuts).map(|(p, &cut)| turns(p, cut, lag, 6)).collect();
            let mut done = vec![0; programs.len()];
            let mut on_its_way: HashMap<usize, std::collections::VecDeque<(u32, u32)>> = HashMap::new();
            loop {
                let before = done.clone();
                for (i, program) in programs.iter().enumerate() {
                    let Some(&(tile, step)) = todo[i].get(done[i]) else { continue };
                    let instr = &program.steps[step];
                    let chunk = instr.srcs.iter().chain(instr.dsts()).next().unwrap().start;
                    let full =
                        |peer: Peer| on_its_way.get(&peer.link).is_some_and(|queue| queue.len() >= credits);
                    if instr.to.is_some_and(full) {
                        continue;
                    }
                    if let Some(from) = instr.from {
                        let Some(got) = on_its_way.entry(from.link).or_default().pop_front() else {
                            continue;
                        };
                        assert_eq!(got, (tile, chunk), "rank {} step {step}", program.rank);
                    }
                    if let Some(to) = instr.to {
                        on_its_way.entry(to.link).or_default().push_back((tile, chunk));
                    }
                    done[i] += 1;
                }
                if done == before {
                    break;
                }
            }
            assert!(
                done.iter().zip(&todo).all(|(done, todo)| *done == todo.len()),
                "{ranks} ranks: {done:?}"
            );
        }
    }

    #[test]
    fn what_goes_one_way_or_shares_its_ways_has_none() {
        for (algorithm, collective) in [
            (Algorithm::Ring, Collective::AllReduce),
            // Its results go on from the last rank to the first, and so the same way as its sums.
            (Algorithm::Chain, Collective::AllReduce),
            (Algorithm::HalvingDoubling, Collective::AllReduce),
            (Algorithm::TwoShot, Collective::AllReduce),
            (Algorithm::Exchange, Collective::AllReduce),
            (Algorithm::Pairwise, Collective::AllToAll),
            (Algorithm::Tree, Collective::Reduce { root: Rank(1) }),
            (Algorithm::Tree, Collective::Broadcast { root: Rank(0) }),
            (Algorithm::Ring, Collective::AllGather),
        ] {
            assert_eq!(of(algorithm, collective, 4, 2), None, "{algorithm} {collective:?}");
        }
    }

    #[test]
    fn scratch_of_both_halves_keeps_them_together() {
        let plan = generate(Algorithm::Tree, Collective::AllReduce, 4, 1).unwrap();
        let mut programs = compile(&plan).unwrap().0;
        assert!(halves(&programs).is_some());
        let cell = |rank| Operand { rank, buffer: Buffer::Scratch(0), start: 0 };
        programs[1].steps[0].srcs = vec![cell(1)];
        assert!(halves(&programs).is_some(), "one half may have it");
        let last = programs[1].steps.len() - 1;
        programs[1].steps[last].srcs = vec![cell(1)];
        assert_eq!(halves(&programs), None);
    }
}
