use super::*;
use crate::tuner::profile::tests::{entry, profile};
use crate::tuner::{List, Rules};

/// One-shot is cheaper below about 18 KB.
fn figures() -> Profile {
    let mut entries = Vec::new();
    for (ranks, scale) in [(2, 1.0), (4, 2.0)] {
        entries.push(entry(Algorithm::Ring, ranks, 10.0 * scale, 4.0 / scale));
        entries.push(entry(Algorithm::OneShot, ranks, 1.0 * scale, 1.33 / scale));
    }
    profile(entries)
}

fn tuner(ranks: u32, change: impl FnOnce(&mut Overrides)) -> Tuner {
    let mut overrides = Overrides::default();
    change(&mut overrides);
    Tuner::new(figures(), overrides, ranks).unwrap()
}

fn query(bytes: u64) -> Query {
    Query { collective: Collective::AllReduce, bytes }
}

fn rules(text: &str) -> Rules {
    Rules::parse(text, "table", &["all_reduce"]).unwrap()
}

#[test]
fn the_cheapest_is_chosen_at_each_size() {
    let tuner = tuner(2, |_| {});
    let name = |bytes| tuner.choose(query(bytes)).unwrap().winner().algorithm.clone();
    assert_eq!(
        [name(8), name(16 << 10), name(20 << 10), name(1 << 30)],
        ["one_shot", "one_shot", "ring", "ring"]
    );
}

#[test]
fn between_measured_ranks_the_price_is_between_theirs() {
    let time = |ranks| {
        let choice = tuner(ranks, |_| {}).choose(query(1 << 20)).unwrap();
        choice.winner().cost.as_ref().unwrap().time_us
    };
    assert!((time(3) - (time(2) + time(4)) / 2.0).abs() < 1e-9);
}

#[test]
fn beyond_the_measured_ranks_there_is_no_price_and_no_guess() {
    let err = tuner(5, |_| {}).choose(query(8)).unwrap_err().to_string();
    assert!(err.contains("no figures for all_reduce on 5 ranks (it has 2 ranks, 4 ranks)"), "{err}");
    assert!(err.contains("--tune-report --collective all_reduce -g 5"), "{err}");
    let forced = tuner(5, |o| o.algorithms = Some(List::parse("ring")));
    assert_eq!(forced.choose(query(8)).unwrap().winner().algorithm, "ring");
}

#[test]
fn a_forced_algorithm_runs_or_fails_but_is_never_replaced() {
    let forced = |list: &str| tuner(2, |o| o.algorithms = Some(List::parse(list)));
    assert_eq!(forced("Ring").choose(query(8)).unwrap().winner().algorithm, "ring");
    assert_eq!(forced("^one_shot").choose(query(8)).unwrap().winner().algorithm, "ring");
    let all_gather = Query { collective: Collective::AllGather, bytes: 64 };
    let err = forced("two_shot").choose(all_gather).unwrap_err().to_string();
    assert!(err.contains("nothing is left to run all_gather of 64 bytes on 2 ranks"), "{err}");
    assert!(err.contains("two_shot: all_gather has no two_shot"), "{err}");
    assert!(err.contains("RINGLAB_ALGO=two_shot leaves ring out"), "{err}");
    let err = tuner(2, |o| o.protocols = Some(List::parse("LL"))).choose(query(8)).unwrap_err();
    assert!(err.to_string().contains("RINGLAB_PROTO=LL leaves Simple out"), "{err}");
    let threads = Overrides { threads: Some(64), ..Overrides::default() };
    let err = Tuner::new(figures(), threads, 2).unwrap_err().to_string();
    assert!(err.contains("RINGLAB_NTHREADS=64: the cpu back end"), "{err}");
}

#[test]
fn channels_keep_within_their_bounds_and_say_what_they_are_priced_by() {
    let choice = tuner(2, |o| o.min_channels = Some(4)).choose(query(8)).unwrap();
    assert_eq!(choice.launched.channels, 4);
    assert!(choice.sentences()[choice.chosen].en.contains("priced as measured with 1 channels"));
}

#[test]
fn a_rule_decides_where_it_matches_and_contradicts_aloud() {
    let table = "all_reduce 2 0..1K ring Simple 2";
    let ruled = tuner(2, |o| o.rules = rules(table));
    let small = ruled.choose(query(8)).unwrap();
    assert_eq!((small.winner().algorithm.as_str(), small.launched.channels), ("ring", 2));
    assert!(small.why.en.contains("table:1"));
    assert_eq!(ruled.choose(query(1 << 10)).unwrap().winner().algorithm, "one_shot");
    let both = tuner(2, |o| {
        o.rules = rules(table);
        o.algorithms = Some(List::parse("one_shot"));
    });
    let err = both.choose(query(8)).unwrap_err().to_string();
    assert!(
        err.contains("table:1 asks for ring") && err.contains("RINGLAB_ALGO=one_shot leaves ring out"),
        "{err}"
    );
    let bounded = tuner(2, |o| {
        o.rules = rules(table);
        o.max_channels = Some(1);
    });
    assert!(bounded.choose(query(8)).unwrap_err().to_string().contains("asks for 2 channels, against"));
}

#[test]
fn the_explanation_mentions_every_candidate() {
    let choice = tuner(2, |o| o.algorithms = Some(List::parse("^ring"))).choose(query(4096)).unwrap();
    assert_eq!(choice.candidates.len(), choice.sentences().len());
    for lang in Lang::ALL {
        let text = choice.explain(lang);
        for algorithm in Algorithm::ALL {
            assert!(
                text.matches(algorithm.name()).count() >= 2,
                "{algorithm} in a table and a sentence: {text}"
            );
        }
    }
}

#[test]
fn one_rank_copies() {
    assert_eq!(tuner(1, |_| {}).choose(query(8)).unwrap().winner().algorithm, "ring");
}
