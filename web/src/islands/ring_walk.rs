//! A ring plan walked through message by message: who sends which chunk to whom, holding whose contributions. Runs the engine's own
//! plan symbolically; nothing about the ring is written down here.

use std::collections::VecDeque;

use ringlab_engine::plan::{Algorithm, Buffer, GenerateError, Plan, Range, Step, generate};
use ringlab_engine::types::{Collective, Rank};

/// Set of ranks, one bit each.
pub type Ranks = u32;

/// One chunk on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    pub from: u32,
    pub to: u32,
    /// Column of the table.
    pub chunk: u32,
    /// Whose contributions it carries.
    pub holds: Ranks,
}

/// What one rank has for one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cell {
    /// Contributions in the newest value this rank has made or received; 0 when it has none.
    pub holds: Ranks,
    /// The value is in the output buffer: this rank is done with the chunk.
    pub stored: bool,
}

/// The state after some messages have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Messages that arrived last; none in the first frame.
    pub arrived: Vec<Message>,
    /// By rank, then chunk.
    pub cells: Vec<Vec<Cell>>,
}

/// All frames of a plan. Every message carries one chunk of the collective's size S (the larger buffer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    pub ranks: u32,
    pub chunks: u32,
    pub collective: Collective,
    pub frames: Vec<Frame>,
}

impl Walk {
    /// Chunks each rank has sent up to and including a frame.
    pub fn sent(&self, frame: usize, rank: u32) -> u32 {
        let of_rank = |f: &Frame| f.arrived.iter().filter(|m| m.from == rank).count() as u32;
        self.frames[..=frame].iter().map(of_rank).sum()
    }

    /// Chunks each rank must send at least: `2(n - 1)` of all-reduce's n, `n - 1` of the others'.
    pub fn bound(&self) -> u32 {
        match self.collective {
            Collective::AllReduce => 2 * (self.ranks - 1),
            _ => self.ranks - 1,
        }
    }
}

/// Walks the ring of a collective.
///
/// # Errors
/// What the generator says of the number of ranks.
pub fn walk(collective: Collective, ranks: u32) -> Result<Walk, GenerateError> {
    generate(Algorithm::Ring, collective, ranks, 1).map(|plan| run(&plan))
}

/// Column of a range of one chunk: columns are chunks of the larger buffer.
fn column(plan: &Plan, rank: u32, range: Range) -> u32 {
    match (plan.collective, range.buffer) {
        (Collective::AllGather, Buffer::Input) | (Collective::ReduceScatter, Buffer::Output) => rank,
        _ => range.start,
    }
}

fn run(plan: &Plan) -> Walk {
    let n = plan.ranks;
    let chunks = match plan.collective {
        Collective::AllGather | Collective::ReduceScatter => n,
        _ => plan.chunks,
    };
    let start = |rank: u32, chunk: u32| {
        let has = match plan.collective {
            Collective::AllGather => rank == chunk,
            collective => collective.has_input(Rank(rank)),
        };
        Cell { holds: if has { 1 << rank } else { 0 }, stored: false }
    };
    let mut cells: Vec<Vec<Cell>> = (0..n).map(|r| (0..chunks).map(|c| start(r, c)).collect()).collect();
    let mut programs: Vec<VecDeque<&Step>> =
        plan.programs.iter().filter(|p| p.channel.0 == 0).map(|p| p.steps.iter().collect()).collect();
    let mut wires: Vec<VecDeque<Message>> = vec![VecDeque::new(); n as usize];
    let mut frames = Vec::new();
    loop {
        let mut arrived = Vec::new();
        let mut sent = Vec::new();
        for rank in 0..n {
            let mut received = false;
            // At most one message is taken per frame; what needs none runs on.
            while let Some(step) = programs[rank as usize].front() {
                let message = if step.from().is_some() {
                    if received {
                        break;
                    }
                    match wires[rank as usize].pop_front() {
                        Some(message) => message,
                        None => break,
                    }
                } else {
                    Message { from: rank, to: rank, chunk: 0, holds: 0 }
                };
                if step.from().is_some() {
                    received = true;
                    arrived.push(message);
                }
                let step = programs[rank as usize].pop_front().expect("looked at just now");
                sent.extend(apply(plan, rank, step, message, &mut cells[rank as usize]));
            }
        }
        let quiet = arrived.is_empty() && sent.is_empty();
        if quiet {
            break;
        }
        if frames.is_empty() || !arrived.is_empty() {
            frames.push(Frame { arrived, cells: cells.clone() });
        }
        for message in sent {
            wires[message.to as usize].push_back(message);
        }
    }
    Walk { ranks: n, chunks, collective: plan.collective, frames }
}

