//! What a rank is about to do, small enough to be exchanged before any data moves, and what does not fit together.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use super::bootstrap::Bootstrap;
use super::error::CommError;
use super::hub::names;
use super::operation::Operation;
use crate::text::Text;
use crate::types::{Collective, Rank};

/// One operation's arguments that have to agree between ranks. Addresses and the factor of a pre-multiplied sum may differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    kind: Kind,
    count: u64,
    dtype: String,
    /// Empty where nothing is reduced.
    op: String,
    in_place: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Collective { name: String, root: Option<Rank> },
    Send { to: Rank },
    Recv { from: Rank },
}

const NO_RANK: u32 = u32::MAX;

impl Fingerprint {
    /// Of rank `rank`'s operation.
    pub fn of(operation: &Operation, rank: Rank) -> Fingerprint {
        match *operation {
            Operation::Collective { collective, send, recv, block, dtype, op, factor } => {
                let bytes = block.wrapping_mul(dtype.size() as u64);
                let premultiplied = if factor.is_some() { "pre-multiplied " } else { "" };
                Fingerprint {
                    kind: Kind::Collective { name: collective.name().into(), root: collective.root() },
                    count: block,
                    dtype: dtype.name().into(),
                    op: if collective.reduces() { format!("{premultiplied}{op}") } else { String::new() },
                    in_place: in_place(collective, rank, send, recv, bytes),
                }
            }
            Operation::Send { to, count, dtype, .. } => {
                Fingerprint::message(Kind::Send { to }, count, dtype.name())
            }
            Operation::Recv { from, count, dtype, .. } => {
                Fingerprint::message(Kind::Recv { from }, count, dtype.name())
            }
            Operation::Barrier => {
                Fingerprint::message(Kind::Collective { name: "barrier".into(), root: None }, 0, "")
            }
        }
    }

    fn message(kind: Kind, count: u64, dtype: &str) -> Fingerprint {
        Fingerprint { kind, count, dtype: dtype.into(), op: String::new(), in_place: None }
    }

    /// A list of them, for [`crate::comm::Bootstrap::allgather`].
    pub fn encode(list: &[Fingerprint]) -> Vec<u8> {
        let mut out = vec![];
        for print in list {
            let (kind, name, rank) = match &print.kind {
                Kind::Collective { name, root } => (0, name.as_str(), root.map_or(NO_RANK, |r| r.0)),
                Kind::Send { to } => (1, "", to.0),
                Kind::Recv { from } => (2, "", from.0),
            };
            out.extend([kind, print.in_place.map_or(2, u8::from)]);
            out.extend(rank.to_le_bytes());
            out.extend(print.count.to_le_bytes());
            for text in [name, &print.dtype, &print.op] {
                out.push(
                    u8::try_from(text.len()).expect("names of types, operations and collectives are short"),
                );
                out.extend(text.as_bytes());
            }
        }
        out
    }

    /// What [`Fingerprint::encode`] wrote; `None` for anything else.
    pub fn decode(mut bytes: &[u8]) -> Option<Vec<Fingerprint>> {
        let mut list = vec![];
        while !bytes.is_empty() {
            let (head, mut rest) = bytes.split_first_chunk::<14>()?;
            let rank = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
            let count = u64::from_le_bytes(head[6..].try_into().ok()?);
            let mut text = || {
                let (length, after) = rest.split_first()?;
                let (text, after) = after.split_at_checked(usize::from(*length))?;
                rest = after;
                String::from_utf8(text.to_vec()).ok()
            };
            let (name, dtype, op) = (text()?, text()?, text()?);
            let kind = match head[0] {
                0 => Kind::Collective { name, root: (rank != NO_RANK).then_some(Rank(rank)) },
                1 => Kind::Send { to: Rank(rank) },
                2 => Kind::Recv { from: Rank(rank) },
                _ => return None,
            };
            let in_place = [Some(false), Some(true), None].get(usize::from(head[1])).copied()?;
            list.push(Fingerprint { kind, count, dtype, op, in_place });
            bytes = rest;
        }
        Some(list)
    }
}

