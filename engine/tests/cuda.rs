//! The GPU back end against the exact results and against the CPU back end, bit for bit.
//!
//! Without a GPU these tests say `skipped`; with RINGLAB_REQUIRE_CUDA=1 they fail instead.
#![cfg(feature = "cuda")]

mod common;

use std::time::{Duration, Instant};

use common::gpu;
use proptest::prelude::*;
use ringlab_engine::exec::cuda::devices;
use ringlab_engine::exec::{self, Backend, ExecError, KernelChoice, Session, SessionSpec, Stall, WaitKind};
use ringlab_engine::fifo::{Fifo, Protocol};
use ringlab_engine::plan::{Algorithm, Plan, Step, generate};
use ringlab_engine::types::{ChannelId, Collective, DType, Factors, Rank, RedOp};
use ringlab_engine::verify::verify_with;

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
        deadline: Duration::from_secs(5),
        devices: vec![0],
        trace_spans: 100_000,
        // The specialised kernel has tests of its own.
        kernel: KernelChoice::Interpreter,
    }
}

fn open(spec: SessionSpec) -> Box<dyn Session> {
    exec::open(Backend::Cuda, spec).unwrap()
}

fn refusal(spec: SessionSpec) -> String {
    match exec::open(Backend::Cuda, spec) {
        Err(ExecError::Refused(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted"),
    }
}

fn all_reduce(algorithm: Algorithm, ranks: u32, channels: u32) -> Plan {
    generate(algorithm, Collective::AllReduce, ranks, channels).unwrap()
}

fn all_reducing() -> impl Iterator<Item = Algorithm> {
    Algorithm::ALL.into_iter().filter(|algorithm| algorithm.supports(Collective::AllReduce))
}

/// Runs once on both back ends; everything both report must agree. How connections carry data changes no bit, so the CPU has the default.
fn same_on_both(spec: &SessionSpec, seed: u64, traced: bool) -> Result<(), TestCaseError> {
    let mut outcomes = Vec::new();
    for backend in [Backend::Cuda, Backend::Cpu] {
        let fifo = if backend == Backend::Cuda { spec.fifo } else { Fifo::default() };
        let kernel = if backend == Backend::Cuda { spec.kernel } else { KernelChoice::Auto };
        let mut session = exec::open(backend, SessionSpec { fifo, kernel, ..spec.clone() }).unwrap();
        session.fill(seed).unwrap();
        let timing = if traced { session.run_traced().unwrap().0 } else { session.run(1).unwrap() };
        let report = session.check(seed).unwrap();
        prop_assert_eq!(
            report.wrong,
            0,
            "{} {:?} {} {} in place {}: {:?}",
            spec.plan.name,
            spec.fifo,
            spec.dtype,
            spec.op,
            spec.in_place,
            report.first_wrong
        );
        let outputs: Vec<_> = (0..spec.plan.ranks).map(|r| session.output(Rank(r)).unwrap()).collect();
        outcomes.push((outputs, timing.moved_bytes, report.elements));
    }
    prop_assert!(
        outcomes[0] == outcomes[1],
        "{:?} {:?}",
        (&outcomes[0].1, outcomes[0].2),
        (&outcomes[1].1, outcomes[1].2)
    );
    Ok(())
}

fn collectives(ranks: u32) -> [Collective; 9] {
    Collective::all(Rank(ranks - 1))
}

#[test]
fn every_algorithm_type_and_reduction_gives_the_cpus_bits() {
    if !gpu("every_algorithm_type_and_reduction_gives_the_cpus_bits") {
        return;
    }
    for algorithm in Algorithm::ALL {
        for collective in collectives(3).into_iter().filter(|&c| algorithm.supports(c)) {
            let plan = generate(algorithm, collective, 3, 2).unwrap();
            // Where nothing is reduced, avg must not divide; the other reductions are the same program.
            let ops = if collective.reduces() { &RedOp::ALL[..] } else { &[RedOp::Sum, RedOp::Avg] };
            for dtype in DType::ALL {
                for &op in ops {
                    for in_place in [false, true].into_iter().filter(|i| !i || collective.alias().is_some()) {
                        let spec = SessionSpec { dtype, op, in_place, ..spec(plan.clone(), 10_007) };
                        same_on_both(&spec, 5, false).unwrap();
                    }
                }
            }
        }
    }
}

fn fifos() -> impl Strategy<Value = Fifo> {
    let steps = prop::sample::select(vec![(1, 1), (1, 1), (2, 1), (2, 2), (4, 2), (8, 1)]);
    (prop::sample::select(Protocol::ALL.to_vec()), steps)
        .prop_map(|(protocol, (chunk_steps, slice_steps))| Fifo { protocol, chunk_steps, slice_steps })
}

fn specs() -> impl Strategy<Value = SessionSpec> {
    let blocks = prop_oneof![0u64..9, Just(255), Just(1009), 100u64..3000, 5_000u64..200_000];
    let kinds = (prop::sample::select(DType::ALL.to_vec()), prop::sample::select(RedOp::ALL.to_vec()));
    let slots = prop::sample::select(vec![16usize, 100, 512, 4096, 65_536]);
    let algorithms = prop::sample::select(Algorithm::ALL.to_vec());
    (1u32..=8, 1u32..=8, (blocks, slots, fifos()), kinds, any::<bool>(), algorithms, 0usize..9).prop_map(
        |(ranks, channels, (block, slot_bytes, fifo), (dtype, op), in_place, algorithm, collective)| {
            let collective = collectives(ranks)[collective];
            // Every collective has an exchange.
            let algorithm = if algorithm.supports(collective) { algorithm } else { Algorithm::Exchange };
            let block = if slot_bytes <= 100 { block % 3000 } else { block };
            let plan = generate(algorithm, collective, ranks, channels).unwrap();
            let in_place = in_place && collective.alias().is_some();
            // Some send so far ahead that long chunks leave no room.
            let fits = verify_with(&plan, in_place, fifo).is_ok();
            let fifo = if fits { fifo } else { Fifo::of(fifo.protocol) };
            SessionSpec { dtype, op, in_place, slot_bytes, fifo, ..spec(plan, block) }
        },
    )
}

#[test]
fn any_shape_gives_the_cpus_bits() {
    if !gpu("any_shape_gives_the_cpus_bits") {
        return;
    }
    let config = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(spec in specs(), seed in any::<u64>(), traced in any::<bool>())| {
        same_on_both(&spec, seed, traced)?;
    });
}

#[test]
fn repeating_out_of_place_changes_nothing() {
    if !gpu("repeating_out_of_place_changes_nothing") {
        return;
    }
    for algorithm in all_reducing() {
        for op in [RedOp::Sum, RedOp::Avg] {
            let mut session = open(SessionSpec { op, ..spec(all_reduce(algorithm, 4, 4), 100_003) });
            session.fill(1).unwrap();
            for _ in 0..5 {
                let timing = session.run(200).unwrap();
                assert_eq!(timing.iterations.len(), 200);
                assert!(timing.iterations.iter().sum::<Duration>() <= timing.wall, "{timing:?}");
            }
            let report = session.check(1).unwrap();
            assert_eq!((report.wrong, report.first_wrong), (0, None), "{algorithm} {op}");
        }
    }
}

#[test]
fn the_check_sees_outputs_that_were_not_written_and_inputs_of_another_seed() {
    if !gpu("the_check_sees_outputs_that_were_not_written_and_inputs_of_another_seed") {
        return;
    }
    let mut session = open(spec(all_reduce(Algorithm::Ring, 2, 1), 100));
    session.fill(1).unwrap();
    let before = session.check(1).unwrap();
    assert_eq!((before.wrong, before.elements), (200, 400), "poisoned outputs");
    let first = before.first_wrong.unwrap();
    assert_eq!((first.rank, first.index), (Rank(0), 0));
    session.run(1).unwrap();
    assert_eq!(session.check(1).unwrap().wrong, 0);
    let other = session.check(2).unwrap();
    assert!(other.wrong > 350, "outputs and inputs of seed 2 differ: {other:?}");
}

fn stalls(result: Result<exec::Timing, ExecError>) -> Vec<Stall> {
    match result {
        Err(ExecError::Stalled { stalls, .. }) => stalls,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("finished"),
    }
}

#[test]
fn every_protocol_and_slicing_gives_the_cpus_bits() {
    if !gpu("every_protocol_and_slicing_gives_the_cpus_bits") {
        return;
    }
    for protocol in Protocol::ALL {
        for (chunk_steps, slice_steps) in [(1, 1), (4, 2)] {
            for algorithm in [Algorithm::Ring, Algorithm::Tree, Algorithm::Exchange] {
                let plan = all_reduce(algorithm, 4, 2);
                for dtype in [DType::U8, DType::F16, DType::F32, DType::F64] {
                    for block in [1, 59, 60, 61, 241, 10_007] {
                        for in_place in [false, true] {
                            let fifo = Fifo { protocol, chunk_steps, slice_steps };
                            let spec = SessionSpec { dtype, in_place, fifo, ..spec(plan.clone(), block) };
                            same_on_both(&spec, block, false).unwrap();
                        }
                    }
                }
            }
        }
    }
}

/// A thousand executions back to back: every slot is used again and again, and lines of longer tiles lie under shorter ones.
#[test]
fn lines_are_told_from_those_of_earlier_steps() {
    if !gpu("lines_are_told_from_those_of_earlier_steps") {
        return;
    }
    for protocol in [Protocol::Ll, Protocol::Ll128] {
        for algorithm in all_reducing() {
            let plan = all_reduce(algorithm, 4, 4);
            let mut session = open(SessionSpec { fifo: Fifo::of(protocol), ..spec(plan, 25_003) });
            session.fill(1).unwrap();
            session.run(1000).unwrap();
            let report = session.check(1).unwrap();
            assert_eq!((report.wrong, report.first_wrong), (0, None), "{algorithm} {protocol}");
        }
    }
}

/// Rank 1 of a ring of two first waits for what rank 0 sends only after it has heard from rank 1.
#[test]
fn a_deadlock_ends_at_its_deadline_and_the_session_recovers() {
    if !gpu("a_deadlock_ends_at_its_deadline_and_the_session_recovers") {
        return;
    }
    Protocol::ALL.into_iter().for_each(a_deadlock_ends);
}

fn a_deadlock_ends(protocol: Protocol) {
    let mut plan = all_reduce(Algorithm::Ring, 2, 2);
    for program in &mut plan.programs {
        program.steps.swap(0, 1);
    }
    let deadline = Duration::from_millis(200);
    let fifo = Fifo::of(protocol);
    let mut session = open(SessionSpec { deadline, fifo, ..spec(plan, 1000) });
    for _ in 0..2 {
        session.fill(1).unwrap();
        let started = Instant::now();
        let found = stalls(session.run(10));
        let took = started.elapsed();
        assert!(took >= deadline && took < deadline * 3, "{took:?}");
        assert_eq!(found.len(), 4, "{found:?}");
        for (i, stall) in found.iter().enumerate() {
            let rank = i as u32 / 2;
            let expected = Stall {
                rank: Rank(rank),
                channel: ChannelId(i as u32 % 2),
                peer: Rank(1 - rank),
                step: 0,
                tile: 0,
                waiting_for: WaitKind::Data,
                head: 0,
                tail: 0,
            };
            assert_eq!(*stall, expected);
        }
    }
}

/// Signals given too seldom: the second execution's wait is the one that hangs, and the counters say how far the first came.
#[test]
fn a_missing_signal_and_a_full_fifo_are_named() {
    if !gpu("a_missing_signal_and_a_full_fifo_are_named") {
        return;
    }
    let deadline = Duration::from_millis(100);
    let mut plan = all_reduce(Algorithm::TwoShot, 2, 1);
    plan.programs[1].steps.retain(|step| !matches!(step, Step::Signal { .. }));
    let mut session = open(SessionSpec { deadline, ..spec(plan, 1000) });
    session.fill(1).unwrap();
    let found = stalls(session.run(1));
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].rank, found[0].waiting_for, found[0].step), (Rank(0), WaitKind::Signal, 1));
    assert_eq!((found[0].head, found[0].tail), (0, 0));
    assert_eq!((found[1].rank, found[1].waiting_for), (Rank(1), WaitKind::Signal));
    assert_eq!((found[1].head, found[1].tail), (1, 1), "the first signal came, the second did not");

    // Rank 1 takes nothing: rank 0 fills its slots and stops at the first it does not get.
    let mut plan = all_reduce(Algorithm::Ring, 2, 1);
    plan.programs[0].steps = vec![plan.programs[0].steps[0].clone(); 9];
    plan.programs[1].steps.clear();
    let mut session = open(SessionSpec { deadline, ..spec(plan, 1000) });
    let found = stalls(session.run(1));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].waiting_for, found[0].step), (WaitKind::Credit, 8));
    assert_eq!((found[0].head, found[0].tail), (0, 8));
}

