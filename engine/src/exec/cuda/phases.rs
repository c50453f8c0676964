//! Steps gathered into phases, which a block runs with few barriers: wait for everything, move everything, tell everyone.
//!
//! A phase keeps the plan's meaning: what it waits for comes before its moves, what it posts after them. A later wait may join a phase
//! that has posted nothing yet, since moves are seen by nobody before a post; a direct move joins if it touches nothing that the
//! phase's other moves write. A step on a FIFO is alone in its phase but for waits before and signals after it, so it neither holds a
//! slot longer nor takes one earlier than the plan says.

use std::collections::{HashMap, HashSet};

use crate::exec::WaitKind;
use crate::exec::program::{Action, Instr, Operand, Peer, Program};
use crate::plan::Buffer;
use crate::types::Rank;

/// Most moves and steps of a phase: the device counts them in 16 bits.
const MOST: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Sender,
    Receiver,
    Signaller,
    Waiter,
}

/// One side of a connection or semaphore of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    pub role: Role,
    pub link: usize,
    pub peer: Rank,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub endpoint: u16,
    pub kind: WaitKind,
    pub step: u32,
}

/// One chunk of a data step. Operands have `start` at their own chunk.
#[derive(Debug, Clone)]
pub struct Move {
    pub recv: Option<u16>,
    pub send: Option<u16>,
    pub srcs: Vec<Operand>,
    /// In memory: the step's own, and those of copies that were forwarded.
    pub dsts: Vec<Operand>,
    /// Elements of the channel's slice.
    pub slice: u64,
    /// Times each element crosses between ranks.
    pub crossings: u16,
}

/// What a plan's step does in a phase, for the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Wait,
    /// Direct: starts when the phase's waits are over.
    Direct {
        move_index: usize,
    },
    /// On a FIFO: its own waiting counts.
    Fifo {
        move_index: usize,
    },
    Signal,
}

#[derive(Debug, Default)]
pub struct Phase {
    pub waits: Vec<Wait>,
    pub moves: Vec<Move>,
    pub posts: Vec<u16>,
    pub parts: Vec<(u32, Part)>,
    /// Tiles that have this phase, counted from the first; all when left out.
    pub tiles: Option<u32>,
    /// Turns of the program after which a tile's phase comes: its turn is its tile's number and so many more.
    pub lag: u32,
}

#[derive(Debug)]
pub struct Phases {
    pub phases: Vec<Phase>,
    pub endpoints: Vec<Endpoint>,
}

impl Phases {
    /// Puts off what step `cut` begins, which is on a FIFO and so begins a phase, where no wait comes right before it.
    pub fn put_off(&mut self, cut: usize, lag: u32) {
        for phase in &mut self.phases {
            let second = |(step, _): &(u32, Part)| *step as usize >= cut;
            if phase.parts.iter().any(second) {
                assert!(phase.parts.iter().all(second), "a phase has steps of one half");
                phase.lag = lag;
            }
        }
    }
}

/// Gathers a program's steps. `slices[step][chunk]` in elements; `canonical` gives memory that two names share one name.
///
/// # Errors
/// When the program exceeds what the device can count.
pub fn gather(
    program: &Program,
    slices: &[Vec<u64>],
    canonical: impl Fn(Operand) -> Operand,
) -> Result<Phases, String> {
    let mut gathering = Gathering::new(&canonical);
    for (instr, slices) in program.steps.iter().zip(slices) {
        if instr.srcs.len() > MOST {
            return Err(format!(
                "rank {} channel {} step {} has {} sources; the GPU takes {MOST}",
                program.rank,
                program.channel,
                instr.step,
                instr.srcs.len()
            ));
        }
        gathering.step(program.rank, instr, slices);
    }
    gathering.close();
    if gathering.done.endpoints.len() > MOST {
        return Err(format!(
            "rank {} channel {} has {} connections; the GPU takes {MOST}",
            program.rank,
            program.channel,
            gathering.done.endpoints.len()
        ));
    }
    Ok(gathering.done)
}

type Place = (usize, Buffer, u32);

struct Gathering<'a, F> {
    canonical: &'a F,
    done: Phases,
    index: HashMap<(Role, usize), u16>,
    phase: Phase,
    read: HashSet<Place>,
    written: HashSet<Place>,
}

impl<'a, F: Fn(Operand) -> Operand> Gathering<'a, F> {
    fn new(canonical: &'a F) -> Self {
        Gathering {
            canonical,
            done: Phases { phases: vec![], endpoints: vec![] },
            index: HashMap::new(),
            phase: Phase::default(),
            read: HashSet::new(),
            written: HashSet::new(),
        }
    }

