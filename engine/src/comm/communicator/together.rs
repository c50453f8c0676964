//! Groups of several ranks, of one or several communicators, queued by one thread.

use std::thread::ScopedJoinHandle;

use super::asked::Asked;
use super::work::{Queued, Work};
use super::{Communicator, Port, Prepared, Shared, left};
use crate::comm::choice::Chosen;
use crate::comm::error::CommError;
use crate::comm::operation::Operation;
use crate::exec::ExecError;
use crate::exec::cuda::ForeignStream;
use crate::exec::cuda::rank::{Call, Group, Member, Message};

/// One rank's share of a group: its operations, and the stream of its device that they are queued on.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub comm: &'a Communicator,
    pub ops: &'a [Operation],
    pub stream: ForeignStream,
}

/// What a group failed with, and in which of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartError {
    pub part: usize,
    pub error: CommError,
}

impl Communicator {
    /// Queues a group of several ranks' operations. Returns before they run; nothing waits for another rank before all are queued, so
    /// that one thread may bring all ranks of a communicator.
    ///
    /// When it brings all ranks of a communicator, and they share a device, their collectives run as one launch each, directly between
    /// their buffers (short ones that do not touch each other's as one for several), and all messages among them as one launch. When it
    /// brings some of the ranks, up to twelve, a collective of theirs is one launch of their programs; so is a pre-multiplied sum of all
    /// ranks whose factors are on the device. Their streams are joined before the first and go on after the last.
    ///
    /// Each rank launches for itself, and ranks need streams of their own, where that is not possible: for a collective that a rank has
    /// called before alone or will call later alone, streams that are recorded into different graphs, messages to or from ranks
    /// elsewhere, more messages than one launch's programs hold, and more than twelve ranks where these need programs of their own.
    ///
    /// # Errors
    /// As [`Communicator::enqueue`]; also when ranks of the group ask for different things. Nothing has been queued then, unless the
    /// driver failed.
    pub fn enqueue_group<'a>(parts: &[Part<'a>]) -> Result<Vec<Work>, PartError> {
        for (part, nth) in parts.iter().zip(0..) {
            part.comm.shared.alive().map_err(|error| PartError { part: nth, error })?;
            let same = |other: &Part<'_>| std::ptr::eq(&*other.comm.shared, &*part.comm.shared);
            if let Some(first) = parts[..nth].iter().position(same) {
                return Err(PartError {
                    part: nth,
                    error: CommError::InvalidUsage(format!(
                        "parts {first} and {nth} of a group are of one rank; give all its operations in one part"
                    )),
                });
            }
        }
        let ask = |(nth, part): (usize, &Part<'a>)| {
            part.comm.shared.ask(part.ops).map_err(|error| PartError { part: nth, error })
        };
        // What each asks for is in the place of what it was given from here on.
        let asked = parts.iter().enumerate().map(ask).collect::<Result<Vec<_>, _>>()?;
        let queued = compare(parts, &asked).and_then(|()| queue(parts, &asked));
        for (part, asked) in parts.iter().zip(&asked) {
            part.comm.shared.note_queued(&asked.sequences, queued.as_ref().err().map(|why| &why.error));
        }
        let works = parts.iter().zip(asked).zip(queued?);
        Ok(works
            .map(|((part, asked), queued)| Work::new(&part.comm.shared, asked.sequences, queued))
            .collect())
    }
}

