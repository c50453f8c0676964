//! Every generated plan, executed: exact on each element and the same bits twice.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use proptest::prelude::*;
use ringlab_engine::cost::SimModel;
use ringlab_engine::data::mix;
use ringlab_engine::exec::{self, Backend, KernelChoice, SessionSpec, cpu};
use ringlab_engine::fifo::{Fifo, Protocol};
use ringlab_engine::plan::{self, Algorithm, SLOTS};
use ringlab_engine::sim::simulate_with;
use ringlab_engine::trace::{Crossing, Span, Trace};
use ringlab_engine::types::{ChannelId, Collective, DType, Factors, Rank, RedOp};
use ringlab_engine::verify::{RefusalKind, WaitingFor, verify, verify_with};

/// A collective and an algorithm that has a schedule for it.
fn schedules(ranks: u32) -> impl Strategy<Value = (Algorithm, Collective)> {
    let pairs = move |root| {
        let all = Algorithm::ALL.into_iter().flat_map(move |a| Collective::all(Rank(root)).map(|c| (a, c)));
        all.filter(|(algorithm, collective)| algorithm.supports(*collective)).collect::<Vec<_>>()
    };
    (0..ranks).prop_flat_map(move |root| prop::sample::select(pairs(root)))
}

/// All steps of chunk and slice that fit together.
const STEPS: [(u32, u32); 10] =
    [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4), (8, 1), (8, 2), (8, 4), (8, 8)];

/// Half of them with chunks of one step.
fn fifos() -> impl Strategy<Value = Fifo> {
    let steps = prop_oneof![Just((1, 1)), prop::sample::select(STEPS.to_vec())];
    (prop::sample::select(Protocol::ALL.to_vec()), steps)
        .prop_map(|(protocol, (chunk_steps, slice_steps))| Fifo { protocol, chunk_steps, slice_steps })
}

/// Whether plans of the algorithm send up to eight chunks before they look for an answer.
fn sends_ahead(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::Chain | Algorithm::HalvingDoubling)
}

/// Ranks, channels and blocks to draw from.
fn specs(
    ranks: RangeInclusive<u32>,
    channels: RangeInclusive<u32>,
    largest: u64,
) -> impl Strategy<Value = SessionSpec> {
    // Empty, tiny, odd, not divisible by anything, and large enough for several tiles of small slots.
    let blocks = prop_oneof![0u64..5, Just(255), Just(1009), 100u64..3000, largest / 4..largest];
    let sizes = (blocks, prop::sample::select(vec![16usize, 100, 512, 4096]));
    let kinds = (prop::sample::select(DType::ALL.to_vec()), prop::sample::select(RedOp::ALL.to_vec()));
    (ranks, channels, sizes, fifos(), kinds, any::<bool>())
        .prop_flat_map(|(ranks, channels, sizes, fifo, kinds, in_place)| {
            (schedules(ranks), Just((ranks, channels, sizes, fifo, kinds, in_place)))
        })
        .prop_map(
            |(
                (algorithm, collective),
                (ranks, channels, (block, slot_bytes), fifo, (dtype, op), in_place),
            )| {
                let plan = plan::generate(algorithm, collective, ranks, channels).unwrap();
                let fits = verify_with(&plan, false, fifo).is_ok();
                SessionSpec {
                    plan,
                    // Tiles of 16 bytes are for small blocks: thousands of steps show nothing more than dozens.
                    block: if slot_bytes == 16 { block % 300 } else { block },
                    dtype,
                    op,
                    factors: Factors::Parity,
                    in_place: in_place && collective.alias().is_some(),
                    slot_bytes,
                    fifo: if fits { fifo } else { Fifo::of(fifo.protocol) },
                    deadline: Duration::from_secs(60),
                    devices: vec![],
                    trace_spans: 200_000,
                    kernel: KernelChoice::Auto,
                }
            },
        )
}

/// By rank, channel, tile and step: bytes of payload and on the wire, and the steps of its connections.
fn bytes(trace: &Trace) -> BTreeMap<(Rank, ChannelId, u64, u32), (u64, Crossing)> {
    let timeless = |s: &Span| Crossing { credit_ns: None, ..s.crossing.clone() };
    trace.spans.iter().map(|s| ((s.rank, s.channel, s.tile, s.step), (s.bytes, timeless(s)))).collect()
}