    fn close(&mut self) {
        if !self.phase.parts.is_empty() {
            self.done.phases.push(std::mem::take(&mut self.phase));
        }
        self.read.clear();
        self.written.clear();
    }

    fn endpoint(&mut self, role: Role, peer: Peer) -> u16 {
        let next = self.done.endpoints.len() as u16;
        let index = *self.index.entry((role, peer.link)).or_insert(next);
        if index == next {
            self.done.endpoints.push(Endpoint { role, link: peer.link, peer: peer.rank });
        }
        index
    }

    fn step(&mut self, rank: Rank, instr: &Instr, slices: &[u64]) {
        let step = instr.step;
        if self.phase.parts.len() >= MOST {
            self.close();
        }
        match (instr.action, instr.from, instr.to) {
            (Action::Signal, _, Some(to)) => {
                let endpoint = self.endpoint(Role::Signaller, to);
                if self.phase.posts.contains(&endpoint) {
                    self.close();
                }
                self.phase.posts.push(endpoint);
                self.phase.parts.push((step, Part::Signal));
            }
            (Action::Wait, Some(from), _) => {
                let endpoint = self.endpoint(Role::Waiter, from);
                let waits_already = self.phase.waits.iter().any(|w| w.endpoint == endpoint);
                if !self.phase.posts.is_empty() || waits_already {
                    self.close();
                }
                self.phase.waits.push(Wait { endpoint, kind: WaitKind::Signal, step });
                self.phase.parts.push((step, Part::Wait));
            }
            _ => {
                for (nth, &slice) in slices.iter().enumerate() {
                    self.chunk(rank, instr, nth as u32, slice);
                }
            }
        }
    }

    fn chunk(&mut self, rank: Rank, instr: &Instr, nth: u32, slice: u64) {
        let step = instr.step;
        let own_chunk = |operand: &Operand| Operand { start: operand.start + nth, ..*operand };
        let srcs: Vec<Operand> = instr.srcs.iter().map(own_chunk).collect();
        let dsts: Vec<Operand> = instr.dsts().map(own_chunk).collect();
        let place = |operand: &Operand| {
            let Operand { rank, buffer, start } = (self.canonical)(*operand);
            (rank, buffer, start)
        };
        let reads: Vec<Place> = srcs.iter().map(place).collect();
        let writes: Vec<Place> = dsts.iter().map(place).collect();
        let fifo = instr.from.is_some() || instr.to.is_some();
        // A chunk copied onto itself touches nothing (`plan::Plan`).
        let onto_itself = !fifo && reads.len() == 1 && writes == reads;
        let slice = if onto_itself { 0 } else { slice };
        let clash = reads.iter().any(|r| self.written.contains(r))
            || writes.iter().any(|w| self.written.contains(w) || self.read.contains(w));
        let full = self.phase.moves.len() >= MOST || self.phase.parts.len() >= MOST;
        if !self.phase.posts.is_empty() || clash || full || (fifo && !self.phase.moves.is_empty()) {
            self.close();
        }
        self.read.extend(reads);
        self.written.extend(writes);

        let recv = instr.from.map(|from| self.endpoint(Role::Receiver, from));
        let send = instr.to.map(|to| self.endpoint(Role::Sender, to));
        if let Some(endpoint) = recv {
            self.phase.waits.push(Wait { endpoint, kind: WaitKind::Data, step });
            self.phase.posts.push(endpoint);
        }
        if let Some(endpoint) = send {
            self.phase.waits.push(Wait { endpoint, kind: WaitKind::Credit, step });
            self.phase.posts.push(endpoint);
        }
        let crosses = |to: Peer| u16::from(to.rank != rank);
        let read_from_peers = srcs.iter().filter(|src| src.rank != rank.index()).count() as u16;
        let crossings = read_from_peers + instr.to.map_or(0, crosses) + instr.carried;
        let move_index = self.phase.moves.len();
        self.phase.moves.push(Move { recv, send, srcs, dsts, slice, crossings });
        let part = if fifo { Part::Fifo { move_index } } else { Part::Direct { move_index } };
        self.phase.parts.push((step, part));
    }
}

#[cfg(test)]
mod tests {
    use super::super::slices::{SliceLens, infer};
    use super::*;
    use crate::exec::optimise::fused;
    use crate::exec::program::compile;
    use crate::plan::{Algorithm, Plan, generate};
    use crate::types::Collective;

    fn phases(plan: &Plan) -> Vec<Phases> {
        let (programs, _) = compile(plan).unwrap();
        let slices = infer(&programs, &SliceLens::new(64, 4, plan.chunks, plan.channels)).unwrap();
        programs.iter().zip(&slices).map(|(p, s)| gather(p, s, |operand| operand).unwrap()).collect()
    }