/// Runs one step on a rank's cells and returns what it sends.
fn apply(plan: &Plan, rank: u32, step: &Step, got: Message, cells: &mut [Cell]) -> Option<Message> {
    let mut set = |range: Range, holds: Ranks, stored: bool| {
        let chunk = column(plan, rank, range);
        cells[chunk as usize] = Cell { holds, stored };
        chunk
    };
    // Every input of a reducing ring is the rank's own contribution.
    let own = 1 << rank;
    let message = |to: Rank, chunk: u32, holds: Ranks| Message { from: rank, to: to.0, chunk, holds };
    match *step {
        Step::Send { src, to } => Some(message(to, column(plan, rank, src), own)),
        Step::Recv { dst, .. } => {
            set(dst, got.holds, true);
            None
        }
        Step::RecvReduceCopy { dst, .. } => {
            set(dst, got.holds | own, true);
            None
        }
        Step::RecvReduceSend { src, to, .. } => {
            let chunk = set(src, got.holds | own, false);
            Some(message(to, chunk, got.holds | own))
        }
        Step::RecvReduceCopySend { dst, to, .. } => {
            let chunk = set(dst, got.holds | own, true);
            Some(message(to, chunk, got.holds | own))
        }
        Step::RecvCopySend { dst, to, .. } => {
            let chunk = set(dst, got.holds, true);
            Some(message(to, chunk, got.holds))
        }
        Step::Copy { dst, .. } => {
            set(dst, own, true);
            None
        }
        // Rings have none of these.
        Step::Reduce { .. } | Step::Signal { .. } | Step::Wait { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reduce_takes_twice_n_minus_one_messages_and_ends_complete() {
        for n in 2..=8 {
            let walk = walk(Collective::AllReduce, n).expect("2..=8 ranks");
            assert_eq!(walk.frames.len() as u32, 2 * (n - 1) + 1);
            let last = walk.frames.last().expect("not empty");
            let all = (1 << n) - 1;
            assert!(last.cells.iter().flatten().all(|c| c.stored && c.holds == all));
            for rank in 0..n {
                assert_eq!(walk.sent(walk.frames.len() - 1, rank), walk.bound());
            }
        }
    }

    #[test]
    fn halfway_each_rank_owns_exactly_one_complete_chunk() {
        let walk = walk(Collective::AllReduce, 4).expect("4 ranks");
        for cells in &walk.frames[3].cells {
            assert_eq!(cells.iter().filter(|c| c.stored && c.holds == 0b1111).count(), 1);
        }
    }

    #[test]
    fn every_step_every_rank_sends_one_chunk_to_the_next() {
        let walk = walk(Collective::AllReduce, 5).expect("5 ranks");
        for frame in &walk.frames[1..] {
            assert_eq!(frame.arrived.len(), 5);
            assert!(frame.arrived.iter().all(|m| m.to == (m.from + 1) % 5));
        }
    }

    #[test]
    fn all_gather_and_reduce_scatter_take_n_minus_one() {
        for (collective, done) in [(Collective::AllGather, 4), (Collective::ReduceScatter, 1)] {
            let walk = walk(collective, 4).expect("4 ranks");
            assert_eq!(walk.frames.len(), 4);
            for cells in &walk.frames[3].cells {
                assert_eq!(cells.iter().filter(|c| c.stored).count(), done);
            }
        }
    }

    #[test]
    fn the_first_frame_holds_only_own_contributions() {
        let walk = walk(Collective::AllReduce, 3).expect("3 ranks");
        let first = &walk.frames[0];
        assert!(first.arrived.is_empty());
        for (rank, cells) in first.cells.iter().enumerate() {
            assert!(cells.iter().all(|c| c.holds == 1 << rank && !c.stored));
        }
    }
}
