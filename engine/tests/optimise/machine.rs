//! Runs one channel's programs with blocks that take turns at random, one read or one write at a time: without enough order, some turn
//! shows in some element. An element stands for a chunk's slice of one tile; it holds a number for all that it was computed from, in
//! order.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use ringlab_engine::exec::program::{Action, Instr, Operand, Program};
use ringlab_engine::plan::{Buffer, SLOTS};

/// Rank, buffer, chunk and tile; scratch has one tile.
pub type Cell = (usize, Buffer, u32, u64);

pub struct Machine<'a> {
    programs: Vec<&'a Program>,
    tiles: u64,
    canonical: &'a dyn Fn(Operand) -> Operand,
    pub memory: HashMap<Cell, u64>,
    ranks: Vec<At>,
    slots: HashMap<usize, VecDeque<u64>>,
    signals: HashMap<usize, u64>,
}

#[derive(Default, Clone)]
struct At {
    tile: u64,
    step: usize,
    nth: u32,
    /// A value on its way and where it goes.
    under_way: Option<(u64, Vec<Cell>)>,
}

fn number(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

impl<'a> Machine<'a> {
    /// `programs` of one channel, by rank.
    pub fn new(
        programs: Vec<&'a Program>,
        tiles: u64,
        canonical: &'a dyn Fn(Operand) -> Operand,
    ) -> Machine<'a> {
        let ranks = vec![At::default(); programs.len()];
        Machine {
            programs,
            tiles,
            canonical,
            memory: HashMap::new(),
            ranks,
            slots: HashMap::new(),
            signals: HashMap::new(),
        }
    }

    /// What has changed of all ranks' inputs and outputs at the end; or who is stuck at which step.
    pub fn run(mut self, below: &mut dyn FnMut(usize) -> usize) -> Result<HashMap<Cell, u64>, String> {
        let ranks = self.ranks.len();
        let manner = below(3);
        let mut order: Vec<usize> = (0..ranks).collect();
        loop {
            // Anyone next; or who went last as long as possible; or who ranks first among those who can.
            if manner == 0 {
                let first = below(ranks);
                order.rotate_left(first);
            }
            match (0..ranks).find(|&i| self.advance(order[i])) {
                Some(went) if manner == 1 => order.swap(0, went),
                Some(_) if below(16) == 0 => order.swap(below(ranks), below(ranks)),
                Some(_) => {}
                None if self.ranks.iter().all(|at| at.tile == self.tiles) => break,
                None => {
                    let at: Vec<_> = self.ranks.iter().map(|at| (at.tile, at.step)).collect();
                    return Err(format!("stuck at {at:?}"));
                }
            }
        }
        let even = self.signals.values().all(|n| *n == 0) && self.slots.values().all(VecDeque::is_empty);
        assert!(even, "what is given is taken");
        self.memory.retain(|cell, value| !matches!(cell.1, Buffer::Scratch(_)) && *value != number(cell));
        Ok(self.memory)
    }

    fn cell(&self, operand: &Operand, at: &At) -> Cell {
        let Operand { rank, buffer, start } =
            (self.canonical)(Operand { start: operand.start + at.nth, ..*operand });
        let tile = if matches!(buffer, Buffer::Scratch(_)) { 0 } else { at.tile };
        (rank, buffer, start, tile)
    }

    /// What was there before, or was put there.
    fn read(&self, cell: Cell) -> u64 {
        self.memory.get(&cell).copied().unwrap_or_else(|| number(cell))
    }

    /// Whether the rank could go on.
    fn advance(&mut self, rank: usize) -> bool {
        let mut at = self.ranks[rank].clone();
        if at.tile == self.tiles {
            return false;
        }
        let program = self.programs[rank];
        let Some(instr) = program.steps.get(at.step) else {
            self.ranks[rank] = At { tile: at.tile + 1, ..At::default() };
            return true;
        };
        let went = match instr.action {
            Action::Signal => {
                *self.signals.entry(instr.to.expect("a peer").link).or_default() += 1;
                true
            }
            Action::Wait => {
                let given = self.signals.entry(instr.from.expect("a peer").link).or_default();
                let went = *given > 0;
                *given -= u64::from(went);
                went
            }
            Action::Move | Action::Fold => match &mut at.under_way {
                None => {
                    let Some(begun) = self.begin(instr, &at) else { return false };
                    at.under_way = Some(begun);
                    self.ranks[rank] = at;
                    return true;
                }
                Some((value, cells)) => {
                    if let Some(cell) = cells.pop() {
                        self.memory.insert(cell, *value);
                        self.ranks[rank] = at;
                        return true;
                    }
                    if let Some(to) = instr.to {
                        self.slots.entry(to.link).or_default().push_back(*value);
                    }
                    at.under_way = None;
                    at.nth += 1;
                    true
                }
            },
        };
        if went && at.nth >= instr.len {
            at = At { tile: at.tile, step: at.step + 1, ..At::default() };
        }
        self.ranks[rank] = at;
        went
    }

    fn begin(&mut self, instr: &Instr, at: &At) -> Option<(u64, Vec<Cell>)> {
        let full = |link| self.slots.get(&link).is_some_and(|slots| slots.len() == SLOTS as usize);
        if instr.to.is_some_and(|to| full(to.link)) {
            return None;
        }
        let mut values = Vec::new();
        if let Some(from) = instr.from {
            values.push(self.slots.get_mut(&from.link)?.pop_front()?);
        }
        values.extend(instr.srcs.iter().map(|src| self.read(self.cell(src, at))));
        let value = if instr.action == Action::Move { values[0] } else { number(&values) };
        let cells = instr.dsts().map(|dst| self.cell(dst, at)).collect();
        Some((value, cells))
    }
}

