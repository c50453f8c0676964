//! Plans that stay as they were written, whole.

use ringlab_engine::exec::optimise::Freedom;
use ringlab_engine::exec::program::compile;
use ringlab_engine::plan::Plan;

use super::{optimised, plan};

fn stays(plan: &Plan, tiles: u64, in_place: bool) -> bool {
    let (programs, _) = compile(plan).unwrap();
    let (same, freedom) = optimised(plan, tiles, in_place);
    let stays = format!("{programs:?}") == format!("{same:?}");
    assert!(!stays || freedom == Freedom::Bound);
    stays
}

const TWO: &str = "ranks 2\nchannels 1\nchunks 1\nscratch s 1";

#[test]
fn signals_without_data_are_there_to_be_measured() {
    let plan = plan(TWO, "rank 0:\n  signal to 1\nrank 1:\n  wait from 0\n");
    assert!(stays(&plan, 1, false));
}

#[test]
fn a_deadlock_stays_one() {
    let text = |more: &str| {
        format!(
            "rank 0:\n  copy input[0] into output[0]\n  signal to 1\n  wait from 1\n\
             rank 1:\n  copy input[0] into output[0]\n{more}  wait from 0\n  signal to 0\n"
        )
    };
    assert!(!stays(&plan(TWO, &text("")), 1, false));
    assert!(stays(&plan(TWO, &text("  wait from 0\n")), 1, false), "a wait too many");
    let crossed = "every rank:\n  copy input[0] into output[0]\n  wait from 1-r\n  signal to 1-r\n";
    assert!(stays(&plan(TWO, crossed), 1, false), "both wait first");
    let full = "rank 0:\n  copy input[0] into output[0]\n  signal to 1\n  for k in 0..9:\n    send input[0] to 1\n  signal to 1\n\
                rank 1:\n  wait from 0\n  wait from 0\n  for k in 0..9:\n    recv from 0 into output[0]\n";
    assert!(stays(&plan(TWO, full), 1, false), "eight slots for nine");
    assert!(!stays(&plan(TWO, &full.replace("0..9", "0..8")), 1, false));
}

#[test]
fn signals_nobody_takes_stay() {
    let text =
        "rank 0:\n  copy input[0] into output[0]\n  signal to 1\n  signal to 1\nrank 1:\n  wait from 0\n";
    assert!(stays(&plan(TWO, text), 1, false));
}

#[test]
fn a_race_stays_one() {
    let write_and_read = |order: (&str, &str)| {
        let (signal, wait) = order;
        format!(
            "rank 0:\n  reduce input[0], input[0] into s[0]\n{signal}rank 1:\n{wait}  copy s[0] of 0 into output[0]\n  \
             signal to 0\n"
        )
    };
    let ordered = write_and_read(("  signal to 1\n  wait from 1\n", "  wait from 0\n"));
    assert!(!stays(&plan(TWO, &ordered), 1, false));
    let raced = write_and_read(("  wait from 1\n", ""));
    assert!(stays(&plan(TWO, &raced), 1, false), "no order");
    // The next tile's write comes when the last one may still be read.
    let once = ordered.replace("  wait from 1\n", "").replace("  signal to 0\n", "");
    assert!(!stays(&plan(TWO, &once), 1, false));
    assert!(stays(&plan(TWO, &once), 2, false), "tiles race");
}

#[test]
fn writes_that_race_stay() {
    let text =
        "every rank:\n  signal to 1-r\n  wait from 1-r\n  reduce input[0], input[0] of 1-r into output[0]\n";
    let plan = plan(TWO, text);
    assert!(!stays(&plan, 1, false));
    assert!(stays(&plan, 1, true), "in place the peer's output is what is read");
}

#[test]
fn one_channel_that_races_keeps_them_all() {
    let text = "every rank:\n  signal to 1-r\n  wait from 1-r\n  copy input[0] into output[0]\n";
    let two = "ranks 2\nchannels 2\nchunks 1\nscratch s 1";
    assert!(!stays(&plan(two, text), 1, false));
    let raced = format!("{text}rank 0 channel 1:\n  reduce output[0] of 1, input[0] into s[0]\n");
    assert!(stays(&plan(two, &raced), 1, false));
}
