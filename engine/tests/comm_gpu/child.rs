//! One rank's process: does what its standard input says.

use std::sync::Arc;
use std::time::Duration;

use ringlab_engine::comm::{Communicator, Config, Operation, UniqueId, session};
use ringlab_engine::exec::cuda::ForeignStream;
use ringlab_engine::exec::{KernelChoice, Session, SessionSpec};
use ringlab_engine::fifo::Fifo;
use ringlab_engine::plan::{Algorithm, generate};
use ringlab_engine::types::{Collective, DType, Rank, RedOp};

use crate::family::CHILD;

pub fn run() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut comm = None;
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), &comm) {
            (["join", rank, ranks, hex], _) => {
                // What is left of an earlier communicator goes first.
                drop(comm.take());
                comm = Some(join(rank.parse().unwrap(), ranks.parse().unwrap(), hex));
                println!("\njoined");
            }
            (["check"], Some(comm)) => check(comm, "right"),
            (["split"], Some(comm)) => split(comm),
            (["mismatch", count], Some(comm)) => mismatch(comm, count.parse().unwrap()),
            (["work"], Some(comm)) => work(comm),
            (["leave"], Some(_)) => {
                drop(comm.take());
                return;
            }
            _ => panic!("what is `{line}`?"),
        }
    }
}

fn config() -> Config {
    let deadline = Duration::from_secs(20);
    Config { deadline, max_channels: 4, slot_bytes: 64 << 10, check_mismatch: true, ..Config::default() }
}

fn join(rank: u32, ranks: u32, hex: &str) -> Arc<Communicator> {
    let mut bytes = [0; UniqueId::BYTES];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    }
    let id = UniqueId::from_bytes(bytes).unwrap();
    Arc::new(Communicator::init(&id, ranks, rank, 0, config()).unwrap())
}

fn spec(comm: &Communicator, collective: Collective, block: u64) -> SessionSpec {
    SessionSpec {
        plan: generate(Algorithm::Ring, collective, comm.ranks(), 4).unwrap(),
        block,
        dtype: DType::F32,
        op: RedOp::Sum,
        factors: ringlab_engine::types::Factors::Parity,
        in_place: false,
        slot_bytes: 64 << 10,
        fifo: Fifo::default(),
        deadline: Duration::from_secs(20),
        devices: vec![0],
        trace_spans: 0,
        kernel: KernelChoice::Auto,
    }
}

fn check(comm: &Arc<Communicator>, done: &str) {
    let all = [
        Collective::AllReduce,
        Collective::AllGather,
        Collective::ReduceScatter,
        Collective::Broadcast { root: Rank(comm.ranks() - 1) },
    ];
    for (collective, block) in all.into_iter().flat_map(|c| [1, 1000, 100_003].map(|block| (c, block))) {
        let mut session = session::open(comm, spec(comm, collective, block)).unwrap();
        session.fill(block).unwrap();
        session.run(1).unwrap();
        let report = session.check(block).unwrap();
        assert_eq!((report.wrong, report.first_wrong), (0, None), "{collective:?} {block}");
    }
    println!("\n{done}");
}

/// Even and odd ranks, the latter in reverse order.
fn split(comm: &Arc<Communicator>) {
    let rank = comm.rank();
    let odd = rank % 2;
    let key = if odd == 1 { -(rank as i32) } else { rank as i32 };
    let part = comm.split(Some(odd), key, config()).unwrap().expect("every rank has a colour");
    let members: Vec<u32> = (0..comm.ranks()).filter(|r| r % 2 == odd).collect();
    let at = members.iter().position(|r| *r == rank).unwrap() as u32;
    let expected = if odd == 1 { members.len() as u32 - 1 - at } else { at };
    assert_eq!((part.ranks(), part.rank()), (members.len() as u32, expected));
    check(&Arc::new(part), "split right");
}

fn mismatch(comm: &Communicator, block: u64) {
    // Addresses are not looked at: the call is refused before.
    let op = Operation::Collective {
        collective: Collective::AllReduce,
        send: 256,
        recv: 512,
        block,
        dtype: DType::F32,
        op: RedOp::Sum,
        factor: None,
    };
    let why = comm.enqueue(&[op], ForeignStream(std::ptr::null_mut())).unwrap_err();
    println!("\nmismatch: {}", why.to_string().replace('\n', " "));
}

/// Runs until the communicator fails.
fn work(comm: &Arc<Communicator>) {
    let mut session = session::open(comm, spec(comm, Collective::AllReduce, 1 << 20)).unwrap();
    println!("\nworking");
    loop {
        if let Err(why) = session.run(20) {
            println!("\nfailed: {}", why.to_string().replace('\n', " "));
            return;
        }
    }
}
