//! The CPU back end with plans written by hand: what it computes, counts, traces and refuses.

use std::time::{Duration, Instant};

use ringlab_engine::exec::cpu::{self, open_unverified};
use ringlab_engine::exec::{ExecError, KernelChoice, Session, SessionSpec, Stall, WaitKind};
use ringlab_engine::fifo::{Fifo, Protocol};
use ringlab_engine::plan::{self, Buffer, Place, Plan, Program, Range, Scratch, Step};
use ringlab_engine::types::{ChannelId, Collective, DType, Factors, Rank, RedOp};

fn range(buffer: Buffer, start: u32) -> Range {
    Range { buffer, start, len: 1 }
}

fn input(chunk: u32) -> Range {
    range(Buffer::Input, chunk)
}

fn output(chunk: u32) -> Range {
    range(Buffer::Output, chunk)
}

/// A plan from the steps of each rank, the same on every channel.
fn plan(
    collective: Collective,
    ranks: u32,
    channels: u32,
    chunks: u32,
    steps: impl Fn(u32) -> Vec<Step>,
) -> Plan {
    let programs = (0..ranks).flat_map(|rank| {
        let steps = steps(rank);
        (0..channels).map(move |c| Program { rank: Rank(rank), channel: ChannelId(c), steps: steps.clone() })
    });
    let programs = programs.collect();
    Plan {
        version: plan::VERSION,
        name: "test".into(),
        collective,
        ranks,
        channels,
        chunks,
        scratch: vec![],
        programs,
    }
}

/// NCCL's runRing for n >= 2.
fn ring(n: u32, channels: u32) -> Plan {
    plan(Collective::AllReduce, n, channels, n, |r| {
        let (to, from) = (Rank((r + 1) % n), Rank((r + n - 1) % n));
        let back = |k: u32| (r + 2 * n - k) % n;
        let mut steps = vec![Step::Send { to, src: input(back(1)) }];
        steps.extend((2..n).map(|k| Step::RecvReduceSend { from, src: input(back(k)), to }));
        steps.push(Step::RecvReduceCopySend { from, src: input(r), dst: output(r), to });
        steps.extend((1..n - 1).map(|k| Step::RecvCopySend { from, dst: output(back(k)), to }));
        steps.push(Step::Recv { from, dst: output(back(n - 1)) });
        steps
    })
}

/// Every rank copies its input to scratch, and after a barrier reads all scratch buffers directly.
fn direct(n: u32, channels: u32) -> Plan {
    let scratch = |reader: u32, rank: u32| Place {
        rank: (rank != reader).then_some(Rank(rank)),
        range: range(Buffer::Scratch(0), 0),
    };
    let barrier = move |r: u32| {
        let others = move || (0..n).filter(move |&p| p != r).map(Rank);
        others().map(|to| Step::Signal { to }).chain(others().map(|from| Step::Wait { from }))
    };
    let mut plan = plan(Collective::AllReduce, n, channels, 1, |r| {
        let mut steps = vec![Step::Copy {
            src: Place { rank: None, range: input(0) },
            dst: range(Buffer::Scratch(0), 0),
        }];
        steps.extend(barrier(r));
        steps.push(Step::Reduce { srcs: (0..n).map(|rank| scratch(r, rank)).collect(), dst: output(0) });
        steps.extend(barrier(r));
        steps
    });
    plan.scratch = vec![Scratch { name: "staged".into(), chunks: 1 }];
    plan
}

fn spec(plan: Plan, block: u64) -> SessionSpec {
    SessionSpec {
        plan,
        block,
        dtype: DType::F32,
        op: RedOp::Sum,
        factors: Factors::Parity,
        in_place: false,
        slot_bytes: 4096,
        fifo: Fifo::default(),
        deadline: Duration::from_secs(20),
        devices: vec![],
        trace_spans: 100_000,
        kernel: KernelChoice::Auto,
    }
}

/// Every protocol, and chunks and slices of all kinds. A ring needs room for two chunks.
fn fifos() -> impl Iterator<Item = Fifo> {
    let steps = [(1, 1), (2, 1), (2, 2), (4, 2), (4, 1)];
    Protocol::ALL.into_iter().flat_map(move |protocol| {
        steps.map(|(chunk_steps, slice_steps)| Fifo { protocol, chunk_steps, slice_steps })
    })
}

fn open(spec: SessionSpec) -> Box<dyn Session> {
    // SAFETY: the plans here access a peer's buffer only between barriers, and otherwise their own.
    unsafe { open_unverified(spec) }.unwrap()
}