#[test]
fn a_trace_has_every_step_of_every_tile() {
    if !gpu("a_trace_has_every_step_of_every_tile") {
        return;
    }
    for algorithm in all_reducing() {
        let plan = all_reduce(algorithm, 3, 2);
        let steps: usize = plan.programs.iter().map(|p| p.steps.len()).sum();
        let spec = spec(plan, 30_000);
        let mut session = open(spec.clone());
        session.fill(1).unwrap();
        let (timing, trace) = session.run_traced().unwrap();
        let tiles = trace.spans.iter().map(|span| span.tile).max().unwrap() + 1;
        assert!(tiles > 1);
        assert_eq!(trace.spans.len(), steps * tiles as usize, "{algorithm}");
        assert_eq!(trace.dropped, 0);
        assert_eq!(trace.spans[0].start_ns, 0);
        for span in &trace.spans {
            assert!(span.start_ns <= span.ready_ns && span.ready_ns <= span.end_ns, "{span:?}");
            assert!(u128::from(span.end_ns) <= timing.wall.as_nanos(), "{span:?}");
        }
        let sent: u64 = trace.spans.iter().filter(|s| s.to.is_some()).map(|s| s.bytes).sum();
        if algorithm == Algorithm::Ring {
            assert_eq!(sent, timing.moved_bytes.iter().sum::<u64>());
        }
        assert_eq!(session.check(1).unwrap().wrong, 0);

        let mut short = open(SessionSpec { trace_spans: 60, ..spec });
        short.fill(1).unwrap();
        let (_, cut) = short.run_traced().unwrap();
        assert!(cut.spans.len() <= 60 && !cut.spans.is_empty());
        assert_eq!(cut.spans.len() as u64 + cut.dropped, (steps * tiles as usize) as u64, "{algorithm}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_figures() {
    if !gpu("what_does_not_fit_is_refused_with_figures") {
        return;
    }
    let count = devices().unwrap().len();
    let why =
        refusal(SessionSpec { devices: vec![count as u32], ..spec(all_reduce(Algorithm::Ring, 2, 1), 10) });
    assert!(why.contains(&format!("there is no device {count}")), "{why}");
    let why = refusal(spec(all_reduce(Algorithm::Ring, 64, 32), 10));
    assert!(why.contains("64 ranks x 32 channels") && why.contains("2048 blocks"), "{why}");
    let why = refusal(spec(all_reduce(Algorithm::Ring, 2, 1), 1 << 40));
    assert!(why.contains("MiB are free"), "{why}");
    let why = refusal(SessionSpec { slot_bytes: 8, ..spec(all_reduce(Algorithm::Ring, 2, 1), 10) });
    assert!(why.contains("16 bytes"), "{why}");
}

#[test]
fn devices_describe_themselves() {
    if !gpu("devices_describe_themselves") {
        return;
    }
    for device in devices().unwrap() {
        eprintln!("{device:?}");
        assert!(!device.name.is_empty() && device.memory > 1 << 30 && device.multiprocessors > 0);
        assert!(device.capability.0 >= 5 && device.cuda.0 >= 12);
    }
}

/// Where there is no driver, this is the whole back end: refusals that say why.
#[test]
fn without_a_driver_everything_is_refused_in_words() {
    let Err(error) = devices() else { return };
    assert!(matches!(error, ExecError::Refused(_)), "{error}");
    assert!(error.to_string().contains("CUDA driver"), "{error}");
    assert!(refusal(spec(all_reduce(Algorithm::Ring, 2, 1), 10)).contains("CUDA driver"));
}

/// Plans that read peers directly, with their programs freed of each other.
#[test]
fn fused_programs_give_the_cpus_bits() {
    if !gpu("fused_programs_give_the_cpus_bits") {
        return;
    }
    let mut fused = 0;
    for algorithm in [Algorithm::OneShot, Algorithm::TwoShot] {
        for (ranks, channels, slot_bytes) in [(1, 1, 512), (3, 2, 4096), (8, 5, 65_536)] {
            for collective in collectives(ranks).into_iter().filter(|&c| algorithm.supports(c)) {
                let plan = generate(algorithm, collective, ranks, channels).unwrap();
                for (dtype, op) in
                    [(DType::F32, RedOp::Sum), (DType::Bf16, RedOp::Prod), (DType::U8, RedOp::PreMulSum)]
                {
                    for block in [0, 1, 1009, 300_007] {
                        for in_place in
                            [false, true].into_iter().filter(|i| !i || collective.alias().is_some())
                        {
                            let kernel = KernelChoice::Fused;
                            let spec = spec(plan.clone(), block);
                            let spec = SessionSpec { dtype, op, in_place, slot_bytes, kernel, ..spec };
                            if exec::open(Backend::Cuda, spec.clone()).is_ok() {
                                fused += 1;
                                same_on_both(&spec, block + 3, false).unwrap();
                            }
                        }
                    }
                }
            }
        }
    }
    // All but the averages, the in-place one-shot all-reduce and pre-multiplied inputs in place.
    assert!(fused > 500, "{fused}");
}
