//! The specialised kernel against the interpreter, bit for bit, and against the exact results; CUDA graphs against single launches.
//!
//! Without a GPU these tests say `skipped`; with RINGLAB_REQUIRE_CUDA=1 they fail instead.
#![cfg(feature = "cuda")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::gpu;
use ringlab_engine::data::mix;
use ringlab_engine::exec::cuda::devices;
use ringlab_engine::exec::{self, Backend, ExecError, KernelChoice, Session, SessionSpec, Timing};
use ringlab_engine::fifo::Fifo;
use ringlab_engine::plan::{Algorithm, Plan, generate};
use ringlab_engine::trace::Origin;
use ringlab_engine::types::{Collective, DType, Factors, Rank, RedOp};

fn spec(plan: Plan, block: u64) -> SessionSpec {
    SessionSpec {
        plan,
        block,
        dtype: DType::F32,
        op: RedOp::Sum,
        factors: Factors::Parity,
        in_place: false,
        slot_bytes: 64 << 10,
        fifo: Fifo::default(),
        deadline: Duration::from_secs(20),
        devices: vec![0],
        trace_spans: 100_000,
        kernel: KernelChoice::Specialised,
    }
}

fn open(spec: &SessionSpec, kernel: KernelChoice) -> Box<dyn Session> {
    exec::open(Backend::Cuda, SessionSpec { kernel, ..spec.clone() }).unwrap()
}

/// Every direct plan of so many ranks.
fn plans(ranks: u32, channels: u32) -> Vec<Plan> {
    let collectives = Collective::all(Rank(ranks / 2));
    let all = [Algorithm::OneShot, Algorithm::TwoShot].into_iter().flat_map(|algorithm| {
        let served = collectives.into_iter().filter(move |&c| algorithm.supports(c));
        served.map(move |collective| generate(algorithm, collective, ranks, channels).unwrap())
    });
    all.collect()
}

fn places(plan: &Plan) -> &'static [bool] {
    if plan.collective.alias().is_some() { &[false, true] } else { &[false] }
}

fn outputs(session: &mut dyn Session, ranks: u32) -> Vec<Vec<u8>> {
    (0..ranks).map(|rank| session.output(Rank(rank)).unwrap()).collect()
}

/// Both kernels must report the same and leave the same bits, which must be right.
fn same_from_both(spec: &SessionSpec, seed: u64) {
    let ran = |kernel| {
        let mut session = open(spec, kernel);
        session.fill(seed).unwrap();
        let Timing { moved_bytes, iterations, .. } = session.run(1).unwrap();
        assert_eq!(iterations.len(), 1);
        let report = session.check(seed).unwrap();
        let what = format!(
            "{} of {} ranks, {} x {} {}, in place {}, {kernel:?}",
            spec.plan.name, spec.plan.ranks, spec.block, spec.dtype, spec.op, spec.in_place
        );
        assert_eq!((report.wrong, report.first_wrong), (0, None), "{what}");
        (outputs(session.as_mut(), spec.plan.ranks), moved_bytes, what)
    };
    let (specialised, planned, what) = ran(KernelChoice::Specialised);
    let (interpreted, counted, _) = ran(KernelChoice::Interpreter);
    assert!(specialised == interpreted, "{what}: other bits");
    assert_eq!(planned, counted, "{what}: bytes moved");
}

#[test]
fn every_collective_number_of_ranks_and_size_gives_the_interpreters_bits() {
    if !gpu("every_collective_number_of_ranks_and_size_gives_the_interpreters_bits") {
        return;
    }
    for ranks in [1, 2, 3, 4, 5, 8] {
        for plan in plans(ranks, 3) {
            for &in_place in places(&plan) {
                for block in [0, 1, 7, 1009, (1 << 20) + 3] {
                    same_from_both(&SessionSpec { in_place, ..spec(plan.clone(), block) }, block + 1);
                }
            }
        }
    }
}

#[test]
fn every_type_and_reduction_gives_the_interpreters_bits() {
    if !gpu("every_type_and_reduction_gives_the_interpreters_bits") {
        return;
    }
    for plan in plans(3, 2) {
        // There is no direct kernel for pre-multiplied sums.
        let all = RedOp::ALL.into_iter().filter(|&op| op != RedOp::PreMulSum).collect();
        let ops: Vec<RedOp> = if plan.collective.reduces() { all } else { vec![RedOp::Sum, RedOp::Avg] };
        for dtype in DType::ALL {
            for &op in &ops {
                for &in_place in places(&plan) {
                    for block in [7, 4096, 10_007] {
                        same_from_both(&SessionSpec { dtype, op, in_place, ..spec(plan.clone(), block) }, 5);
                    }
                }
            }
        }
    }
}

