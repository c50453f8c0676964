use super::*;
use crate::plan::text::{Limits, parametric, parse, parse_within};
use crate::plan::{Algorithm, generate};
use crate::text::Lang;
use crate::types::Collective;

fn text(algorithm: Algorithm) -> String {
    parametric(algorithm, Collective::AllReduce, 4, 1, Lang::En).unwrap()
}

/// The refusal of the ring or one-shot or two-shot all-reduce of four ranks with one part of its text replaced, in English.
#[track_caller]
fn refusal(algorithm: Algorithm, from: &str, to: &str, in_place: bool) -> String {
    let text = text(algorithm);
    assert!(text.contains(from), "{text}");
    let parsed = parse(&text.replacen(from, to, 1)).unwrap();
    let refusal = verify(&parsed.plan, in_place).unwrap_err();
    let words = refusal.message_in(&parsed.lines);
    assert!(!words.zh.is_empty() && words.zh != words.en);
    words.en
}

#[test]
fn standard_plans_move_what_the_books_say() {
    let proof = |a, c, n| verify(&generate(a, c, n, 2).unwrap(), false).unwrap();
    let ring = proof(Algorithm::Ring, Collective::AllReduce, 4);
    assert_eq!((ring.longest_chain, ring.busiest, ring.is_optimal()), (6, Fraction::new(3, 2), true));
    assert_eq!(ring.edges.len(), 4);
    let one = proof(Algorithm::OneShot, Collective::AllReduce, 4);
    assert_eq!((one.longest_chain, one.busiest.to_string(), one.is_optimal()), (1, "3".into(), false));
    let two = proof(Algorithm::TwoShot, Collective::AllReduce, 4);
    assert_eq!((two.longest_chain, two.busiest.to_string(), two.is_optimal()), (2, "3/2".into(), true));
    let root = Collective::Broadcast { root: Rank(1) };
    let chain = proof(Algorithm::Ring, root, 5);
    assert_eq!((chain.longest_chain, chain.is_optimal(), chain.sent[0].to_string()), (4, true, "0".into()));
    let alone = proof(Algorithm::Ring, Collective::AllReduce, 1);
    assert_eq!((alone.longest_chain, alone.edges.len(), alone.is_optimal()), (0, 0, true));
}

#[test]
fn a_chunk_in_the_wrong_place_is_named() {
    let words = refusal(Algorithm::Ring, "into output[(r+1) % n]", "into output[(r+2) % n]", false);
    assert!(
        words.starts_with("step 6 of rank 0 (line 19) puts data of chunk 1 together with chunk 2"),
        "{words}"
    );
}

#[test]
fn a_lost_contribution_is_traced_to_the_rank_that_passed_it_by() {
    let words = refusal(
        Algorithm::Ring,
        "    recv_reduce_send from prev with input[(r-j) % n] to next",
        "    if r == 3:\n      recv_copy_send from prev into output[(r-j) % n] to next\n    else:\n      recv_reduce_send from prev with input[(r-j) % n] to next",
        false,
    );
    assert!(words.contains("lacks rank 3's contribution: the data passed step"), "{words}");
    assert!(words.contains("(line 14) without it"), "{words}");
}

#[test]
fn a_double_contribution_is_traced_to_the_step_that_adds_it() {
    let words = refusal(
        Algorithm::OneShot,
        "reduce input[0] of p for p in 0..n into sum[0]",
        "reduce input[0] of p for p in 0..n, input[0] of 2 into sum[0]",
        false,
    );
    assert_eq!(
        words,
        "rank 0's output[0] has rank 2's contribution twice: step 6 of rank 0 (line 15) adds it again."
    );
}

#[test]
fn a_missing_receive_is_counted() {
    let words = refusal(Algorithm::Ring, "  recv from prev into output[(r+1) % n]\n", "", false);
    assert!(words.contains("rank 0 sends 6 times to rank 1, which receives from it 5 times"), "{words}");
    assert!(words.contains("step 5 of rank 0 (line 18) has no receive"), "{words}");
}

#[test]
fn receiving_first_is_a_deadlock() {
    let plan = "plan t v1\ncollective all_gather\nranks 2\nchannels 1\nchunks 1\nevery rank:\n  \
                recv from 1-r into output[1-r]\n  send input[0] to 1-r\n  copy input[0] into output[r]\n";
    let parsed = parse(plan).unwrap();
    let words = verify(&parsed.plan, false).unwrap_err().message_in(&parsed.lines).en;
    assert_eq!(
        words,
        "deadlock: step 0 of rank 0 (line 7) waits for data from rank 1, step 0 of rank 1 (line 7) waits for data from \
         rank 0; they wait in a circle and none can go on."
    );
}

#[test]
fn more_sends_than_slots_stop_when_nobody_receives_meanwhile() {
    let plan = |chunks: u32| {
        format!(
            "plan t v1\ncollective all_gather\nranks 2\nchannels 1\nchunks {chunks}\nevery rank:\n  \
             send input[0..{chunks}] to 1-r\n  recv from 1-r into output[(1-r)*{chunks}..(2-r)*{chunks}]\n  \
             copy input[0..{chunks}] into output[r*{chunks}..(r+1)*{chunks}]\n"
        )
    };
    assert!(verify(&parse(&plan(8)).unwrap().plan, true).is_ok());
    let refusal = verify(&parse(&plan(9)).unwrap().plan, true).unwrap_err();
    assert!(refusal.to_string().contains("waits for rank 1 to free one of the 8 slots"), "{refusal}");
}

