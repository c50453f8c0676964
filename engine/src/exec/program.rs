//! A plan made ready to run: peers replaced by connections, places by buffers. Both back ends start from here.

use std::collections::HashMap;

use crate::plan::{Buffer, Location, Place, Plan, Range, Step};
use crate::types::{Alias, ChannelId, Collective, Rank};

/// What one rank runs on one channel.
#[derive(Debug, Clone)]
pub struct Program {
    pub rank: Rank,
    pub channel: ChannelId,
    pub steps: Vec<Instr>,
}

impl Program {
    /// Whether a step reads another rank's buffer where it lies.
    pub fn reads_peers(&self) -> bool {
        let own = self.rank.index();
        self.steps.iter().any(|step| step.srcs.iter().any(|src| src.rank != own))
    }
}

/// One step. Per chunk: operands are a received slot (if `from`) and then `srcs`; results go to `dst`, to `also` and to a sent slot (if
/// `to`). An element is read from all sources before it is written to any destination.
#[derive(Debug, Clone)]
pub struct Instr {
    pub name: &'static str,
    /// Of the plan's program.
    pub step: u32,
    pub action: Action,
    pub from: Option<Peer>,
    pub to: Option<Peer>,
    pub srcs: Vec<Operand>,
    pub dst: Option<Operand>,
    /// Further destinations, of any rank: only programs for a fused launch have them.
    pub also: Vec<Operand>,
    /// How often each element crossed between ranks in the copies that `also` stands for.
    pub carried: u16,
    /// Chunks.
    pub len: u32,
}

impl Instr {
    pub fn moves_data(&self) -> bool {
        matches!(self.action, Action::Move | Action::Fold)
    }

    /// Everywhere in memory that results go.
    pub fn dsts(&self) -> impl Iterator<Item = &Operand> {
        self.dst.iter().chain(&self.also)
    }

    pub fn touches_scratch(&self) -> bool {
        self.srcs.iter().chain(self.dsts()).any(|operand| matches!(operand.buffer, Buffer::Scratch(_)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// One operand to every result.
    Move,
    /// Two or more operands reduced to every result.
    Fold,
    Signal,
    Wait,
}

#[derive(Debug, Clone, Copy)]
pub struct Peer {
    pub rank: Rank,
    /// Index of the connection.
    pub link: usize,
    /// The peer's thread, to be woken.
    pub thread: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Whose buffer.
    pub rank: usize,
    pub buffer: Buffer,
    /// First chunk.
    pub start: u32,
}

/// The connections a plan uses: ordered pair of ranks and channel. Whether data travels decides if slots are allocated.
#[derive(Debug, Default)]
pub struct Links {
    index: HashMap<(Rank, Rank, ChannelId), usize>,
    pub carries_data: Vec<bool>,
}

impl Links {
    fn get(&mut self, from: Rank, to: Rank, channel: ChannelId, data: bool) -> usize {
        let next = self.carries_data.len();
        let link = *self.index.entry((from, to, channel)).or_insert(next);
        if link == next {
            self.carries_data.push(false);
        }
        self.carries_data[link] |= data;
        link
    }
}

/// In place, input and output share memory: one name for both.
pub fn canonical(collective: Collective, chunks: u32, operand: Operand) -> Operand {
    let Operand { rank, buffer, start } = operand;
    let own_block = rank as u32 * chunks;
    match (collective.alias(), buffer) {
        (Some(Alias::Same), Buffer::Input) => Operand { rank, buffer: Buffer::Output, start },
        (Some(Alias::InputInOutput), Buffer::Input) => {
            Operand { rank, buffer: Buffer::Output, start: own_block + start }
        }
        (Some(Alias::OutputInInput), Buffer::Output) => {
            Operand { rank, buffer: Buffer::Input, start: own_block + start }
        }
        _ => operand,
    }
}

/// Refuses a plan that is malformed: everything below relies on peers that exist and ranges within buffers. Whether the plan computes
/// its collective is `verify`'s question.
pub fn compile(plan: &Plan) -> Result<(Vec<Program>, Links), String> {
    plan.check().map_err(|malformed| match malformed.location {
        None => malformed.to_string(),
        Some(Location { rank, channel, step }) => {
            format!("rank {rank} channel {channel} step {step}: {malformed}")
        }
    })?;
    let mut links = Links::default();
    let mut programs = Vec::with_capacity(plan.programs.len());
    for program in &plan.programs {
        let (rank, channel) = (program.rank, program.channel);
        let compiler = Compiler { channels: plan.channels, rank, channel };
        let steps = (0..).zip(&program.steps).map(|(nth, step)| compiler.step(nth, step, &mut links));
        let steps = steps.collect();
        programs.push(Program { rank, channel, steps });
    }
    Ok((programs, links))
}

struct Compiler {
    channels: u32,
    rank: Rank,
    channel: ChannelId,
}

impl Compiler {
    fn step(&self, nth: u32, step: &Step, links: &mut Links) -> Instr {
        let own = |range: &Range| self.operand(&Place { rank: None, range: *range });
        let (action, srcs, dst) = match step {
            Step::Send { src, .. } => (Action::Move, vec![own(src)], None),
            Step::Recv { dst, .. } | Step::RecvCopySend { dst, .. } => (Action::Move, vec![], Some(own(dst))),
            Step::Copy { src, dst } => (Action::Move, vec![self.operand(src)], Some(own(dst))),
            Step::RecvReduceSend { src, .. } => (Action::Fold, vec![own(src)], None),
            Step::RecvReduceCopy { src, dst, .. } | Step::RecvReduceCopySend { src, dst, .. } => {
                (Action::Fold, vec![own(src)], Some(own(dst)))
            }
            Step::Reduce { srcs, dst } => {
                (Action::Fold, srcs.iter().map(|src| self.operand(src)).collect(), Some(own(dst)))
            }
            Step::Signal { .. } => (Action::Signal, vec![], None),
            Step::Wait { .. } => (Action::Wait, vec![], None),
        };
        let data = matches!(action, Action::Move | Action::Fold);
        let mut peer = |rank: Rank, (from, to): (Rank, Rank)| Peer {
            rank,
            link: links.get(from, to, self.channel, data),
            thread: rank.index() * self.channels as usize + self.channel.index(),
        };
        Instr {
            name: step.name(),
            step: nth,
            action,
            from: step.from().map(|from| peer(from, (from, self.rank))),
            to: step.to().map(|to| peer(to, (self.rank, to))),
            srcs,
            dst,
            also: Vec::new(),
            carried: 0,
            len: step.chunk_len(),
        }
    }

    fn operand(&self, place: &Place) -> Operand {
        let Range { buffer, start, .. } = place.range;
        Operand { rank: place.rank.unwrap_or(self.rank).index(), buffer, start }
    }
}
