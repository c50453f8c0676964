//! A plan made ready for threads: peers replaced by connections, places by buffers, and everything out of range refused.

use std::collections::HashMap;

use crate::plan::{self, Buffer, Place, Plan, Range, Step};
use crate::types::{ChannelId, Collective, Rank};

/// What one rank's thread on one channel runs.
#[derive(Debug)]
pub struct Program {
    pub rank: Rank,
    pub channel: ChannelId,
    pub steps: Vec<Instr>,
}

/// One step. Per chunk: operands are a received slot (if `from`) and then `srcs`; results go to `dst` and a sent slot (if `to`).
#[derive(Debug)]
pub struct Instr {
    pub name: &'static str,
    pub action: Action,
    pub from: Option<Peer>,
    pub to: Option<Peer>,
    pub srcs: Vec<Operand>,
    pub dst: Option<Operand>,
    /// Chunks.
    pub len: u32,
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
}

#[derive(Debug, Clone, Copy)]
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

/// Checks everything that memory safety and this executor rely on: shapes, ranges, peers. Whether the plan computes its collective is
/// `verify`'s question.
pub fn compile(plan: &Plan, in_place: bool) -> Result<(Vec<Program>, Links), String> {
    if plan.version != plan::VERSION {
        return Err(format!(
            "the plan has version {}, this executor runs version {}",
            plan.version,
            plan::VERSION
        ));
    }
    if plan.ranks == 0 || plan.channels == 0 || plan.chunks == 0 {
        let (r, c, k) = (plan.ranks, plan.channels, plan.chunks);
        return Err(format!(
            "a plan needs at least one rank, channel and chunk; this one has {r}, {c} and {k}"
        ));
    }
    if let Collective::Broadcast { root } = plan.collective
        && root.0 >= plan.ranks
    {
        return Err(format!("the root is rank {root}, but the plan has {} ranks", plan.ranks));
    }
    let order = (0..plan.ranks).flat_map(|r| (0..plan.channels).map(move |c| (Rank(r), ChannelId(c))));
    if !plan.programs.iter().map(|p| (p.rank, p.channel)).eq(order) {
        let (r, c) = (plan.ranks, plan.channels);
        return Err(format!(
            "a plan of {r} ranks and {c} channels needs one program for each, ordered by rank, then channel"
        ));
    }
    let mut links = Links::default();
    let mut programs = Vec::with_capacity(plan.programs.len());
    for program in &plan.programs {
        let (rank, channel) = (program.rank, program.channel);
        let compiler = Compiler { plan, in_place, rank, channel };
        let steps = program.steps.iter().enumerate().map(|(i, step)| {
            compiler
                .step(step, &mut links)
                .map_err(|why| format!("rank {rank} channel {channel} step {i} ({}): {why}", step.name()))
        });
        programs.push(Program { rank, channel, steps: steps.collect::<Result<_, _>>()? });
    }
    Ok((programs, links))
}

struct Compiler<'a> {
    plan: &'a Plan,
    in_place: bool,
    rank: Rank,
    channel: ChannelId,
}

impl Compiler<'_> {
    fn step(&self, step: &Step, links: &mut Links) -> Result<Instr, String> {
        let own = |range: &Range| Place { rank: None, range: *range };
        let (action, srcs, dst): (_, Vec<Place>, Option<Range>) = match step {
            Step::Send { src, .. } => (Action::Move, vec![own(src)], None),
            Step::Recv { dst, .. } | Step::RecvCopySend { dst, .. } => (Action::Move, vec![], Some(*dst)),
            Step::Copy { src, dst } => (Action::Move, vec![*src], Some(*dst)),
            Step::RecvReduceSend { src, .. } => (Action::Fold, vec![own(src)], None),
            Step::RecvReduceCopy { src, dst, .. } | Step::RecvReduceCopySend { src, dst, .. } => {
                (Action::Fold, vec![own(src)], Some(*dst))
            }
            Step::Reduce { srcs, dst } => (Action::Fold, srcs.clone(), Some(*dst)),
            Step::Signal { .. } => (Action::Signal, vec![], None),
            Step::Wait { .. } => (Action::Wait, vec![], None),
        };
        if matches!(step, Step::Reduce { .. }) && srcs.len() < 2 {
            return Err(format!("a reduction needs two sources or more, not {}", srcs.len()));
        }
        let len = step.chunk_len();
        let data = !matches!(action, Action::Signal | Action::Wait);
        let mut peer = |rank: Option<Rank>, incoming: bool| -> Result<Option<Peer>, String> {
            let Some(rank) = rank else { return Ok(None) };
            self.rank_exists(rank)?;
            let (from, to) = if incoming { (rank, self.rank) } else { (self.rank, rank) };
            Ok(Some(Peer { rank, link: links.get(from, to, self.channel, data) }))
        };
        Ok(Instr {
            name: step.name(),
            action,
            from: peer(step.from(), true)?,
            to: peer(step.to(), false)?,
            srcs: srcs.iter().map(|place| self.operand(place, len)).collect::<Result<_, _>>()?,
            dst: dst.map(|range| self.destination(range, len)).transpose()?,
            len,
        })
    }

    fn rank_exists(&self, rank: Rank) -> Result<(), String> {
        if rank.0 < self.plan.ranks {
            return Ok(());
        }
        Err(format!("there is no rank {rank}: the plan has {} ranks", self.plan.ranks))
    }

    fn operand(&self, place: &Place, len: u32) -> Result<Operand, String> {
        let rank = place.rank.unwrap_or(self.rank);
        self.rank_exists(rank)?;
        let Range { buffer, start, len: own_len } = place.range;
        if own_len != len {
            return Err(format!(
                "its ranges have {own_len} and {len} chunks; all ranges of a step have the same length"
            ));
        }
        let (ranks, chunks) = (self.plan.ranks, self.plan.chunks);
        let limit = match buffer {
            Buffer::Input => u64::from(self.plan.collective.input_blocks(ranks)) * u64::from(chunks),
            Buffer::Output => u64::from(self.plan.collective.output_blocks(ranks)) * u64::from(chunks),
            Buffer::Scratch(index) => match self.plan.scratch.get(usize::from(index)) {
                Some(scratch) => u64::from(scratch.chunks),
                None => return Err(format!("there is no scratch buffer {index}")),
            },
        };
        if u64::from(start) + u64::from(len) > limit {
            return Err(format!(
                "{buffer:?} has {limit} chunks; {start}..{} is outside",
                u64::from(start) + u64::from(len)
            ));
        }
        Ok(Operand { rank: rank.index(), buffer, start })
    }

    fn destination(&self, range: Range, len: u32) -> Result<Operand, String> {
        if range.buffer == Buffer::Input && !self.in_place {
            return Err("out of place, the input is read-only".into());
        }
        self.operand(&Place { rank: None, range }, len)
    }
}
