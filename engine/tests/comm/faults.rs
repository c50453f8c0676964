//! What the peers of a rank that does something wrong on purpose get to know, as far as no device takes part.

use std::time::Duration;

use ringlab_engine::comm::{Bootstrap, CommError, Faults, Operation, agree};
use ringlab_engine::types::{Collective, DType, Rank, RedOp};

use crate::{LONG, in_threads};

fn all_reduce() -> Operation {
    Operation::Collective {
        collective: Collective::AllReduce,
        send: 256,
        recv: 512,
        block: 100,
        dtype: DType::F32,
        op: RedOp::Sum,
        factor: None,
    }
}

/// Two calls of each rank with these faults: what each got for the second.
fn second_call(ranks: u32, faults: &str, deadline: Duration) -> Vec<(Bootstrap, Result<(), CommError>)> {
    let faults: Faults = faults.parse().unwrap();
    in_threads(ranks, |boot| {
        let mine = faults.of_rank(boot.rank());
        let call = |number| {
            let effects = mine.effects(number, &all_reduce(), ranks).unwrap();
            // As a communicator does: late, but not later than the others' failure.
            boot.state().wait_failure(effects.wait);
            agree(&boot, &[effects.operation], deadline)
        };
        assert_eq!(call(0), Ok(()));
        let second = call(1);
        (boot, second)
    })
}

#[test]
fn all_ranks_are_told_which_one_asks_for_something_else() {
    for (fault, said) in [
        ("count=99", "count (collective 1 of the group): 99 on rank 1, 100 on ranks 0, 2"),
        ("dtype=half", "datatype (collective 1 of the group): half on rank 1, float on ranks 0, 2"),
        ("redop=max", "op (collective 1 of the group): max on rank 1, sum on ranks 0, 2"),
    ] {
        for (boot, got) in second_call(3, &format!("{fault} rank=1 op=1"), LONG) {
            let why = got.unwrap_err();
            assert!(matches!(&why, CommError::InvalidUsage(text) if text.contains(said)), "{fault}: {why}");
            // Nothing has broken.
            assert_eq!(boot.state().failure(), None);
            boot.goodbye().unwrap();
        }
    }
}

#[test]
fn a_rank_that_comes_late_is_named_to_those_who_do_not_wait_so_long() {
    let all = second_call(3, "delay=3s rank=2 op=1", Duration::from_millis(300));
    for (boot, got) in &all {
        if boot.rank() == Rank(2) {
            continue;
        }
        let why = got.as_ref().unwrap_err();
        assert!(matches!(why, CommError::Timeout(text) if text.contains("rank 2 did not call it")), "{why}");
    }
    // It is late, not gone: nobody takes it for a failure.
    assert!(all.iter().all(|(boot, _)| boot.state().failure().is_none()));
}

#[test]
fn a_delay_within_the_deadline_changes_nothing() {
    for (boot, got) in second_call(2, "delay=50ms rank=0 op=1", LONG) {
        assert_eq!(got, Ok(()));
        boot.goodbye().unwrap();
    }
}
