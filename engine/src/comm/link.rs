//! One connection at the root: non-blocking, framed, with a bounded queue of what is still to be sent.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::wire::{Bytes, Decoder, Frame, MAX_HELLO, MAX_MESSAGE, MAX_RESULT};

/// Bytes that may wait for one rank to read them.
const MAX_QUEUED: usize = 2 * MAX_RESULT;
/// Read from one connection before the others get their turn.
const TURN: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Link {
    pub(super) stream: TcpStream,
    decoder: Decoder,
    queue: VecDeque<Bytes>,
    /// Bytes of the queue's front already sent.
    sent: usize,
    queued: usize,
    pub(super) since: Instant,
    /// It has said a hello that was accepted.
    pub(super) known: bool,
    /// Close once the queue is empty.
    pub(super) closing: bool,
}

impl Link {
    pub(super) fn new(stream: TcpStream, now: Instant) -> io::Result<Link> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Link {
            stream,
            decoder: Decoder::new(MAX_HELLO),
            queue: VecDeque::new(),
            sent: 0,
            queued: 0,
            since: now,
            known: false,
            closing: false,
        })
    }

    /// The peer is a rank of ours: longer frames are accepted.
    pub(super) fn admit(&mut self) {
        self.known = true;
        self.decoder.limit = MAX_MESSAGE + 64;
    }

    /// Whole frames that have come.
    ///
    /// # Errors
    /// Why nothing more can come; the frames before that are in `frames`.
    pub(super) fn read(&mut self, scratch: &mut [u8], frames: &mut Vec<Frame>) -> Result<(), String> {
        let mut taken = 0;
        loop {
            // One frame at a time for a stranger: its first decides what else it may send.
            if self.known || frames.is_empty() {
                while let Some(frame) = self.decoder.next()? {
                    frames.push(frame);
                    if !self.known {
                        return Ok(());
                    }
                }
            }
            if taken >= TURN {
                return Ok(());
            }
            match self.stream.read(scratch) {
                Ok(0) => return Err("its connection closed without a goodbye".into()),
                Ok(got) => {
                    taken += got;
                    self.decoder.feed(&scratch[..got]);
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(format!("its connection failed: {why}")),
            }
        }
    }

    pub(super) fn wants_write(&self) -> bool {
        !self.queue.is_empty()
    }

    /// # Errors
    /// When the peer has left too much unread.
    pub(super) fn push(&mut self, bytes: Bytes) -> Result<(), String> {
        if self.queued + bytes.len() > MAX_QUEUED {
            return Err(format!("it does not read what is sent to it; {} bytes are waiting", self.queued));
        }
        self.queued += bytes.len();
        self.queue.push_back(bytes);
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<(), String> {
        while let Some(front) = self.queue.front() {
            match self.stream.write(&front[self.sent..]) {
                Ok(0) => return Err("its connection takes no more bytes".into()),
                Ok(n) if self.sent + n == front.len() => {
                    self.queued -= front.len();
                    self.sent = 0;
                    self.queue.pop_front();
                }
                Ok(n) => self.sent += n,
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(format!("its connection failed: {why}")),
            }
        }
        Ok(())
    }
}
