//! A rank's connection to the others while a communicator starts, lives and ends. Everything goes through the root
//! ([`crate::comm::UniqueId::create`]), messages between two ranks as well: they are few and small, and one connection for each rank
//! is what can be watched.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::client::{self, Joined};
use super::debug::log;
use super::error::CommError;
use super::id::UniqueId;
use super::mailbox::Mailbox;
use super::watch::{AsyncState, Event, Failure};
use super::wire::{CallKind, Frame, MAX_MESSAGE, Member};
use crate::types::Rank;

/// How long writing to the root may block; it always reads.
pub(super) const WRITE_DEADLINE: Duration = Duration::from_secs(10);
/// Beyond an operation's own deadline, for the root's word on who is missing.
const GRACE: Duration = Duration::from_secs(1);

/// How a rank connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// For connecting, until all ranks are there.
    pub deadline: Duration,
    /// Silence after which a rank is reported as slow; the shortest that any rank asks for counts, 40 ms at least.
    pub slow_after: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { deadline: Duration::from_secs(600), slow_after: Duration::from_secs(5) }
    }
}

/// One rank's end. Dropping it without [`Bootstrap::goodbye`] is a failure to all other ranks, as the end of the process is.
///
/// The calls that all ranks make together ([`Bootstrap::allgather`], [`Bootstrap::barrier`], [`Bootstrap::broadcast`],
/// [`Bootstrap::split`]) are matched by their order: every rank makes the same ones in the same order, from one thread at a time. After
/// one of them has timed out, ranks may be one call apart: abort, and make a new communicator.
#[derive(Debug)]
pub struct Bootstrap {
    rank: Rank,
    members: Vec<Member>,
    local: SocketAddr,
    options: Options,
    shared: Arc<Shared>,
}

/// What the reading thread holds as well.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) writer: Mutex<TcpStream>,
    pub(super) mailbox: Mailbox,
    pub(super) state: Arc<AsyncState>,
    /// This rank has said goodbye or is being dropped: the end of the connection is no failure.
    pub(super) closing: AtomicBool,
    next_call: AtomicU64,
}

impl Shared {
    /// From the reading thread: whatever ends the connection, it will read of it.
    pub(super) fn answer(&self, frame: &Frame) {
        let _ = client::write(&self.writer, frame);
    }

    fn send(&self, frame: &Frame) -> Result<(), CommError> {
        client::write(&self.writer, frame).map_err(|why| {
            // A broken pipe does not say who died; the reading thread is about to find out.
            let known = (!self.closing.load(Ordering::Acquire)).then(|| self.state.wait_failure(GRACE));
            known.flatten().map_or(why, |failure| failure.error)
        })
    }

    pub(super) fn fail(&self, failure: Failure) {
        self.state.fail(failure);
        self.mailbox.wake();
    }
}

impl Bootstrap {
    /// Joins the communicator of this id as `rank` of `ranks`, and waits until all are there.
    ///
    /// # Errors
    /// [`CommError::InvalidArgument`] for a rank that does not exist or is taken, another number of ranks than the others', another
    /// version, or a foreign id: only this caller is refused. [`CommError::Timeout`] names the ranks that never came;
    /// [`CommError::Remote`] a rank that came and went. All others get the same, for nothing can become of the id any more.
    pub fn connect(id: &UniqueId, rank: u32, ranks: u32, deadline: Duration) -> Result<Bootstrap, CommError> {
        Bootstrap::connect_with(id, rank, ranks, Options { deadline, ..Options::default() })
    }

