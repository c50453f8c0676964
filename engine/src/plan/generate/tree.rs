//! NCCL's double binary tree (`ncclGetBtree` and `ncclGetDtree` in src/graph/trees.cc at v2.22.3-1, after Sanders, Speck, Traeff 2009):
//! even channels run the first tree, odd ones the second, in which ranks that were leaves are not.
//!
//! A broadcast or reduce has its root outside: it stands above the roots of two trees over the other ranks, so that here too each rank
//! passes data on in one of them only.

use super::of::{Of, at, copy, own};
use crate::plan::{Buffer, Step};
use crate::types::{ChannelId, Collective, Rank};

/// Chunks of an all-reduce: a rank passes all of them up before it takes the first one down.
pub const CHUNKS: u32 = 4;

/// A rank's neighbours in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    parent: Option<u32>,
    children: [Option<u32>; 2],
}

impl Node {
    fn map(self, to: impl Fn(u32) -> u32) -> Node {
        Node { parent: self.parent.map(&to), children: self.children.map(|child| child.map(&to)) }
    }
}

/// Rank 0 is the root; a rank's height is the number of trailing zeros of its number.
fn binary(ranks: u32, rank: u32) -> Node {
    if rank == 0 {
        let child = (ranks > 1).then(|| 1 << (ranks - 1).ilog2());
        return Node { parent: None, children: [None, child] };
    }
    let bit = 1 << rank.trailing_zeros();
    let up = (rank ^ bit) | (bit << 1);
    let parent = if up >= ranks { rank ^ bit } else { up };
    // Where the subtree to the right is cut off by the number of ranks, its highest rank that exists takes the place.
    let right = std::iter::successors(Some(bit >> 1), |low| Some(low >> 1)).take_while(|low| *low > 0);
    let right = right.map(|low| rank + low).find(|child| *child < ranks);
    let left = (bit > 1).then(|| rank - (bit >> 1));
    Node { parent: Some(parent), children: [left, right] }
}

/// The second tree is the first one mirrored or, for an odd number of ranks, shifted by one.
fn double(ranks: u32, rank: u32, second: bool) -> Node {
    match (second, ranks % 2) {
        (false, _) => binary(ranks, rank),
        (true, 0) => binary(ranks, ranks - 1 - rank).map(|r| ranks - 1 - r),
        (true, _) => binary(ranks, (rank + ranks - 1) % ranks).map(|r| (r + 1) % ranks),
    }
}

/// A root above the double tree of the other ranks, which are numbered from it on.
fn rooted(ranks: u32, root: u32, rank: u32, second: bool) -> Node {
    let others = ranks - 1;
    let outer = |inner: u32| (root + 1 + inner) % ranks;
    if rank == root {
        let top = (0..others).find(|r| double(others, *r, second).parent.is_none());
        return Node { parent: None, children: [None, top.map(outer)] };
    }
    let node = double(others, (rank + ranks - root - 1) % ranks, second).map(outer);
    Node { parent: node.parent.or(Some(root)), ..node }
}

fn node(collective: Collective, ranks: u32, rank: u32, second: bool) -> Node {
    match collective.root() {
        Some(root) => rooted(ranks, root.0, rank, second),
        None => double(ranks, rank, second),
    }
}

/// Hops from the lowest leaf to the top.
pub fn depth(collective: Collective, ranks: u32) -> u32 {
    let log = |n: u32| n.next_power_of_two().ilog2();
    if collective.root().is_some() { 1 + log(ranks - 1) } else { log(ranks) }
}

/// A rank's children in the tree of a channel, in the order in which it deals with them.
pub fn children(collective: Collective, ranks: u32, rank: u32, channel: u32) -> Vec<u32> {
    node(collective, ranks, rank, channel % 2 == 1).children.into_iter().flatten().collect()
}

/// Whether a rank has a parent, and how many children, in the tree of a channel.
pub fn degree(collective: Collective, ranks: u32, rank: u32, channel: u32) -> (u32, u32) {
    let node = node(collective, ranks, rank, channel % 2 == 1);
    (node.parent.is_some().into(), node.children.iter().flatten().count() as u32)
}