/// More ranks than the kernel is unrolled for.
#[test]
fn many_ranks_give_the_interpreters_bits() {
    if !gpu("many_ranks_give_the_interpreters_bits") {
        return;
    }
    for ranks in [9, 16, 33] {
        for plan in plans(ranks, 1) {
            for &in_place in places(&plan) {
                for (dtype, block) in [(DType::F32, 1000), (DType::F16, 1009), (DType::Bf16, 70_001)] {
                    same_from_both(&SessionSpec { dtype, in_place, ..spec(plan.clone(), block) }, 3);
                }
            }
        }
    }
}

/// Sums that round differently in another order; finite, of mixed size and sign.
fn rounding_input(dtype: DType, rank: u32, elements: u64) -> Vec<u8> {
    let bits = |i: u64| mix(mix(u64::from(rank) + 1).wrapping_add(i));
    let element = |i: u64| {
        let value = bits(i);
        let all = value.to_le_bytes();
        match dtype {
            // The exponent's middle bits vary, its extremes do not occur.
            DType::F32 => ((value as u32 & 0x87FF_FFFF) | 0x3800_0000).to_le_bytes().to_vec(),
            DType::F16 => ((value as u16 & 0x8FFF) | 0x3000).to_le_bytes().to_vec(),
            DType::Bf16 => ((value as u16 & 0x81FF) | 0x3E00).to_le_bytes().to_vec(),
            _ => all[..dtype.size()].to_vec(),
        }
    };
    (0..elements).flat_map(element).collect()
}

#[test]
fn sums_that_round_have_the_bits_of_the_interpreter_and_of_the_cpu() {
    if !gpu("sums_that_round_have_the_bits_of_the_interpreter_and_of_the_cpu") {
        return;
    }
    let mut orders_differ = false;
    for ranks in [2, 3, 4, 5, 8, 11] {
        for plan in plans(ranks, 2).into_iter().filter(|plan| plan.collective.reduces()) {
            for dtype in [DType::F32, DType::F16, DType::Bf16] {
                for &in_place in places(&plan) {
                    let block = 4099;
                    let spec = SessionSpec { dtype, in_place, ..spec(plan.clone(), block) };
                    let elements = block * u64::from(plan.collective.input_blocks(ranks));
                    let bits_of = |backend, kernel, turned: u32| {
                        let mut session =
                            exec::open(backend, SessionSpec { kernel, ..spec.clone() }).unwrap();
                        session.fill(1).unwrap();
                        for rank in 0..ranks {
                            let input = rounding_input(dtype, (rank + turned) % ranks, elements);
                            session.write_input(Rank(rank), &input).unwrap();
                        }
                        session.run(1).unwrap();
                        outputs(session.as_mut(), ranks)
                    };
                    let specialised = bits_of(Backend::Cuda, KernelChoice::Specialised, 0);
                    let what = format!("{} of {ranks} ranks, {dtype}, in place {in_place}", plan.name);
                    assert!(
                        specialised == bits_of(Backend::Cuda, KernelChoice::Interpreter, 0),
                        "interpreter: {what}"
                    );
                    assert!(specialised == bits_of(Backend::Cpu, KernelChoice::Auto, 0), "CPU: {what}");
                    orders_differ |= specialised != bits_of(Backend::Cuda, KernelChoice::Specialised, 1);
                }
            }
        }
    }
    assert!(orders_differ, "these inputs tell one order of a sum from another");
}

#[test]
fn a_graph_replays_both_kernels_as_often_as_asked() {
    if !gpu("a_graph_replays_both_kernels_as_often_as_asked") {
        return;
    }
    for (algorithm, kernel) in [
        (Algorithm::TwoShot, KernelChoice::Specialised),
        (Algorithm::TwoShot, KernelChoice::Interpreter),
        (Algorithm::Ring, KernelChoice::Interpreter),
    ] {
        for op in [RedOp::Sum, RedOp::Avg] {
            let plan = generate(algorithm, Collective::AllReduce, 4, 4).unwrap();
            let mut session = open(&SessionSpec { op, ..spec(plan.clone(), 100_003) }, kernel);
            session.fill(1).unwrap();
            for (iters, replays) in [(1, 1), (7, 30), (20, 3)] {
                let timing = session.replay(iters, replays).unwrap();
                assert_eq!(timing.iterations.len() as u32, iters * replays);
                assert!(timing.iterations.iter().sum::<Duration>() <= timing.wall, "{timing:?}");
                // Single launches in between: both go on from the same counters.
                session.run(2).unwrap();
            }
            let report = session.check(1).unwrap();
            assert_eq!((report.wrong, report.first_wrong), (0, None), "{algorithm} {op}");

            // In place every replay adds up: two of three executions are six.
            let in_place = SessionSpec { dtype: DType::I64, in_place: true, ..spec(plan, 1000) };
            let after = |executions: &dyn Fn(&mut dyn Session)| {
                let mut session = open(&in_place, kernel);
                session.fill(2).unwrap();
                executions(session.as_mut());
                outputs(session.as_mut(), 4)
            };
            let replayed = after(&|session| drop(session.replay(3, 2).unwrap()));
            let launched = after(&|session| drop(session.run(6).unwrap()));
            assert!(replayed == launched, "{algorithm}");
        }
    }
}

