//! All ranks of a communicator in one process, on one device, called by one thread.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaContext, DevicePtr};
use ringlab_engine::comm::grouped::{self, GroupSession, Streams};
use ringlab_engine::comm::{Communicator, Config, Operation, Part, Scalar};
use ringlab_engine::exec::{ExecError, KernelChoice, Session, SessionSpec};
use ringlab_engine::fifo::Fifo;
use ringlab_engine::plan::{Algorithm, generate};
use ringlab_engine::types::{Collective, DType, Factors, Rank, RedOp};

use crate::gpu;

const DEADLINE: Duration = Duration::from_secs(20);

fn form(ranks: u32) -> Vec<Arc<Communicator>> {
    let config = Config { deadline: DEADLINE, max_channels: 4, slot_bytes: 64 << 10, ..Config::default() };
    grouped::init_all(&vec![0; ranks as usize], &config).unwrap()
}

fn spec(ranks: u32, collective: Collective, block: u64, (dtype, op): (DType, RedOp)) -> SessionSpec {
    let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.supports(collective)).unwrap();
    SessionSpec {
        plan: generate(algorithm, collective, ranks, 1).unwrap(),
        block,
        dtype,
        op,
        factors: Factors::Parity,
        in_place: false,
        slot_bytes: 64 << 10,
        fifo: Fifo::default(),
        deadline: DEADLINE,
        devices: vec![0],
        trace_spans: 0,
        kernel: KernelChoice::Auto,
    }
}

fn open(
    comms: &[Arc<Communicator>],
    collective: Collective,
    block: u64,
    kind: (DType, RedOp),
) -> GroupSession {
    grouped::open(comms, spec(comms.len() as u32, collective, block, kind), Streams::Each).unwrap()
}

fn exact(session: &mut GroupSession, seed: u64, what: &str) {
    let report = session.check(seed).unwrap();
    assert_eq!((report.wrong, report.first_wrong), (0, None), "{what}");
}

const SUM: (DType, RedOp) = (DType::F32, RedOp::Sum);

fn parts<'a>(
    comms: &'a [Arc<Communicator>],
    ops: &'a [Vec<Operation>],
    session: &GroupSession,
) -> Vec<Part<'a>> {
    let part = |(rank, comm): (u32, &'a Arc<Communicator>)| Part {
        comm,
        ops: &ops[rank as usize],
        stream: session.stream(Rank(rank)),
    };
    (0..).zip(comms).map(part).collect()
}

/// All messages of the ring that a send-recv session's buffers are for.
fn ring(session: &GroupSession, rank: u32, ranks: u32) -> [Operation; 2] {
    let Operation::Collective { send, recv, block, dtype, .. } = session.operation(Rank(rank)) else {
        panic!("a session calls for a collective")
    };
    [
        Operation::Send { to: Rank((rank + 1) % ranks), buffer: send, count: block, dtype },
        Operation::Recv { from: Rank((rank + ranks - 1) % ranks), buffer: recv, count: block, dtype },
    ]
}