/// Where it is asked for, compares what all ranks call. That waits for the other ranks, of which there may be more here.
fn compare<'a>(parts: &'a [Part<'a>], asked: &'a [Asked<'a>]) -> Result<(), PartError> {
    let asks = |(_, part): &(usize, &Part<'_>)| part.comm.shared.config.check_mismatch;
    let asking: Vec<(usize, &'a Part<'a>)> = parts.iter().enumerate().filter(asks).collect();
    if let [(part, only)] = asking[..] {
        return only.comm.shared.compare(&asked[part].all).map_err(|error| PartError { part, error });
    }
    std::thread::scope(|scope| {
        // Only what may be shared goes along, not the streams.
        let start = |(nth, part): (usize, &'a Part<'a>)| {
            let (shared, ops): (&Shared, _) = (&part.comm.shared, &asked[nth].all);
            (nth, scope.spawn(move || shared.compare(ops)))
        };
        let threads: Vec<_> = asking.into_iter().map(start).collect();
        let join = |(part, thread): (usize, ScopedJoinHandle<'_, Result<(), CommError>>)| {
            let panicked = |_| Err(CommError::System("a thread that compares calls has panicked".into()));
            thread.join().unwrap_or_else(panicked).map_err(|error| PartError { part, error })
        };
        // All are joined before the first error is told.
        let outcomes: Vec<_> = threads.into_iter().map(join).collect();
        outcomes.into_iter().collect()
    })
}

/// Parts of one communicator, in the order of its first one.
fn by_communicator(parts: &[Part<'_>]) -> Vec<Vec<usize>> {
    let mut all: Vec<([u8; 16], Vec<usize>)> = Vec::new();
    for (nth, part) in parts.iter().enumerate() {
        let identity = part.comm.shared.identity;
        match all.iter_mut().find(|(known, _)| *known == identity) {
            Some((_, of)) => of.push(nth),
            None => all.push((identity, vec![nth])),
        }
    }
    all.into_iter().map(|(_, of)| of).collect()
}

fn queue(parts: &[Part<'_>], asked: &[Asked<'_>]) -> Result<Vec<Queued>, PartError> {
    // Locks in one order, whoever else holds several: by communicator and rank.
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&nth| (parts[nth].comm.shared.identity, parts[nth].comm.shared.rank));
    let mut ports: Vec<_> = order.iter().map(|&nth| (nth, parts[nth].comm.shared.port())).collect();
    ports.sort_by_key(|(nth, _)| *nth);
    let mut members = Vec::with_capacity(parts.len());
    let mut plans = Vec::with_capacity(parts.len());
    let mut queued = Vec::with_capacity(parts.len());
    for (((nth, port), part), asked) in ports.iter_mut().zip(parts).zip(asked) {
        let at = |error| PartError { part: *nth, error };
        let port = port.as_mut().ok_or_else(left).map_err(at)?;
        let Sorted { calls, chosen, messages } =
            part.comm.sorted(port, &asked.launched, &asked.sequences).map_err(at)?;
        queued.push(if calls.is_empty() && messages.is_empty() { Some(Queued::Nothing) } else { None });
        members.push(Some(Member { port, calls, messages, stream: part.stream }));
        plans.push(chosen);
    }
    let mut groups = Vec::new();
    for of in by_communicator(parts) {
        let at = |error: ExecError| PartError { part: of[0], error: error.into() };
        let members = of.iter().filter_map(|&nth| members[nth].take()).collect();
        let group = Group::prepare(members).map_err(at)?;
        // A launch for all ranks carries out no plan that a rank could have chosen.
        for (rank, call) in group.planned() {
            let Some(&nth) = of.iter().find(|&&nth| parts[nth].comm.shared.rank == rank) else { continue };
            let (sequence, chosen) = plans[nth][call];
            parts[nth].comm.shared.recorder.planned(sequence, chosen);
        }
        groups.push((of, group));
    }
    let mut captures = vec![false; parts.len()];
    for (of, group) in groups {
        of.iter().for_each(|&nth| captures[nth] = group.captures());
        group.queue().map_err(|error| PartError { part: of[0], error: error.into() })?;
    }
    for ((_, port), (captures, queued)) in ports.iter().zip(captures.into_iter().zip(&mut queued)) {
        if let (None, Some(port)) = (&queued, port.as_ref()) {
            *queued = Some(Queued::behind(port, captures));
        }
    }
    Ok(queued.into_iter().map(|queued| queued.unwrap_or(Queued::Nothing)).collect())
}

/// Operations as a port takes them: collectives in order, with their numbers in the flight record and what was chosen for each, and
/// messages.
pub(super) struct Sorted {
    pub calls: Vec<Call>,
    pub chosen: Vec<(u64, Chosen)>,
    pub messages: Vec<Message>,
}

impl Communicator {
    pub(super) fn sorted(
        &self,
        port: &Port,
        ops: &[Operation],
        sequences: &[u64],
    ) -> Result<Sorted, CommError> {
        let mut sorted = Sorted { calls: vec![], chosen: vec![], messages: vec![] };
        for (op, sequence) in ops.iter().zip(sequences) {
            match self.prepared(port, op)? {
                Prepared::Call(mut call, mut chosen) => {
                    self.use_windows(port, &mut call, &mut chosen)?;
                    sorted.calls.push(call);
                    sorted.chosen.push((*sequence, chosen));
                }
                Prepared::Message(message) => sorted.messages.push(message),
                Prepared::Nothing => {}
            }
        }
        Ok(sorted)
    }
}
