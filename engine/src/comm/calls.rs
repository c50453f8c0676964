//! Calls that all ranks make together: contributions collected by sequence number, answered when the last has come.

use std::collections::BTreeMap;
use std::time::Instant;

use super::error::CommError;
use super::hub::names;
use super::wire::{Bytes, CallKind, Frame, MAX_RESULT};
use crate::types::Rank;

/// Calls a rank may be ahead of the slowest.
const MAX_OPEN: usize = 256;

/// A frame for one rank.
#[derive(Debug)]
pub(super) struct Reply {
    pub rank: Rank,
    pub frame: Bytes,
}

#[derive(Debug)]
struct Call {
    kind: CallKind,
    root: Rank,
    first: Rank,
    parts: Vec<Option<Vec<u8>>>,
    /// Ranks that wait, and until when.
    waiting: Vec<(Rank, Instant, Instant)>,
    /// What all who come get instead of a result.
    broken: Option<CommError>,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    open: BTreeMap<u64, Call>,
}

/// What one rank brings to a call.
#[derive(Debug)]
pub(super) struct Contribution {
    pub rank: Rank,
    pub sequence: u64,
    pub kind: CallKind,
    /// Whose data a broadcast is of; the same for all ranks of other calls.
    pub root: Rank,
    pub data: Vec<u8>,
    pub since: Instant,
    pub until: Instant,
}

impl Calls {
    /// `gone`: ranks that have left and will contribute nothing more.
    pub(super) fn contribute(&mut self, ranks: usize, gone: &[Rank], what: Contribution) -> Vec<Reply> {
        let Contribution { rank, sequence, kind, root, data, since, until } = what;
        let refuse = |error| vec![failed(rank, sequence, error)];
        let open = self.open.get(&sequence);
        let brought = |gone: Rank| open.is_some_and(|call| call.parts[gone.index()].is_some());
        if let Some(gone) = gone.iter().find(|gone| !brought(**gone)) {
            return refuse(gone_error(*gone, kind, sequence));
        }
        if data.len() > MAX_RESULT / ranks {
            return refuse(CommError::InvalidArgument(format!(
                "{} bytes from each of {ranks} ranks; together they may have {MAX_RESULT}",
                data.len()
            )));
        }
        if self.open.len() >= MAX_OPEN && open.is_none() {
            return refuse(CommError::InvalidUsage(format!(
                "rank {rank} is more than {MAX_OPEN} calls ahead of the slowest rank"
            )));
        }
        let call = self.open.entry(sequence).or_insert_with(|| Call {
            kind,
            root,
            first: rank,
            parts: vec![None; ranks],
            waiting: vec![],
            broken: None,
        });
        let mut replies = vec![];
        if (call.kind, call.root) != (kind, root) && call.broken.is_none() {
            let describe = |kind: CallKind, root: Rank| match kind {
                CallKind::Broadcast => format!("broadcast from rank {root}"),
                kind => kind.name().to_owned(),
            };
            let error = CommError::InvalidUsage(format!(
                "the ranks' calls differ: as its bootstrap call {sequence} rank {} makes {}, rank {rank} {}",
                call.first,
                describe(call.kind, call.root),
                describe(kind, root)
            ));
            replies.extend(call.waiting.drain(..).map(|(who, ..)| failed(who, sequence, error.clone())));
            call.broken = Some(error);
        }
        call.parts[rank.index()] = Some(data);
        match &call.broken {
            Some(error) => replies.push(failed(rank, sequence, error.clone())),
            None => call.waiting.push((rank, since, until)),
        }
        if call.parts.iter().all(Option::is_some) {
            replies.extend(self.finish(sequence));
        }
        replies
    }

    fn finish(&mut self, sequence: u64) -> Vec<Reply> {
        let Some(call) = self.open.remove(&sequence) else { return vec![] };
        let mut parts = call.parts.into_iter().map(Option::unwrap_or_default);
        let parts = match call.kind {
            CallKind::AllGather => parts.collect(),
            CallKind::Barrier => vec![],
            CallKind::Broadcast => parts.nth(call.root.index()).into_iter().collect(),
        };
        let frame = Frame::Result { sequence, parts }.encode();
        call.waiting.into_iter().map(|(rank, ..)| Reply { rank, frame: frame.clone() }).collect()
    }

    /// A rank said goodbye: who waits for it waits in vain.
    pub(super) fn left(&mut self, gone: Rank) -> Vec<Reply> {
        let mut replies = vec![];
        self.open.retain(|sequence, call| {
            if call.parts[gone.index()].is_some() {
                return true;
            }
            let error = gone_error(gone, call.kind, *sequence);
            replies.extend(call.waiting.drain(..).map(|(who, ..)| failed(who, *sequence, error.clone())));
            false
        });
        replies
    }

    pub(super) fn expire(&mut self, now: Instant) -> Vec<Reply> {
        let mut replies = vec![];
        for (sequence, call) in &mut self.open {
            let Call { kind, parts, waiting, .. } = call;
            waiting.retain(|(who, since, until)| {
                if now < *until {
                    return true;
                }
                let absent =
                    |(at, part): (usize, &Option<Vec<u8>>)| part.is_none().then_some(Rank(at as u32));
                let missing: Vec<_> = parts.iter().enumerate().filter_map(absent).collect();
                let error = CommError::Timeout(format!(
                    "{} (bootstrap call {sequence}): {} did not call it within {} ms",
                    kind.name(),
                    names(&missing),
                    until.duration_since(*since).as_millis()
                ));
                replies.push(failed(*who, *sequence, error));
                false
            });
        }
        replies
    }

    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.open.values().flat_map(|call| call.waiting.iter().map(|(_, _, until)| *until)).min()
    }
}

fn failed(rank: Rank, sequence: u64, error: CommError) -> Reply {
    Reply { rank, frame: Frame::CallFailed { sequence, error }.encode() }
}

fn gone_error(rank: Rank, kind: CallKind, sequence: u64) -> CommError {
    let why = format!("it said goodbye and takes no part in {} (bootstrap call {sequence})", kind.name());
    CommError::Remote { rank, why }
}
