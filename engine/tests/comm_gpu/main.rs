//! Communicators whose ranks are processes sharing a GPU: exactness, disagreement, death; and ranks of one process in groups. Skipped
//! where there is no GPU.
#![cfg(feature = "cuda")]

mod calls;
mod child;
mod family;
mod faults;
mod grouped;

use std::time::{Duration, Instant};

use family::Family;
use ringlab_engine::exec::cuda::devices;

/// Whether there is a GPU; where there has to be one, its absence is a failure.
fn gpu(test: &str) -> bool {
    let Err(why) = devices() else { return true };
    assert!(std::env::var_os("RINGLAB_REQUIRE_CUDA").is_none_or(|v| v != "1"), "{why}");
    eprintln!("skipped: {test}: {why}");
    false
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn processes_compute_exactly_and_part_in_peace() {
    if !gpu("processes_compute_exactly_and_part_in_peace") {
        return;
    }
    for ranks in [2, 4] {
        let mut family = Family::start(ranks);
        family.tell_all("check");
        family.hear_all("right", Duration::from_secs(120));
        family.tell_all("split");
        family.hear_all("split right", Duration::from_secs(120));
        family.tell_all("leave");
        family.ends(Duration::from_secs(60));
    }
}

#[test]
fn processes_read_registered_buffers_where_they_are() {
    if !gpu("processes_read_registered_buffers_where_they_are") {
        return;
    }
    for ranks in [2, 4] {
        let mut family = Family::start(ranks);
        family.tell_all("registered");
        family.hear_all("registered right", Duration::from_secs(120));
        // Without any registration left.
        family.tell_all("check");
        family.hear_all("right", Duration::from_secs(60));
        family.tell_all("leave");
        family.ends(Duration::from_secs(60));
    }
}

#[test]
fn ranks_that_ask_for_different_things_are_told_before_data_moves() {
    if !gpu("ranks_that_ask_for_different_things_are_told_before_data_moves") {
        return;
    }
    let mut family = Family::start(2);
    family.tell(0, "mismatch 100");
    family.tell(1, "mismatch 101");
    for rank in 0..2 {
        let said = family.hear(rank, "mismatch:", Duration::from_secs(30));
        assert!(said.contains("100") && said.contains("101"), "{said}");
    }
    // Nothing is broken: the same ranks go on.
    family.tell_all("check");
    family.hear_all("right", Duration::from_secs(120));
    family.tell_all("leave");
    family.ends(Duration::from_secs(60));
}

#[test]
fn handles_say_when_their_own_call_ends_and_barriers_hold() {
    if !gpu("handles_say_when_their_own_call_ends_and_barriers_hold") {
        return;
    }
    let mut family = Family::idle(3);
    // Comparing calls would wait for the rank that comes last.
    family.tell_all("trusting");
    family.join();
    family.tell_all("works");
    family.hear_all("works", Duration::from_secs(60));
    family.tell_all("leave");
    family.ends(Duration::from_secs(60));
}

/// `RINGLAB_KILLS` times a rank is killed in the middle of its work. All others are told within two seconds, and form a new communicator
/// together with a new process.
#[test]
fn a_killed_rank_is_known_within_two_seconds_and_the_others_go_on() {
    if !gpu("a_killed_rank_is_known_within_two_seconds_and_the_others_go_on") {
        return;
    }
    let kills = number("RINGLAB_KILLS", 5).max(1);
    let mut seed = number("RINGLAB_SEED", 1);
    let mut random = move |below: u64| {
        seed = ringlab_engine::data::mix(seed.wrapping_add(0x9E37_79B9_7F4A_7C15));
        seed % below
    };
    let ranks = 3;
    let mut family = Family::start(ranks);
    let (began, mut times) = (Instant::now(), Vec::new());
    for kill in 0..kills {
        family.tell_all("work");
        family.hear_all("working", Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(random(150)));
        let victim = random(u64::from(ranks)) as usize;
        family.kill(victim);
        let killed = Instant::now();
        let mut line = format!("kill {kill} at {:.3} s: rank {victim};", began.elapsed().as_secs_f64());
        let mut late = None;
        for rank in (0..ranks as usize).filter(|rank| *rank != victim) {
            let said = family.hear(rank, "failed:", Duration::from_secs(30));
            let after = killed.elapsed();
            line += &format!(" rank {rank} knew after {} ms", after.as_millis());
            late = late.or((after >= Duration::from_secs(2)).then_some(said));
            times.push(after);
        }
        eprintln!("{line}");
        assert!(late.is_none(), "kill {kill}: too late: {}", late.unwrap_or_default());
        family.replace(victim);
        family.join();
        family.tell_all("calls 2");
        family.hear_all("2 of 2 right", Duration::from_secs(60));
    }
    times.sort_unstable();
    let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
    eprintln!(
        "{kills} kills, {} errors of survivors: median {} ms, longest {} ms",
        times.len(),
        median.as_millis(),
        most.as_millis()
    );
    family.tell_all("leave");
    family.ends(Duration::from_secs(60));
}

/// Not a test of its own: a rank of the tests above, when the environment says so.
#[test]
fn a_rank() {
    child::run();
}