/// One thread records graphs all the time while another makes sessions, which allocates, sets and frees memory.
#[test]
fn a_graph_is_recorded_while_another_thread_makes_sessions() {
    if !gpu("a_graph_is_recorded_while_another_thread_makes_sessions") {
        return;
    }
    let plan = generate(Algorithm::TwoShot, Collective::AllReduce, 2, 2).unwrap();
    let spec = spec(plan, 1000);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = open(&spec, KernelChoice::Auto);
            session.fill(1).unwrap();
            // Bounded, should the other thread fail.
            for _ in 0..100_000 {
                session.replay(50, 1).unwrap();
                if ended.load(Ordering::Relaxed) {
                    break;
                }
            }
            assert_eq!(session.check(1).unwrap().wrong, 0);
        });
        for seed in 0..100 {
            let mut session = open(&spec, KernelChoice::Interpreter);
            session.fill(seed).unwrap();
            session.run(1).unwrap();
            assert_eq!(session.check(seed).unwrap().wrong, 0);
        }
        ended.store(true, Ordering::Relaxed);
    });
}

/// A replay whose executions are stopped reports it, and the session is exact again.
#[test]
fn a_replay_that_is_stopped_says_so() {
    if !gpu("a_replay_that_is_stopped_says_so") {
        return;
    }
    let mut plan = generate(Algorithm::Ring, Collective::AllReduce, 2, 2).unwrap();
    for program in &mut plan.programs {
        program.steps.swap(0, 1);
    }
    let deadline = Duration::from_millis(200);
    let mut session = open(&SessionSpec { deadline, ..spec(plan, 1000) }, KernelChoice::Auto);
    for _ in 0..2 {
        session.fill(1).unwrap();
        let stopped = session.replay(3, 3);
        assert!(matches!(stopped, Err(ExecError::Stalled { .. })), "{stopped:?}");
    }
}

#[test]
fn the_report_says_which_kernel_ran_and_a_trace_which_was_traced() {
    if !gpu("the_report_says_which_kernel_ran_and_a_trace_which_was_traced") {
        return;
    }
    let two_shot = generate(Algorithm::TwoShot, Collective::AllReduce, 2, 2).unwrap();
    let ring = generate(Algorithm::Ring, Collective::AllReduce, 2, 2).unwrap();
    let kernel = |plan: &Plan, kernel| open(&spec(plan.clone(), 10), kernel).describe().kernel;
    assert_eq!(kernel(&two_shot, KernelChoice::Auto), "direct");
    assert_eq!(kernel(&two_shot, KernelChoice::Specialised), "direct");
    assert_eq!(kernel(&two_shot, KernelChoice::Interpreter), "interpreter");
    assert_eq!(kernel(&ring, KernelChoice::Auto), "interpreter");
    match exec::open(Backend::Cuda, spec(ring, 10)) {
        Err(ExecError::Refused(why)) => assert!(why.contains("no specialised kernel"), "{why}"),
        other => panic!("{:?}", other.map(|session| session.describe())),
    }

    let mut session = open(&spec(two_shot, 1000), KernelChoice::Auto);
    session.fill(1).unwrap();
    let (_, trace) = session.run_traced().unwrap();
    assert!(!trace.spans.is_empty());
    let Origin::Measured { hardware, .. } = trace.origin else { panic!() };
    assert!(
        hardware.contains("traced with the plan's own steps; untraced executions use the direct"),
        "{hardware}"
    );
    assert_eq!(session.check(1).unwrap().wrong, 0);
}

/// More than 2^31 elements, in the two-byte types that fit a test's memory.
#[test]
fn more_than_two_to_the_31_elements_are_all_right() {
    if !gpu("more_than_two_to_the_31_elements_are_all_right") {
        return;
    }
    let block = (1 << 31) + 11;
    let need = 2 * 2 * 2 * block;
    if devices().unwrap()[0].memory < need + (4 << 30) {
        eprintln!("skipped: more_than_two_to_the_31_elements_are_all_right: {need} bytes do not fit");
        return;
    }
    let plan = generate(Algorithm::TwoShot, Collective::AllReduce, 2, 16).unwrap();
    let mut session =
        open(&SessionSpec { dtype: DType::Bf16, ..spec(plan, block) }, KernelChoice::Specialised);
    session.fill(1).unwrap();
    session.run(1).unwrap();
    let report = session.check(1).unwrap();
    assert_eq!((report.wrong, report.elements), (0, 4 * block), "{:?}", report.first_wrong);
}
