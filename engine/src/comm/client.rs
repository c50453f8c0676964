//! A rank's side of the connection: joining, and the thread that reads what the root sends.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::bootstrap::{Options, Shared, WRITE_DEADLINE, millis};
use super::debug::{self, log};
use super::error::CommError;
use super::id::UniqueId;
use super::root;
use super::watch::{Event, Failure};
use super::wire::{Decoder, Frame, Hello, MAX_RANKS, MAX_RESULT, Member, PROTOCOL};
use crate::types::Rank;

/// Beyond the deadline, for the root's word on who never came.
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Joined {
    pub stream: TcpStream,
    pub decoder: Decoder,
    pub members: Vec<Member>,
    pub root: Member,
    pub ping: Duration,
}

/// Connects, says hello and waits for all others.
pub(super) fn join(id: &UniqueId, rank: u32, ranks: u32, options: Options) -> Result<Joined, CommError> {
    if ranks == 0 || ranks > MAX_RANKS || rank >= ranks {
        return Err(CommError::InvalidArgument(format!(
            "rank {rank} of {ranks}: a communicator has 1 to {MAX_RANKS} ranks, counted from 0"
        )));
    }
    let until = Instant::now() + options.deadline;
    if id.is_fixed() && rank == 0 {
        start_fixed_root(id, until)?;
    }
    let mut stream = connect(id, until)?;
    let hello = Frame::Hello(Hello {
        version: PROTOCOL,
        secret: id.secret(),
        ranks,
        rank,
        wait_ms: millis(until.saturating_duration_since(Instant::now())),
        slow_after_ms: millis(options.slow_after),
        member: Member { pid: std::process::id(), host: debug::host_name() },
    });
    let mut decoder = Decoder::new(MAX_RESULT + 8 * MAX_RANKS as usize + 64);
    let welcome = (|| {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_DEADLINE))?;
        stream.write_all(&hello.encode())?;
        first_frame(&mut stream, &mut decoder, until + GRACE)
    })();
    match welcome {
        Ok(Frame::Welcome { ping_ms, root, members }) if members.len() == ranks as usize => {
            Ok(Joined { stream, decoder, members, root, ping: Duration::from_millis(ping_ms.max(1).into()) })
        }
        Ok(Frame::Refused(error)) => Err(error),
        Ok(_) => Err(CommError::System(format!("what answers at {} is no root of this protocol", id.root()))),
        Err(why) if why.kind() == ErrorKind::TimedOut => Err(CommError::Timeout(format!(
            "rank {rank} of {ranks} got no answer from the root at {} within {} ms; its process may be stopped",
            id.root(),
            (options.deadline + GRACE).as_millis()
        ))),
        Err(why) => Err(CommError::System(format!(
            "the root at {} closed the connection before it answered rank {rank} ({why}): its process has ended, or all ranks had joined already",
            id.root()
        ))),
    }
}

fn start_fixed_root(id: &UniqueId, until: Instant) -> Result<(), CommError> {
    loop {
        // A root of an earlier communicator at this address may still be closing its port.
        match root::listen(id.root()) {
            Ok(listener) => return root::start(listener, id),
            Err(why) if Instant::now() >= until => return Err(why),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn connect(id: &UniqueId, until: Instant) -> Result<TcpStream, CommError> {
    let address = id.root();
    let fail = |why: io::Error| {
        let hint = match why.kind() {
            ErrorKind::ConnectionRefused if id.is_fixed() => "rank 0 has not started there",
            ErrorKind::ConnectionRefused => {
                "the process that made the id has ended, or all ranks had joined already"
            }
            _ => {
                "is it reachable from this machine? RINGLAB_SOCKET_IFNAME chooses the interface where the id is made"
            }
        };
        CommError::System(format!("cannot connect to the root at {address}: {why}; {hint}"))
    };
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            // With a fixed address, rank 0 may be the last to start.
            Err(why)
                if id.is_fixed() && why.kind() == ErrorKind::ConnectionRefused && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(why) => return Err(fail(why)),
        }
    }
}

fn first_frame(stream: &mut TcpStream, decoder: &mut Decoder, until: Instant) -> io::Result<Frame> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(frame) = decoder.next().map_err(|why| io::Error::new(ErrorKind::InvalidData, why))? {
            return Ok(frame);
        }
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(ErrorKind::TimedOut)?))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(got) => decoder.feed(&buffer[..got]),
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(why) => return Err(why),
        }
    }
}

pub(super) fn write(writer: &Mutex<TcpStream>, frame: &Frame) -> Result<(), CommError> {
    let bytes = frame.encode();
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    writer.write_all(&bytes).map_err(|why| {
        // Half a frame cannot be taken back, so nothing may follow it.
        let _ = writer.shutdown(std::net::Shutdown::Both);
        CommError::System(format!("cannot send to the root: {why}"))
    })
}

