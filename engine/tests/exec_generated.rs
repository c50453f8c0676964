//! Every generated plan, executed: exact on each element and the same bits twice.

use std::time::Duration;

use proptest::prelude::*;
use ringlab_engine::exec::{self, Backend, KernelChoice, SessionSpec};
use ringlab_engine::plan::{self, Algorithm};
use ringlab_engine::types::{Collective, DType, Rank, RedOp};

/// A collective and an algorithm that has a schedule for it.
fn schedules(ranks: u32) -> impl Strategy<Value = (Algorithm, Collective)> {
    let pairs = move |root| {
        let all = Algorithm::ALL.into_iter().flat_map(move |a| Collective::all(Rank(root)).map(|c| (a, c)));
        all.filter(|(algorithm, collective)| algorithm.supports(*collective)).collect::<Vec<_>>()
    };
    (0..ranks).prop_flat_map(move |root| prop::sample::select(pairs(root)))
}

fn specs() -> impl Strategy<Value = SessionSpec> {
    // Empty, tiny, odd, not divisible by anything, and large enough for several tiles of small slots.
    let blocks = prop_oneof![0u64..5, Just(255), Just(1009), 100u64..3000, 5_000u64..20_000];
    let sizes = (blocks, prop::sample::select(vec![16usize, 100, 512, 4096]));
    let kinds = (prop::sample::select(DType::ALL.to_vec()), prop::sample::select(RedOp::ALL.to_vec()));
    (1u32..=8, 1u32..=4, sizes, kinds, any::<bool>())
        .prop_flat_map(|(ranks, channels, sizes, kinds, in_place)| {
            (schedules(ranks), Just((ranks, channels, sizes, kinds, in_place)))
        })
        .prop_map(
            |((algorithm, collective), (ranks, channels, (block, slot_bytes), (dtype, op), in_place))| {
                SessionSpec {
                    plan: plan::generate(algorithm, collective, ranks, channels).unwrap(),
                    // Tiles of 16 bytes are for small blocks: thousands of steps show nothing more than dozens.
                    block: if slot_bytes == 16 { block % 300 } else { block },
                    dtype,
                    op,
                    in_place: in_place && collective.alias().is_some(),
                    slot_bytes,
                    deadline: Duration::from_secs(60),
                    devices: vec![],
                    trace_spans: 50_000,
                    kernel: KernelChoice::Auto,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_generated_plan_gives_the_exact_result_twice(spec in specs(), seed in any::<u64>()) {
        let ranks = spec.plan.ranks;
        let mut session = exec::open(Backend::Cpu, spec).unwrap();
        let mut outputs = Vec::new();
        for traced in [false, true] {
            session.fill(seed).unwrap();
            if traced {
                session.run_traced().unwrap();
            } else {
                session.run(1).unwrap();
            }
            let report = session.check(seed).unwrap();
            prop_assert_eq!(report.wrong, 0, "{:?}", report.first_wrong);
            outputs.push((0..ranks).map(|r| session.output(Rank(r)).unwrap()).collect::<Vec<_>>());
        }
        prop_assert!(outputs[0] == outputs[1]);
    }

    #[test]
    fn repeating_out_of_place_changes_nothing(spec in specs(), seed in any::<u64>()) {
        let mut session = exec::open(Backend::Cpu, SessionSpec { in_place: false, ..spec }).unwrap();
        session.fill(seed).unwrap();
        let first = session.run(1).unwrap();
        let more = session.run(5).unwrap();
        prop_assert_eq!(first.moved_bytes, more.moved_bytes);
        let report = session.check(seed).unwrap();
        prop_assert_eq!(report.wrong, 0, "{:?}", report.first_wrong);
    }
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
            in_place: true,
            slot_bytes: 1024,
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
