//! Strangers at the root's port.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ringlab_engine::comm::{Bootstrap, UniqueId};

use crate::{LONG, text};

/// A hello as it is on the wire, so that a change of the frozen part is noticed here.
fn hello(version: u32, secret: [u8; 16], ranks: u32, rank: u32) -> Vec<u8> {
    let mut body = vec![1];
    body.extend(b"RLBOOT\r\n");
    body.extend(version.to_le_bytes());
    body.extend(secret);
    for word in [ranks, rank, 60_000, 5_000, 4242] {
        body.extend(word.to_le_bytes());
    }
    body.extend(4u16.to_le_bytes());
    body.extend(b"evil");
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

fn secret(id: &UniqueId) -> [u8; 16] {
    id.to_bytes()[36..52].try_into().unwrap()
}

/// Sends, and returns all that comes back until the root closes.
fn provoke(id: &UniqueId, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(id.root()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    // It may close while this is still being sent.
    let _ = stream.write_all(bytes);
    let mut answer = vec![];
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn forms(id: &UniqueId) {
    std::thread::scope(|scope| {
        for rank in 0..2 {
            scope.spawn(move || {
                let boot = Bootstrap::connect(id, rank, 2, LONG).unwrap();
                boot.barrier(LONG).unwrap();
                boot.goodbye().unwrap();
            });
        }
    });
}

#[test]
fn a_foreign_secret_and_a_foreign_version_are_told_so() {
    let id = UniqueId::create(None).unwrap();
    assert!(provoke(&id, &hello(1, [0; 16], 2, 0)).contains("belongs to another communicator"));
    assert!(provoke(&id, &hello(7, secret(&id), 2, 0)).contains("speaks version 7"));
    assert!(provoke(&id, &hello(1, secret(&id), 2, 2)).contains("rank 2 does not exist"));
    assert!(provoke(&id, &hello(1, secret(&id), 1 << 30, 0)).contains("1 to 1024"));
    forms(&id);
}

#[test]
fn an_id_of_another_communicator_at_the_same_port_is_refused() {
    let id = UniqueId::create(None).unwrap();
    let mut bytes = UniqueId::create(None).unwrap().to_bytes();
    // The other's secret at this one's address, with a checksum that fits.
    bytes[10..36].copy_from_slice(&id.to_bytes()[10..36]);
    let sum = bytes[..120]
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |sum, b| (sum ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    bytes[120..].copy_from_slice(&sum.to_le_bytes());
    let foreign = UniqueId::from_bytes(bytes).unwrap();
    assert!(text(Bootstrap::connect(&foreign, 0, 2, LONG)).contains("another communicator"));
    forms(&id);
}

#[test]
fn wrong_joins_are_refused_with_words_and_the_others_do_not_notice() {
    let id = UniqueId::create(None).unwrap();
    // Rank 1's hello is on its way before any other connects, so the root reads it first.
    let mut first = TcpStream::connect(id.root()).unwrap();
    first.write_all(&hello(1, secret(&id), 3, 1)).unwrap();
    assert!(text(Bootstrap::connect(&id, 0, 4, LONG)).contains("pass the same number everywhere"));
    assert!(text(Bootstrap::connect(&id, 1, 3, LONG)).contains("rank 1 is taken by process 4242 on evil"));
    assert!(text(Bootstrap::connect(&id, 3, 3, LONG)).contains("rank 3 of 3"));
    assert!(text(Bootstrap::connect(&id, 0, 0, LONG)).contains("1 to 1024"));
    let joined: Vec<_> = std::thread::scope(|scope| {
        let join = |rank| scope.spawn(move || Bootstrap::connect(&id, rank, 3, LONG).unwrap());
        [join(0), join(2)].into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    joined[0].send(joined[1].rank(), 1, b"fine").unwrap();
    assert_eq!(joined[1].recv(joined[0].rank(), 1, LONG).unwrap(), b"fine");
    let late = text(Bootstrap::connect(&id, 0, 3, LONG));
    assert!(late.contains("all ranks had joined already"), "{late}");
    assert!(joined.iter().all(|boot| boot.state().failure().is_none()));
    joined.iter().for_each(|boot| boot.goodbye().unwrap());
}

#[test]
fn nonsense_at_the_port_is_cut_off() {
    let id = UniqueId::create(None).unwrap();
    let endless = vec![0xff; 4 << 20];
    let length = u32::to_le_bytes(5);
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &endless,
        &[0; 64],
        &[&length[..], &[8; 5]].concat(),
        &[&length[..], &[4; 5]].concat(),
        &hello(1, secret(&id), 2, 0)[..20],
    ] {
        let mut stream = TcpStream::connect(id.root()).unwrap();
        let _ = stream.write_all(bytes);
        if bytes.len() != 20 {
            stream.set_read_timeout(Some(LONG)).unwrap();
            let mut answer = vec![];
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.is_empty());
        }
    }
    forms(&id);
}

#[test]
fn silent_and_slow_strangers_keep_nobody_out() {
    let id = UniqueId::create(None).unwrap();
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(id.root()).unwrap()).collect();
    // Connected here: once the communicator has formed and gone, nobody listens any more.
    let mut stream = TcpStream::connect(id.root()).unwrap();
    let drip = std::thread::spawn(move || {
        let bytes = hello(1, secret(&id), 2, 0);
        // A byte now and then: the root's patience is counted from the connection, not from the last byte.
        let mut sent = 0;
        for byte in bytes.iter().cycle().take(400) {
            if stream.write_all(&[*byte]).is_err() {
                return sent;
            }
            sent += 1;
            std::thread::sleep(Duration::from_millis(300));
        }
        sent
    });
    forms(&id);
    drop(silent);
    assert!(drip.join().unwrap() < 400, "the root listened to a drip for two minutes");
}

#[test]
fn a_member_that_sends_nonsense_is_the_one_that_failed() {
    let id = UniqueId::create(None).unwrap();
    let stranger = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(id.root()).unwrap();
        stream.write_all(&hello(1, secret(&id), 2, 1)).unwrap();
        let mut welcome = [0; 64];
        assert!(stream.read(&mut welcome).unwrap() > 5);
        stream.write_all(&[0xff; 64]).unwrap();
        let _ = stream.read_to_end(&mut vec![]);
    });
    let boot = Bootstrap::connect(&id, 0, 2, LONG).unwrap();
    let failure = boot.state().wait_failure(LONG).unwrap();
    assert_eq!(failure.rank.map(|r| r.0), Some(1));
    stranger.join().unwrap();
    boot.goodbye().unwrap();
}