/// Whether all ranks ask for the same in this group, and every message has its other end. Every rank calls it with its group, before any
/// data moves.
///
/// # Errors
/// [`CommError::InvalidUsage`] names the ranks and what they differ in; [`CommError::Timeout`] the ranks that have not come. Else the
/// failure of the communicator.
pub fn agree(bootstrap: &Bootstrap, ops: &[Operation], deadline: Duration) -> Result<(), CommError> {
    let own: Vec<_> = ops.iter().map(|op| Fingerprint::of(op, bootstrap.rank())).collect();
    let all = bootstrap.allgather(&Fingerprint::encode(&own), deadline)?;
    let mut prints = Vec::with_capacity(all.len());
    for (rank, bytes) in (0..).zip(&all) {
        prints.push(Fingerprint::decode(bytes).ok_or_else(|| CommError::Remote {
            rank: Rank(rank),
            why: "its description of a call cannot be read; run the same build in all ranks".into(),
        })?);
    }
    // Each rank lays out its own programs, and what it sends does not depend on where its buffers are.
    compare(&prints, false).map_or(Ok(()), |text| Err(CommError::InvalidUsage(text.en)))
}

/// Whether the buffers are in place. Only where that is the same question for all ranks: with a root it is not.
fn in_place(collective: Collective, rank: Rank, send: u64, recv: u64, block_bytes: u64) -> Option<bool> {
    if collective.alias().is_none() || collective.root().is_some() {
        return None;
    }
    let (input, output) = collective.in_place_offsets(rank);
    let start = |address: u64, blocks: u32| address.wrapping_sub(u64::from(blocks).wrapping_mul(block_bytes));
    Some(start(send, input) == start(recv, output))
}

/// Compares one group of calls of all ranks, by rank: collectives in order, and every send with its receive. `in_place`: whether all
/// ranks must be in place or none, which depends on how the calls are carried out.
///
/// Returns the first thing that does not fit, naming the ranks and the argument.
pub fn compare(all: &[Vec<Fingerprint>], in_place: bool) -> Option<Text> {
    collectives(all, in_place).or_else(|| messages(all))
}

