//! The flight recorder: what a rank has been asked for lately, and how far each call came. When a communicator fails, the ranks'
//! recorders laid side by side show who did not come, and where.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::choice::Chosen;
use super::operation::Operation;
use crate::types::{DType, Rank, RedOp};

/// How far a call came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CallState {
    /// The caller has asked for it.
    Enqueued,
    /// It is on the device's queue.
    Launched,
    Done,
    Failed,
}

impl CallState {
    pub const fn name(self) -> &'static str {
        match self {
            CallState::Enqueued => "enqueued",
            CallState::Launched => "launched",
            CallState::Done => "done",
            CallState::Failed => "failed",
        }
    }
}

/// One call of this rank. Times are nanoseconds since the recorder began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Counts this rank's calls from 0; the same call has the same number on all ranks as long as they make the same calls.
    pub sequence: u64,
    /// `all_reduce`, …, `send`, `recv`.
    pub call: &'static str,
    pub dtype: DType,
    /// Where the call reduces.
    pub op: Option<RedOp>,
    /// Elements of a block.
    pub count: u64,
    /// The root of a collective that has one, the other end of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Rank>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<Rank>,
    /// How it is carried out, for a collective that moves something.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// What was done wrong about it on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    pub state: CallState,
    pub enqueued_ns: u64,
    pub launched_ns: Option<u64>,
    pub ended_ns: Option<u64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A bounded ring of [`Record`]s. Taking one down costs one short lock that nobody holds for longer than copying a few words.
#[derive(Debug)]
pub struct FlightRecorder {
    rank: Rank,
    epoch: Instant,
    began: SystemTime,
    capacity: usize,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    records: VecDeque<Record>,
    /// Sequence of the next record.
    next: u64,
}

/// A dump, as JSON has it.
#[derive(Debug, Serialize)]
struct Dump<'a> {
    version: u32,
    rank: Rank,
    process: u32,
    /// Wall clock at time 0 of the records.
    began_unix_ns: u64,
    now_ns: u64,
    /// Older calls that no longer fit.
    dropped: u64,
    records: &'a [Record],
}

impl FlightRecorder {
    /// Keeps the last `capacity` calls, at least one.
    pub fn new(rank: Rank, capacity: usize) -> FlightRecorder {
        let capacity = capacity.max(1);
        let ring = Ring { records: VecDeque::with_capacity(capacity), next: 0 };
        FlightRecorder {
            rank,
            epoch: Instant::now(),
            began: SystemTime::now(),
            capacity,
            ring: Mutex::new(ring),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        nanos(self.epoch.elapsed())
    }

    /// The caller asks for this; returns its sequence number for what follows.
    pub fn enqueued(&self, operation: &Operation) -> u64 {
        let mut record = blank(operation);
        let mut ring = self.lock();
        record.sequence = ring.next;
        record.enqueued_ns = self.now();
        ring.next += 1;
        if ring.records.len() == self.capacity {
            ring.records.pop_front();
        }
        let sequence = record.sequence;
        ring.records.push_back(record);
        sequence
    }

    /// The number that the next call will have, unless another thread's comes first.
    pub fn next(&self) -> u64 {
        self.lock().next
    }

    /// Something was done wrong about it on purpose.
    pub fn injected(&self, sequence: u64, fault: &str) {
        self.change(sequence, |record| record.fault = Some(fault.into()));
    }

    /// It will be carried out so.
    pub fn planned(&self, sequence: u64, chosen: Chosen) {
        self.change(sequence, |record| record.chosen = Some(chosen));
    }

    pub fn launched(&self, sequence: u64) {
        let now = self.now();
        self.change(sequence, |record| {
            record.state = CallState::Launched;
            record.launched_ns = Some(now);
        });
    }

    pub fn done(&self, sequence: u64) {
        let now = self.now();
        self.change(sequence, |record| {
            record.state = CallState::Done;
            record.ended_ns = Some(now);
        });
    }

    pub fn failed(&self, sequence: u64, why: &str) {
        let now = self.now();
        self.change(sequence, |record| {
            record.state = CallState::Failed;
            record.ended_ns = Some(now);
            record.why = Some(why.into());
        });
    }

    /// Every call that has not ended failed, for this reason.
    pub fn fail_open(&self, why: &str) {
        let now = self.now();
        for record in &mut self.lock().records {
            if matches!(record.state, CallState::Enqueued | CallState::Launched) {
                record.state = CallState::Failed;
                record.ended_ns = Some(now);
                record.why = Some(why.into());
            }
        }
    }

    /// Every call on the device's queue has ended: the queue is empty. When each ended is not known, so the time is now.
    pub fn settle(&self) {
        let now = self.now();
        for record in &mut self.lock().records {
            if record.state == CallState::Launched {
                record.state = CallState::Done;
                record.ended_ns = Some(now);
            }
        }
    }

    fn change(&self, sequence: u64, change: impl FnOnce(&mut Record)) {
        let mut ring = self.lock();
        let Some(first) = ring.records.front().map(|record| record.sequence) else { return };
        // One that has left the ring already is nobody's business any more.
        let at = sequence.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(record) = at.and_then(|at| ring.records.get_mut(at)) {
            change(record);
        }
    }

    /// What is in the ring, oldest first.
    pub fn records(&self) -> Vec<Record> {
        self.lock().records.iter().cloned().collect()
    }

    /// The dump for programs: `{version, rank, process, began_unix_ns, now_ns, dropped, records: […]}`.
    pub fn to_json(&self) -> String {
        let records = self.records();
        let dropped = records.first().map_or(0, |record| record.sequence);
        let dump = Dump {
            version: 1,
            rank: self.rank,
            process: std::process::id(),
            began_unix_ns: self.began.duration_since(UNIX_EPOCH).map_or(0, nanos),
            now_ns: self.now(),
            dropped,
            records: &records,
        };
        serde_json::to_string(&dump).expect("numbers, strings and enums without data can be written as JSON")
    }
}

/// The dump for people: a line for each call.
impl fmt::Display for FlightRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (records, now) = (self.records(), self.now());
        let dropped = records.first().map_or(0, |record| record.sequence);
        writeln!(
            f,
            "rank {} process {}: {} calls, {dropped} older ones dropped",
            self.rank,
            std::process::id(),
            records.len()
        )?;
        for record in &records {
            record.line(f, now)?;
        }
        Ok(())
    }
}

