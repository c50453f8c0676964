use std::sync::Mutex;
use std::time::Duration;

use ringlab_engine::comm::{AsyncState, Bootstrap, CommError, Event, Options, UniqueId};
use ringlab_engine::types::Rank;

use crate::{LONG, in_threads, text};

#[test]
fn sixty_four_ranks_gather_broadcast_and_meet() {
    let all = in_threads(64, |boot| {
        let me = boot.rank().0 as u8;
        boot.barrier(LONG).unwrap();
        let gathered = boot.allgather(&vec![me; me as usize], LONG).unwrap();
        let told = boot.broadcast(Rank(17), &[me; 3], LONG).unwrap();
        boot.goodbye().unwrap();
        (gathered, told)
    });
    for (gathered, told) in all {
        assert_eq!(gathered, (0..64u8).map(|r| vec![r; r as usize]).collect::<Vec<_>>());
        assert_eq!(told, [17; 3]);
    }
}

#[test]
fn messages_of_a_pair_and_tag_come_in_order_whatever_is_received_first() {
    in_threads(3, |boot| {
        let me = boot.rank();
        for to in 0..3 {
            for i in 0..20u8 {
                boot.send(Rank(to), u64::from(i % 2), &[me.0 as u8, i]).unwrap();
            }
        }
        for from in (0..3).rev() {
            for tag in [1u8, 0] {
                for i in (tag..20).step_by(2) {
                    assert_eq!(boot.recv(Rank(from), tag.into(), LONG).unwrap(), [from as u8, i]);
                }
            }
        }
        boot.barrier(LONG).unwrap();
        boot.goodbye().unwrap();
    });
}

#[test]
fn large_messages_pass_and_larger_ones_are_refused() {
    in_threads(4, |boot| {
        let mine = vec![boot.rank().0 as u8; 1 << 20];
        let all = boot.allgather(&mine, LONG).unwrap();
        assert!(
            all.iter()
                .enumerate()
                .all(|(r, part)| part.len() == 1 << 20 && part.iter().all(|b| *b == r as u8))
        );
        assert!(text(boot.allgather(&vec![0; (1 << 20) + 1], LONG)).contains("1048577 bytes"));
        assert!(text(boot.send(Rank(0), 0, &vec![0; (1 << 20) + 1])).contains("at most"));
        boot.barrier(LONG).unwrap();
        boot.goodbye().unwrap();
    });
}

#[test]
fn a_deadline_names_the_ranks_that_did_not_call() {
    in_threads(4, |boot| {
        if boot.rank().0 % 2 == 0 {
            let why = boot.barrier(Duration::from_millis(200)).unwrap_err();
            assert!(matches!(why, CommError::Timeout(_)), "{why}");
            assert!(why.to_string().contains("ranks 1, 3 did not call it"), "{why}");
            assert!(text(boot.recv(Rank(3), 9, Duration::from_millis(50))).contains("rank 3 sent rank"));
            // Nobody may leave before both have been told.
            for odd in [1, 3] {
                boot.send(Rank(odd), 0, b"go").unwrap();
            }
        } else {
            for even in [0, 2] {
                boot.recv(Rank(even), 0, LONG).unwrap();
            }
        }
        assert_eq!(boot.state().failure(), None);
        boot.goodbye().unwrap();
    });
}

#[test]
fn ranks_that_never_come_are_named() {
    let id = UniqueId::create(None).unwrap();
    let errors = Mutex::new(vec![]);
    std::thread::scope(|scope| {
        for rank in [0, 2] {
            let errors = &errors;
            scope.spawn(move || {
                let why = Bootstrap::connect(&id, rank, 4, Duration::from_millis(700)).unwrap_err();
                errors.lock().unwrap().push(why);
            });
        }
    });
    for why in errors.into_inner().unwrap() {
        assert!(matches!(why, CommError::Timeout(_)), "{why}");
        let why = why.to_string();
        assert!(
            why.contains("of 4 ranks") && why.contains(" 1, ") | why.contains("1, 3") && why.contains('3'),
            "{why}"
        );
    }
    // And who comes later learns what became of it, instead of waiting.
    assert!(text(Bootstrap::connect(&id, 1, 4, LONG)).contains("never came"));
}

#[test]
fn abort_reaches_every_rank_and_ends_its_waits() {
    let all = in_threads(4, |boot| {
        if boot.rank() == Rank(2) {
            boot.abort("the loss is not a number");
        }
        let waited = boot.barrier(LONG);
        let received = boot.recv(Rank(0), 5, LONG);
        let failure = boot.state().wait_failure(LONG).unwrap();
        // Dropped without a goodbye only after all have heard.
        (waited, received, failure, boot)
    });
    for (waited, received, failure, _) in &all {
        for why in [waited.clone().unwrap_err(), received.clone().unwrap_err(), failure.error.clone()] {
            assert!(matches!(why, CommError::Aborted(_)), "{why}");
            assert!(why.to_string().contains("rank 2 called abort: the loss is not a number"), "{why}");
        }
        assert_eq!(failure.rank, Some(Rank(2)));
    }
}