/// The thread that reads.
pub(super) struct Reader {
    stream: TcpStream,
    decoder: Decoder,
    shared: Arc<Shared>,
    root: Member,
    /// Ranks in the root's process.
    housed: Vec<Rank>,
    ping: Duration,
    slow_after: Duration,
    heard: Instant,
    root_slow: bool,
}

impl Reader {
    pub(super) fn new(
        stream: TcpStream,
        decoder: Decoder,
        shared: Arc<Shared>,
        root: Member,
        members: &[Member],
        ping: Duration,
        slow_after: Duration,
    ) -> Reader {
        let housed =
            members.iter().enumerate().filter(|(_, m)| **m == root).map(|(at, _)| Rank(at as u32)).collect();
        let heard = Instant::now();
        Reader { stream, decoder, shared, root, housed, ping, slow_after, heard, root_slow: false }
    }

    pub(super) fn run(mut self) {
        let why = self.read();
        let shared = &self.shared;
        if !shared.closing.load(Ordering::Acquire) {
            self.lost(&why);
        }
        self.shared.mailbox.end();
    }

    /// Until the connection ends; returns why.
    fn read(&mut self) -> String {
        let mut buffer = vec![0; 64 << 10];
        if let Err(why) = self.stream.set_read_timeout(Some(self.ping.max(Duration::from_millis(10)))) {
            return format!("no read timeout can be set: {why}");
        }
        let mut ticked = Instant::now();
        loop {
            loop {
                match self.decoder.next() {
                    Ok(Some(frame)) => self.take(frame),
                    Ok(None) => break,
                    Err(why) => return format!("it sent nonsense: {why}"),
                }
            }
            let got = self.stream.read(&mut buffer);
            let now = Instant::now();
            // This process itself stood still: its own silence says nothing about the root.
            if now.duration_since(ticked) > 2 * self.ping + Duration::from_millis(100) {
                self.heard = now;
            }
            ticked = now;
            match got {
                Ok(0) => return "the connection closed".into(),
                Ok(got) => {
                    self.decoder.feed(&buffer[..got]);
                    self.root_heard(now);
                }
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    self.root_silent(now.duration_since(self.heard));
                }
                Err(why) => return format!("the connection failed: {why}"),
            }
        }
    }

    fn take(&mut self, frame: Frame) {
        let shared = &self.shared;
        match frame {
            Frame::Ping => shared.answer(&Frame::Pong),
            Frame::Result { sequence, parts } => shared.mailbox.put_result(sequence, Ok(parts)),
            Frame::CallFailed { sequence, error } => shared.mailbox.put_result(sequence, Err(error)),
            Frame::Data { peer, tag, data } => {
                if let Err(error) = shared.mailbox.put_message(peer, tag, data) {
                    shared.answer(&Frame::Abort { why: error.to_string() });
                    shared.fail(Failure { rank: None, error });
                }
            }
            Frame::Failed { rank, error } => shared.fail(Failure { rank, error }),
            Frame::Slow { rank, silent_ms } => {
                let silent_for = Duration::from_millis(silent_ms.into());
                shared.state.note(&Event::Slow { rank, silent_for });
            }
            Frame::Awake { rank } => shared.state.note(&Event::Awake { rank }),
            Frame::Left { rank } => {
                shared.state.note(&Event::Left { rank });
                shared.mailbox.wake();
            }
            // Nothing else is sent to a rank that has joined.
            _ => {}
        }
    }

    fn root_heard(&mut self, now: Instant) {
        self.heard = now;
        if std::mem::take(&mut self.root_slow) {
            self.housed.iter().for_each(|rank| self.shared.state.note(&Event::Awake { rank: *rank }));
        }
    }

    fn root_silent(&mut self, silent_for: Duration) {
        if silent_for < self.slow_after || self.root_slow {
            return;
        }
        self.root_slow = true;
        log!(Warn, Bootstrap, "the root has been silent for {} ms", silent_for.as_millis());
        for rank in &self.housed {
            self.shared.state.note(&Event::Slow { rank: *rank, silent_for });
        }
    }

    /// The root's process is gone, and this rank did not want that.
    fn lost(&self, why: &str) {
        let place = format!("process {} on {}", self.root.pid, self.root.host);
        let left = self.housed.iter().copied().find(|rank| !self.shared.state.has_left(*rank));
        let error = match left {
            Some(rank) => CommError::Remote { rank, why: format!("{why} to the root in its {place}") },
            // They have all said goodbye, and their process may end: there is just nobody left to watch the others.
            None if !self.housed.is_empty() => return,
            None => CommError::System(format!(
                "{why} to the root, in {place} which made the id; it must live as long as the communicator"
            )),
        };
        self.shared.fail(Failure { rank: left, error });
    }
}
