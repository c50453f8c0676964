//! Plans that make data flow at random to where a collective wants it.

use ringlab_engine::plan::{self, Algorithm, Buffer, Place, Plan, Program, Range, Scratch, Step};
use ringlab_engine::types::{ChannelId, Collective, Rank};

use super::Dice;

const SCRATCH: [u32; 2] = [3, 2];

fn one(buffer: Buffer, start: u32) -> Range {
    Range { buffer, start, len: 1 }
}

fn scratch(dice: &mut Dice) -> Range {
    let buffer = dice.below(SCRATCH.len());
    one(Buffer::Scratch(buffer as u16), dice.below(SCRATCH[buffer] as usize) as u32)
}

/// Writes a data flow down in one order that works; each rank gets its part of it.
struct Flow<'a> {
    dice: &'a mut Dice,
    steps: Vec<Vec<Step>>,
}

type At = (usize, Range);

impl Flow<'_> {
    fn signal(&mut self, from: usize, to: usize) {
        self.steps[from].push(Step::Signal { to: Rank(to as u32) });
        self.steps[to].push(Step::Wait { from: Rank(from as u32) });
    }

    /// `there` comes to `here`, added to what `with` holds if there is such.
    fn bring(&mut self, there: At, with: Option<Range>, here: At) {
        let (from, to) = (Rank(there.0 as u32), Rank(here.0 as u32));
        if there.0 == here.0 {
            let place = |range| Place { rank: None, range };
            self.steps[here.0].push(match with {
                Some(range) => Step::Reduce { srcs: vec![place(there.1), place(range)], dst: here.1 },
                None => Step::Copy { src: place(there.1), dst: here.1 },
            });
            return;
        }
        if self.dice.percent(55) {
            self.steps[there.0].push(Step::Send { to, src: there.1 });
            self.steps[here.0].push(match with {
                Some(src) => Step::RecvReduceCopy { from, src, dst: here.1 },
                None => Step::Recv { from, dst: here.1 },
            });
            return;
        }
        if self.dice.percent(95) {
            self.signal(there.0, here.0);
        }
        let remote = Place { rank: Some(from), range: there.1 };
        self.steps[here.0].push(match with {
            Some(range) => Step::Reduce { srcs: vec![Place { rank: None, range }, remote], dst: here.1 },
            None => Step::Copy { src: remote, dst: here.1 },
        });
        if self.dice.percent(90) {
            self.signal(here.0, there.0);
        }
    }

    /// The sum of all parts, somewhere; at `last` if a rank is given.
    fn gather(&mut self, mut parts: Vec<At>, last: Option<usize>, output: u32) -> At {
        while parts.len() > 1 {
            let there = self.dice.below(parts.len());
            let there = match last {
                Some(rank) if parts[there].0 == rank => (there + 1) % parts.len(),
                _ => there,
            };
            let there = parts.swap_remove(there);
            if parts.len() > 1 && self.dice.percent(25) {
                // Through a third rank, which adds its part and keeps or forgets the sum.
                let middle = self.dice.below(parts.len());
                let middle = match last {
                    Some(rank) if parts[middle].0 == rank => (middle + 1) % parts.len(),
                    _ => middle,
                };
                let middle = parts.swap_remove(middle);
                let here = self.dice.below(parts.len());
                let dst = self.keep(output, last.is_some());
                let (from, to) = (Rank(there.0 as u32), Rank(parts[here].0 as u32));
                self.steps[there.0].push(Step::Send { to: Rank(middle.0 as u32), src: there.1 });
                let kept = scratch(self.dice);
                self.steps[middle.0].push(if self.dice.percent(50) {
                    Step::RecvReduceSend { from, src: middle.1, to }
                } else {
                    Step::RecvReduceCopySend { from, src: middle.1, dst: kept, to }
                });
                let from = Rank(middle.0 as u32);
                self.steps[parts[here].0].push(Step::RecvReduceCopy { from, src: parts[here].1, dst });
                parts[here].1 = dst;
                continue;
            }
            let here = self.dice.below(parts.len());
            let dst = self.keep(output, last.is_some());
            self.bring(there, Some(parts[here].1), (parts[here].0, dst));
            parts[here].1 = dst;
        }
        parts[0]
    }

    fn keep(&mut self, output: u32, scattered: bool) -> Range {
        if scattered || self.dice.percent(40) { scratch(self.dice) } else { one(Buffer::Output, output) }
    }

    /// Every rank gets what is at `source` into its chunk `output`.
    fn spread(&mut self, source: At, output: u32) {
        let ranks = self.steps.len();
        let dst = one(Buffer::Output, output);
        let mut have = vec![source];
        let mut lack: Vec<usize> = (0..ranks).filter(|r| *r != source.0 || source.1 != dst).collect();
        while !lack.is_empty() {
            let here = lack.swap_remove(self.dice.below(lack.len()));
            let from = self.dice.of(&have);
            let next = (!lack.is_empty()).then(|| self.dice.below(lack.len()));
            if let Some(next) = next
                && self.dice.percent(25)
                && from.0 != here
                && lack[next] != here
            {
                let next = lack.swap_remove(next);
                self.steps[from.0].push(Step::Send { to: Rank(here as u32), src: from.1 });
                let to = Rank(next as u32);
                self.steps[here].push(Step::RecvCopySend { from: Rank(from.0 as u32), dst, to });
                self.steps[next].push(Step::Recv { from: Rank(here as u32), dst });
                have.push((next, dst));
            } else {
                self.bring(from, None, (here, dst));
            }
            have.push((here, dst));
        }
    }

    fn collective(&mut self, collective: Collective, chunks: u32) {
        let ranks = self.steps.len();
        let every = |chunk| (0..ranks).map(|r| (r, one(Buffer::Input, chunk))).collect::<Vec<At>>();
        let mut units: Vec<(usize, u32)> = match collective {
            Collective::AllGather
            | Collective::ReduceScatter
            | Collective::AllToAll
            | Collective::Gather { .. }
            | Collective::Scatter { .. } => {
                (0..ranks).flat_map(|b| (0..chunks).map(move |j| (b, j))).collect()
            }
            _ => (0..chunks).map(|j| (0, j)).collect(),
        };
        while !units.is_empty() {
            let (block, j) = if self.dice.percent(50) {
                units.remove(0)
            } else {
                units.swap_remove(self.dice.below(units.len()))
            };
            let of_block = block as u32 * chunks + j;
            match collective {
                Collective::AllReduce => {
                    let sum = self.gather(every(j), None, j);
                    self.spread(sum, j);
                }
                Collective::ReduceScatter => {
                    let sum = self.gather(every(of_block), Some(block), j);
                    self.bring(sum, None, (block, one(Buffer::Output, j)));
                }
                Collective::AllGather => self.spread((block, one(Buffer::Input, j)), of_block),
                Collective::Broadcast { root } => self.spread((root.index(), one(Buffer::Input, j)), j),
                Collective::Reduce { root } => {
                    let sum = self.gather(every(j), Some(root.index()), j);
                    self.bring(sum, None, (root.index(), one(Buffer::Output, j)));
                }
                Collective::AllToAll => {
                    for to in 0..ranks {
                        let src = one(Buffer::Input, to as u32 * chunks + j);
                        self.bring((block, src), None, (to, one(Buffer::Output, of_block)));
                    }
                }
                Collective::Gather { root } => {
                    let dst = one(Buffer::Output, of_block);
                    self.bring((block, one(Buffer::Input, j)), None, (root.index(), dst));
                }
                Collective::Scatter { root } => {
                    let src = one(Buffer::Input, of_block);
                    self.bring((root.index(), src), None, (block, one(Buffer::Output, j)));
                }
                Collective::SendRecv => {
                    for r in 0..ranks {
                        let dst = one(Buffer::Output, j);
                        self.bring((r, one(Buffer::Input, j)), None, ((r + 1) % ranks, dst));
                    }
                }
            }
            if self.dice.percent(10) {
                let (a, b) = (self.dice.below(ranks), self.dice.below(ranks));
                if a != b {
                    self.signal(a, b);
                }
            }
        }
        if self.dice.percent(80) {
            for a in 0..ranks {
                let others = (0..ranks).filter(|b| *b != a).map(|b| Step::Signal { to: Rank(b as u32) });
                self.steps[a].extend(others);
            }
            for a in 0..ranks {
                let others = (0..ranks).filter(|b| *b != a).map(|b| Step::Wait { from: Rank(b as u32) });
                self.steps[a].extend(others);
            }
        }
        if self.dice.percent(90) {
            // Nobody reads before all have started.
            for a in 0..ranks {
                let others = || (0..ranks).filter(|b| *b != a).map(|b| Rank(b as u32));
                let start: Vec<Step> = others()
                    .map(|to| Step::Signal { to })
                    .chain(others().map(|from| Step::Wait { from }))
                    .collect();
                self.steps[a].splice(0..0, start);
            }
        }
    }
}

