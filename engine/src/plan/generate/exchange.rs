//! Straight from rank to rank through FIFOs: pairwise, one block after the other, and exchange, all blocks at once.

use super::of::{Of, at, copy, own};
use crate::plan::{Buffer, Place, Range, Step};
use crate::types::{Collective, Rank};

impl Of {
    pub fn pairwise(&self, collective: Collective) -> Vec<Step> {
        let Collective::AllToAll = collective else { return self.exchange(collective) };
        let mut steps = vec![copy(own(Buffer::Input, self.rank), at(Buffer::Output, self.rank))];
        for k in 1..self.ranks {
            let (to, from) = (self.ahead(k), self.behind(k));
            steps.push(Step::Send { src: at(Buffer::Input, to), to: Rank(to) });
            steps.push(Step::Recv { from: Rank(from), dst: at(Buffer::Output, from) });
        }
        steps
    }

    /// Each rank sends before it receives, one block per connection and tile, so that nobody waits for a slot of this tile.
    pub fn exchange(&self, collective: Collective) -> Vec<Step> {
        let (n, r) = (self.ranks, self.rank);
        let (input, output) = (|k| at(Buffer::Input, k), |k| at(Buffer::Output, k));
        let mut steps = Vec::new();
        match collective {
            Collective::AllReduce => {
                self.send_all(|_| input(0), &mut steps);
                self.fold(input(0), output(0), &mut steps);
            }
            Collective::ReduceScatter => {
                self.send_all(input, &mut steps);
                self.fold(input(r), output(0), &mut steps);
            }
            Collective::Reduce { root } if r == root.0 => self.fold(input(0), output(0), &mut steps),
            Collective::AllGather => {
                self.send_all(|_| input(0), &mut steps);
                steps.push(copy(own(Buffer::Input, 0), output(r)));
                self.recv_all(&mut steps);
            }
            Collective::AllToAll => {
                self.send_all(input, &mut steps);
                steps.push(copy(own(Buffer::Input, r), output(r)));
                self.recv_all(&mut steps);
            }
            Collective::Gather { root } if r == root.0 => {
                steps.push(copy(own(Buffer::Input, 0), output(r)));
                self.recv_all(&mut steps);
            }
            Collective::Broadcast { root } if r == root.0 => {
                self.send_all(|_| input(0), &mut steps);
                steps.push(copy(own(Buffer::Input, 0), output(0)));
            }
            Collective::Scatter { root } if r == root.0 => {
                self.send_all(input, &mut steps);
                steps.push(copy(own(Buffer::Input, r), output(0)));
            }
            Collective::Reduce { root } | Collective::Gather { root } => {
                steps.push(Step::Send { src: input(0), to: root });
            }
            Collective::Broadcast { root } | Collective::Scatter { root } => {
                steps.push(Step::Recv { from: root, dst: output(0) });
            }
            Collective::SendRecv => {
                steps.push(Step::Send { src: input(0), to: Rank(self.ahead(1)) });
                steps.push(Step::Recv { from: Rank(self.behind(1)), dst: output(0) });
            }
        }
        debug_assert!(n > 1 && !steps.is_empty());
        steps
    }

    /// To each peer the chunk that `of` names; the next rank first, so that not all begin with the same.
    fn send_all(&self, of: impl Fn(u32) -> Range, steps: &mut Vec<Step>) {
        let to = (1..self.ranks).map(|k| self.ahead(k));
        steps.extend(to.map(|to| Step::Send { src: of(to), to: Rank(to) }));
    }

    /// From each peer into its block of the output, in the order in which they send.
    fn recv_all(&self, steps: &mut Vec<Step>) {
        let from = (1..self.ranks).map(|k| self.behind(k));
        steps.extend(from.map(|p| Step::Recv { from: Rank(p), dst: at(Buffer::Output, p) }));
    }

    /// `dst` = what all ranks have, added in rank order with one rounding after each addition, wherever this rank stands in that order.
    /// In place `dst` is `src`, so what comes before this rank waits in scratch.
    fn fold(&self, src: Range, dst: Range, steps: &mut Vec<Step>) {
        let sum = at(Buffer::Scratch(0), 0);
        match self.rank {
            first @ 0..=1 => steps.push(Step::RecvReduceCopy { from: Rank(1 - first), src, dst }),
            rank => {
                steps.push(Step::Recv { from: Rank(0), dst: sum });
                steps.extend((1..rank).map(|p| Step::RecvReduceCopy { from: Rank(p), src: sum, dst: sum }));
                let mine = |range| Place { rank: None, range };
                steps.push(Step::Reduce { srcs: vec![mine(sum), mine(src)], dst });
            }
        }
        let rest = 2.max(self.rank + 1)..self.ranks;
        steps.extend(rest.map(|p| Step::RecvReduceCopy { from: Rank(p), src: dst, dst }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a rank's folding amounts to; as an addition commutes, its operands come in the order of their text, brackets first.
    fn folded(ranks: u32, rank: u32) -> String {
        let add = |a: String, b: String| if a < b { format!("({a}+{b})") } else { format!("({b}+{a})") };
        let steps = Of { rank, ranks }.exchange(Collective::AllReduce);
        let (mut scratch, mut output) = (String::new(), String::new());
        for step in steps {
            let value = |range: Range| match range.buffer {
                Buffer::Input => rank.to_string(),
                Buffer::Output => output.clone(),
                Buffer::Scratch(_) => scratch.clone(),
            };
            let (value, dst) = match step {
                Step::Recv { from, dst } => (from.to_string(), dst),
                Step::RecvReduceCopy { from, src, dst } => (add(from.to_string(), value(src)), dst),
                Step::Reduce { srcs, dst } => (add(value(srcs[0].range), value(srcs[1].range)), dst),
                _ => continue,
            };
            match dst.buffer {
                Buffer::Scratch(_) => scratch = value,
                _ => output = value,
            }
        }
        output
    }

    #[test]
    fn all_ranks_add_in_the_same_order() {
        assert_eq!(folded(4, 0), "(((0+1)+2)+3)");
        for ranks in 2..20 {
            for rank in 1..ranks {
                assert_eq!(folded(ranks, rank), folded(ranks, 0), "rank {rank} of {ranks}");
            }
        }
    }
}
