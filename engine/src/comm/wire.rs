//! Frames between a rank and the root: `length u32, kind u8, body`, little-endian. The `Hello` and `Refused` frames keep their form in
//! every version, so that ranks of different builds can tell each other so.

use std::sync::Arc;

use super::error::CommError;
use crate::types::Rank;

/// Version of everything behind the hello. Both ends must have the same.
pub(super) const PROTOCOL: u32 = 1;
pub(super) const MAGIC: [u8; 8] = *b"RLBOOT\r\n";

/// Largest contribution or message of one rank.
pub const MAX_MESSAGE: usize = 1 << 20;
/// Most ranks of one bootstrap.
pub const MAX_RANKS: u32 = 1024;
/// Largest result of a gathering of all ranks.
pub(super) const MAX_RESULT: usize = 64 << 20;
/// Before a connection has said who it is, nothing longer than this is read.
pub(super) const MAX_HELLO: usize = 512;
const MAX_HOST: usize = 64;
const MAX_WHY: usize = 4096;

/// What a rank says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hello {
    pub version: u32,
    pub secret: [u8; 16],
    pub ranks: u32,
    pub rank: u32,
    /// Longest this rank wants to wait for the others.
    pub wait_ms: u32,
    pub slow_after_ms: u32,
    pub member: Member,
}

/// Where a rank lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub pid: u32,
    pub host: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    AllGather,
    Barrier,
    Broadcast,
}

impl CallKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            CallKind::AllGather => "allgather",
            CallKind::Barrier => "barrier",
            CallKind::Broadcast => "broadcast",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Hello(Hello),
    Refused(CommError),
    Welcome {
        ping_ms: u32,
        root: Member,
        members: Vec<Member>,
    },
    Call {
        sequence: u64,
        kind: CallKind,
        root: Rank,
        wait_ms: u32,
        data: Vec<u8>,
    },
    Result {
        sequence: u64,
        parts: Vec<Vec<u8>>,
    },
    CallFailed {
        sequence: u64,
        error: CommError,
    },
    /// To the root `peer` is the receiver, from the root it is the sender.
    Data {
        peer: Rank,
        tag: u64,
        data: Vec<u8>,
    },
    Ping,
    Pong,
    Abort {
        why: String,
    },
    Failed {
        rank: Option<Rank>,
        error: CommError,
    },
    Slow {
        rank: Rank,
        silent_ms: u32,
    },
    Awake {
        rank: Rank,
    },
    Goodbye,
    Left {
        rank: Rank,
    },
}

/// A frame ready to be sent to one or many.
pub(super) type Bytes = Arc<[u8]>;

const NO_RANK: u32 = u32::MAX;

