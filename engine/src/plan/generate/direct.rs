//! One-shot and two-shot: ranks read their peers' buffers between signals and waits.

use super::of::{Of, at, copy, own};
use crate::plan::{Buffer, Place, Range, Step};
use crate::types::{Collective, Rank};

impl Of {
    pub fn one_shot(&self, collective: Collective) -> Vec<Step> {
        let (n, r) = (self.ranks, self.rank);
        let output = |k| at(Buffer::Output, k);
        let mut steps = Vec::new();
        match collective {
            Collective::AllReduce => {
                // In place, writing the output would change the input that slower peers still read: the sum waits in scratch.
                self.barrier(&mut steps);
                steps.push(Step::Reduce { srcs: self.all(Buffer::Input, 0), dst: at(Buffer::Scratch(0), 0) });
                self.barrier(&mut steps);
                steps.push(copy(own(Buffer::Scratch(0), 0), output(0)));
            }
            Collective::AllGather => {
                self.barrier(&mut steps);
                // Each rank begins with itself, so that no peer is read by all at the same time.
                steps.extend(
                    (0..n).map(|k| copy(self.place(self.ahead(k), Buffer::Input, 0), output(self.ahead(k)))),
                );
                self.barrier(&mut steps);
            }
            Collective::ReduceScatter => {
                // In place this writes block r of the own input, which no peer reads.
                self.barrier(&mut steps);
                steps.push(Step::Reduce { srcs: self.all(Buffer::Input, r), dst: output(0) });
                self.barrier(&mut steps);
            }
            Collective::Broadcast { root } => {
                let src = self.place(root.0, Buffer::Input, 0);
                self.read_by_all(root, copy(src, output(0)), &mut steps);
            }
            Collective::Scatter { root } => {
                let src = self.place(root.0, Buffer::Input, r);
                self.read_by_all(root, copy(src, output(0)), &mut steps);
            }
            Collective::Reduce { root } => {
                let sum = Step::Reduce { srcs: self.all(Buffer::Input, 0), dst: output(0) };
                self.reads_all(root, vec![sum], &mut steps);
            }
            Collective::Gather { root } => {
                let from = |k: u32| copy(self.place(self.ahead(k), Buffer::Input, 0), output(self.ahead(k)));
                self.reads_all(root, (0..n).map(from).collect(), &mut steps);
            }
            Collective::AllToAll => {
                self.barrier(&mut steps);
                steps.extend(
                    (0..n).map(|k| copy(self.place(self.ahead(k), Buffer::Input, r), output(self.ahead(k)))),
                );
                self.barrier(&mut steps);
            }
            Collective::SendRecv => {
                // The one I read tells me that it is there; the one that reads me, that it has read.
                let (prev, next) = (Rank(self.behind(1)), Rank(self.ahead(1)));
                steps.push(Step::Signal { to: next });
                steps.push(Step::Wait { from: prev });
                steps.push(copy(self.place(prev.0, Buffer::Input, 0), output(0)));
                steps.push(Step::Signal { to: prev });
                steps.push(Step::Wait { from: next });
            }
        }
        steps
    }

    /// All ranks read the root: it tells them when, and waits until they have.
    fn read_by_all(&self, root: Rank, read: Step, steps: &mut Vec<Step>) {
        if self.rank == root.0 {
            steps.extend((1..self.ranks).map(|k| Step::Signal { to: Rank(self.ahead(k)) }));
            steps.push(read);
            steps.extend((1..self.ranks).map(|k| Step::Wait { from: Rank(self.ahead(k)) }));
        } else {
            steps.extend([Step::Wait { from: root }, read, Step::Signal { to: root }]);
        }
    }

    /// The root reads all ranks, once they have told it that they are there.
    fn reads_all(&self, root: Rank, reads: Vec<Step>, steps: &mut Vec<Step>) {
        if self.rank == root.0 {
            steps.extend((1..self.ranks).map(|k| Step::Wait { from: Rank(self.ahead(k)) }));
            steps.extend(reads);
            steps.extend((1..self.ranks).map(|k| Step::Signal { to: Rank(self.ahead(k)) }));
        } else {
            steps.extend([Step::Signal { to: root }, Step::Wait { from: root }]);
        }
    }

    pub fn two_shot(&self, collective: Collective) -> Vec<Step> {
        let (n, r) = (self.ranks, self.rank);
        let output = |k| at(Buffer::Output, k);
        let mut steps = Vec::new();
        self.barrier(&mut steps);
        // First shot: rank r makes chunk r. In place this is safe because only rank r reads chunk r of any input.
        match collective {
            Collective::Broadcast { root } if r == root.0 => {
                let whole = |buffer| Range { buffer, start: 0, len: n };
                steps.push(copy(Place { rank: None, range: whole(Buffer::Input) }, whole(Buffer::Output)));
            }
            Collective::Broadcast { root } => {
                steps.push(copy(self.place(root.0, Buffer::Input, r), output(r)));
            }
            _ => steps.push(Step::Reduce { srcs: self.all(Buffer::Input, r), dst: output(r) }),
        }
        self.barrier(&mut steps);
        // Second shot: fetch the other chunks from their makers.
        if !matches!(collective, Collective::Broadcast { root } if r == root.0) {
            steps.extend((1..n).map(|k| {
                copy(self.place(self.ahead(k), Buffer::Output, self.ahead(k)), output(self.ahead(k)))
            }));
        }
        self.barrier(&mut steps);
        steps
    }
}
