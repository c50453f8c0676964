//! What the root does with frames: who sits at which rank, who is missing, who is told what. No sockets and no clock in here.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::calls::{Calls, Contribution, Reply};
use super::debug::log;
use super::error::CommError;
use super::wire::{Bytes, Frame, Hello, MAX_RANKS, Member, PROTOCOL};
use crate::types::Rank;

/// A connection, as the root counts them; never used twice.
pub(super) type LinkId = u64;

#[derive(Debug)]
enum Seat {
    Empty,
    Taken(Box<Guest>),
    /// Said goodbye, or is gone.
    Left,
}

#[derive(Debug)]
struct Guest {
    link: LinkId,
    member: Member,
    joined: Instant,
    wait: Duration,
    heard: Instant,
    slow: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Forming,
    Running,
    /// Nothing can become of it any more; the error is what latecomers and later calls get.
    Failed(CommError),
}

#[derive(Debug)]
pub(super) struct Hub {
    secret: [u8; 16],
    root: Member,
    phase: Phase,
    seats: Vec<Seat>,
    by_link: HashMap<LinkId, Rank>,
    calls: Calls,
    slow_after: Duration,
    pinged: Instant,
    ticked: Instant,
    /// To be sent, and to be closed once sent; the caller empties them.
    pub(super) outbox: Vec<(LinkId, Bytes)>,
    pub(super) admitted: Vec<LinkId>,
    pub(super) close: Vec<LinkId>,
}

impl Hub {
    pub(super) fn new(secret: [u8; 16], root: Member, now: Instant) -> Hub {
        Hub {
            secret,
            root,
            phase: Phase::Forming,
            seats: vec![],
            by_link: HashMap::new(),
            calls: Calls::default(),
            slow_after: Duration::from_secs(3600),
            pinged: now,
            ticked: now,
            outbox: vec![],
            admitted: vec![],
            close: vec![],
        }
    }

