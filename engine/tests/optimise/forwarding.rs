//! When a copy's destination is written by the step that made the value, and when not.

use super::{left, plan};

const TWO: &str = "ranks 2\nchannels 1\nchunks 1\nscratch s 2\nscratch t 1";

#[test]
fn a_copy_is_forwarded_to_the_step_that_made_the_value() {
    let plan = plan(
        TWO,
        "rank 0:\n  reduce input[0], input[0] of 1 into output[0]\n  signal to 1\n\
         rank 1:\n  wait from 0\n  copy output[0] of 0 into output[0]\n",
    );
    assert_eq!(left(&plan, 3, false), ["reduce:2", ""]);
    // In place the reduction reads what it now writes as well.
    assert_eq!(left(&plan, 3, true), ["reduce:2", ""]);
}

#[test]
fn a_value_goes_on_to_copies_of_copies() {
    let plan = plan(
        "ranks 3\nchannels 1\nchunks 1",
        "rank 0:\n  reduce input[0], input[0] of 1 into output[0]\n  signal to 1\n\
         rank 1:\n  wait from 0\n  copy output[0] of 0 into output[0]\n  signal to 2\n\
         rank 2:\n  wait from 1\n  copy output[0] of 1 into output[0]\n",
    );
    assert_eq!(left(&plan, 1, false), ["reduce:3", "", ""]);
}

#[test]
fn chunks_of_one_step_are_forwarded_each() {
    let plan = plan(
        "ranks 2\nchannels 1\nchunks 2",
        "rank 0:\n  reduce input[0..2], input[0..2] of 1 into output[0..2]\n  signal to 1\n\
         rank 1:\n  wait from 0\n  copy output[1] of 0 into output[1]\n",
    );
    assert_eq!(left(&plan, 1, false), ["reduce:1 reduce:2", ""]);
}

#[test]
fn the_last_write_before_the_copy_counts() {
    let plan = plan(
        TWO,
        "rank 0:\n  reduce input[0], input[0] into output[0]\n  reduce output[0], input[0] into output[0]\n  signal to 1\n  \
         wait from 1\n  reduce output[0], input[0] into output[0]\n\
         rank 1:\n  wait from 0\n  copy output[0] of 0 into output[0]\n  signal to 0\n",
    );
    assert_eq!(left(&plan, 1, false), ["reduce:1 reduce:2 reduce:1", ""]);
}

#[test]
fn not_where_the_destination_is_read_meanwhile() {
    let plan = plan(
        TWO,
        "rank 0:\n  reduce input[0], input[0] into output[0]\n  signal to 1\n\
         rank 1:\n  copy output[0] into s[0]\n  wait from 0\n  copy output[0] of 0 into output[0]\n  \
         reduce s[0], input[0] into s[1]\n",
    );
    assert_eq!(left(&plan, 1, false), ["reduce:1 >1", "copy:1 <0 copy:1 reduce:1"]);
}

#[test]
fn but_where_it_was_read_before() {
    let plan = plan(
        TWO,
        "rank 0:\n  wait from 1\n  reduce input[0], input[0] into output[0]\n  signal to 1\n\
         rank 1:\n  copy output[0] into s[0]\n  signal to 0\n  wait from 0\n  copy output[0] of 0 into output[0]\n",
    );
    assert_eq!(left(&plan, 1, false), ["<1 reduce:2", "copy:1 >0"]);
}

#[test]
fn not_where_the_destination_is_written_meanwhile() {
    let plan = plan(
        TWO,
        "rank 0:\n  reduce input[0], input[0] into output[0]\n  signal to 1\n\
         rank 1:\n  copy input[0] into output[0]\n  wait from 0\n  copy output[0] of 0 into output[0]\n",
    );
    assert_eq!(left(&plan, 1, false), ["reduce:1 >1", "copy:1 <0 copy:1"]);
}