impl Frame {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = vec![0; 4];
        match self {
            Frame::Hello(hello) => {
                out.push(1);
                out.extend(MAGIC);
                out.extend(hello.version.to_le_bytes());
                out.extend(hello.secret);
                for word in [hello.ranks, hello.rank, hello.wait_ms, hello.slow_after_ms] {
                    out.extend(word.to_le_bytes());
                }
                put_member(&mut out, &hello.member);
            }
            Frame::Refused(error) => {
                out.push(2);
                put_error(&mut out, error);
            }
            Frame::Welcome { ping_ms, root, members } => {
                out.push(3);
                out.extend(ping_ms.to_le_bytes());
                put_member(&mut out, root);
                out.extend((members.len() as u32).to_le_bytes());
                members.iter().for_each(|member| put_member(&mut out, member));
            }
            Frame::Call { sequence, kind, root, wait_ms, data } => {
                out.push(4);
                out.extend(sequence.to_le_bytes());
                out.push(*kind as u8);
                out.extend(root.0.to_le_bytes());
                out.extend(wait_ms.to_le_bytes());
                out.extend(data);
            }
            Frame::Result { sequence, parts } => {
                out.push(5);
                out.extend(sequence.to_le_bytes());
                out.extend((parts.len() as u32).to_le_bytes());
                for part in parts {
                    out.extend((part.len() as u32).to_le_bytes());
                    out.extend(part);
                }
            }
            Frame::CallFailed { sequence, error } => {
                out.push(6);
                out.extend(sequence.to_le_bytes());
                put_error(&mut out, error);
            }
            Frame::Data { peer, tag, data } => {
                out.push(7);
                out.extend(peer.0.to_le_bytes());
                out.extend(tag.to_le_bytes());
                out.extend(data);
            }
            Frame::Ping => out.push(8),
            Frame::Pong => out.push(9),
            Frame::Abort { why } => {
                out.push(10);
                put_text(&mut out, why, MAX_WHY);
            }
            Frame::Failed { rank, error } => {
                out.push(11);
                out.extend(rank.map_or(NO_RANK, |r| r.0).to_le_bytes());
                put_error(&mut out, error);
            }
            Frame::Slow { rank, silent_ms } => {
                out.push(12);
                out.extend(rank.0.to_le_bytes());
                out.extend(silent_ms.to_le_bytes());
            }
            Frame::Awake { rank } => {
                out.push(13);
                out.extend(rank.0.to_le_bytes());
            }
            Frame::Goodbye => out.push(14),
            Frame::Left { rank } => {
                out.push(15);
                out.extend(rank.0.to_le_bytes());
            }
        }
        let length = (out.len() - 4) as u32;
        out[..4].copy_from_slice(&length.to_le_bytes());
        out.into()
    }

    /// `body` is what follows the length.
    fn decode(body: &[u8]) -> Result<Frame, String> {
        let mut r = Reader(body);
        let kind = r.u8()?;
        let frame = match kind {
            1 => {
                if r.take(8)? != MAGIC {
                    return Err("it does not begin with this protocol's mark".into());
                }
                let version = r.u32()?;
                let secret = r.take(16)?.try_into().expect("16 bytes were taken");
                let [ranks, rank, wait_ms, slow_after_ms] = [r.u32()?, r.u32()?, r.u32()?, r.u32()?];
                Frame::Hello(Hello {
                    version,
                    secret,
                    ranks,
                    rank,
                    wait_ms,
                    slow_after_ms,
                    member: r.member()?,
                })
            }
            2 => Frame::Refused(r.error()?),
            3 => {
                let (ping_ms, root, count) = (r.u32()?, r.member()?, r.u32()?);
                let members = (0..count.min(MAX_RANKS)).map(|_| r.member()).collect::<Result<_, _>>()?;
                Frame::Welcome { ping_ms, root, members }
            }
            4 => {
                let sequence = r.u64()?;
                let kind = match r.u8()? {
                    0 => CallKind::AllGather,
                    1 => CallKind::Barrier,
                    2 => CallKind::Broadcast,
                    other => return Err(format!("there is no call of kind {other}")),
                };
                Frame::Call { sequence, kind, root: r.rank()?, wait_ms: r.u32()?, data: r.message()? }
            }
            5 => {
                let (sequence, count) = (r.u64()?, r.u32()?);
                let part = |r: &mut Reader<'_>| {
                    let length = r.u32()? as usize;
                    r.take(length).map(<[u8]>::to_vec)
                };
                let parts = (0..count.min(MAX_RANKS)).map(|_| part(&mut r)).collect::<Result<_, _>>()?;
                Frame::Result { sequence, parts }
            }
            6 => Frame::CallFailed { sequence: r.u64()?, error: r.error()? },
            7 => Frame::Data { peer: r.rank()?, tag: r.u64()?, data: r.message()? },
            8 => Frame::Ping,
            9 => Frame::Pong,
            10 => Frame::Abort { why: r.text()? },
            11 => {
                let rank = r.u32()?;
                Frame::Failed { rank: (rank != NO_RANK).then_some(Rank(rank)), error: r.error()? }
            }
            12 => Frame::Slow { rank: r.rank()?, silent_ms: r.u32()? },
            13 => Frame::Awake { rank: r.rank()? },
            14 => Frame::Goodbye,
            15 => Frame::Left { rank: r.rank()? },
            other => return Err(format!("there is no frame of kind {other}")),
        };
        if r.0.is_empty() { Ok(frame) } else { Err(format!("{} bytes too many in a frame", r.0.len())) }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str, most: usize) {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend((end as u16).to_le_bytes());
    out.extend(&text.as_bytes()[..end]);
}

fn put_member(out: &mut Vec<u8>, member: &Member) {
    out.extend(member.pid.to_le_bytes());
    put_text(out, &member.host, MAX_HOST);
}