#[test]
fn direct_reads_need_their_barriers() {
    let barrier = "  for k in 1..n:\n    signal to (r+k) % n\n  for k in 1..n:\n    wait from (r+k) % n\n";
    // Without the first barrier nobody knows that the peers have started.
    let words = refusal(Algorithm::OneShot, barrier, "", false);
    assert!(
        words.contains("reads rank 1's input[0] directly without knowing that rank 1 has started"),
        "{words}"
    );
    // Without the last one a rank may leave while others read.
    let mut last = text(Algorithm::TwoShot);
    let at = last.rfind(barrier).unwrap();
    last.truncate(at);
    let refusal_last = verify(&parse(&last).unwrap().plan, false).unwrap_err().to_string();
    assert!(refusal_last.contains("may finish while"), "{refusal_last}");
    // Without the middle one the second shot reads what may not be there.
    let text = text(Algorithm::TwoShot);
    let (before, after) = text.split_once("  reduce").unwrap();
    let plan = parse(&format!("{before}  reduce{}", after.replacen(barrier, "", 1))).unwrap().plan;
    let words = verify(&plan, false).unwrap_err().to_string();
    assert!(words.contains("may still be writing it"), "{words}");
}

#[test]
fn one_shot_straight_into_the_output_is_a_race_in_place_only() {
    let text = text(Algorithm::OneShot)
        .replace("into sum[0]", "into output[0]")
        .replace("  copy sum[0] into output[0]\n", "");
    let plan = parse(&text).unwrap().plan;
    assert!(verify(&plan, false).is_ok());
    let refusal = verify(&plan, true).unwrap_err();
    assert!(
        matches!(refusal.kind, RefusalKind::WriteRace { .. } | RefusalKind::ReadRace { .. }),
        "{refusal}"
    );
}

#[test]
fn scratch_that_the_next_tile_overwrites_too_early_is_a_race() {
    let text = "plan t v1\ncollective all_gather\nranks 2\nchannels 1\nchunks 1\nscratch s 1\nevery rank:\n  \
                copy input[0] into s[0]\n  signal to 1-r\n  wait from 1-r\n  copy input[0] into output[r]\n  \
                copy s[0] of 1-r into output[1-r]\n";
    let parsed = parse(text).unwrap();
    let refusal = verify(&parsed.plan, false).unwrap_err();
    assert!(matches!(refusal.kind, RefusalKind::WriteRace { .. }), "{refusal}");
    let fixed = format!("{text}  signal to 1-r\n  wait from 1-r\n");
    assert!(verify(&parse(&fixed).unwrap().plan, true).is_ok());
}

#[test]
fn the_largest_plans_are_checked_or_refused_quickly() {
    for algorithm in Algorithm::ALL {
        let all_reduces = algorithm.supports(Collective::AllReduce);
        let collective = if all_reduces { Collective::AllReduce } else { Collective::AllToAll };
        let plan = generate(algorithm, collective, 64, 32).unwrap();
        assert!(verify(&plan, all_reduces).is_ok());
    }
    let text = "plan t v1\ncollective all_gather\nranks 64\nchannels 1\nchunks 256\nevery rank:\n  for k in 0..4000:\n    \
                copy input[0..256] into output[0..256]\n";
    let plan = parse_within(text, &Limits::default()).unwrap().plan;
    assert_eq!(verify(&plan, false).unwrap_err().kind, RefusalKind::TooLarge);
}

/// 64 wrong outputs with one long cause, which once was searched in quadratic time for each of them.
#[test]
fn long_causes_of_many_mistakes_are_found_quickly() {
    let text = "plan t v1\ncollective all_gather\nranks 64\nchannels 1\nchunks 1\nscratch s 2\nrank 0:\n  \
                copy input[0] into s[0]\n  for k in 0..60000:\n    copy s[k%2] into s[(k+1)%2]\n  for k in 0..n:\n    \
                copy s[0] into output[k]\n";
    let plan = parse(text).unwrap().plan;
    let started = std::time::Instant::now();
    let refusal = verify(&plan, false).unwrap_err();
    assert!(matches!(refusal.kind, RefusalKind::Foreign { rank: Rank(0), .. }), "{refusal}");
    assert_eq!(refusal.slice.len(), 60_002);
    assert!(started.elapsed() < std::time::Duration::from_secs(3), "{:?}", started.elapsed());
}

/// Sums of thousands of contributions, one after the other: bounded in memory, not only in time.
#[test]
fn sums_that_grow_and_grow_are_refused() {
    let text = "plan t v1\ncollective reduce_scatter\nranks 64\nchannels 1\nchunks 1\nscratch s 1\nrank 0:\n  \
                for p in 1..n:\n    wait from p\n  reduce input[0], input[1] into s[0]\n  for p in 1..n:\n    \
                for k in 0..n:\n      reduce s[0], input[k] of p into s[0]\nevery rank:\n  if r > 0:\n    signal to 0\n";
    let plan = parse(text).unwrap().plan;
    assert_eq!(verify(&plan, false).unwrap_err().kind, RefusalKind::TooLarge);
}
