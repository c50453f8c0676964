//! Which signals go.

use ringlab_engine::exec::optimise::Freedom;

use super::{left, plan};

const THREE: &str = "ranks 3\nchannels 1\nchunks 1\nscratch s 1";

#[test]
fn what_the_launch_orders_needs_no_signals() {
    let plan = plan(
        "ranks 2\nchannels 1\nchunks 1",
        "every rank:\n  let peer = (r+1) % 2\n  signal to peer\n  wait from peer\n  \
         reduce input[0] of 0, input[0] of 1 into output[0]\n  signal to peer\n  wait from peer\n",
    );
    assert_eq!(left(&plan, 3, false), ["reduce:1", "reduce:1"]);
    // In place, what peers read is overwritten: these programs race and stay.
    let (programs, _) = ringlab_engine::exec::program::compile(&plan).unwrap();
    let (same, _) = super::optimised(&plan, 3, true);
    assert_eq!(format!("{programs:?}"), format!("{same:?}"));
}

#[test]
fn scratch_of_ones_own_leaves_tiles_in_order() {
    let plan = plan(
        THREE,
        "every rank:\n  reduce input[0], input[0] into s[0]\n  reduce s[0], input[0] into output[0]\n",
    );
    assert_eq!(left(&plan, 2, false), ["reduce:1 reduce:1"; 3]);
    assert_eq!(super::optimised(&plan, 2, false).1, Freedom::Tiled);
}

#[test]
fn a_rank_without_data_may_pass_order_on() {
    let plan = plan(
        THREE,
        "rank 0:\n  copy input[0] into s[0]\n  signal to 1\nrank 1:\n  wait from 0\n  signal to 2\n\
         rank 2:\n  wait from 1\n  reduce s[0] of 0, input[0] into output[0]\n",
    );
    assert_eq!(left(&plan, 1, false), ["copy:1 >1", "<0 >2", "<1 reduce:1"]);
}

#[test]
fn order_that_sent_data_gives_needs_no_signal() {
    let plan = plan(
        "ranks 2\nchannels 1\nchunks 1\nscratch s 1",
        "rank 0:\n  copy input[0] into s[0]\n  send input[0] to 1\n  signal to 1\n\
         rank 1:\n  recv from 0 into output[0]\n  wait from 0\n  reduce s[0] of 0, input[0] into output[0]\n",
    );
    assert_eq!(left(&plan, 1, false), ["copy:1 send:0", "recv:1 reduce:1"]);
}

#[test]
fn sent_data_passes_order_on() {
    let plan = plan(
        THREE,
        "rank 0:\n  copy input[0] into s[0]\n  signal to 1\nrank 1:\n  wait from 0\n  send input[0] to 2\n\
         rank 2:\n  recv from 1 into output[0]\n  reduce s[0] of 0, input[0] into output[0]\n",
    );
    assert_eq!(left(&plan, 1, false), ["copy:1 >1", "<0 send:0", "recv:1 reduce:1"]);
}

#[test]
fn pairs_that_others_make_up_for_go() {
    let plan = plan(
        THREE,
        "rank 0:\n  copy input[0] into s[0]\n  signal to 1\n  signal to 2\n\
         rank 1:\n  wait from 0\n  reduce s[0] of 0, input[0] into output[0]\n  signal to 2\n\
         rank 2:\n  wait from 1\n  wait from 0\n  reduce s[0] of 0, input[0] into output[0]\n",
    );
    let all = left(&plan, 1, false);
    assert_eq!(all[0].matches('>').count() + all[1].matches('>').count(), 2, "{all:?}");
}

#[test]
fn the_next_tile_waits_for_scratch_to_be_read() {
    let plan = plan(
        "ranks 2\nchannels 1\nchunks 1\nscratch s 1",
        "rank 0:\n  copy input[0] into s[0]\n  signal to 1\n  wait from 1\n\
         rank 1:\n  wait from 0\n  reduce s[0] of 0, input[0] into output[0]\n  signal to 0\n",
    );
    assert_eq!(left(&plan, 1, false), ["copy:1 >1", "<0 reduce:1"]);
    assert_eq!(left(&plan, 2, false), ["copy:1 >1 <1", "<0 reduce:1 >0"]);
}

#[test]
fn the_next_tile_may_wait_at_its_begin() {
    let plan = plan(
        "ranks 2\nchannels 1\nchunks 1\nscratch s 1",
        "rank 0:\n  wait from 1\n  copy input[0] into s[0]\n  signal to 1\n\
         rank 1:\n  signal to 0\n  wait from 0\n  reduce s[0] of 0, input[0] into output[0]\n",
    );
    assert_eq!(left(&plan, 1, false), ["copy:1 >1", "<0 reduce:1"]);
    assert_eq!(left(&plan, 2, false), ["<1 copy:1 >1", ">0 <0 reduce:1"]);
}

#[test]
fn the_kth_signal_stays_with_the_kth_wait() {
    // Of three pairs from 0 to 1 the second alone orders something.
    let plan = plan(
        "ranks 2\nchannels 1\nchunks 1\nscratch s 1",
        "rank 0:\n  signal to 1\n  copy input[0] into s[0]\n  signal to 1\n  signal to 1\n\
         rank 1:\n  wait from 0\n  copy input[0] into s[0]\n  wait from 0\n  reduce s[0] of 0, input[0] into output[0]\n  \
         wait from 0\n",
    );
    assert_eq!(left(&plan, 1, false), ["copy:1 >1", "copy:1 <0 reduce:1"]);
}
