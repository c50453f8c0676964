//! Recursive halving and doubling (Thakur, Rabenseifner, Gropp 2005). The largest power of two of the ranks, the core, runs it; each of
//! the others first gives its whole vector to one rank of the core and gets the result from it in the end.

use super::of::{Of, range};
use crate::plan::{Buffer, SLOTS, Step};
use crate::types::Rank;

/// Ranks of the core, which are also the chunks.
pub const fn core(ranks: u32) -> u32 {
    1 << ranks.ilog2()
}

/// Messages into which two ranks cut `chunks` that they send each other: neither may send more than there are slots before it receives.
pub const fn groups(chunks: u32) -> u32 {
    chunks.div_ceil(SLOTS)
}

impl Of {
    pub fn halving_doubling(&self) -> Vec<Step> {
        let core = core(self.ranks);
        let whole = |buffer| range(buffer, 0, core);
        let mut steps = Vec::new();
        if self.rank >= core {
            let inside = Rank(self.rank - core);
            steps.push(Step::Send { src: whole(Buffer::Input), to: inside });
            steps.push(Step::Recv { from: inside, dst: whole(Buffer::Output) });
            return steps;
        }
        let outside = (self.rank + core < self.ranks).then_some(Rank(self.rank + core));
        // Where the sums so far are.
        let mut sums = Buffer::Input;
        if let Some(from) = outside {
            let (src, dst) = (whole(Buffer::Input), whole(Buffer::Output));
            steps.push(Step::RecvReduceCopy { from, src, dst });
            sums = Buffer::Output;
        }
        let mut half = core / 2;
        while half > 0 {
            // Both halves of the part that this rank and its partner still share.
            let (partner, keep) = (self.rank ^ half, self.rank & !(half - 1));
            let give = partner & !(half - 1);
            for group in 0..groups(half) {
                let (first, len) = (group * SLOTS, SLOTS.min(half - group * SLOTS));
                let (give, keep) = (give + first, keep + first);
                steps.push(Step::Send { src: range(sums, give, len), to: Rank(partner) });
                steps.push(Step::RecvReduceCopy {
                    from: Rank(partner),
                    src: range(sums, keep, len),
                    dst: range(Buffer::Output, keep, len),
                });
            }
            sums = Buffer::Output;
            half /= 2;
        }
        let mut have = 1;
        while have < core {
            let partner = self.rank ^ have;
            let (mine, theirs) = (self.rank & !(have - 1), partner & !(have - 1));
            for group in 0..groups(have) {
                let (first, len) = (group * SLOTS, SLOTS.min(have - group * SLOTS));
                let output = |start| range(Buffer::Output, start + first, len);
                steps.push(Step::Send { src: output(mine), to: Rank(partner) });
                steps.push(Step::Recv { from: Rank(partner), dst: output(theirs) });
            }
            have *= 2;
        }
        steps.extend(outside.map(|to| Step::Send { src: whole(Buffer::Output), to }));
        steps
    }
}