#[test]
fn a_group_of_all_ranks_is_exact() {
    if !gpu("a_group_of_all_ranks_is_exact") {
        return;
    }
    let kinds = [
        SUM,
        (DType::F16, RedOp::Avg),
        (DType::I64, RedOp::Max),
        (DType::U8, RedOp::Prod),
        (DType::Bf16, RedOp::PreMulSum),
    ];
    for ranks in [1, 2, 4, 8] {
        let comms = form(ranks);
        for (seed, collective) in (1..).zip(Collective::all(Rank(ranks - 1))) {
            for kind in kinds.into_iter().take(if collective.reduces() { kinds.len() } else { 2 }) {
                for block in [0, 1, 1001, (1 << 20) + 3] {
                    for in_place in [false, true] {
                        if in_place && collective.alias().is_none() {
                            continue;
                        }
                        let spec = SessionSpec { in_place, ..spec(ranks, collective, block, kind) };
                        for streams in [Streams::Each, Streams::One] {
                            let mut session = grouped::open(&comms, spec.clone(), streams).unwrap();
                            session.fill(seed).unwrap();
                            session.run(1).unwrap();
                            exact(&mut session, seed, &format!("{ranks} {streams:?} {spec:?}"));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_recorded_group_is_exact_however_often_it_runs() {
    if !gpu("a_recorded_group_is_exact_however_often_it_runs") {
        return;
    }
    for ranks in [1, 2, 4, 8] {
        let comms = form(ranks);
        for (kind, block) in [(SUM, 1001), ((DType::F32, RedOp::PreMulSum), 5000), (SUM, 1 << 20)] {
            let mut session = open(&comms, Collective::AllReduce, block, kind);
            session.fill(7).unwrap();
            session.run(1).unwrap();
            session.fill(8).unwrap();
            session.replay(3, 100).unwrap();
            exact(&mut session, 8, &format!("{ranks} ranks, {kind:?}"));
            // Launches outside of graphs go on as before.
            session.fill(9).unwrap();
            session.run(5).unwrap();
            exact(&mut session, 9, &format!("{ranks} ranks, after the graph, {kind:?}"));
        }
    }
}

/// Its own rank's programs read it, so these are one launch: on one stream several would wait for each other.
#[test]
fn factors_on_the_device_are_read_by_a_group_on_any_streams() {
    if !gpu("factors_on_the_device_are_read_by_a_group_on_any_streams") {
        return;
    }
    let context = CudaContext::new(0).unwrap();
    let own = context.new_stream().unwrap();
    // What the session's check expects: even ranks' inputs once, odd ones' twice.
    let factors = own.clone_htod(&[1f32, 2f32]).unwrap();
    own.synchronize().unwrap();
    let at = factors.device_ptr(&own).0;
    for ranks in [2, 4, 8] {
        let comms = form(ranks);
        for (block, in_place) in [1, 1001, 300_003].into_iter().flat_map(|b| [(b, false), (b, true)]) {
            let kind = (DType::F32, RedOp::PreMulSum);
            let spec = SessionSpec { in_place, ..spec(ranks, Collective::AllReduce, block, kind) };
            for streams in [Streams::Each, Streams::One] {
                let mut session = grouped::open(&comms, spec.clone(), streams).unwrap();
                let of = |rank: u32| match session.operation(Rank(rank)) {
                    Operation::Collective { collective, send, recv, block, dtype, op, .. } => {
                        let factor = Some(Scalar::Device(at + u64::from(rank % 2) * 4));
                        vec![Operation::Collective { collective, send, recv, block, dtype, op, factor }]
                    }
                    other => panic!("a session calls for a collective, not {other:?}"),
                };
                let ops: Vec<Vec<Operation>> = (0..ranks).map(of).collect();
                session.fill(block).unwrap();
                Communicator::enqueue_group(&parts(&comms, &ops, &session)).unwrap();
                session.finish().unwrap();
                exact(
                    &mut session,
                    block,
                    &format!("{ranks} ranks, {block}, in place {in_place}, {streams:?}"),
                );
            }
        }
    }
}

#[test]
fn collectives_and_messages_mix_in_one_group() {
    if !gpu("collectives_and_messages_mix_in_one_group") {
        return;
    }
    for ranks in [1, 2, 4, 8] {
        let comms = form(ranks);
        for block in [1, 13, 4096, 400_003] {
            let mut reduced = open(&comms, Collective::AllReduce, block, SUM);
            let mut gathered = open(&comms, Collective::AllGather, block, (DType::U8, RedOp::Sum));
            let mut sent = open(&comms, Collective::SendRecv, block, (DType::U8, RedOp::Sum));
            for session in [&mut reduced, &mut gathered, &mut sent] {
                session.fill(block).unwrap();
            }
            let ops: Vec<Vec<Operation>> = (0..ranks)
                .map(|rank| {
                    let [send, recv] = ring(&sent, rank, ranks);
                    vec![recv, reduced.operation(Rank(rank)), gathered.operation(Rank(rank)), send]
                })
                .collect();
            Communicator::enqueue_group(&parts(&comms, &ops, &reduced)).unwrap();
            reduced.finish().unwrap();
            for session in [&mut reduced, &mut gathered, &mut sent] {
                exact(session, block, &format!("{ranks} ranks, {block}"));
            }
        }
    }
}

/// Short ones on buffers of their own are one launch; those that follow from each other are not.
#[test]
fn many_short_collectives_in_one_group_are_exact() {
    if !gpu("many_short_collectives_in_one_group_are_exact") {
        return;
    }
    for ranks in [2, 4, 8] {
        let comms = form(ranks);
        for (kind, in_place) in [(SUM, false), (SUM, true), ((DType::F16, RedOp::Max), false)] {
            let all =
                Collective::all(Rank(ranks - 1)).into_iter().filter(|c| !in_place || c.alias().is_some());
            let open = |(nth, collective): (u64, Collective)| {
                let block = [1, 13, 500][nth as usize % 3];
                let spec = SessionSpec { in_place, ..spec(ranks, collective, block, kind) };
                grouped::open(&comms, spec, Streams::Each).unwrap()
            };
            // Reductions first, then the rest: alike ones follow each other.
            let (reducing, moving): (Vec<_>, Vec<_>) = all.partition(|collective| collective.reduces());
            let mut sessions: Vec<GroupSession> = (0..).zip([reducing, moving].concat()).map(open).collect();
            for times in [1, 2] {
                if in_place && times == 2 {
                    continue;
                }
                for (session, seed) in sessions.iter_mut().zip(1..) {
                    session.fill(seed).unwrap();
                }
                let calls = |rank| sessions.iter().map(move |session| session.operation(Rank(rank)));
                // The second time each call comes again, on the same buffers.
                let ops: Vec<Vec<Operation>> =
                    (0..ranks).map(|rank| (0..times).flat_map(|_| calls(rank)).collect()).collect();
                for _ in 0..times {
                    Communicator::enqueue_group(&parts(&comms, &ops, &sessions[0])).unwrap();
                }
                sessions[0].finish().unwrap();
                for (session, seed) in sessions.iter_mut().zip(1..) {
                    exact(
                        session,
                        seed,
                        &format!("{ranks} ranks, {kind:?}, in place {in_place}, {times} times"),
                    );
                }
            }
        }
    }
}

#[test]
fn two_communicators_share_a_group() {
    if !gpu("two_communicators_share_a_group") {
        return;
    }
    let (one, two) = (form(4), form(3));
    let mut first = open(&one, Collective::ReduceScatter, 5001, SUM);
    let mut second = open(&two, Collective::Broadcast { root: Rank(1) }, 70_001, SUM);
    first.fill(1).unwrap();
    second.fill(2).unwrap();
    let calls = |session: &GroupSession, ranks: u32| -> Vec<Vec<Operation>> {
        (0..ranks).map(|rank| vec![session.operation(Rank(rank)); 2]).collect()
    };
    let (ops_of_first, ops_of_second) = (calls(&first, 4), calls(&second, 3));
    // In turns, and on the same streams.
    let mut all: Vec<Part<'_>> = Vec::new();
    let second_parts = parts(&two, &ops_of_second, &first);
    for (nth, part) in parts(&one, &ops_of_first, &first).into_iter().enumerate() {
        all.push(part);
        all.extend(second_parts.get(nth).copied());
    }
    Communicator::enqueue_group(&all).unwrap();
    first.finish().unwrap();
    second.finish().unwrap();
    exact(&mut first, 1, "the first");
    exact(&mut second, 2, "the second");
}

/// A rank has made a call before the group that another makes in it, and a message's other end follows alone.
#[test]
fn calls_outside_of_the_group_meet_those_within() {
    if !gpu("calls_outside_of_the_group_meet_those_within") {
        return;
    }
    let comms = form(2);
    for block in [100, 300_000] {
        let mut early = open(&comms, Collective::AllReduce, block, SUM);
        let mut both = open(&comms, Collective::AllGather, block, SUM);
        let mut late = open(&comms, Collective::AllReduce, block, SUM);
        let mut sent = open(&comms, Collective::SendRecv, block, SUM);
        // Kernels are loaded before any waits: a load waits for kernels that run.
        both.run(1).unwrap();
        session_alone(&comms, &early);
        for (rank, comm) in (0..).zip(&comms) {
            comm.enqueue(&ring(&sent, rank, 2), early.stream(Rank(rank))).unwrap();
        }
        early.finish().unwrap();
        for session in [&mut early, &mut both, &mut late, &mut sent] {
            session.fill(block).unwrap();
        }
        let of = |session: &GroupSession, rank| session.operation(Rank(rank));
        comms[0].enqueue(&[of(&early, 0)], early.stream(Rank(0))).unwrap();
        let ops = vec![
            [vec![of(&both, 0), of(&late, 0)], ring(&sent, 0, 2).to_vec()].concat(),
            vec![of(&early, 1), of(&both, 1)],
        ];
        Communicator::enqueue_group(&parts(&comms, &ops, &early)).unwrap();
        let rest = [vec![of(&late, 1)], ring(&sent, 1, 2).to_vec()].concat();
        comms[1].enqueue(&rest, early.stream(Rank(1))).unwrap();
        early.finish().unwrap();
        for session in [&mut early, &mut both, &mut late, &mut sent] {
            exact(session, block, &format!("{block}"));
        }
    }
}

/// Each rank launches for itself.
fn session_alone(comms: &[Arc<Communicator>], session: &GroupSession) {
    for (rank, comm) in (0..).zip(comms) {
        comm.enqueue(&[session.operation(Rank(rank))], session.stream(Rank(rank))).unwrap();
    }
    session.finish().unwrap();
}

#[test]
fn ranks_that_ask_for_different_things_in_a_group_are_told_and_go_on() {
    if !gpu("ranks_that_ask_for_different_things_in_a_group_are_told_and_go_on") {
        return;
    }
    let comms = form(2);
    let mut session = open(&comms, Collective::AllReduce, 100, SUM);
    let other = open(&comms, Collective::AllReduce, 101, SUM);
    let ops = vec![vec![session.operation(Rank(0))], vec![other.operation(Rank(1))]];
    let why = Communicator::enqueue_group(&parts(&comms, &ops, &session)).unwrap_err();
    let text = why.error.to_string();
    assert!(text.contains("100") && text.contains("101"), "{text}");
    let twice = [parts(&comms, &ops, &session)[0]; 2];
    assert!(Communicator::enqueue_group(&twice).unwrap_err().error.to_string().contains("of one rank"));
    session.fill(3).unwrap();
    session.run(2).unwrap();
    exact(&mut session, 3, "afterwards");
    let refused = grouped::open(&comms[..1], spec(2, Collective::AllReduce, 1, SUM), Streams::Each);
    assert!(matches!(refused, Err(ExecError::Refused(_))));
}

/// Two threads with two ranks each, on streams of their own or a stream a thread: nobody has all, so ranks run their own programs.
#[test]
fn a_group_of_some_ranks_waits_for_the_others() {
    if !gpu("a_group_of_some_ranks_waits_for_the_others") {
        return;
    }
    let comms = form(4);
    for (block, shared) in [(100, 0), (300_000, 0), (100, 1), (300_000, 1)] {
        let mut session = open(&comms, Collective::AllReduce, block, SUM);
        session.fill(block).unwrap();
        session_alone(&comms, &session);
        session.fill(block).unwrap();
        let ops: Vec<Vec<Operation>> = (0..4).map(|rank| vec![session.operation(Rank(rank))]).collect();
        let all = parts(&comms, &ops, &session);
        let streams: Vec<_> = all.iter().map(|part| part.stream).collect();
        std::thread::scope(|scope| {
            for half in [0, 2] {
                let (comms, ops) = (&comms[half..half + 2], &ops[half..half + 2]);
                let streams = [streams[half], streams[half + 1 - shared]];
                scope.spawn(move || {
                    let part = |nth: usize| Part { comm: &comms[nth], ops: &ops[nth], stream: streams[nth] };
                    Communicator::enqueue_group(&[part(0), part(1)]).unwrap();
                });
            }
        });
        session.finish().unwrap();
        exact(&mut session, block, &format!("{block} {shared}"));
    }
}
