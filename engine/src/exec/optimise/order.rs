//! What precedes what on one channel.

use std::collections::{HashMap, VecDeque};

use super::Steps;
use crate::exec::program::Action;
use crate::plan::SLOTS;

/// Most steps of a channel that are looked at, and most numbers in its clocks: 64 MiB. Larger plans stay as they are.
pub const MOST_EVENTS: usize = 1 << 18;
const MOST_WORDS: usize = 1 << 24;

/// A step of a rank, in any tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct At {
    pub rank: usize,
    pub step: usize,
}

/// A step in one of the tiles looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub at: At,
    pub tile: usize,
}

#[derive(Debug)]
pub struct Order {
    /// 1, or 2 where tiles share memory.
    pub tiles: usize,
    /// All steps, each behind everything that precedes it in its tile.
    pub run: Vec<At>,
    /// Signals with their waits.
    pub pairs: Vec<(At, At)>,
    /// Slots filled with where they are emptied.
    data: Vec<(At, At)>,
    lens: Vec<usize>,
    firsts: Vec<usize>,
    positions: Vec<usize>,
    /// By event and rank: how many of the rank's events precede it, itself included.
    before: Vec<u32>,
}

impl Order {
    /// `None` if the programs deadlock with the slots a connection has, if signals and waits or sends and receives differ in number, or
    /// if there are too many.
    pub fn of(steps: &Steps, tiles: u64) -> Option<Order> {
        let lens: Vec<usize> = steps.iter().map(Vec::len).collect();
        let firsts = lens.iter().scan(0, |next, len| {
            *next += len;
            Some(*next - len)
        });
        let scratch = steps.iter().flatten().flatten().any(|instr| instr.touches_scratch());
        let mut order = Order {
            tiles: if tiles > 1 && scratch { 2 } else { 1 },
            run: Vec::new(),
            pairs: Vec::new(),
            data: Vec::new(),
            firsts: firsts.collect(),
            positions: vec![usize::MAX; lens.iter().sum()],
            before: Vec::new(),
            lens,
        };
        if order.words() > MOST_WORDS {
            return None;
        }
        order.walk(steps)?;
        order.before = order.clocks(|_| true);
        Some(order)
    }

    /// Carries out one tile. Who can go on does not depend on who goes first, so one order tells whether there is a deadlock. All
    /// connections end as they began, so later tiles do as the first.
    fn walk(&mut self, steps: &Steps) -> Option<()> {
        let mut at = vec![0; steps.len()];
        // Signals given and slots filled, by connection.
        let mut signals: HashMap<usize, VecDeque<At>> = HashMap::new();
        let mut slots: HashMap<usize, VecDeque<At>> = HashMap::new();
        let mut progress = true;
        while std::mem::take(&mut progress) {
            for rank in 0..steps.len() {
                while let Some(step) = steps[rank].get(at[rank]) {
                    let here = At { rank, step: at[rank] };
                    if let Some(instr) = step {
                        match (instr.action, instr.from, instr.to) {
                            (Action::Signal, _, Some(to)) => {
                                signals.entry(to.link).or_default().push_back(here);
                            }
                            (Action::Wait, Some(from), _) => {
                                let Some(given) = signals.entry(from.link).or_default().pop_front() else {
                                    break;
                                };
                                self.pairs.push((given, here));
                            }
                            (_, from, to) => {
                                let filled = |link| slots.get(&link).map_or(0, VecDeque::len);
                                if from.is_some_and(|from| filled(from.link) == 0)
                                    || to.is_some_and(|to| filled(to.link) == SLOTS as usize)
                                {
                                    break;
                                }
                                if let Some(from) = from {
                                    let sent = slots.get_mut(&from.link).and_then(VecDeque::pop_front)?;
                                    self.data.push((sent, here));
                                }
                                if let Some(to) = to {
                                    slots.entry(to.link).or_default().push_back(here);
                                }
                            }
                        }
                        self.positions[self.firsts[rank] + here.step] = self.run.len();
                        self.run.push(here);
                    }
                    at[rank] += 1;
                    progress = true;
                }
            }
        }
        let ended = at.iter().zip(&self.lens).all(|(at, len)| at == len);
        let even = signals.values().chain(slots.values()).all(VecDeque::is_empty);
        (ended && even).then_some(())
    }