    /// As [`Bootstrap::connect`].
    pub fn connect_with(
        id: &UniqueId,
        rank: u32,
        ranks: u32,
        options: Options,
    ) -> Result<Bootstrap, CommError> {
        let Joined { stream, decoder, members, root, ping } = client::join(id, rank, ranks, options)?;
        let fail =
            |why: std::io::Error| CommError::System(format!("rank {rank}'s connection to the root: {why}"));
        let local = stream.local_addr().map_err(fail)?;
        let writer = stream.try_clone().map_err(fail)?;
        let shared = Arc::new(Shared {
            writer: Mutex::new(writer),
            mailbox: Mailbox::default(),
            state: Arc::default(),
            closing: AtomicBool::new(false),
            next_call: AtomicU64::new(0),
        });
        let reader =
            client::Reader::new(stream, decoder, shared.clone(), root, &members, ping, options.slow_after);
        std::thread::Builder::new()
            .name(format!("ringlab-boot-{rank}"))
            .spawn(move || reader.run())
            .map_err(|why| {
                CommError::System(format!("cannot start rank {rank}'s bootstrap thread: {why}"))
            })?;
        log!(Info, Init, "rank {rank} of {ranks} has joined the communicator at {}", id.root());
        Ok(Bootstrap { rank: Rank(rank), members, local, options, shared })
    }

    pub fn rank(&self) -> Rank {
        self.rank
    }

    pub fn ranks(&self) -> u32 {
        self.members.len() as u32
    }

    /// Process and host of every rank, by rank.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The first failure and who is slow, for whoever works for this rank.
    pub fn state(&self) -> &Arc<AsyncState> {
        &self.shared.state
    }

    /// See [`AsyncState::watch`].
    pub fn watch(&self, callback: impl Fn(&Event) + Send + Sync + 'static) {
        self.shared.state.watch(callback);
    }

    /// Every rank's bytes, by rank; lengths may differ. At most [`MAX_MESSAGE`] each and 64 MiB together.
    ///
    /// # Errors
    /// [`CommError::Timeout`] names the ranks that have not called it; [`CommError::InvalidUsage`] says which rank calls something else.
    /// Any failure of the communicator ends the wait.
    pub fn allgather(&self, mine: &[u8], deadline: Duration) -> Result<Vec<Vec<u8>>, CommError> {
        self.call(CallKind::AllGather, Rank(0), mine.to_vec(), deadline)
    }

    /// Returns once all ranks have called it.
    ///
    /// # Errors
    /// As [`Bootstrap::allgather`].
    pub fn barrier(&self, deadline: Duration) -> Result<(), CommError> {
        self.call(CallKind::Barrier, Rank(0), vec![], deadline).map(drop)
    }

    /// The bytes that rank `root` gives; the others' are not looked at. Returns once all ranks have called it.
    ///
    /// # Errors
    /// As [`Bootstrap::allgather`].
    pub fn broadcast(&self, root: Rank, mine: &[u8], deadline: Duration) -> Result<Vec<u8>, CommError> {
        self.check_rank(root, "broadcast from")?;
        let mine = if root == self.rank { mine.to_vec() } else { vec![] };
        let parts = self.call(CallKind::Broadcast, root, mine, deadline)?;
        parts
            .into_iter()
            .next()
            .ok_or_else(|| CommError::System("the root answered a broadcast without data".into()))
    }

    fn call(
        &self,
        kind: CallKind,
        root: Rank,
        data: Vec<u8>,
        deadline: Duration,
    ) -> Result<Vec<Vec<u8>>, CommError> {
        self.check_open(kind.name())?;
        check_length(data.len(), kind.name())?;
        let sequence = self.shared.next_call.fetch_add(1, Ordering::Relaxed);
        self.shared.mailbox.expect_result(sequence);
        let until = Instant::now() + deadline + GRACE;
        let sent = self.shared.send(&Frame::Call { sequence, kind, root, wait_ms: millis(deadline), data });
        let result = sent.and_then(|()| {
            self.shared.mailbox.wait_result(sequence, until, &self.shared.state, || {
                CommError::Timeout(format!(
                    "{} (bootstrap call {sequence}) got no answer within {} ms, nor did the root say who is missing; its process may be stopped",
                    kind.name(),
                    deadline.as_millis()
                ))
            })
        });
        self.shared.mailbox.forget_result(sequence);
        result
    }