/// Verified by `open`, executed traced and not: exact both times, with the same bits, step by step the bytes of the simulation, and
/// nothing in a buffer that the collective does not give.
fn runs_exactly(spec: &SessionSpec, seed: u64) -> Result<(), TestCaseError> {
    let (ranks, collective) = (spec.plan.ranks, spec.plan.collective);
    let mut session = exec::open(Backend::Cpu, spec.clone()).unwrap();
    let mut outputs = Vec::new();
    for traced in [false, true] {
        session.fill(seed).unwrap();
        if traced {
            let (_, trace) = session.run_traced().unwrap();
            let model = SimModel::default();
            let SessionSpec { plan, block, dtype, slot_bytes, fifo, .. } = spec;
            let simulated = simulate_with(plan, &model, *block, *dtype, *slot_bytes, *fifo).unwrap();
            if trace.dropped + simulated.dropped == 0 {
                prop_assert!(bytes(&trace) == bytes(&simulated), "the simulation moves other bytes");
            }
        } else {
            session.run(1).unwrap();
        }
        let report = session.check(seed).unwrap();
        prop_assert_eq!(report.wrong, 0, "{} {} {:?}", spec.plan.name, spec.fifo, report.first_wrong);
        outputs.push((0..ranks).map(|r| session.output(Rank(r)).unwrap()).collect::<Vec<_>>());
    }
    prop_assert!(outputs[0] == outputs[1]);
    let without = (0..ranks).filter(|r| !spec.in_place && !collective.has_output(Rank(*r)));
    for rank in without {
        prop_assert!(outputs[0][rank as usize].iter().all(|byte| *byte == cpu::POISON), "rank {}", rank);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_generated_plan_gives_the_exact_result_twice(spec in specs(1..=8, 1..=4, 20_000), seed in any::<u64>()) {
        runs_exactly(&spec, seed)?;
    }

    #[test]
    fn repeating_out_of_place_changes_nothing(spec in specs(1..=8, 1..=4, 20_000), seed in any::<u64>()) {
        let mut session = exec::open(Backend::Cpu, SessionSpec { in_place: false, ..spec }).unwrap();
        session.fill(seed).unwrap();
        let first = session.run(1).unwrap();
        let more = session.run(5).unwrap();
        prop_assert_eq!(first.moved_bytes, more.moved_bytes);
        let report = session.check(seed).unwrap();
        prop_assert_eq!(report.wrong, 0, "{:?}", report.first_wrong);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn so_does_a_plan_of_many_ranks(spec in specs(9..=64, 1..=3, 2_000), seed in any::<u64>()) {
        runs_exactly(&spec, seed)?;
    }
}

/// Every collective by every algorithm that has it, of so many ranks over one to four channels, in place and out of place. Counts are
/// odd: one, fewer than ranks, and some that leave the last chunks short or empty.
fn every_plan_is_exact_at_odd_counts(ranks: RangeInclusive<u32>) {
    let mut nth = 0;
    for (ranks, channels) in ranks.flat_map(|ranks| (1..=4).map(move |channels| (ranks, channels))) {
        for collective in Collective::all(Rank(ranks / 2)) {
            for algorithm in Algorithm::ALL.into_iter().filter(|a| a.supports(collective)) {
                let plan = plan::generate(algorithm, collective, ranks, channels).unwrap();
                for in_place in [false, true].into_iter().filter(|i| !i || collective.alias().is_some()) {
                    nth += 1;
                    // Each kind meets each other in some plan, the same in every run.
                    let pick = |of: usize, salt: u64| (mix(8 * nth + salt) % of as u64) as usize;
                    let spec = SessionSpec {
                        plan: plan.clone(),
                        block: [1, 5, 33, 131, 257][pick(5, 0)],
                        dtype: DType::ALL[pick(12, 1)],
                        op: RedOp::ALL[pick(6, 2)],
                        factors: Factors::Parity,
                        in_place,
                        slot_bytes: 64,
                        fifo: Fifo::of(Protocol::ALL[pick(3, 3)]),
                        deadline: Duration::from_secs(60),
                        devices: vec![],
                        trace_spans: 0,
                        kernel: KernelChoice::Auto,
                    };
                    let what = (algorithm, collective, ranks, channels, spec.block, spec.dtype, spec.op);
                    let mut session = exec::open(Backend::Cpu, spec).unwrap();
                    session.fill(nth).unwrap();
                    session.run(1).unwrap();
                    let report = session.check(nth).unwrap();
                    assert_eq!((report.wrong, report.first_wrong), (0, None), "{what:?} in place {in_place}");
                }
            }
        }
    }
}

#[test]
fn every_plan_of_up_to_8_ranks_is_exact_at_odd_counts() {
    every_plan_is_exact_at_odd_counts(1..=8);
}

#[test]
fn every_plan_of_9_to_12_ranks_is_exact_at_odd_counts() {
    every_plan_is_exact_at_odd_counts(9..=12);
}

#[test]
fn every_plan_of_13_to_16_ranks_is_exact_at_odd_counts() {
    every_plan_is_exact_at_odd_counts(13..=16);
}

/// A rank's figure is what it sent or read from others, so the sum is what went over all edges of the proof.
#[test]
fn moved_bytes_are_those_of_the_proof() {
    for ranks in [2, 3, 5, 8] {
        for collective in Collective::all(Rank(ranks - 1)) {
            for algorithm in Algorithm::ALL.into_iter().filter(|a| a.supports(collective)) {
                let plan = plan::generate(algorithm, collective, ranks, 2).unwrap();
                let block = u64::from(plan.chunks * plan.channels * 8);
                let sent = verify(&plan, false).unwrap().edges.into_iter().map(|edge| edge.sent);
                let want: u64 = sent.map(|sent| block * 4 * sent.num / sent.den).sum();
                let spec = SessionSpec {
                    plan,
                    block,
                    dtype: DType::F32,
                    op: RedOp::Sum,
                    factors: Factors::Parity,
                    in_place: false,
                    slot_bytes: 64,
                    fifo: Fifo::default(),
                    deadline: Duration::from_secs(60),
                    devices: vec![],
                    trace_spans: 0,
                    kernel: KernelChoice::Auto,
                };
                let mut session = exec::open(Backend::Cpu, spec).unwrap();
                session.fill(1).unwrap();
                let moved = session.run(1).unwrap().moved_bytes;
                assert_eq!(moved.iter().sum::<u64>(), want, "{algorithm} {collective:?}");
            }
        }
    }
}

/// Two chunks on a connection are enough but for plans that send ahead; whatever is refused lacks credits. One chunk is not enough where
/// ranks in a circle have to send before they receive.
#[test]
fn plans_that_chunks_leave_no_room_for_are_refused() {
    let mut refused = 0;
    for ranks in 1..=9 {
        for collective in Collective::all(Rank(ranks - 1)) {
            for algorithm in Algorithm::ALL.into_iter().filter(|a| a.supports(collective)) {
                let plan = plan::generate(algorithm, collective, ranks, 1).unwrap();
                for (chunk_steps, slice_steps) in STEPS {
                    let fifo = Fifo { protocol: Protocol::Simple, chunk_steps, slice_steps };
                    let in_place = collective.alias().is_some();
                    let Err(refusal) = verify_with(&plan, in_place, fifo) else { continue };
                    refused += 1;
                    let RefusalKind::Deadlock { cycle } = &refusal.kind else { panic!("{refusal}") };
                    assert!(
                        cycle.iter().any(|waiting| matches!(waiting.on, WaitingFor::Slot(_))),
                        "{refusal}"
                    );
                    let known = chunk_steps == SLOTS || (chunk_steps > 1 && sends_ahead(algorithm));
                    assert!(known, "{} {fifo}: {refusal}", plan.name);
                }
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

/// Messages of many tiles wrap every FIFO many times.
#[test]
fn a_long_message_through_small_slots_is_exact() {
    for algorithm in Algorithm::ALL.into_iter().filter(|a| a.supports(Collective::AllReduce)) {
        let spec = SessionSpec {
            plan: plan::generate(algorithm, Collective::AllReduce, 4, 2).unwrap(),
            block: 1_000_003,
            dtype: DType::Bf16,
            op: RedOp::Avg,
            factors: Factors::Parity,
            in_place: true,
            slot_bytes: 1024,
            fifo: Fifo::default(),
            deadline: Duration::from_secs(60),
            devices: vec![],
            trace_spans: 0,
            kernel: KernelChoice::Auto,
        };
        let mut session = exec::open(Backend::Cpu, spec).unwrap();
        session.fill(11).unwrap();
        session.run(1).unwrap();
        let report = session.check(11).unwrap();
        assert_eq!((report.wrong, report.first_wrong), (0, None), "{algorithm}");
    }
}
