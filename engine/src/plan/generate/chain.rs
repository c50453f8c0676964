//! The pipelined chain. For broadcast and reduce NCCL's ring is one already: each rank hears from its neighbour on one side only.

use super::of::{Of, range};
use crate::plan::{Buffer, SLOTS, Step};
use crate::types::{Collective, Rank};

/// Chunks of an all-reduce. A rank passes all of them up before it takes the first one down, so they are what keeps the ranks busy at the
/// same time; and the last rank turns them round at once, which needs a slot for each.
pub const CHUNKS: u32 = SLOTS;

impl Of {
    pub fn chain(&self, collective: Collective) -> Vec<Step> {
        let Collective::AllReduce = collective else { return self.ring(collective) };
        let (input, output) = (range(Buffer::Input, 0, CHUNKS), range(Buffer::Output, 0, CHUNKS));
        let (below, above) = (Rank(self.behind(1)), Rank(self.ahead(1)));
        if self.rank == 0 {
            vec![Step::Send { src: input, to: above }, Step::Recv { from: above, dst: output }]
        } else if self.rank + 1 == self.ranks {
            vec![Step::RecvReduceCopySend { from: below, src: input, dst: output, to: below }]
        } else {
            vec![
                Step::RecvReduceSend { from: below, src: input, to: above },
                Step::RecvCopySend { from: above, dst: output, to: below },
            ]
        }
    }
}