#[test]
fn not_to_a_step_that_writes_the_destination_itself() {
    let plan = plan(
        TWO,
        "rank 0:\n  reduce input[0], input[0] into output[0]\n  copy output[0] into s[0]\n  \
         copy s[0] into output[0]\n  signal to 1\nrank 1:\n  wait from 0\n  reduce s[0] of 0, input[0] into output[0]\n",
    );
    assert_eq!(left(&plan, 1, false)[0], "reduce:2 copy:1 >1");
}

#[test]
fn not_where_the_next_tile_would_write_scratch_that_is_still_read() {
    let plan = plan(
        TWO,
        "rank 0:\n  reduce input[0], input[0] into s[0]\n  signal to 1\n  wait from 1\n\
         rank 1:\n  wait from 0\n  copy s[0] of 0 into t[0]\n  signal to 0\n  reduce t[0], input[0] into output[0]\n",
    );
    assert_eq!(left(&plan, 1, false), ["reduce:1 >1", "<0 reduce:1"]);
    assert_eq!(left(&plan, 2, false), ["reduce:1 >1 <1", "<0 copy:1 >0 reduce:1"]);
}

#[test]
fn scratch_with_another_reader_is_still_written() {
    let plan = plan(
        TWO,
        "rank 0:\n  reduce input[0], input[0] into s[0]\n  copy s[0] into output[0]\n  reduce s[0], input[0] into s[1]\n\
         rank 1:\n  copy input[0] into output[0]\n",
    );
    assert_eq!(left(&plan, 2, false), ["reduce:2 reduce:1", "copy:1"]);
}

#[test]
fn bytes_that_cross_are_counted_once_a_copy() {
    // Between 0 and 1 and back: the copies cross twice, though the destination is the maker's own.
    let plan = plan(
        TWO,
        "rank 0:\n  reduce input[0], input[0] into s[0]\n  signal to 1\n  wait from 1\n  copy t[0] of 1 into output[0]\n\
         rank 1:\n  wait from 0\n  copy s[0] of 0 into t[0]\n  signal to 0\n",
    );
    assert_eq!(left(&plan, 1, false), ["reduce:1", ""]);
}

#[test]
fn what_holds_a_copy_back_may_go_itself() {
    // Rank 1 lets go of `s` before `t` is read, so the next tile could not write `t` at once; but nobody needs `t`.
    let plan = plan(
        "ranks 3\nchannels 1\nchunks 1\nscratch s 1\nscratch t 1",
        "rank 0:\n  reduce input[0], input[0] into s[0]\n  signal to 1\n  wait from 1\n\
         rank 1:\n  wait from 0\n  copy s[0] of 0 into t[0]\n  signal to 0\n  signal to 2\n  wait from 2\n\
         rank 2:\n  wait from 1\n  copy t[0] of 1 into output[0]\n  signal to 1\n",
    );
    assert_eq!(left(&plan, 2, false), ["reduce:1", "", ""]);
}

#[test]
fn bound_blocks_do_not_do_each_others_work() {
    // One rank makes what three copy; `more` needs order, so that all blocks have to be resident.
    let text = |more: &str, root_more: &str| {
        let copy = "  wait from 0\n  copy output[0] of 0 into output[0]\n";
        format!(
            "rank 0:\n  reduce input[0], input[0] into output[0]\n  signal to 1\n  signal to 2\n  signal to 3\n{root_more}\
             rank 1:\n{copy}{more}rank 2:\n{copy}rank 3:\n{copy}"
        )
    };
    let settings = "ranks 4\nchannels 1\nchunks 1\nscratch s 2";
    assert_eq!(left(&plan(settings, &text("", "")), 1, false), ["reduce:4", "", "", ""]);
    let bound = text(
        "  reduce input[0], input[0] into s[0]\n  signal to 0\n",
        "  wait from 1\n  reduce s[0] of 1, s[0] of 1 into s[1]\n",
    );
    let kept = ["reduce:1 >1 >2 >3 <1 reduce:1", "<0 copy:1 reduce:1 >0", "<0 copy:1", "<0 copy:1"];
    assert_eq!(left(&plan(settings, &bound), 1, false), kept);
}