    /// Hands bytes over for rank `to` and returns; messages of one pair and tag arrive in order.
    ///
    /// # Errors
    /// When the communicator has failed, `to` has left, or the message is longer than [`MAX_MESSAGE`].
    pub fn send(&self, to: Rank, tag: u64, bytes: &[u8]) -> Result<(), CommError> {
        self.check_open("send")?;
        self.check_rank(to, "send to")?;
        check_length(bytes.len(), "send")?;
        if self.shared.state.has_left(to) {
            return Err(CommError::Remote {
                rank: to,
                why: "it said goodbye, so nothing can be sent to it".into(),
            });
        }
        self.shared.send(&Frame::Data { peer: to, tag, data: bytes.to_vec() })
    }

    /// The next message of rank `from` with this tag.
    ///
    /// # Errors
    /// [`CommError::Timeout`], or the failure that happened meanwhile. What came before the failure can still be received.
    pub fn recv(&self, from: Rank, tag: u64, deadline: Duration) -> Result<Vec<u8>, CommError> {
        self.check_rank(from, "receive from")?;
        if self.shared.closing.load(Ordering::Acquire) {
            return Err(said_goodbye("recv"));
        }
        let until = Instant::now() + deadline;
        self.shared.mailbox.wait_message(from, tag, until, &self.shared.state, || {
            CommError::Timeout(format!(
                "rank {from} sent rank {} nothing with tag {tag} within {} ms",
                self.rank,
                deadline.as_millis()
            ))
        })
    }

    /// Ends the communicator for all ranks, for this reason; every wait of every rank ends with [`CommError::Aborted`].
    pub fn abort(&self, why: &str) {
        if self.shared.closing.load(Ordering::Acquire) {
            return;
        }
        let error = CommError::Aborted(format!("rank {} called abort: {why}", self.rank));
        // When the root cannot be reached the others notice that themselves.
        if let Err(why) = self.shared.send(&Frame::Abort { why: why.into() }) {
            log!(Warn, Bootstrap, "rank {}'s abort did not reach the root: {why}", self.rank);
        }
        self.shared.fail(Failure { rank: Some(self.rank), error });
    }

    /// Leaves in peace: the others do not take the end of this rank for a failure. Nothing else can be called afterwards.
    ///
    /// # Errors
    /// When the root could not be told; the rank has left all the same.
    pub fn goodbye(&self) -> Result<(), CommError> {
        if self.shared.closing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let told = self.shared.send(&Frame::Goodbye);
        // The root closes when it has read it; a process that ended before could take the goodbye with it.
        let ended = self.shared.mailbox.wait_end(Instant::now() + GRACE);
        match told {
            // The root has gone first, as after a barrier it may: nobody waits for a goodbye any more.
            Err(_) if ended => Ok(()),
            told => told,
        }
    }

    /// Where this process can be reached by those who reach it now.
    pub(super) fn local(&self) -> SocketAddr {
        let mut local = self.local;
        local.set_port(0);
        local
    }

    pub(super) fn options(&self) -> Options {
        self.options
    }

    fn check_open(&self, what: &str) -> Result<(), CommError> {
        if self.shared.closing.load(Ordering::Acquire) {
            return Err(said_goodbye(what));
        }
        self.shared.state.failure().map_or(Ok(()), |failure| Err(failure.error))
    }

    fn check_rank(&self, rank: Rank, what: &str) -> Result<(), CommError> {
        if rank.0 < self.ranks() {
            return Ok(());
        }
        let ranks = self.ranks();
        Err(CommError::InvalidArgument(format!(
            "cannot {what} rank {rank}: there are ranks 0 to {}",
            ranks - 1
        )))
    }
}

impl Drop for Bootstrap {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        let writer = self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // Fails only when the connection is down already.
        let _ = writer.shutdown(std::net::Shutdown::Both);
    }
}

fn said_goodbye(what: &str) -> CommError {
    CommError::InvalidUsage(format!("{what} after goodbye: this rank has left the communicator"))
}

fn check_length(length: usize, what: &str) -> Result<(), CommError> {
    if length <= MAX_MESSAGE {
        return Ok(());
    }
    Err(CommError::InvalidArgument(format!("{what} of {length} bytes; a message has at most {MAX_MESSAGE}")))
}

pub(super) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
