//! What has come for a rank and is waiting to be fetched.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::error::CommError;
use super::watch::AsyncState;
use crate::types::Rank;

/// Bytes of messages that may wait to be received.
const MAX_WAITING: usize = 64 << 20;

type Outcome = Result<Vec<Vec<u8>>, CommError>;

#[derive(Debug, Default)]
struct Mail {
    /// Results somebody waits for; one that nobody waits for any more is dropped as it comes.
    results: HashMap<u64, Option<Outcome>>,
    messages: HashMap<(Rank, u64), VecDeque<Vec<u8>>>,
    waiting: usize,
    ended: bool,
}

#[derive(Debug, Default)]
pub(super) struct Mailbox {
    mail: Mutex<Mail>,
    changed: Condvar,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn expect_result(&self, sequence: u64) {
        self.lock().results.insert(sequence, None);
    }

    pub(super) fn forget_result(&self, sequence: u64) {
        self.lock().results.remove(&sequence);
    }

    pub(super) fn put_result(&self, sequence: u64, outcome: Outcome) {
        if let Some(place) = self.lock().results.get_mut(&sequence) {
            *place = Some(outcome);
        }
        self.changed.notify_all();
    }

    /// # Errors
    /// When this rank does not receive what is sent to it.
    pub(super) fn put_message(&self, from: Rank, tag: u64, data: Vec<u8>) -> Result<(), CommError> {
        let mut mail = self.lock();
        mail.waiting += data.len();
        if mail.waiting > MAX_WAITING {
            return Err(CommError::InvalidUsage(format!(
                "{} bytes sent to this rank were not received, the last by rank {from} with tag {tag}",
                mail.waiting
            )));
        }
        mail.messages.entry((from, tag)).or_default().push_back(data);
        self.changed.notify_all();
        Ok(())
    }

    /// Something outside has changed: whoever waits looks again.
    pub(super) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Nothing more will come.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Whether that has come to pass.
    pub(super) fn wait_end(&self, until: Instant) -> bool {
        self.wait(until, |mail| mail.ended.then_some(())).is_some()
    }

    pub(super) fn wait_result(
        &self,
        sequence: u64,
        until: Instant,
        state: &AsyncState,
        late: impl Fn() -> CommError,
    ) -> Outcome {
        let found = self.wait(until, |mail| {
            let come = mail.results.get_mut(&sequence).and_then(Option::take);
            come.or_else(|| broken(state, mail))
        });
        found.unwrap_or_else(|| Err(late()))
    }

    pub(super) fn wait_message(
        &self,
        from: Rank,
        tag: u64,
        until: Instant,
        state: &AsyncState,
        late: impl Fn() -> CommError,
    ) -> Result<Vec<u8>, CommError> {
        let found = self.wait(until, |mail| {
            if let Some(queue) = mail.messages.get_mut(&(from, tag))
                && let Some(data) = queue.pop_front()
            {
                if queue.is_empty() {
                    mail.messages.remove(&(from, tag));
                }
                mail.waiting -= data.len();
                return Some(Ok(data));
            }
            if state.has_left(from) {
                let why = format!("it said goodbye without sending anything with tag {tag}");
                return Some(Err(CommError::Remote { rank: from, why }));
            }
            broken(state, mail)
        });
        found.unwrap_or_else(|| Err(late()))
    }

    fn wait<T>(&self, until: Instant, mut look: impl FnMut(&mut Mail) -> Option<T>) -> Option<T> {
        let mut mail = self.lock();
        loop {
            if let Some(found) = look(&mut mail) {
                return Some(found);
            }
            let left = until.checked_duration_since(Instant::now())?;
            mail = self.changed.wait_timeout(mail, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Why no more can come, if so. The state may be locked with the mail locked, never the other way round.
fn broken<T>(state: &AsyncState, mail: &Mail) -> Option<Result<T, CommError>> {
    if let Some(failure) = state.failure() {
        return Some(Err(failure.error));
    }
    mail.ended.then(|| {
        Err(CommError::InvalidUsage("the communicator was left while something still waited on it".into()))
    })
}