impl Of {
    pub fn tree(&self, collective: Collective, channel: ChannelId) -> Vec<Step> {
        let Node { parent, children } = node(collective, self.ranks, self.rank, channel.0 % 2 == 1);
        let (parent, children) = (parent.map(Rank), children.into_iter().flatten().map(Rank));
        let children: Vec<Rank> = children.collect();
        let mut steps = Vec::new();
        match collective {
            Collective::AllReduce => {
                // The sum of the first child waits in the output: in place it replaces an input that has been used.
                let up = |i| up(parent, &children, i, Buffer::Output);
                let down = |i| down(parent, &children, i, Buffer::Output);
                steps.extend((0..CHUNKS).flat_map(up));
                steps.extend((0..CHUNKS).flat_map(down));
            }
            Collective::Reduce { .. } => steps.extend(up(parent, &children, 0, Buffer::Scratch(0))),
            _ => {
                steps.extend(down(parent, &children, 0, Buffer::Input));
                if parent.is_none() {
                    steps.push(copy(own(Buffer::Input, 0), at(Buffer::Output, 0)));
                }
            }
        }
        steps
    }
}

/// Adds the own chunk to those of the children and passes the sum on, or keeps it at the top, which has one child.
fn up(parent: Option<Rank>, children: &[Rank], chunk: u32, sum: Buffer) -> Vec<Step> {
    let (input, sum) = (at(Buffer::Input, chunk), at(sum, chunk));
    match (parent, children) {
        (Some(to), []) => vec![Step::Send { src: input, to }],
        (Some(to), &[from]) => vec![Step::RecvReduceSend { from, src: input, to }],
        (Some(to), &[first, second]) => vec![
            Step::RecvReduceCopy { from: first, src: input, dst: sum },
            Step::RecvReduceSend { from: second, src: sum, to },
        ],
        (None, &[from]) => {
            vec![Step::RecvReduceCopy { from, src: input, dst: at(Buffer::Output, chunk) }]
        }
        (_, other) => unreachable!("a rank has at most two children, the top has one, not {}", other.len()),
    }
}

/// Takes a chunk from the parent, or from `source` at the top, and gives it to the children.
fn down(parent: Option<Rank>, children: &[Rank], chunk: u32, source: Buffer) -> Vec<Step> {
    let output = at(Buffer::Output, chunk);
    match (parent, children) {
        (None, children) => children.iter().map(|&to| Step::Send { src: at(source, chunk), to }).collect(),
        (Some(from), []) => vec![Step::Recv { from, dst: output }],
        (Some(from), [first, rest @ ..]) => {
            let first = Step::RecvCopySend { from, dst: output, to: *first };
            let rest = rest.iter().map(|&to| Step::Send { src: output, to });
            std::iter::once(first).chain(rest).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The drawings in NCCL's source: 14 ranks, 12 mirrored, 13 shifted.
    #[test]
    fn the_trees_are_nccls() {
        let children = |ranks, rank, second| double(ranks, rank, second).children;
        assert_eq!(children(14, 0, false), [None, Some(8)]);
        assert_eq!(children(14, 8, false), [Some(4), Some(12)]);
        assert_eq!(children(14, 12, false), [Some(10), Some(13)]);
        assert_eq!(children(12, 11, true), [None, Some(3)]);
        assert_eq!(children(12, 3, true), [Some(7), Some(1)]);
        assert_eq!(children(13, 9, true), [Some(5), Some(0)]);
        assert_eq!(double(13, 1, true).parent, None);
    }

    #[test]
    fn every_tree_joins_all_ranks_and_is_as_deep_as_it_says() {
        for ranks in 2..=64 {
            for collective in [Collective::AllReduce, Collective::Reduce { root: Rank(ranks / 3) }] {
                for second in [false, true] {
                    let node = |rank| node(collective, ranks, rank, second);
                    let mut deepest = 0;
                    for rank in 0..ranks {
                        for child in node(rank).children.into_iter().flatten() {
                            assert_eq!(node(child).parent, Some(rank), "{ranks} ranks");
                        }
                        let path = std::iter::successors(Some(rank), |r| node(*r).parent);
                        deepest = deepest.max(path.take(65).count() as u32 - 1);
                    }
                    assert_eq!(deepest, depth(collective, ranks), "{ranks} ranks");
                }
            }
        }
    }

    #[test]
    fn no_rank_passes_data_on_in_both_trees() {
        for ranks in 2..=64 {
            for rank in 0..ranks {
                let inner = |second| double(ranks, rank, second).children.iter().flatten().count() == 2;
                assert!(!(inner(false) && inner(true)), "rank {rank} of {ranks}");
            }
        }
    }
}