fn refusal(spec: SessionSpec) -> String {
    // SAFETY: nothing runs.
    match unsafe { open_unverified(spec) } {
        Err(ExecError::Refused(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn every_type_and_reduction_is_exact() {
    for make in [ring, direct] {
        for dtype in DType::ALL {
            for op in RedOp::ALL {
                for in_place in [false, true] {
                    let mut session = open(SessionSpec { dtype, op, in_place, ..spec(make(3, 2), 10_007) });
                    session.fill(5).unwrap();
                    session.run(1).unwrap();
                    let report = session.check(5).unwrap();
                    assert_eq!(
                        (report.wrong, report.first_wrong),
                        (0, None),
                        "{dtype} {op} in place {in_place}"
                    );
                    assert_eq!(report.elements, 10_007 * 3 * if in_place { 1 } else { 2 });
                }
            }
        }
    }
}

#[test]
fn every_protocol_and_cut_is_exact() {
    for fifo in fifos() {
        for make in [ring, direct] {
            // Odd lengths, tiles of one slice only, empty ones.
            for (block, slot_bytes) in [(10_007, 256), (1500, 4096), (1, 64), (0, 64)] {
                for in_place in [false, true] {
                    let mut session =
                        open(SessionSpec { fifo, slot_bytes, in_place, ..spec(make(3, 2), block) });
                    session.fill(5).unwrap();
                    session.run(1).unwrap();
                    let report = session.check(5).unwrap();
                    let what = format!("{fifo}, {block} elements in slots of {slot_bytes}");
                    assert_eq!((report.wrong, report.first_wrong), (0, None), "{what}, in place {in_place}");
                }
            }
        }
    }
}

/// A ring moves the same bytes however they are cut and coded, and every step of every chunk has its span.
#[test]
fn slices_and_lines_change_neither_the_bytes_counted_nor_the_spans() {
    for fifo in fifos() {
        let slot_bytes = 4096 / fifo.chunk_steps as usize;
        let mut session = open(SessionSpec { fifo, slot_bytes, ..spec(ring(3, 2), 9000) });
        session.fill(0).unwrap();
        let (timing, trace) = session.run_traced().unwrap();
        assert_eq!(timing.moved_bytes, [2 * 2 * 3000 * 4; 3], "{fifo}");
        assert_eq!((trace.spans.len(), trace.dropped), (session_steps(3) * 2 * 2 * 3, 0), "{fifo}");
        let sent: u64 = trace.spans.iter().filter(|s| s.to.is_some()).map(|s| s.bytes).sum();
        assert_eq!(sent, timing.moved_bytes.iter().sum::<u64>(), "{fifo}");
    }
}

#[test]
fn the_check_sees_outputs_that_were_not_written_and_inputs_of_another_seed() {
    let mut session = open(spec(ring(2, 1), 100));
    session.fill(1).unwrap();
    let before = session.check(1).unwrap();
    assert_eq!(before.wrong, 200, "poisoned outputs");
    assert_eq!(before.first_wrong.unwrap().index, 0);
    session.run(1).unwrap();
    assert_eq!(session.check(1).unwrap().wrong, 0);
    assert!(session.check(2).unwrap().wrong > 350, "outputs and inputs of seed 2 differ");
}

#[test]
fn a_ring_moves_two_n_minus_one_nths_per_rank() {
    // 4 chunks of 1000 floats, cut evenly.
    let mut session = open(spec(ring(4, 2), 4000));
    session.fill(0).unwrap();
    let timing = session.run(7).unwrap();
    assert_eq!(timing.moved_bytes, [2 * 3 * 4000; 4]);
    assert_eq!(timing.iterations.len(), 7);
    assert!(timing.iterations.iter().sum::<Duration>() <= timing.wall);
    assert_eq!(session.check(0).unwrap().wrong, 0, "out of place, repeating changes nothing");
}

#[test]
fn a_direct_plan_counts_what_it_reads() {
    let mut session = open(spec(direct(4, 1), 4000));
    session.fill(0).unwrap();
    assert_eq!(session.run(1).unwrap().moved_bytes, [3 * 16_000; 4]);
}

#[test]
fn a_trace_has_one_span_per_step_and_tile() {
    let mut session = open(spec(ring(3, 2), 9000));
    session.fill(0).unwrap();
    let (timing, trace) = session.run_traced().unwrap();
    // Chunks of 3000 floats, slices of 1500, slots of 1024: two tiles.
    let steps = session_steps(3) * 2 * 2;
    assert_eq!((trace.spans.len(), trace.dropped), (steps * 3, 0));
    assert_eq!(trace.spans[0].start_ns, 0);
    assert!(trace.spans.is_sorted_by_key(|s| s.start_ns));
    assert!(trace.spans.iter().all(|s| s.start_ns <= s.ready_ns && s.ready_ns <= s.end_ns));
    let sent: u64 = trace.spans.iter().filter(|s| s.to.is_some()).map(|s| s.bytes).sum();
    assert_eq!(sent, timing.moved_bytes.iter().sum::<u64>());
    assert_eq!(session.check(0).unwrap().wrong, 0);
}

fn session_steps(n: u32) -> usize {
    2 * n as usize - 1
}

#[test]
fn a_full_trace_says_how_much_it_dropped() {
    let mut session = open(SessionSpec { trace_spans: 6, ..spec(ring(3, 1), 30) });
    session.fill(0).unwrap();
    let trace = session.run_traced().unwrap().1;
    assert_eq!((trace.spans.len(), trace.dropped), (6, 9));
}

#[test]
fn a_deadlock_stops_at_its_deadline_and_names_the_peers() {
    // Both ranks receive before they send.
    let plan = plan(Collective::AllReduce, 2, 1, 1, |r| {
        let peer = Rank(1 - r);
        vec![Step::Recv { from: peer, dst: output(0) }, Step::Send { to: peer, src: input(0) }]
    });
    let mut session = open(SessionSpec { deadline: Duration::from_millis(200), ..spec(plan, 100) });
    let expected = |rank: u32| Stall {
        rank: Rank(rank),
        channel: ChannelId(0),
        peer: Rank(1 - rank),
        step: 0,
        tile: 0,
        waiting_for: WaitKind::Data,
        head: 0,
        tail: 0,
    };
    for _ in 0..2 {
        session.fill(0).unwrap();
        let started = Instant::now();
        let Err(ExecError::Stalled { stalls, .. }) = session.run(3) else { panic!("it cannot finish") };
        assert!((Duration::from_millis(200)..Duration::from_secs(5)).contains(&started.elapsed()));
        assert_eq!(stalls, [expected(0), expected(1)]);
    }
}

/// An LL receiver has no counter to look at: it waits for lines, and says that it was data.
#[test]
fn a_wait_for_lines_that_never_come_stops_at_its_deadline() {
    for fifo in fifos() {
        // Rank 0 takes what rank 1 has sent, and then one more that only a signal follows.
        let plan = plan(Collective::AllReduce, 2, 1, 1, |r| match r {
            0 => vec![Step::Recv { from: Rank(1), dst: output(0) }; 2],
            _ => vec![Step::Send { to: Rank(0), src: input(0) }, Step::Signal { to: Rank(0) }],
        });
        let deadline = Duration::from_millis(100);
        let mut session = open(SessionSpec { fifo, deadline, ..spec(plan, 100) });
        for run in 1..=2 {
            session.fill(0).unwrap();
            let started = Instant::now();
            let Err(ExecError::Stalled { stalls, .. }) = session.run(1) else { panic!("it cannot finish") };
            assert!(started.elapsed() >= deadline);
            let steps = u64::from(fifo.chunk_steps) * run;
            let expected = Stall {
                rank: Rank(0),
                channel: ChannelId(0),
                peer: Rank(1),
                step: 1,
                tile: 0,
                waiting_for: WaitKind::Data,
                head: steps,
                tail: steps,
            };
            assert_eq!(stalls, [expected], "{fifo}");
        }
    }
}

/// Lines have no length: one that the layout does not know is reported, not waited for or guessed.
#[test]
fn lines_of_unequal_chunks_are_refused_before_they_move() {
    let plan = plan(Collective::AllReduce, 1, 1, 2, |_| {
        vec![Step::Copy { src: Place { rank: None, range: input(0) }, dst: output(1) }]
    });
    let why = refusal(SessionSpec { fifo: Fifo::of(Protocol::Ll), ..spec(plan, 10) });
    assert!(why.contains("8 and 2 elements"), "{why}");
}

#[test]
fn chunks_that_leave_too_few_credits_are_refused_with_the_reason() {
    let two_ahead = plan(Collective::AllGather, 2, 1, 1, |r| {
        let peer = Rank(1 - r);
        let copy = Step::Copy { src: Place { rank: None, range: input(0) }, dst: output(r) };
        let mut steps =
            vec![copy, Step::Send { to: peer, src: input(0) }, Step::Send { to: peer, src: input(0) }];
        steps.extend([(); 2].map(|()| Step::Recv { from: peer, dst: output(1 - r) }));
        steps
    });
    for (chunk_steps, fits) in [(1, true), (2, true), (4, true), (8, false)] {
        let fifo = Fifo { protocol: Protocol::Ll, chunk_steps, slice_steps: chunk_steps };
        match cpu::open(SessionSpec { fifo, ..spec(two_ahead.clone(), 10) }) {
            Ok(_) => assert!(fits),
            Err(ExecError::Refused(why)) => {
                assert!(!fits && why.contains("free the 8 steps of a chunk, of 8"), "{why}");
                assert!(why.contains("With chunks of 8 steps a connection holds 1 at a time"), "{why}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_sender_without_a_receiver_runs_out_of_credits() {
    let plan = plan(Collective::AllReduce, 2, 1, 1, |r| match r {
        0 => vec![Step::Send { to: Rank(1), src: input(0) }; 9],
        _ => vec![Step::Wait { from: Rank(0) }],
    });
    let mut session = open(SessionSpec { deadline: Duration::from_millis(100), ..spec(plan, 100) });
    for run in 1..=2 {
        let Err(ExecError::Stalled { stalls, .. }) = session.run(1) else { panic!("it cannot finish") };
        let seen: Vec<_> =
            stalls.iter().map(|s| (s.rank.0, s.step, s.waiting_for, s.tail - s.head)).collect();
        assert_eq!(seen, [(0, 8, WaitKind::Credit, 8), (1, 0, WaitKind::Signal, 0)]);
        assert_eq!(stalls[0].tail, 8 * run, "the counters go on");
    }
}

#[test]
fn a_deadline_too_short_for_the_data_is_an_error() {
    let mut session = open(SessionSpec { deadline: Duration::from_nanos(1), ..spec(ring(2, 1), 100_000) });
    session.fill(0).unwrap();
    let Err(ExecError::Stalled { .. }) = session.run(1) else { panic!("nothing finishes in a nanosecond") };
}

#[test]
fn moving_between_unequal_chunks_is_reported() {
    // 10 elements in 2 chunks of 8 and 2.
    let plan = plan(Collective::AllReduce, 1, 1, 2, |_| {
        vec![Step::Copy { src: Place { rank: None, range: input(0) }, dst: output(1) }]
    });
    let Err(ExecError::Device { context, message }) = open(spec(plan, 10)).run(1) else { panic!("accepted") };
    assert_eq!(context, "rank 0 channel 0 step 0 (copy) tile 0");
    assert!(message.contains("8 and 2 elements"), "{message}");
}

#[test]
fn malformed_plans_are_refused_with_the_step() {
    let step = |step: Step| refusal(spec(plan(Collective::AllReduce, 2, 1, 2, |_| vec![step.clone()]), 10));
    let why = step(Step::Send { to: Rank(2), src: input(0) });
    assert!(why.starts_with("rank 0 channel 0 step 0: there is no rank 2"), "{why}");
    assert!(step(Step::Send { to: Rank(1), src: input(2) }).contains("out of bounds"));
    assert!(step(Step::Recv { from: Rank(1), dst: input(0) }).contains("read-only"));
    let mut short = ring(2, 2);
    short.programs.pop();
    assert!(refusal(spec(short, 10)).contains("there are 3"));
}

#[test]
fn only_a_proven_plan_is_opened_without_a_promise() {
    let refused = |plan: Plan| match cpu::open(spec(plan, 10)) {
        Err(ExecError::Refused(why)) => why,
        _ => panic!("accepted"),
    };
    assert!(cpu::open(spec(ring(3, 2), 10)).is_ok());
    let mut racy = direct(3, 1);
    for program in &mut racy.programs {
        program.steps.retain(|step| !matches!(step, Step::Signal { .. } | Step::Wait { .. }));
    }
    assert!(refused(racy).starts_with("the plan is not right: "));
    let mut stuck = ring(2, 1);
    stuck.programs[0].steps.swap(0, 1);
    assert!(refused(stuck).starts_with("the plan is not right: "));
}

#[test]
fn limits_are_refused_with_their_figures() {
    assert!(refusal(spec(ring(65, 1), 10)).contains("65"));
    assert!(refusal(spec(ring(64, 17), 10)).contains("1024"));
    assert!(refusal(SessionSpec { slot_bytes: 8, ..spec(ring(2, 1), 10) }).contains("not 8"));
    assert!(refusal(spec(ring(2, 1), 1 << 45)).contains("MiB of memory"));
    assert!(refusal(spec(ring(2, 1), u64::MAX)).contains("does not fit"));
    let fifo = Fifo { protocol: Protocol::Simple, chunk_steps: 4, slice_steps: 3 };
    assert!(refusal(SessionSpec { fifo, ..spec(ring(2, 1), 10) }).contains("slices of 3"));
}

#[test]
fn outputs_are_the_bits_of_every_rank() {
    let mut session = open(SessionSpec { dtype: DType::I64, ..spec(ring(3, 1), 11) });
    session.fill(0).unwrap();
    session.run(1).unwrap();
    let first = session.output(Rank(0)).unwrap();
    assert_eq!(first.len(), 88);
    assert_eq!(session.output(Rank(2)).unwrap(), first);
    assert!(session.output(Rank(3)).is_err());
}