/// The programs of each channel, by rank.
pub fn channels(programs: &[Program]) -> Vec<Vec<&Program>> {
    let channels = programs.iter().map(|p| p.channel.index() + 1).max().unwrap_or(0);
    (0..channels).map(|c| programs.iter().filter(|p| p.channel.index() == c).collect()).collect()
}

/// Elements that cross between ranks.
pub fn crossings(programs: &[Program]) -> u64 {
    let of = |program: &Program| {
        let read = |src: &&Operand| src.rank != program.rank.index();
        let count = |instr: &Instr| {
            let sent = instr.to.is_some() && instr.moves_data();
            let each =
                instr.srcs.iter().filter(read).count() as u64 + u64::from(sent) + u64::from(instr.carried);
            each * u64::from(instr.len)
        };
        program.steps.iter().map(count).sum::<u64>()
    };
    programs.iter().map(of).sum()
}

/// Compares what both leave, with `turns` ways in which the optimised programs' blocks take turns.
pub fn same(
    (plain, optimised): (&[Program], &[Program]),
    tiles: u64,
    canonical: &dyn Fn(Operand) -> Operand,
    turns: usize,
    below: &mut dyn FnMut(usize) -> usize,
) -> Result<(), String> {
    if crossings(plain) != crossings(optimised) {
        return Err(format!("{} crossings, not {}", crossings(optimised), crossings(plain)));
    }
    for (channel, (plain, optimised)) in channels(plain).into_iter().zip(channels(optimised)).enumerate() {
        let wanted = Machine::new(plain, tiles, canonical).run(&mut |_| 0)?;
        for turn in 0..turns {
            let got = Machine::new(optimised.clone(), tiles, canonical).run(below)?;
            if got != wanted {
                let differs = |(cell, value): &(&Cell, &u64)| got.get(cell) != Some(value);
                let first = wanted
                    .iter()
                    .find(differs)
                    .or_else(|| got.iter().find(|(cell, _)| !wanted.contains_key(cell)));
                return Err(format!("channel {channel} turn {turn}: {first:?} is another"));
            }
        }
    }
    Ok(())
}