    /// Vector clocks without the pairs that are not kept, by number.
    fn clocks(&self, kept: impl Fn(usize) -> bool) -> Vec<u32> {
        let ranks = self.lens.len();
        let mut comes_from = vec![None; self.positions.len()];
        let pairs = self.pairs.iter().enumerate().filter(|(nth, _)| kept(*nth)).map(|(_, pair)| pair);
        for (first, second) in pairs.chain(&self.data) {
            comes_from[self.firsts[second.rank] + second.step] = Some(*first);
        }
        let mut before = vec![0; self.words()];
        let mut now = vec![vec![0u32; ranks]; ranks];
        for tile in 0..self.tiles {
            for &at in &self.run {
                if let Some(first) = comes_from[self.firsts[at.rank] + at.step] {
                    let row = self.row(Event { at: first, tile });
                    let joined = &before[row..row + ranks];
                    now[at.rank]
                        .iter_mut()
                        .zip(joined)
                        .for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
                }
                let event = Event { at, tile };
                now[at.rank][at.rank] = self.number(event);
                let row = self.row(event);
                before[row..row + ranks].copy_from_slice(&now[at.rank]);
            }
        }
        before
    }

    /// Whether each first event still precedes the second without the pairs that are not kept, by number.
    pub fn ordered_without(&self, kept: impl Fn(usize) -> bool, all: &[(Event, Event)]) -> bool {
        let before = self.clocks(kept);
        all.iter().all(|&(x, y)| before[self.row(y) + x.at.rank] >= self.number(x))
    }

    /// Numbers in the clocks of all events.
    pub fn words(&self) -> usize {
        self.tiles * self.positions.len() * self.lens.len()
    }

    /// By event and rank, in reverse: the number of the rank's first event that it precedes, itself included.
    pub fn after(&self) -> Vec<u32> {
        let ranks = self.lens.len();
        let mut leads_to: Vec<[Option<At>; 2]> = vec![[None; 2]; self.positions.len()];
        for (first, second) in &self.pairs {
            leads_to[self.firsts[first.rank] + first.step][0] = Some(*second);
        }
        for (first, second) in &self.data {
            leads_to[self.firsts[first.rank] + first.step][1] = Some(*second);
        }
        let mut after = vec![u32::MAX; self.words()];
        let mut now = vec![vec![u32::MAX; ranks]; ranks];
        for tile in (0..self.tiles).rev() {
            for &at in self.run.iter().rev() {
                for second in leads_to[self.firsts[at.rank] + at.step].into_iter().flatten() {
                    let row = self.row(Event { at: second, tile });
                    let joined = &after[row..row + ranks];
                    now[at.rank]
                        .iter_mut()
                        .zip(joined)
                        .for_each(|(mine, theirs)| *mine = (*mine).min(*theirs));
                }
                let event = Event { at, tile };
                now[at.rank][at.rank] = self.number(event);
                let row = self.row(event);
                after[row..row + ranks].copy_from_slice(&now[at.rank]);
            }
        }
        after
    }

    /// Of an event among its rank's, from 1.
    pub fn number(&self, event: Event) -> u32 {
        (event.tile * self.lens[event.at.rank] + event.at.step + 1) as u32
    }

    /// Where an event's part of a clock table starts.
    pub fn row(&self, event: Event) -> usize {
        let events = self.positions.len();
        (event.tile * events + self.firsts[event.at.rank] + event.at.step) * self.lens.len()
    }

    /// How many events of each rank precede an event.
    pub fn before(&self, event: Event) -> &[u32] {
        let row = self.row(event);
        &self.before[row..row + self.lens.len()]
    }

    /// Whether `x` precedes `y` or is `y`.
    pub fn precedes(&self, x: Event, y: Event) -> bool {
        self.before(y)[x.at.rank] >= self.number(x)
    }

    /// In [`Order::run`].
    pub fn position(&self, at: At) -> usize {
        self.positions[self.firsts[at.rank] + at.step]
    }
}