fn put_error(out: &mut Vec<u8>, error: &CommError) {
    let (code, rank) = error.code();
    out.push(code);
    out.extend(rank.map_or(NO_RANK, |r| r.0).to_le_bytes());
    put_text(out, error.text(), MAX_WHY);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let (head, rest) = self.0.split_at_checked(n).ok_or("a frame ends too early")?;
        self.0 = rest;
        Ok(head)
    }

    fn u8(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("4 bytes were taken")))
    }

    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("8 bytes were taken")))
    }

    fn rank(&mut self) -> Result<Rank, String> {
        self.u32().map(Rank)
    }

    fn text(&mut self) -> Result<String, String> {
        let length = u16::from_le_bytes(self.take(2)?.try_into().expect("2 bytes were taken"));
        Ok(String::from_utf8_lossy(self.take(length.into())?).into_owned())
    }

    fn member(&mut self) -> Result<Member, String> {
        Ok(Member { pid: self.u32()?, host: self.text()? })
    }

    fn error(&mut self) -> Result<CommError, String> {
        let (code, rank) = (self.u8()?, self.u32()?);
        let rank = (rank != NO_RANK).then_some(Rank(rank));
        Ok(CommError::from_parts(code, rank, self.text()?))
    }

    /// All that is left.
    fn message(&mut self) -> Result<Vec<u8>, String> {
        if self.0.len() > MAX_MESSAGE {
            return Err(format!("a message of {} bytes; the limit is {MAX_MESSAGE}", self.0.len()));
        }
        Ok(std::mem::take(&mut self.0).to_vec())
    }
}

/// Puts frames together from bytes as they come.
#[derive(Debug)]
pub(super) struct Decoder {
    buffer: Vec<u8>,
    taken: usize,
    /// Longest frame accepted now.
    pub limit: usize,
}

impl Decoder {
    pub(super) fn new(limit: usize) -> Decoder {
        Decoder { buffer: vec![], taken: 0, limit }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, or `None` until more bytes come. An error cannot be recovered from: close the connection.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, String> {
        let rest = &self.buffer[self.taken..];
        let Some((length, body)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > self.limit {
            return Err(format!("a frame of {length} bytes; at most {} are accepted here", self.limit));
        }
        let Some(body) = body.get(..length) else { return Ok(None) };
        let frame = Frame::decode(body)?;
        self.taken += 4 + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn samples() -> Vec<Frame> {
        let member = Member { pid: 7, host: "node-1".into() };
        let error = CommError::Remote { rank: Rank(3), why: "killed".into() };
        vec![
            Frame::Hello(Hello {
                version: PROTOCOL,
                secret: [9; 16],
                ranks: 4,
                rank: 2,
                wait_ms: 1000,
                slow_after_ms: 5000,
                member: member.clone(),
            }),
            Frame::Refused(error.clone()),
            Frame::Welcome { ping_ms: 5, root: member.clone(), members: vec![member; 3] },
            Frame::Call {
                sequence: 1,
                kind: CallKind::Broadcast,
                root: Rank(1),
                wait_ms: 2,
                data: vec![1, 2],
            },
            Frame::Result { sequence: 1, parts: vec![vec![], vec![1], vec![2; 300]] },
            Frame::CallFailed { sequence: 1, error: error.clone() },
            Frame::Data { peer: Rank(2), tag: 77, data: vec![5; 10] },
            Frame::Ping,
            Frame::Pong,
            Frame::Abort { why: "因为".into() },
            Frame::Failed { rank: None, error },
            Frame::Slow { rank: Rank(1), silent_ms: 9 },
            Frame::Awake { rank: Rank(1) },
            Frame::Goodbye,
            Frame::Left { rank: Rank(1) },
        ]
    }

    #[test]
    fn every_frame_survives_any_cutting_of_the_stream() {
        let stream: Vec<u8> = samples().iter().flat_map(|frame| frame.encode().to_vec()).collect();
        for piece in [1, 3, 7, stream.len()] {
            let mut decoder = Decoder::new(1 << 20);
            let mut got = vec![];
            for bytes in stream.chunks(piece) {
                decoder.feed(bytes);
                while let Some(frame) = decoder.next().unwrap() {
                    got.push(frame);
                }
            }
            assert_eq!(got, samples());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut decoder = Decoder::new(MAX_HELLO);
            decoder.feed(&bytes);
            while let Ok(Some(_)) = decoder.next() {}
            for kind in 0..=16 {
                let _ = Frame::decode(&[&[kind], &bytes[..]].concat());
            }
        }
    }
}