    fn shape(phases: &Phases) -> Vec<(usize, usize, usize)> {
        phases.phases.iter().map(|p| (p.waits.len(), p.moves.len(), p.posts.len())).collect()
    }

    #[test]
    fn two_shot_needs_two_sets_of_moves() {
        let plan = generate(Algorithm::TwoShot, Collective::AllReduce, 4, 1).unwrap();
        // Barrier; reduce and barrier; three copies at once and barrier.
        assert_eq!(shape(&phases(&plan)[2]), [(0, 0, 3), (3, 1, 3), (3, 3, 3), (3, 0, 0)]);
    }

    #[test]
    fn a_ring_keeps_each_fifo_step_alone() {
        let plan = generate(Algorithm::Ring, Collective::AllReduce, 3, 1).unwrap();
        let all = phases(&plan);
        assert_eq!(shape(&all[0]), [(1, 1, 1), (2, 1, 2), (2, 1, 2), (2, 1, 2), (1, 1, 1)]);
        assert_eq!(all[0].endpoints.len(), 2);
        assert_eq!(all[0].phases[1].moves[0].crossings, 1);
    }

    #[test]
    fn a_move_does_not_join_one_whose_result_it_reads() {
        let plan = generate(Algorithm::OneShot, Collective::AllReduce, 2, 1).unwrap();
        assert_eq!(shape(&phases(&plan)[0]), [(0, 0, 1), (1, 1, 1), (1, 1, 0)]);
        let mut close = plan.clone();
        // Without the barrier between them, the copy follows the reduction directly and needs its own phase.
        close.programs[0].steps.drain(3..5);
        assert_eq!(shape(&phases(&close)[0]), [(0, 0, 1), (1, 1, 0), (0, 1, 0)]);
    }

    #[test]
    fn a_chunk_copied_onto_itself_moves_nothing() {
        let plan = generate(Algorithm::Ring, Collective::AllGather, 2, 1).unwrap();
        let (programs, _) = compile(&plan).unwrap();
        let slices = infer(&programs, &SliceLens::new(64, 4, 1, 1)).unwrap();
        let in_place = |operand: Operand| match operand.buffer {
            Buffer::Input => Operand { buffer: Buffer::Output, start: operand.rank as u32, ..operand },
            _ => operand,
        };
        let copied = |canonical: &dyn Fn(Operand) -> Operand| {
            let phases = gather(&programs[1], &slices[1], canonical).unwrap().phases;
            phases.iter().flat_map(|p| &p.moves).map(|m| m.slice).collect::<Vec<_>>()
        };
        assert_eq!(copied(&|operand| operand), [64, 64, 64]);
        assert_eq!(copied(&in_place), [64, 0, 64]);
    }

    #[test]
    fn destinations_on_other_ranks_are_counted_and_kept_apart() {
        let plan = generate(Algorithm::TwoShot, Collective::AllReduce, 4, 1).unwrap();
        let (programs, _) = compile(&plan).unwrap();
        let (mut programs, _) = fused(programs, 1, |operand| operand);
        let lens = SliceLens::new(64, 4, plan.chunks, plan.channels);
        let of_first = |programs: &[Program]| {
            let slices = infer(programs, &lens).unwrap();
            gather(&programs[0], &slices[0], |operand| operand).unwrap()
        };
        let phases = of_first(&programs);
        assert_eq!(shape(&phases), [(0, 1, 0)]);
        let mv = &phases.phases[0].moves[0];
        // Three peers' inputs are read, and three copies are stood for.
        assert_eq!((mv.dsts.len(), mv.slice, mv.crossings), (4, 16, 6));
        // One more step, which reads what the first leaves on another rank.
        let mut reader = programs[0].steps[0].clone();
        reader.srcs = vec![reader.also[0], reader.srcs[0]];
        reader.dst = Some(Operand { buffer: Buffer::Scratch(0), ..reader.srcs[0] });
        reader.also.clear();
        programs[0].steps.push(reader);
        assert_eq!(shape(&of_first(&programs)), [(0, 1, 0), (0, 1, 0)]);
    }

    #[test]
    fn the_same_semaphore_twice_is_two_phases() {
        let mut plan = generate(Algorithm::OneShot, Collective::AllReduce, 2, 1).unwrap();
        for program in &mut plan.programs {
            let (signal, wait) = (program.steps[0].clone(), program.steps[1].clone());
            program.steps = vec![signal.clone(), signal, wait.clone(), wait];
        }
        assert_eq!(shape(&phases(&plan)[0]), [(0, 0, 1), (0, 0, 1), (1, 0, 0), (1, 0, 0)]);
    }
}