#[test]
fn a_goodbye_is_no_failure_but_nobody_waits_for_the_one_who_left() {
    in_threads(3, |boot| {
        boot.barrier(LONG).unwrap();
        if boot.rank() == Rank(0) {
            boot.goodbye().unwrap();
            assert!(text(boot.barrier(LONG)).contains("after goodbye"));
            return;
        }
        let why = boot.barrier(LONG).unwrap_err();
        assert!(matches!(why, CommError::Remote { rank: Rank(0), .. }), "{why}");
        assert!(text(boot.recv(Rank(0), 1, LONG)).contains("goodbye"));
        assert_eq!(boot.state().failure(), None);
        // The root lives on in this process: the rest can still talk.
        let other = Rank(3 - boot.rank().0);
        boot.send(other, 3, b"still here").unwrap();
        assert_eq!(boot.recv(other, 3, LONG).unwrap(), b"still here");
        boot.goodbye().unwrap();
    });
}

#[test]
fn dropping_a_bootstrap_without_a_goodbye_fails_the_others() {
    let failures = in_threads(3, |boot| {
        boot.barrier(LONG).unwrap();
        if boot.rank() == Rank(1) {
            return None;
        }
        let failure = boot.state().wait_failure(LONG);
        boot.goodbye().unwrap();
        failure
    });
    for failure in failures.into_iter().flatten() {
        assert_eq!(failure.rank, Some(Rank(1)));
        assert!(failure.error.to_string().contains("without a goodbye"), "{failure:?}");
    }
}

#[test]
fn different_calls_at_one_place_are_named() {
    in_threads(2, |boot| {
        let why = match boot.rank() {
            Rank(0) => text(boot.barrier(LONG)),
            _ => text(boot.broadcast(Rank(1), b"x", LONG)),
        };
        assert!(why.contains("barrier") && why.contains("broadcast from rank 1"), "{why}");
        boot.barrier(LONG).unwrap();
        boot.goodbye().unwrap();
    });
}

#[test]
fn split_orders_by_key_and_leaves_out_who_has_no_colour() {
    in_threads(7, |boot| {
        let me = boot.rank().0;
        let color = if me == 3 { None } else { Some(me % 2) };
        let new = boot.split(color, -(me as i32), LONG).unwrap();
        match &new {
            None => assert_eq!(me, 3),
            Some(new) => {
                let all = new.allgather(&[me as u8], LONG).unwrap().concat();
                let expected: &[u8] = if me % 2 == 0 { &[6, 4, 2, 0] } else { &[5, 1] };
                assert_eq!(all, expected);
                assert_eq!(all[new.rank().index()], me as u8);
                // A split of a split, to groups of one.
                let alone = new.split(Some(new.rank().0), 0, LONG).unwrap().unwrap();
                assert_eq!((alone.ranks(), alone.rank()), (1, Rank(0)));
                alone.goodbye().unwrap();
                new.barrier(LONG).unwrap();
                new.goodbye().unwrap();
            }
        }
        boot.barrier(LONG).unwrap();
        boot.goodbye().unwrap();
    });
}

#[test]
fn an_aborted_parent_leaves_its_children_alone() {
    in_threads(4, |boot| {
        let new = boot.split(Some(boot.rank().0 / 2), 0, LONG).unwrap().unwrap();
        if boot.rank() == Rank(0) {
            boot.abort("no more need");
        }
        boot.state().wait_failure(LONG).unwrap();
        new.barrier(LONG).unwrap();
        assert_eq!(new.state().failure(), None);
        new.goodbye().unwrap();
        // All have heard of the abort; only now may the root see connections end.
        boot.goodbye().unwrap();
    });
}

#[test]
fn many_communicators_form_at_once_in_one_process() {
    std::thread::scope(|scope| {
        for ranks in 1..9 {
            scope.spawn(move || {
                in_threads(ranks, |boot| {
                    assert_eq!(boot.allgather(&[1], LONG).unwrap().len(), ranks as usize);
                    boot.goodbye().unwrap();
                })
            });
        }
    });
}

#[test]
fn a_watcher_hears_of_a_failure_once() {
    in_threads(2, |boot| {
        let (tell, heard) = std::sync::mpsc::channel();
        boot.watch(move |event| drop(tell.send(event.clone())));
        boot.barrier(LONG).unwrap();
        if boot.rank() == Rank(1) {
            boot.abort("enough");
        }
        let Ok(Event::Failed(failure)) = heard.recv_timeout(LONG) else { panic!("no failure was told") };
        assert_eq!(failure.rank, Some(Rank(1)));
        assert!(heard.recv_timeout(Duration::from_millis(100)).is_err());
        let state: &AsyncState = boot.state();
        assert!(state.has_failed());
        boot.goodbye().unwrap();
    });
}

#[test]
fn silence_is_not_taken_for_slowness_while_heartbeats_are_answered() {
    let id = UniqueId::create(None).unwrap();
    let options = Options { deadline: LONG, slow_after: Duration::from_secs(4) };
    std::thread::scope(|scope| {
        for rank in 0..2 {
            scope.spawn(move || {
                let boot = Bootstrap::connect_with(&id, rank, 2, options).unwrap();
                let (tell, heard) = std::sync::mpsc::channel();
                boot.watch(move |event| drop(tell.send(event.clone())));
                assert!(heard.recv_timeout(Duration::from_secs(5)).is_err());
                boot.barrier(LONG).unwrap();
                boot.goodbye().unwrap();
            });
        }
    });
}
