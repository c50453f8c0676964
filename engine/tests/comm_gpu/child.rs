//! One rank's process: does what its standard input says.

use std::sync::Arc;
use std::time::Duration;

use ringlab_engine::comm::{Communicator, Config, Faults, Operation, UniqueId, session};
use ringlab_engine::exec::cuda::ForeignStream;
use ringlab_engine::exec::{KernelChoice, Session, SessionSpec};
use ringlab_engine::fifo::{Fifo, Protocol};
use ringlab_engine::plan::{Algorithm, generate};
use ringlab_engine::types::{Collective, DType, Factors, Rank, RedOp};

use crate::calls;
use crate::family::CHILD;

pub fn run() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut comm: Option<Arc<Communicator>> = None;
    let mut config = config();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), &comm) {
            (["join", rank, ranks, hex], _) => {
                // What is left of an earlier communicator goes first.
                drop(comm.take());
                comm = Some(join(rank.parse().unwrap(), ranks.parse().unwrap(), hex, config.clone()));
                println!("\njoined");
            }
            (["check"], Some(comm)) => check(comm, "right"),
            (["split"], Some(comm)) => split(comm),
            (["mismatch", count], Some(comm)) => mismatch(comm, count.parse().unwrap()),
            (["registered"], Some(comm)) => registered(comm),
            (["work"], Some(comm)) => work(comm),
            (["calls", count], Some(comm)) => calls::calls(comm, count.parse().unwrap()),
            (["works"], Some(comm)) => calls::works(comm),
            (["record"], Some(comm)) => println!("\nrecord: {}", comm.flight_record()),
            // For the next communicator.
            (["faults", faults @ ..], _) => config.faults = Some(faults.join(" ").parse().unwrap()),
            (["trusting"], _) => config.check_mismatch = false,
            (["patience", millis], _) => config.deadline = Duration::from_millis(millis.parse().unwrap()),
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
    let (slot_bytes, faults) = (64 << 10, Some(Faults::default()));
    Config { deadline, max_channels: 4, slot_bytes, check_mismatch: true, faults, ..Config::default() }
}

fn join(rank: u32, ranks: u32, hex: &str, config: Config) -> Arc<Communicator> {
    let mut bytes = [0; UniqueId::BYTES];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    }
    let id = UniqueId::from_bytes(bytes).unwrap();
    Arc::new(Communicator::init(&id, ranks, rank, 0, config).unwrap())
}

fn spec(comm: &Communicator, collective: Collective, block: u64) -> SessionSpec {
    let algorithm = if Algorithm::Ring.supports(collective) { Algorithm::Ring } else { Algorithm::Exchange };
    SessionSpec {
        plan: generate(algorithm, collective, comm.ranks(), 4).unwrap(),
        block,
        dtype: DType::F32,
        op: RedOp::Sum,
        factors: Factors::Parity,
        in_place: false,
        slot_bytes: 64 << 10,
        fifo: Fifo::default(),
        deadline: Duration::from_secs(20),
        devices: vec![0],
        trace_spans: 0,
        kernel: KernelChoice::Auto,
    }
}

/// Every collective in every protocol, reductions also as an average and with factors, of a few elements, some, and many.
fn check(comm: &Arc<Communicator>, done: &str) {
    for collective in Collective::all(Rank(comm.ranks() - 1)) {
        let ops: &[RedOp] = match collective.reduces() {
            true => &[RedOp::Sum, RedOp::Avg, RedOp::PreMulSum],
            false => &[RedOp::Sum],
        };
        for op in ops {
            for protocol in Protocol::ALL {
                for block in [1, 1000, 100_003] {
                    exact(
                        comm,
                        SessionSpec { op: *op, fifo: Fifo::of(protocol), ..spec(comm, collective, block) },
                    );
                }
            }
        }
    }
    println!("\n{done}");
}

fn exact(comm: &Arc<Communicator>, spec: SessionSpec) {
    let what = format!("{:?} {} {} {}", spec.plan.collective, spec.op, spec.fifo.protocol, spec.block);
    let seed = spec.block;
    let mut session = session::open(comm, spec).unwrap_or_else(|why| panic!("{what}: {why}"));
    session.fill(seed).unwrap();
    session.run(1).unwrap();
    let report = session.check(seed).unwrap();
    assert_eq!((report.wrong, report.first_wrong), (0, None), "{what}");
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

/// Plans that read peers' buffers, and what the communicator chooses when they are registered.
fn registered(comm: &Arc<Communicator>) {
    let ranks = comm.ranks();
    let mut seed = 0;
    for collective in Collective::all(Rank(ranks - 1)) {
        for algorithm in [Algorithm::OneShot, Algorithm::TwoShot] {
            if !algorithm.supports(collective) {
                continue;
            }
            for (block, in_place) in
                [1, 1001, 100_003, (1 << 20) + 1].into_iter().flat_map(|b| [(b, false), (b, true)])
            {
                if in_place && collective.alias().is_none() {
                    continue;
                }
                let plan = generate(algorithm, collective, ranks, 4).unwrap();
                let spec = SessionSpec { plan, in_place, ..spec(comm, collective, block) };
                let what = format!("{algorithm} {collective:?} {block} {in_place}");
                let mut session = session::open_registered(comm, spec).unwrap();
                seed += 1;
                session.fill(seed).unwrap();
                session.run(1).unwrap();
                let report = session.check(seed).unwrap();
                assert_eq!((report.wrong, report.first_wrong), (0, None), "{what}");
                // Its buffers are registered, so the communicator chooses such a plan by itself.
                session.fill(seed).unwrap();
                let (operation, stream) = session.operation();
                comm.enqueue(&[operation], stream).unwrap();
                session.finish().unwrap();
                let report = session.check(seed).unwrap();
                assert_eq!((report.wrong, report.first_wrong), (0, None), "{what}, chosen");
                let served = [
                    Collective::AllReduce,
                    Collective::AllGather,
                    Collective::ReduceScatter,
                    Collective::AllToAll,
                ];
                if served.contains(&collective) {
                    let record: serde_json::Value = serde_json::from_str(&comm.flight_record()).unwrap();
                    let chosen = &record["records"].as_array().unwrap().last().unwrap()["algorithm"];
                    assert!(chosen.as_str().unwrap().ends_with("_shot"), "{what}: {chosen}");
                }
            }
        }
    }
    // All are told of what one cannot do, and go on.
    let session = session::open(comm, spec(comm, Collective::AllReduce, 1000)).unwrap();
    let (address, bytes) = session.memories()[0];
    let less = if comm.rank() == 0 { bytes / 2 } else { bytes };
    let why = comm.register(address, less).unwrap_err().to_string();
    assert!(why.contains("one size"), "{why}");
    let far = if comm.rank() == 0 { 1 << 50 } else { bytes };
    let why = comm.register(address, far).unwrap_err().to_string();
    assert!(why.contains("rank 0: ") && why.contains("cannot be registered"), "{why}");
    let window = comm.register(address, bytes).unwrap();
    comm.deregister(window).unwrap();
    assert!(comm.deregister(window).unwrap_err().to_string().contains("not registered"));
    println!("\nregistered right");
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
