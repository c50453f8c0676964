//! Which calls of a group are carried out in one launch for all ranks, and in what order everything is queued. No device is asked.
//!
//! Calls are numbered over a communicator's life, as all ranks make the same ones in the same order. A group may hold different ones of
//! different ranks (a rank may have been called for alone before), so what belongs together follows from numbers, not from places in
//! the group; messages likewise, by pair of ranks.

use std::collections::HashMap;

use super::local::Job;
use super::{Message, Way};
use crate::exec::cuda::image::LOCAL_RANKS;
use crate::types::{Collective, DType, RedOp};

/// What a rank has called for so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    pub calls: u64,
    /// By peer.
    sent: Vec<u64>,
    received: Vec<u64>,
}

impl Tally {
    pub fn new(ranks: u32) -> Tally {
        Tally { calls: 0, sent: vec![0; ranks as usize], received: vec![0; ranks as usize] }
    }

    pub fn count(&mut self, messages: &[Message]) {
        for message in messages {
            let counts = if message.way == Way::Send { &mut self.sent } else { &mut self.received };
            counts[message.peer.index()] += 1;
        }
    }
}

/// What the ranks of one call have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    pub collective: Collective,
    pub block: u64,
    pub dtype: DType,
    /// Of a collective that reduces.
    pub op: Option<RedOp>,
}

/// One rank of a group as it matters here.
#[derive(Debug, Clone)]
pub struct Sight<'a> {
    pub rank: u32,
    pub device: u32,
    /// The graph that its stream is recorded into.
    pub capture: Option<u64>,
    pub tally: &'a Tally,
    pub calls: Vec<Asked>,
    pub messages: &'a [Message],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// What comes now follows what all streams have queued.
    Join,
    /// One launch for this call of every member.
    Together(Vec<usize>),
    /// One launch for this call of every member, which runs its own programs: other ranks are elsewhere.
    Beside(Vec<usize>),
    /// One launch for these copies, all messages of the group.
    Copies(Vec<Job>),
    /// What all streams queue from now on follows.
    Fork,
    /// A launch of one member for its call.
    Alone { member: usize, call: usize },
    /// A launch of one member for all its messages.
    Messages { member: usize },
}

/// The steps of a group; `members` by rank, of a communicator of `ranks`.
///
/// # Errors
/// When ranks ask for different things, or a message and its receive differ in length.
pub fn steps(ranks: u32, members: &[Sight<'_>]) -> Result<Vec<Step>, String> {
    let first = &members[0];
    let alike = |m: &Sight<'_>| (m.device, m.capture) == (first.device, first.capture);
    let near = members.len() > 1 && members.iter().all(alike);
    let whole = near && members.len() == ranks as usize;
    let near = near && (whole || members.len() <= LOCAL_RANKS);
    // Calls by number: those before `from` have been made by another rank before, those from `to` on will be.
    let from = members.iter().map(|m| m.tally.calls).max().unwrap_or(0);
    let to = members.iter().map(|m| m.tally.calls + m.calls.len() as u64).min().unwrap_or(0);
    let (from, to) = if near { (from, to.max(from)) } else { (u64::MAX, u64::MAX) };
    let number = |m: &Sight<'_>, call: usize| m.tally.calls + call as u64;
    let alone = |which: &dyn Fn(u64) -> bool| {
        let of_member = |(member, m): (usize, &Sight<'_>)| {
            let calls = (0..m.calls.len()).filter(|&call| which(number(m, call)));
            calls.map(|call| Step::Alone { member, call }).collect::<Vec<_>>()
        };
        members.iter().enumerate().flat_map(of_member).collect::<Vec<_>>()
    };
    let mut together = Vec::new();
    for call in from..to {
        let at: Vec<usize> = members.iter().map(|m| (call - m.tally.calls) as usize).collect();
        agree(members, &at)?;
        together.push(if whole { Step::Together(at) } else { Step::Beside(at) });
    }
    let late = alone(&|number| number >= to && near);
    // Ranks' messages wait for different peers, so of those that go through connections each rank's keep to its own stream.
    // A rank's later call may wait for a peer's that comes after this group: the messages must not make the peer wait for it.
    let copies = if whole && late.is_empty() { matched(members)? } else { None };
    let messages = match &copies {
        Some(_) => vec![],
        None => {
            let sends = |member: &usize| !members[*member].messages.is_empty();
            (0..members.len()).filter(sends).map(|member| Step::Messages { member }).collect()
        }
    };
    together.extend(copies.filter(|copies| !copies.is_empty()).map(Step::Copies));
    let mut steps = alone(&|number| !near || number < from);
    if !together.is_empty() {
        steps.push(Step::Join);
        steps.append(&mut together);
        steps.push(Step::Fork);
    }
    steps.extend(late);
    steps.extend(messages);
    Ok(steps)
}

fn agree(members: &[Sight<'_>], at: &[usize]) -> Result<(), String> {
    let asked = |nth: usize| members[nth].calls[at[nth]];
    match (1..members.len()).find(|&nth| asked(nth) != asked(0)) {
        None => Ok(()),
        Some(nth) => Err(format!(
            "the ranks' calls differ: rank {} asks for {}, rank {} for {}",
            members[0].rank,
            asked(0),
            members[nth].rank,
            asked(nth)
        )),
    }
}

impl std::fmt::Display for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.collective.name())?;
        if let Some(root) = self.collective.root() {
            write!(f, " of root {root}")?;
        }
        write!(f, " of blocks of {} {}", self.block, self.dtype)?;
        self.op.map_or(Ok(()), |op| write!(f, " with {op}"))
    }
}

/// All messages of the group as copies, if each meets its other end within the group; `None` if one does not.
fn matched(members: &[Sight<'_>]) -> Result<Option<Vec<Job>>, String> {
    let mut receives: HashMap<(u32, u32), Vec<&Message>> = HashMap::new();
    let mut count = 0;
    for member in members {
        for message in member.messages.iter().filter(|m| m.way != Way::Send) {
            receives.entry((message.peer.0, member.rank)).or_default().push(message);
            count += 1;
        }
    }
    let even = |a: &Sight<'_>, b: &Sight<'_>| {
        let (a_to_b, b_from_a) = (a.tally.sent.get(b.rank as usize), b.tally.received.get(a.rank as usize));
        a_to_b == b_from_a
    };
    if members.iter().any(|a| members.iter().any(|b| !even(a, b))) {
        return Ok(None);
    }
    let mut copies = Vec::new();
    let mut next: HashMap<(u32, u32), usize> = HashMap::new();
    for member in members {
        for send in member.messages.iter().filter(|m| m.way == Way::Send) {
            let pair = (member.rank, send.peer.0);
            let nth = next.entry(pair).or_default();
            let Some(receive) = receives.get(&pair).and_then(|all| all.get(*nth)) else { return Ok(None) };
            if receive.bytes != send.bytes {
                return Err(format!(
                    "message {nth} of rank {} to rank {} in this group has {} bytes, its receive {}",
                    pair.0, pair.1, send.bytes, receive.bytes
                ));
            }
            *nth += 1;
            count -= 1;
            if send.bytes > 0 {
                copies.push(Job::copy(send.address, receive.address, send.bytes));
            }
        }
    }
    Ok((count == 0).then_some(copies))
}

#[cfg(test)]
#[path = "fusion_tests.rs"]
mod tests;
