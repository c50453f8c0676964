//! The root of a communicator: one thread that accepts the ranks, relays what they say and watches their connections. The end of a
//! rank's process closes its connection, whatever ended it, and that is how the others learn of it at once.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::debug::{self, log};
use super::error::CommError;
use super::hub::{Hub, LinkId};
use super::id::UniqueId;
use super::link::Link;
use super::wire::{Frame, Member};

/// A stranger has so long for a whole hello.
const HELLO_DEADLINE: Duration = Duration::from_secs(5);
/// Strangers that may be connected at once; the oldest makes room.
const MAX_STRANGERS: usize = 512;
/// Accepted in a row before those connected get their turn.
const ACCEPT_TURN: usize = 64;
/// How long a root waits for a communicator to form.
const FORMING_DEADLINE: Duration = Duration::from_secs(3600);
/// How long latecomers are told that the communicator failed to form.
const LINGER: Duration = Duration::from_secs(60);

/// Listens with a queue long enough for all ranks to come at once.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, CommError> {
    let listen = || -> io::Result<TcpListener> {
        let listener = TcpListener::bind(address)?;
        rustix::net::listen(&listener, 4096)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen()
        .map_err(|why| CommError::System(format!("cannot listen at {address} for the ranks to come: {why}")))
}

/// Starts the thread.
pub(super) fn start(listener: TcpListener, id: &UniqueId) -> Result<(), CommError> {
    let now = Instant::now();
    let member = Member { pid: std::process::id(), host: debug::host_name() };
    // A fixed address is wanted again by the next attempt, so nobody may sit on it.
    let linger = if id.is_fixed() { Duration::ZERO } else { LINGER };
    let root = Root {
        hub: Hub::new(id.secret(), member, now),
        listener: Some(listener),
        links: BTreeMap::new(),
        next: 0,
        linger,
        ends: now + FORMING_DEADLINE,
        deaf_until: now,
        scratch: vec![0; 64 << 10],
    };
    log!(Info, Bootstrap, "root listens at {}", id.root());
    std::thread::Builder::new()
        .name("ringlab-root".into())
        .spawn(move || root.run())
        .map(drop)
        .map_err(|why| CommError::System(format!("cannot start the root's thread: {why}")))
}

struct Root {
    hub: Hub,
    listener: Option<TcpListener>,
    /// By age: the first is the oldest.
    links: BTreeMap<LinkId, Link>,
    next: LinkId,
    linger: Duration,
    /// When to stop while there is no communicator to serve.
    ends: Instant,
    /// No accepting before this: the process has run out of descriptors.
    deaf_until: Instant,
    scratch: Vec<u8>,
}

impl Root {
    fn run(mut self) {
        loop {
            let now = Instant::now();
            if self.done(now) {
                return;
            }
            let Some(ready) = self.wait(now) else { return };
            let now = Instant::now();
            for (link, readable) in ready {
                match link {
                    None => self.accept(now),
                    Some(link) if readable => self.read(link, now),
                    Some(_) => {}
                }
            }
            let now = Instant::now();
            self.hub.tick(now);
            self.drop_silent(now);
            self.deliver();
            if !self.hub.is_forming() && (!self.hub.has_failed() || self.linger.is_zero()) {
                // Whoever comes now is too late: let the system refuse it, and free the port.
                self.listener = None;
            }
        }
    }

    fn done(&mut self, now: Instant) -> bool {
        if self.hub.has_failed() {
            self.ends = self.ends.min(now + self.linger);
        }
        self.links.is_empty() && (self.listener.is_none() || now >= self.ends)
    }