fn collective(dice: &mut Dice, ranks: u32) -> Collective {
    let root = Rank(dice.below(ranks as usize) as u32);
    dice.of(&Collective::all(root))
}

pub fn undamaged(dice: &mut Dice) -> Plan {
    let ranks = 2 + dice.below(3) as u32;
    let channels = 1 + dice.below(2) as u32;
    let collective = collective(dice, ranks);
    if dice.percent(20)
        && let Ok(plan) = plan::generate(dice.of(&Algorithm::ALL), collective, ranks, channels)
    {
        return plan;
    }
    let chunks = 1 + dice.below(4) as u32;
    let mut steps: Vec<Vec<Vec<Step>>> = Vec::new();
    for channel in 0..channels as usize {
        if channel > 0 && dice.percent(50) {
            steps.push(steps[0].clone());
            continue;
        }
        let mut flow = Flow { dice: &mut *dice, steps: vec![Vec::new(); ranks as usize] };
        flow.collective(collective, chunks);
        steps.push(flow.steps);
    }
    let program = |rank: u32, channel: u32| Program {
        rank: Rank(rank),
        channel: ChannelId(channel),
        steps: steps[channel as usize][rank as usize].clone(),
    };
    let names = ["low", "high"];
    let scratch = |(chunks, name): (u32, &str)| Scratch { name: name.into(), chunks };
    Plan {
        version: plan::VERSION,
        name: "random".into(),
        collective,
        ranks,
        channels,
        chunks,
        scratch: SCRATCH.into_iter().zip(names).map(scratch).collect(),
        programs: (0..ranks)
            .flat_map(|r| (0..channels).map(move |c| (r, c)))
            .map(|(r, c)| program(r, c))
            .collect(),
    }
}
