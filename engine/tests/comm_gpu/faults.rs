//! A rank does something wrong on purpose: what its peers see, and that all can begin anew.

use std::time::Duration;

use serde_json::Value;

use crate::family::Family;
use crate::gpu;

const RANKS: u32 = 3;
const LONG: Duration = Duration::from_secs(60);

/// Ranks of which rank 1 has these faults, and the others wait no longer than so in a kernel.
fn family(faults: &str, patience: Duration) -> Family {
    let mut family = Family::idle(RANKS);
    for rank in [0, 2] {
        family.tell(rank, &format!("patience {}", patience.as_millis()));
    }
    family.tell_all(&format!("faults {faults}"));
    family.join();
    family
}

/// What the ranks said at the end of so many calls.
fn ended(family: &mut Family, calls: u32) -> Vec<String> {
    family.tell_all(&format!("calls {calls}"));
    (0..RANKS as usize).map(|rank| family.hear(rank, "ended:", LONG)).collect()
}

fn last_record(family: &mut Family, rank: usize) -> Value {
    family.tell(rank, "record");
    let said = family.hear(rank, "record:", LONG);
    let dump: Value = serde_json::from_str(said.split_once("record: ").unwrap().1).unwrap();
    assert_eq!(dump["rank"], rank);
    dump["records"].as_array().unwrap().last().unwrap().clone()
}

/// A new communicator of the same processes, without faults, computes exactly.
fn begin_anew(mut family: Family) {
    family.tell_all("faults");
    family.join();
    family.tell_all("calls 3");
    for rank in 0..RANKS as usize {
        assert!(family.hear(rank, "ended:", LONG).contains("3 of 3 right"));
    }
    family.tell_all("leave");
    family.ends(LONG);
}

#[test]
fn a_delay_and_a_slow_link_are_waited_for() {
    if !gpu("a_delay_and_a_slow_link_are_waited_for") {
        return;
    }
    let mut family = family("delay=300ms rank=1 op=3; link=1M rank=1", Duration::from_secs(20));
    for said in ended(&mut family, 4) {
        assert!(said.contains("4 of 4 right"), "{said}");
    }
    let record = last_record(&mut family, 1);
    assert_eq!((&record["state"], &record["fault"]), (&"done".into(), &"delay=300000us link=1000000".into()));
    begin_anew(family);
}

#[test]
fn a_call_that_is_never_launched_is_missed_within_the_deadline() {
    if !gpu("a_call_that_is_never_launched_is_missed_within_the_deadline") {
        return;
    }
    let mut family = family("drop rank=1 op=2", Duration::from_secs(3));
    let said = ended(&mut family, 3);
    for rank in [0, 2] {
        assert!(said[rank].contains("waited for data of rank 1"), "{}", said[rank]);
        let record = last_record(&mut family, rank);
        assert_eq!((&record["sequence"], &record["state"]), (&2.into(), &"failed".into()));
        assert!(record["launched_ns"].is_number());
        assert!(record["why"].as_str().unwrap().contains("waited for data of rank 1"), "{record}");
    }
    assert!(said[1].contains("2 of 3 right"), "{}", said[1]);
    let record = last_record(&mut family, 1);
    assert_eq!((&record["sequence"], &record["fault"]), (&2.into(), &"drop".into()));
    assert!(record["launched_ns"].is_null(), "asked for, never on the device's queue: {record}");
    begin_anew(family);
}

#[test]
fn receivers_that_free_nothing_stop_their_senders() {
    if !gpu("receivers_that_free_nothing_stop_their_senders") {
        return;
    }
    // Whole slots: eight calls fill them.
    let mut family = family("starve rank=1 op=0", Duration::from_secs(3));
    for said in ended(&mut family, 40) {
        assert!(said.contains("waited for a free slot of rank 1"), "{said}");
    }
    for rank in [0, 2] {
        assert_eq!(last_record(&mut family, rank)["sequence"], 8);
    }
    begin_anew(family);
}

#[test]
fn a_call_for_something_else_is_named_before_data_moves() {
    if !gpu("a_call_for_something_else_is_named_before_data_moves") {
        return;
    }
    let mut family = family("count=999 rank=1 op=2", Duration::from_secs(20));
    for said in ended(&mut family, 4) {
        assert!(said.contains("999 on rank 1, 1000 on ranks 0, 2"), "{said}");
    }
    for rank in 0..RANKS as usize {
        let record = last_record(&mut family, rank);
        assert_eq!((&record["sequence"], &record["state"]), (&2.into(), &"failed".into()));
        assert!(record["why"].as_str().unwrap().contains("999 on rank 1"), "{record}");
        assert_eq!(record["fault"].as_str(), (rank == 1).then_some("count=999"));
    }
    begin_anew(family);
}

#[test]
fn a_rank_that_kills_itself_is_named_to_the_others() {
    if !gpu("a_rank_that_kills_itself_is_named_to_the_others") {
        return;
    }
    let mut family = family("kill rank=1 op=2", Duration::from_secs(20));
    family.tell_all("calls 4");
    for rank in [0, 2] {
        let said = family.hear(rank, "ended:", LONG);
        assert!(said.contains("rank 1"), "{said}");
        let record = last_record(&mut family, rank);
        assert_eq!((&record["sequence"], &record["state"]), (&2.into(), &"failed".into()));
        assert!(record["why"].as_str().unwrap().contains("rank 1"), "{record}");
    }
    family.replace(1);
    begin_anew(family);
}