    /// Links with something to read or write, `None` among them for the listener. `None` instead of a list: polling itself fails.
    fn wait(&self, now: Instant) -> Option<Vec<(Option<LinkId>, bool)>> {
        let listener = self.listener.as_ref().filter(|_| now >= self.deaf_until);
        let mut fds = vec![];
        fds.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
        let mut order: Vec<_> = listener.iter().map(|_| None).collect();
        let mut timeout = self
            .hub
            .next_tick(now)
            .min(self.ends.saturating_duration_since(now).max(Duration::from_millis(10)));
        for (id, link) in &self.links {
            let write = if link.wants_write() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::new(&link.stream, PollFlags::IN | write));
            order.push(Some(*id));
            if !link.known {
                timeout = timeout.min((link.since + HELLO_DEADLINE).saturating_duration_since(now));
            }
        }
        if self.listener.is_some() && listener.is_none() {
            timeout = timeout.min(self.deaf_until.saturating_duration_since(now));
        }
        // Rounded up, or the last fraction of a millisecond would be spent spinning.
        let timeout = timeout.min(Duration::from_secs(60)) + Duration::from_millis(1);
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Some(vec![]),
            Err(why) => {
                log!(Warn, Bootstrap, "the root ends, for it cannot poll its connections: {why}");
                return None;
            }
        }
        let ready = order.into_iter().zip(&fds).filter_map(|(link, fd)| {
            let events = fd.revents();
            let read = events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
            (!events.is_empty()).then_some((link, read))
        });
        Some(ready.collect())
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPT_TURN {
            let Some(listener) = &self.listener else { return };
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return,
                Err(why) => {
                    // Out of descriptors, most likely: strangers pay for it, and the listener rests a moment instead of spinning.
                    log!(Warn, Bootstrap, "the root cannot accept a connection: {why}");
                    self.drop_oldest_stranger();
                    self.deaf_until = now + Duration::from_millis(50);
                    return;
                }
            };
            if self.links.values().filter(|link| !link.known).count() >= MAX_STRANGERS {
                self.drop_oldest_stranger();
            }
            match Link::new(stream, now) {
                Ok(link) => {
                    self.links.insert(self.next, link);
                    self.next += 1;
                }
                Err(why) => log!(Warn, Bootstrap, "a connection was lost as it was accepted: {why}"),
            }
        }
    }

    fn drop_oldest_stranger(&mut self) {
        let oldest = self.links.iter().find(|(_, link)| !link.known && !link.closing).map(|(id, _)| *id);
        if let Some(oldest) = oldest {
            self.links.remove(&oldest);
        }
    }

    fn drop_silent(&mut self, now: Instant) {
        // Also those that were told to go and do not read it.
        self.links.retain(|_, link| link.known || now.duration_since(link.since) < HELLO_DEADLINE);
    }

    fn read(&mut self, id: LinkId, now: Instant) {
        loop {
            let Some(link) = self.links.get_mut(&id) else { return };
            let was_known = link.known;
            let mut frames: Vec<Frame> = vec![];
            let end = link.read(&mut self.scratch, &mut frames);
            for frame in frames {
                // A link that is to be closed has nothing more to say.
                if self.links.get(&id).is_some_and(|link| !link.closing) {
                    self.hub.on_frame(id, frame, now);
                    self.deliver();
                }
            }
            if let Err(why) = end {
                self.lose(id, &why);
                return;
            }
            // What a rank sent right behind its hello is in the decoder already, and no poll will tell of it.
            let admitted = self.links.get(&id).is_some_and(|link| link.known && !was_known);
            if !admitted {
                return;
            }
        }
    }

    fn lose(&mut self, id: LinkId, why: &str) {
        self.links.remove(&id);
        self.hub.on_closed(id, why);
    }

    /// Does what the hub decided, until that leads to nothing new.
    fn deliver(&mut self) {
        loop {
            for id in std::mem::take(&mut self.hub.admitted) {
                if let Some(link) = self.links.get_mut(&id) {
                    link.admit();
                }
            }
            let mut lost = vec![];
            for (id, bytes) in std::mem::take(&mut self.hub.outbox) {
                if let Some(link) = self.links.get_mut(&id)
                    && let Err(why) = link.push(bytes)
                {
                    lost.push((id, why));
                }
            }
            for id in std::mem::take(&mut self.hub.close) {
                if let Some(link) = self.links.get_mut(&id) {
                    link.closing = true;
                }
            }
            for (id, link) in &mut self.links {
                if let Err(why) = link.flush() {
                    lost.push((*id, why));
                }
            }
            self.links.retain(|_, link| !link.closing || link.wants_write());
            if lost.is_empty() {
                return;
            }
            for (id, why) in lost {
                self.lose(id, &why);
            }
        }
    }
}