fn collectives(all: &[Vec<Fingerprint>], in_place: bool) -> Option<Text> {
    type Call<'a> = (&'a Fingerprint, &'a str, Option<Rank>);
    let calls: Vec<Vec<Call<'_>>> = all
        .iter()
        .map(|list| {
            let call = list.iter().filter_map(|print| match &print.kind {
                Kind::Collective { name, root } => Some((print, name.as_str(), *root)),
                _ => None,
            });
            call.collect()
        })
        .collect();
    let lengths: Vec<_> = calls.iter().map(Vec::len).collect();
    let most = lengths.iter().copied().max().unwrap_or(0);
    for at in 0..most {
        // A rank without an `at`-th call is told apart below, after what the others agree on until there.
        let here: Vec<_> = calls.iter().map(|list| list.get(at)).collect();
        if here.iter().any(Option::is_none) {
            return differing(
                "the number of collective calls in the group",
                "组内集合通信调用的次数",
                at,
                &lengths,
            );
        }
        let here: Vec<_> = here.into_iter().flatten().collect();
        let column = |of: fn(&Call<'_>) -> String| here.iter().map(|c| of(c)).collect::<Vec<_>>();
        let found = differing("the collective", "集合通信", at, &column(|c| c.1.to_owned()))
            .or_else(|| differing("count", "count", at, &column(|c| c.0.count.to_string())))
            .or_else(|| differing("datatype", "datatype", at, &column(|c| c.0.dtype.clone())))
            .or_else(|| differing("op", "op", at, &column(|c| c.0.op.clone())))
            .or_else(|| {
                differing("root", "root", at, &column(|c| c.2.map_or("none".into(), |r| r.to_string())))
            })
            .or_else(|| {
                let word = |c: &Call<'_>| match c.0.in_place {
                    Some(true) => "in place".to_owned(),
                    _ => "out of place".to_owned(),
                };
                in_place.then(|| differing("the use of buffers", "缓冲区用法", at, &column(word))).flatten()
            });
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The ranks whose value is not the most common one.
fn differing<T: Ord + Display>(what: &str, zh: &str, at: usize, values: &[T]) -> Option<Text> {
    let mut counted: BTreeMap<&T, usize> = BTreeMap::new();
    values.iter().for_each(|value| *counted.entry(value).or_default() += 1);
    if counted.len() < 2 {
        return None;
    }
    // Of equally common ones, that of the lowest rank.
    let most = counted.values().copied().max()?;
    let common = values.iter().find(|value| counted[value] == most)?;
    let (odd, value) = values.iter().enumerate().find(|(_, value)| *value != common)?;
    let with = |wanted: &T| -> Vec<Rank> {
        (0..values.len()).filter(|r| values[*r] == *wanted).map(|r| Rank(r as u32)).collect()
    };
    let (strays, rest) = (with(value), with(common));
    let call = at + 1;
    debug_assert_eq!(strays[0], Rank(odd as u32));
    Some(Text::new(
        format!(
            "各 rank 的调用不一致（第 {call} 个集合通信，参数“{zh}”）：{} 为 {value}，{} 为 {common}。",
            names_zh(&strays),
            names_zh(&rest)
        ),
        format!(
            "the ranks' calls differ in {what} (collective {call} of the group): {value} on {}, {common} on {}",
            names(&strays),
            names(&rest)
        ),
    ))
}

fn names_zh(ranks: &[Rank]) -> String {
    names(ranks).replace("ranks", "rank").replace("in all", "共")
}

fn messages(all: &[Vec<Fingerprint>]) -> Option<Text> {
    type Ends<'a> = (Vec<&'a Fingerprint>, Vec<&'a Fingerprint>);
    let mut pairs: BTreeMap<(Rank, Rank), Ends<'_>> = BTreeMap::new();
    for (me, list) in all.iter().enumerate() {
        let me = Rank(me as u32);
        for print in list {
            match print.kind {
                Kind::Send { to } => pairs.entry((me, to)).or_default().0.push(print),
                Kind::Recv { from } => pairs.entry((from, me)).or_default().1.push(print),
                Kind::Collective { .. } => {}
            }
        }
    }
    pairs.iter().find_map(|((from, to), (sent, received))| {
        if sent.len() != received.len() {
            let (s, r) = (sent.len(), received.len());
            return Some(Text::new(
                format!("rank {from} 在组内向 rank {to} 发送 {s} 次，而 rank {to} 从它接收 {r} 次。"),
                format!("in the group rank {from} sends to rank {to} {s} times, and rank {to} receives from it {r} times"),
            ));
        }
        let (at, (s, r)) = sent
            .iter()
            .zip(received)
            .enumerate()
            .find(|(_, (s, r))| (s.count, &s.dtype) != (r.count, &r.dtype))?;
        let n = at + 1;
        Some(Text::new(
            format!(
                "rank {from} 发给 rank {to} 的第 {n} 条消息为 {} 个 {}，而接收方等待 {} 个 {}。",
                s.count, s.dtype, r.count, r.dtype
            ),
            format!(
                "message {n} of rank {from} to rank {to} has {} elements of {}, the receiver expects {} of {}",
                s.count, s.dtype, r.count, r.dtype
            ),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Scalar;
    use crate::types::{DType, RedOp};

    fn all_reduce(block: u64, dtype: DType, op: RedOp) -> Operation {
        Operation::Collective {
            collective: Collective::AllReduce,
            send: 8,
            recv: 16,
            block,
            dtype,
            op,
            factor: None,
        }
    }

    fn broadcast(root: u32) -> Operation {
        Operation::Collective {
            collective: Collective::Broadcast { root: Rank(root) },
            send: 8,
            recv: 16,
            block: 4,
            dtype: DType::F32,
            op: RedOp::Sum,
            factor: None,
        }
    }

    fn send(to: u32, count: u64) -> Operation {
        Operation::Send { to: Rank(to), buffer: 0, count, dtype: DType::F32 }
    }

    fn recv(from: u32, count: u64) -> Operation {
        Operation::Recv { from: Rank(from), buffer: 0, count, dtype: DType::F32 }
    }

    /// Each rank's group, over the wire.
    fn check(groups: &[&[Operation]]) -> Option<String> {
        let all: Vec<_> = groups
            .iter()
            .enumerate()
            .map(|(rank, ops)| {
                let prints: Vec<_> = ops.iter().map(|op| Fingerprint::of(op, Rank(rank as u32))).collect();
                Fingerprint::decode(&Fingerprint::encode(&prints)).unwrap()
            })
            .collect();
        compare(&all, true).map(|text| text.en)
    }

    #[test]
    fn equal_calls_fit_whatever_their_addresses() {
        let moved = Operation::Collective {
            collective: Collective::AllReduce,
            send: 800,
            recv: 1600,
            block: 4,
            dtype: DType::F32,
            op: RedOp::Sum,
            factor: None,
        };
        assert_eq!(check(&[&[all_reduce(4, DType::F32, RedOp::Sum)], &[moved]]), None);
        assert_eq!(check(&[&[broadcast(1), send(1, 3)], &[recv(0, 3), broadcast(1)]]), None);
        assert_eq!(check(&[&[], &[]]), None);
    }

    #[test]
    fn the_odd_rank_and_its_argument_are_named() {
        let usual = [all_reduce(4, DType::F32, RedOp::Sum)];
        let odd = |op| check(&[&usual, &[op], &usual]).unwrap();
        assert!(
            odd(all_reduce(5, DType::F32, RedOp::Sum))
                .contains("count (collective 1 of the group): 5 on rank 1, 4 on ranks 0, 2")
        );
        assert!(odd(all_reduce(4, DType::I32, RedOp::Sum)).contains("datatype"));
        assert!(
            odd(all_reduce(4, DType::F32, RedOp::Max))
                .contains("op (collective 1 of the group): max on rank 1")
        );
        assert!(
            odd(broadcast(0)).contains("the collective (collective 1 of the group): broadcast on rank 1")
        );
        assert!(check(&[&[broadcast(0)], &[broadcast(1)]]).unwrap().contains("root"));
        assert!(check(&[&usual, &usual, &[]]).unwrap().contains("0 on rank 2, 1 on ranks 0, 1"));
    }

    #[test]
    fn a_factor_and_the_place_of_buffers_are_compared() {
        let with = |send, factor| Operation::Collective {
            collective: Collective::AllReduce,
            send,
            recv: 16,
            block: 4,
            dtype: DType::F32,
            op: RedOp::Sum,
            factor,
        };
        assert!(
            check(&[&[with(8, None)], &[with(8, Some(Scalar::Bits(1)))]])
                .unwrap()
                .contains("pre-multiplied sum")
        );
        assert_eq!(check(&[&[with(8, Some(Scalar::Bits(2)))], &[with(8, Some(Scalar::Bits(1)))]]), None);
        assert!(check(&[&[with(16, None)], &[with(8, None)]]).unwrap().contains("in place"));
    }

    #[test]
    fn a_message_without_its_other_end_is_named() {
        let why = check(&[&[send(1, 3), send(1, 4)], &[recv(0, 3)]]).unwrap();
        assert!(why.contains("rank 0 sends to rank 1 2 times") && why.contains("1 times"), "{why}");
        let why = check(&[&[send(1, 3), send(1, 4)], &[recv(0, 3), recv(0, 5)]]).unwrap();
        assert!(
            why.contains("message 2 of rank 0 to rank 1 has 4 elements") && why.contains("expects 5"),
            "{why}"
        );
    }

    #[test]
    fn bytes_that_are_no_fingerprints_are_refused() {
        let good = Fingerprint::encode(&[Fingerprint::of(&broadcast(0), Rank(0))]);
        for cut in 1..good.len() {
            assert_eq!(Fingerprint::decode(&good[..cut]), None, "cut at {cut}");
        }
    }
}
