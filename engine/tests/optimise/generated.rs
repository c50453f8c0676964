//! All generated plans.

use ringlab_engine::data::mix;
use ringlab_engine::exec::optimise::Freedom;
use ringlab_engine::exec::program::compile;
use ringlab_engine::plan::{Algorithm, Plan, generate};
use ringlab_engine::types::{Collective, Rank};

use super::{machine, optimised, place, shown};

fn plans(ranks: u32, channels: u32) -> impl Iterator<Item = Plan> {
    let root = Rank(ranks / 2);
    let plans = Algorithm::ALL.into_iter().flat_map(move |a| Collective::all(root).map(|c| (a, c)));
    plans.filter_map(move |(a, c)| generate(a, c, ranks, channels).ok())
}

#[test]
fn those_of_up_to_9_ranks_leave_what_the_plan_leaves() {
    they_leave_what_the_plan_leaves(1..=9);
}

#[test]
fn those_of_10_to_13_ranks_leave_what_the_plan_leaves() {
    they_leave_what_the_plan_leaves(10..=13);
}

#[test]
fn those_of_14_to_16_ranks_leave_what_the_plan_leaves() {
    they_leave_what_the_plan_leaves(14..=16);
}

fn they_leave_what_the_plan_leaves(ranks: std::ops::RangeInclusive<u32>) {
    let mut state = 7u64;
    let mut below = |n: usize| {
        state = mix(state);
        (state % n as u64) as usize
    };
    for (ranks, channels) in ranks.flat_map(|ranks| (1..=4).map(move |channels| (ranks, channels))) {
        for plan in plans(ranks, channels) {
            for in_place in [false, true] {
                if in_place && plan.collective.alias().is_none() {
                    continue;
                }
                for tiles in 1..=3 {
                    let (plain, _) = compile(&plan).unwrap();
                    let (optimised, _) = optimised(&plan, tiles, in_place);
                    let turns = if ranks < 9 { 5 } else { 2 };
                    let places = place(&plan, in_place);
                    machine::same((&plain, &optimised), tiles, &places, turns, &mut below).unwrap_or_else(
                        |why| panic!("{} of {ranks} in place {in_place}, {tiles} tiles: {why}", plan.name),
                    );
                }
            }
        }
    }
}

#[test]
fn direct_plans_are_free() {
    for ranks in 1..=16 {
        for plan in plans(ranks, 2) {
            let direct = plan.name.starts_with("one_shot") || plan.name.starts_with("two_shot");
            for in_place in [false, true] {
                if !direct || (in_place && plan.collective.alias().is_none()) {
                    continue;
                }
                // In place, nobody may write its output before all have read their inputs in whole.
                let waits = in_place && plan.name == "one_shot_all_reduce" && ranks > 1;
                let freedom = if waits { Freedom::Bound } else { Freedom::Free };
                for tiles in [1, 2] {
                    let found = optimised(&plan, tiles, in_place).1;
                    assert_eq!(found, freedom, "{} of {ranks} in place {in_place}", plan.name);
                }
            }
        }
    }
}

#[test]
fn plans_of_many_ranks_are_free() {
    let plan = generate(Algorithm::TwoShot, Collective::AllReduce, 64, 2).unwrap();
    assert_eq!(optimised(&plan, 4, true).1, Freedom::Free);
}

#[test]
fn a_barrier_of_many_ranks_that_orders_nothing_goes() {
    let plan = generate(Algorithm::OneShot, Collective::AllReduce, 64, 1).unwrap();
    let (programs, _) = optimised(&plan, 4, true);
    // A reduction, one barrier, and a copy: the barrier before them went.
    assert!(programs.iter().all(|program| program.steps.len() == 2 * 63 + 2));
}

#[test]
fn two_shot_is_one_reduction_with_a_destination_a_rank() {
    for in_place in [false, true] {
        let plan = generate(Algorithm::TwoShot, Collective::AllReduce, 4, 1).unwrap();
        let (programs, _) = optimised(&plan, 3, in_place);
        assert_eq!(programs.iter().map(shown).collect::<Vec<_>>(), ["reduce:4"; 4]);
        assert_eq!(programs[2].steps[0].carried, 3);
        // Behind a barrier of three signals and waits.
        assert_eq!(programs[2].steps[0].step, 6);
    }
}

#[test]
fn scratch_that_is_only_copied_is_not_written() {
    let plan = generate(Algorithm::OneShot, Collective::AllReduce, 4, 1).unwrap();
    let (programs, _) = optimised(&plan, 3, false);
    assert_eq!(programs.iter().map(shown).collect::<Vec<_>>(), ["reduce:1"; 4]);
}

#[test]
fn in_place_one_shot_keeps_the_barrier_behind_its_reads() {
    let plan = generate(Algorithm::OneShot, Collective::AllReduce, 3, 1).unwrap();
    let (programs, _) = optimised(&plan, 3, true);
    assert_eq!(shown(&programs[0]), "reduce:1 >1 >2 <1 <2 copy:1");
}

#[test]
fn in_place_a_ranks_own_block_is_not_copied() {
    let plan = generate(Algorithm::OneShot, Collective::AllGather, 4, 1).unwrap();
    assert_eq!(shown(&optimised(&plan, 1, false).0[0]), "copy:1 copy:1 copy:1 copy:1");
    assert_eq!(shown(&optimised(&plan, 1, true).0[0]), "copy:1 copy:1 copy:1");
}

#[test]
fn rings_and_trees_stay_as_they_are() {
    for plan in plans(5, 2).filter(|plan| plan.name.starts_with("ring") || plan.name.starts_with("tree")) {
        let (plain, _) = compile(&plan).unwrap();
        let (optimised, freedom) = optimised(&plan, 3, false);
        assert_eq!(format!("{plain:?}"), format!("{optimised:?}"), "{}", plan.name);
        assert_eq!(freedom, Freedom::Bound);
    }
}
