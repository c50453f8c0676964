//! The ring, steps in the order of NCCL's `runRing` (src/device/{all_reduce,all_gather,reduce_scatter,broadcast,reduce}.h at v2.22.3-1).

use super::of::{Of, at, copy, own};
use crate::plan::{Buffer, Step};
use crate::types::{Collective, Rank};

impl Of {
    pub fn ring(&self, collective: Collective) -> Vec<Step> {
        let (n, r) = (self.ranks, self.rank);
        let (prev, next) = (Rank(self.behind(1)), Rank(self.ahead(1)));
        let (input, output) = (|k| at(Buffer::Input, k), |k| at(Buffer::Output, k));
        let mut steps = Vec::new();
        match collective {
            Collective::AllReduce => {
                steps.push(Step::Send { src: input(self.behind(1)), to: next });
                steps.extend((2..n).map(|j| Step::RecvReduceSend {
                    from: prev,
                    src: input(self.behind(j)),
                    to: next,
                }));
                steps.push(Step::RecvReduceCopySend { from: prev, src: input(r), dst: output(r), to: next });
                steps.extend((1..n - 1).map(|j| Step::RecvCopySend {
                    from: prev,
                    dst: output(self.behind(j)),
                    to: next,
                }));
                steps.push(Step::Recv { from: prev, dst: output(self.ahead(1)) });
            }
            Collective::AllGather => {
                // NCCL's copySend in two steps; the send goes first so that the next rank need not wait for our own copy.
                steps.push(Step::Send { src: input(0), to: next });
                steps.push(copy(own(Buffer::Input, 0), output(r)));
                steps.extend((1..n - 1).map(|j| Step::RecvCopySend {
                    from: prev,
                    dst: output(self.behind(j)),
                    to: next,
                }));
                steps.push(Step::Recv { from: prev, dst: output(self.ahead(1)) });
            }
            Collective::ReduceScatter => {
                steps.push(Step::Send { src: input(self.behind(1)), to: next });
                steps.extend((2..n).map(|j| Step::RecvReduceSend {
                    from: prev,
                    src: input(self.behind(j)),
                    to: next,
                }));
                steps.push(Step::RecvReduceCopy { from: prev, src: input(r), dst: output(0) });
            }
            Collective::Broadcast { root } if r == root.0 => {
                steps.push(Step::Send { src: input(0), to: next });
                steps.push(copy(own(Buffer::Input, 0), output(0)));
            }
            Collective::Broadcast { root } if next == root => {
                steps.push(Step::Recv { from: prev, dst: output(0) });
            }
            Collective::Broadcast { .. } => {
                steps.push(Step::RecvCopySend { from: prev, dst: output(0), to: next });
            }
            Collective::Reduce { root } if r == root.0 => {
                steps.push(Step::RecvReduceCopy { from: prev, src: input(0), dst: output(0) });
            }
            Collective::Reduce { root } if prev == root => {
                steps.push(Step::Send { src: input(0), to: next });
            }
            Collective::Reduce { .. } => {
                steps.push(Step::RecvReduceSend { from: prev, src: input(0), to: next });
            }
            Collective::AllToAll
            | Collective::Gather { .. }
            | Collective::Scatter { .. }
            | Collective::SendRecv => unreachable!("`Algorithm::supports` refused it"),
        }
        steps
    }
}