    pub(super) fn is_forming(&self) -> bool {
        self.phase == Phase::Forming
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self.phase, Phase::Failed(_))
    }

    /// Ranks connected now.
    pub(super) fn present(&self) -> usize {
        self.by_link.len()
    }

    pub(super) fn on_frame(&mut self, link: LinkId, frame: Frame, now: Instant) {
        let Some(&rank) = self.by_link.get(&link) else {
            match frame {
                Frame::Hello(hello) => self.on_hello(link, hello, now),
                // Not even a hello: nothing to say to it.
                _ => self.close.push(link),
            }
            return;
        };
        self.heard(rank, now);
        match frame {
            Frame::Call { sequence, kind, root, wait_ms, data } => {
                if let Phase::Failed(error) = &self.phase {
                    let error = error.clone();
                    return self.send(rank, &Frame::CallFailed { sequence, error });
                }
                let until = now + Duration::from_millis(wait_ms.into());
                let left = |(at, seat): (usize, &Seat)| matches!(seat, Seat::Left).then_some(Rank(at as u32));
                let gone: Vec<_> = self.seats.iter().enumerate().filter_map(left).collect();
                let what = Contribution { rank, sequence, kind, root, data, since: now, until };
                let replies = self.calls.contribute(self.seats.len(), &gone, what);
                self.reply(replies);
            }
            Frame::Data { peer, tag, data } => self.send(peer, &Frame::Data { peer: rank, tag, data }),
            Frame::Abort { why } => {
                let error = CommError::Aborted(format!("rank {rank} called abort: {why}"));
                self.fail(Some(rank), error);
            }
            Frame::Goodbye => self.on_goodbye(rank),
            // A pong has been noted by `heard`; a rank has no business sending the rest.
            _ => {}
        }
    }

    fn on_hello(&mut self, link: LinkId, hello: Hello, now: Instant) {
        if let Err(error) = self.examine(&hello) {
            log!(Warn, Bootstrap, "refused rank {} (process {}): {error}", hello.rank, hello.member.pid);
            self.outbox.push((link, Frame::Refused(error).encode()));
            self.close.push(link);
            return;
        }
        if self.seats.is_empty() {
            self.seats = (0..hello.ranks).map(|_| Seat::Empty).collect();
        }
        let rank = Rank(hello.rank);
        self.slow_after = self.slow_after.min(Duration::from_millis(hello.slow_after_ms.max(40).into()));
        self.by_link.insert(link, rank);
        self.admitted.push(link);
        self.seats[rank.index()] = Seat::Taken(Box::new(Guest {
            link,
            member: hello.member,
            joined: now,
            wait: Duration::from_millis(hello.wait_ms.into()),
            heard: now,
            slow: false,
        }));
        log!(Trace, Bootstrap, "rank {rank} is here, {} of {}", self.present(), self.seats.len());
        if self.present() == self.seats.len() {
            self.open();
        }
    }

    fn examine(&self, hello: &Hello) -> Result<(), CommError> {
        let refuse = |why: String| Err(CommError::InvalidArgument(why));
        if hello.version != PROTOCOL {
            return refuse(format!(
                "rank {} speaks version {} of the bootstrap, the root speaks {PROTOCOL}; run one build in all ranks",
                hello.rank, hello.version
            ));
        }
        // All bytes are looked at, so that the time taken tells nothing of where they differ.
        if hello.secret.iter().zip(&self.secret).fold(0, |d, (a, b)| d | (a ^ b)) != 0 {
            return refuse(
                "the id belongs to another communicator; use the id that this root's process made".into(),
            );
        }
        if hello.ranks == 0 || hello.ranks > MAX_RANKS {
            return refuse(format!("a communicator has 1 to {MAX_RANKS} ranks; got {}", hello.ranks));
        }
        if hello.rank >= hello.ranks {
            return refuse(format!("rank {} does not exist among {} ranks", hello.rank, hello.ranks));
        }
        if let Phase::Failed(error) = &self.phase {
            return Err(error.clone());
        }
        let taken = self.seats.iter().enumerate().find_map(|(at, seat)| match seat {
            Seat::Taken(guest) => Some((at, guest)),
            _ => None,
        });
        if let Some((first, _)) = taken
            && self.seats.len() as u32 != hello.ranks
        {
            return refuse(format!(
                "rank {} wants {} ranks, but rank {first} came before with {}; pass the same number everywhere",
                hello.rank,
                hello.ranks,
                self.seats.len()
            ));
        }
        match self.seats.get(hello.rank as usize) {
            Some(Seat::Taken(guest)) => refuse(format!(
                "rank {} is taken by process {} on {}; each rank may join once",
                hello.rank, guest.member.pid, guest.member.host
            )),
            Some(Seat::Left) => refuse(format!("rank {} has been here and left", hello.rank)),
            Some(Seat::Empty) | None if self.phase == Phase::Running => {
                refuse("all ranks have joined already; make a new id for a new communicator".into())
            }
            Some(Seat::Empty) | None => Ok(()),
        }
    }

    /// All are here.
    fn open(&mut self) {
        self.phase = Phase::Running;
        let members = self
            .seats
            .iter()
            .map(|seat| match seat {
                Seat::Taken(guest) => guest.member.clone(),
                _ => unreachable!("the number of links equals that of seats"),
            })
            .collect();
        let ping_ms = self.ping_every().as_millis() as u32;
        let welcome = Frame::Welcome { ping_ms, root: self.root.clone(), members };
        self.broadcast(None, &welcome);
        log!(Info, Bootstrap, "all {} ranks are connected to the root", self.seats.len());
    }

    fn on_goodbye(&mut self, rank: Rank) {
        self.vacate(rank);
        if self.phase == Phase::Running {
            self.broadcast(None, &Frame::Left { rank });
            let replies = self.calls.left(rank);
            self.reply(replies);
        } else {
            self.lost(rank, "it left before all ranks had joined");
        }
    }

    /// A connection ended, for this reason, on its own.
    pub(super) fn on_closed(&mut self, link: LinkId, why: &str) {
        let Some(&rank) = self.by_link.get(&link) else { return };
        let Seat::Taken(guest) = &self.seats[rank.index()] else { return };
        let where_ = format!("process {} on {}", guest.member.pid, guest.member.host);
        self.vacate(rank);
        self.lost(rank, &format!("{why} ({where_})"));
    }

    fn lost(&mut self, rank: Rank, why: &str) {
        let why = match self.phase {
            Phase::Forming => format!("{why}, while the communicator was forming"),
            _ => why.to_owned(),
        };
        self.fail(Some(rank), CommError::Remote { rank, why });
    }

    fn vacate(&mut self, rank: Rank) {
        if let Seat::Taken(guest) = std::mem::replace(&mut self.seats[rank.index()], Seat::Left) {
            self.by_link.remove(&guest.link);
            self.close.push(guest.link);
        }
    }

    /// The first failure is told to all that are left; later ones only follow from it.
    fn fail(&mut self, rank: Option<Rank>, error: CommError) {
        let forming = match self.phase {
            Phase::Failed(_) => return,
            Phase::Forming => true,
            Phase::Running => false,
        };
        log!(Warn, Bootstrap, "the communicator failed: {error}");
        self.phase = Phase::Failed(error.clone());
        if forming {
            self.broadcast(None, &Frame::Refused(error));
            for at in 0..self.seats.len() {
                self.vacate(Rank(at as u32));
            }
        } else {
            self.broadcast(rank, &Frame::Failed { rank, error });
        }
    }

    fn heard(&mut self, rank: Rank, now: Instant) {
        if let Seat::Taken(guest) = &mut self.seats[rank.index()] {
            guest.heard = now;
            if std::mem::take(&mut guest.slow) {
                self.broadcast(Some(rank), &Frame::Awake { rank });
            }
        }
    }

    fn ping_every(&self) -> Duration {
        (self.slow_after / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    /// Everything that is due.
    pub(super) fn tick(&mut self, now: Instant) {
        // The root itself stood still: silence says nothing about the others.
        let slept = now.duration_since(self.ticked) > self.slow_after / 2;
        self.ticked = now;
        match self.phase {
            Phase::Forming => self.tick_forming(now),
            Phase::Running | Phase::Failed(_) => {
                let replies = self.calls.expire(now);
                self.reply(replies);
                if now.duration_since(self.pinged) >= self.ping_every() {
                    self.pinged = now;
                    self.broadcast(None, &Frame::Ping);
                }
                self.tick_slow(now, slept);
            }
        }
    }

    fn tick_forming(&mut self, now: Instant) {
        let expired = self.seats.iter().enumerate().find_map(|(at, seat)| match seat {
            Seat::Taken(guest) if now.duration_since(guest.joined) >= guest.wait => Some((at, guest.wait)),
            _ => None,
        });
        if let Some((rank, wait)) = expired {
            let empty = |(at, seat): (usize, &Seat)| matches!(seat, Seat::Empty).then_some(Rank(at as u32));
            let missing: Vec<_> = self.seats.iter().enumerate().filter_map(empty).collect();
            let why = format!(
                "rank {rank} waited {} ms for the communicator to form; of {} ranks {} never came. Start them, or wait longer",
                wait.as_millis(),
                self.seats.len(),
                names(&missing)
            );
            self.fail(None, CommError::Timeout(why));
        }
    }

    fn tick_slow(&mut self, now: Instant, slept: bool) {
        let mut slow = vec![];
        for (at, seat) in self.seats.iter_mut().enumerate() {
            let Seat::Taken(guest) = seat else { continue };
            if slept {
                guest.heard = now;
            }
            let silent = now.duration_since(guest.heard);
            if !guest.slow && silent >= self.slow_after {
                guest.slow = true;
                slow.push((Rank(at as u32), silent));
            }
        }
        for (rank, silent) in slow {
            let silent_ms = silent.as_millis().min(u128::from(u32::MAX)) as u32;
            log!(Warn, Bootstrap, "rank {rank} has not answered for {silent_ms} ms");
            self.broadcast(Some(rank), &Frame::Slow { rank, silent_ms });
        }
    }

    /// When [`Hub::tick`] should be called again at the latest.
    pub(super) fn next_tick(&self, now: Instant) -> Duration {
        let ping = self.ping_every().saturating_sub(now.duration_since(self.pinged));
        let call = self.calls.next_expiry().map(|at| at.saturating_duration_since(now));
        let forming = self.seats.iter().filter_map(|seat| match seat {
            Seat::Taken(guest) if self.is_forming() => {
                Some((guest.joined + guest.wait).saturating_duration_since(now))
            }
            _ => None,
        });
        let ping = (!self.is_forming() && self.present() > 0).then_some(ping);
        forming.chain(call).chain(ping).min().unwrap_or(Duration::from_secs(60))
    }

    fn reply(&mut self, replies: Vec<Reply>) {
        for Reply { rank, frame } in replies {
            if let Some(Seat::Taken(guest)) = self.seats.get(rank.index()) {
                self.outbox.push((guest.link, frame));
            }
        }
    }

    fn send(&mut self, rank: Rank, frame: &Frame) {
        if let Some(Seat::Taken(guest)) = self.seats.get(rank.index()) {
            self.outbox.push((guest.link, frame.encode()));
        }
    }

    fn broadcast(&mut self, but: Option<Rank>, frame: &Frame) {
        let bytes = frame.encode();
        for (at, seat) in self.seats.iter().enumerate() {
            if let Seat::Taken(guest) = seat
                && but != Some(Rank(at as u32))
            {
                self.outbox.push((guest.link, bytes.clone()));
            }
        }
    }
}

/// `rank 2`, `ranks 1, 2, 3`, `ranks 0, 1, … (62 in all)`.
pub(super) fn names(ranks: &[Rank]) -> String {
    const SHOWN: usize = 16;
    let list = ranks.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match ranks.len() {
        1 => format!("rank {list}"),
        n if n > SHOWN => format!("ranks {list}, … ({n} in all)"),
        _ => format!("ranks {list}"),
    }
}