impl Record {
    fn line(&self, f: &mut fmt::Formatter<'_>, now: u64) -> fmt::Result {
        write!(f, "  #{} {} count {} {}", self.sequence, self.call, self.count, self.dtype)?;
        if let Some(op) = self.op {
            write!(f, " {op}")?;
        }
        if let Some(root) = self.root {
            write!(f, " root {root}")?;
        }
        if let Some(peer) = self.peer {
            write!(f, " peer {peer}")?;
        }
        if let Some(Chosen { algorithm, protocol, channels }) = self.chosen {
            write!(f, " by {algorithm} {protocol}/{channels}")?;
        }
        write!(f, " {} at {} us", self.state.name(), self.enqueued_ns / 1000)?;
        if let Some(launched) = self.launched_ns {
            write!(f, ", launched +{} us", (launched - self.enqueued_ns) / 1000)?;
        }
        match self.ended_ns {
            Some(ended) => write!(f, ", ended +{} us", (ended - self.enqueued_ns) / 1000)?,
            None => write!(f, ", open for {} us", now.saturating_sub(self.enqueued_ns) / 1000)?,
        }
        if let Some(fault) = &self.fault {
            write!(f, " (on purpose: {fault})")?;
        }
        match &self.why {
            Some(why) => writeln!(f, ": {why}"),
            None => writeln!(f),
        }
    }
}

fn blank(operation: &Operation) -> Record {
    let (call, dtype, op, count, root, peer) = match *operation {
        Operation::Collective { collective, block, dtype, op, .. } => {
            let op = collective.reduces().then_some(op);
            (collective.name(), dtype, op, block, collective.root(), None)
        }
        Operation::Send { to, count, dtype, .. } => ("send", dtype, None, count, None, Some(to)),
        Operation::Recv { from, count, dtype, .. } => ("recv", dtype, None, count, None, Some(from)),
        Operation::Barrier => ("barrier", operation.dtype(), None, 0, None, None),
    };
    Record {
        sequence: 0,
        call,
        dtype,
        op,
        count,
        root,
        peer,
        chosen: None,
        fault: None,
        state: CallState::Enqueued,
        enqueued_ns: 0,
        launched_ns: None,
        ended_ns: None,
        why: None,
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::Protocol;
    use crate::plan::Algorithm;
    use crate::types::Collective;

    fn broadcast(count: u64) -> Operation {
        Operation::Collective {
            collective: Collective::Broadcast { root: Rank(2) },
            send: 0,
            recv: 0,
            block: count,
            dtype: DType::F16,
            op: RedOp::Sum,
            factor: None,
        }
    }

    #[test]
    fn a_call_is_followed_from_the_queue_to_its_end() {
        let recorder = FlightRecorder::new(Rank(1), 8);
        let first = recorder.enqueued(&broadcast(7));
        let second =
            recorder.enqueued(&Operation::Send { to: Rank(3), buffer: 0, count: 5, dtype: DType::I32 });
        let (algorithm, protocol) = (Algorithm::Ring, Protocol::Ll);
        recorder.planned(first, Chosen { algorithm, protocol, channels: 3 });
        recorder.launched(first);
        recorder.done(first);
        recorder.failed(second, "rank 3 is gone");
        let records = recorder.records();
        assert_eq!((records[0].state, records[1].state), (CallState::Done, CallState::Failed));
        assert!(records[0].enqueued_ns <= records[0].launched_ns.unwrap());
        assert!(records[0].launched_ns <= records[0].ended_ns);
        let text = recorder.to_string();
        assert!(text.contains("#0 broadcast count 7 half root 2 by ring LL/3 done"), "{text}");
        assert!(
            text.contains("#1 send count 5 int32 peer 3 failed") && text.contains("rank 3 is gone"),
            "{text}"
        );
    }

    #[test]
    fn the_oldest_make_room_and_a_late_end_of_one_of_them_is_ignored() {
        let recorder = FlightRecorder::new(Rank(0), 3);
        let all: Vec<_> = (0..5).map(|n| recorder.enqueued(&broadcast(n))).collect();
        recorder.done(all[0]);
        recorder.done(all[4]);
        recorder.done(99);
        let records = recorder.records();
        assert_eq!(records.iter().map(|r| r.sequence).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(records.iter().filter(|r| r.state == CallState::Done).count(), 1);
        recorder.fail_open("aborted");
        assert_eq!(recorder.records().iter().filter(|r| r.why.as_deref() == Some("aborted")).count(), 2);
    }

    #[test]
    fn the_json_dump_can_be_read_again() {
        let recorder = FlightRecorder::new(Rank(4), 2);
        let all: Vec<_> = (0..3).map(|n| recorder.enqueued(&broadcast(n))).collect();
        assert_eq!(all, [0, 1, 2]);
        let json: serde_json::Value = serde_json::from_str(&recorder.to_json()).unwrap();
        assert_eq!(json["rank"], 4);
        assert_eq!(json["dropped"], 1);
        assert_eq!(json["records"][1]["call"], "broadcast");
        assert_eq!(json["records"][1]["root"], 2);
        assert_eq!(json["records"][1]["state"], "enqueued");
    }
}
