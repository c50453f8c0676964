use super::*;
use crate::tuner::{Entry, Origin, RULE_OF_THUMB, Segment};

fn situation(ranks: u32) -> Situation {
    Situation { ranks, device: "Test GPU".into(), one_device: true, resident: 16 }
}

fn config(change: impl FnOnce(&mut Overrides)) -> Config {
    let mut overrides = Overrides::default();
    change(&mut overrides);
    Config { overrides: Some(overrides), ..Config::default() }
}

fn choices(ranks: u32, profile: Option<Profile>, config: &Config) -> Choices {
    let wishes = Wishes { overrides: config.overrides.clone().unwrap(), profile };
    Choices::new(wishes, config, &situation(ranks), Rank(0)).unwrap()
}

fn by_rule(ranks: u32) -> impl FnMut(Collective, u64) -> (Algorithm, u32) {
    let mut choices = choices(ranks, None, &config(|_| {}));
    move |collective, bytes| {
        let chosen = choices.choose(collective, bytes).unwrap();
        (chosen.algorithm, chosen.channels)
    }
}

/// Halving-doubling up to 64 KiB and the chain beyond: not what the rule of thumb says anywhere.
fn profile(ranks: u32) -> Profile {
    let entry = |algorithm, protocol, channels, alpha_us, gbps| Entry {
        algorithm,
        protocol,
        collective: "all_reduce".into(),
        ranks,
        channels,
        segments: vec![Segment { from_bytes: 0, alpha_us, gbps: Some(gbps) }],
        samples: 9,
        median_error_pct: 1.0,
    };
    let text = || String::from("test");
    let origin = Origin {
        device: "Test GPU".into(),
        driver: text(),
        date: text(),
        command: text(),
        commit: None,
        conditions: text(),
    };
    let entries = vec![
        entry(Algorithm::HalvingDoubling, Protocol::Ll, 2, 1.0, 1.0),
        entry(Algorithm::Chain, Protocol::Simple, 8, 50.0, 5.0),
        // Cheapest by far, were its plan one that a communicator can run.
        entry(Algorithm::OneShot, Protocol::Simple, 8, 0.1, 500.0),
    ];
    Profile { version: 1, name: "measured".into(), domain: Domain::SharedGpuRanks, origin, entries }
}

#[test]
fn without_figures_short_messages_take_one_hop_and_long_ones_the_ring() {
    assert_eq!(by_rule(8)(Collective::AllReduce, 4096), (Algorithm::Exchange, 1));
    assert_eq!(by_rule(8)(Collective::AllReduce, 1 << 30), (Algorithm::Ring, 16));
    assert_eq!(by_rule(64)(Collective::AllReduce, 8), (Algorithm::Ring, 1), "more peers than lanes");
    assert_eq!(by_rule(4)(Collective::AllToAll, 1 << 30).0, Algorithm::Exchange, "a ring does not do that");
    assert_eq!(by_rule(2)(Collective::Reduce { root: Rank(1) }, 64 << 10), (Algorithm::Exchange, 4));
}

#[test]
fn a_choice_by_the_rule_of_thumb_says_so_and_why() {
    let choices = choices(3, Some(profile(4)), &config(|_| {}));
    let choice = choices.explain(Collective::AllReduce, 4096).unwrap();
    assert_eq!(choice.profile, RULE_OF_THUMB);
    let why = &choice.why.en;
    assert!(why.contains("`measured` has no figures for all_reduce on 3 ranks (it has 4 ranks)"), "{why}");
    assert!(why.contains("a rank sends 8192 bytes"), "{why}");
    let other = Situation { device: "Other".into(), ..situation(3) };
    let wishes = Wishes { overrides: Overrides::default(), profile: None };
    let choices = Choices::new(wishes, &config(|_| {}), &other, Rank(0)).unwrap();
    let why = choices.explain(Collective::AllReduce, 4096).unwrap().why.en;
    assert!(why.contains("no measured profile for Other"), "{why}");
}

#[test]
fn the_rule_of_thumb_leaves_protocols_for_short_messages_to_whoever_asks_for_them() {
    let asked = |protocols: Option<&str>| {
        let config = config(|o| o.protocols = protocols.map(List::parse));
        let mut choices = choices(3, None, &config);
        let protocol = choices.choose(Collective::AllReduce, 8).unwrap().protocol;
        (protocol, choices.explain(Collective::AllReduce, 8).unwrap().why.en)
    };
    let (protocol, why) = asked(None);
    assert_eq!(protocol, Protocol::Simple);
    assert!(why.contains("was not measured here, so it takes Simple (RINGLAB_PROTO=LL asks"), "{why}");
    let (protocol, why) = asked(Some("LL"));
    assert_eq!(protocol, Protocol::Ll);
    assert!(!why.contains("was not measured here"), "{why}");
}

#[test]
fn figures_decide_among_what_ranks_can_run() {
    let mut choices = choices(4, Some(profile(4)), &config(|_| {}));
    let short = choices.choose(Collective::AllReduce, 4096).unwrap();
    let long = choices.choose(Collective::AllReduce, 1 << 20).unwrap();
    let chosen = |algorithm, protocol, channels| Chosen { algorithm, protocol, channels };
    assert_eq!(short, chosen(Algorithm::HalvingDoubling, Protocol::Ll, 2));
    assert_eq!(long, chosen(Algorithm::Chain, Protocol::Simple, 8));
    let choice = choices.explain(Collective::AllReduce, 4096).unwrap();
    let direct = choice.candidates.iter().find(|candidate| candidate.algorithm == "one_shot").unwrap();
    assert_eq!(direct.gates[0].code, "port");
    assert!(direct.gates[0].reason.en.contains("reads peers' buffers"));
}

#[test]
fn overrides_decide_algorithm_and_protocol_or_nothing_runs() {
    let forced = |algorithms: &str, protocols: &str| {
        let config = config(|o| {
            o.algorithms = Some(List::parse(algorithms));
            o.protocols = Some(List::parse(protocols));
        });
        choices(4, Some(profile(4)), &config).choose(Collective::AllReduce, 4096)
    };
    let chosen = forced("tree", "LL128").unwrap();
    assert_eq!((chosen.algorithm, chosen.protocol), (Algorithm::Tree, Protocol::Ll128));
    // Several are left and none has figures: the rule of thumb picks from these only.
    let chosen = forced("tree,ring", "^LL128").unwrap();
    assert_eq!((chosen.algorithm, chosen.protocol), (Algorithm::Ring, Protocol::Simple));
    let why = forced("one_shot", "Simple").unwrap_err().to_string();
    assert!(why.contains("nothing is left") && why.contains("one_shot: it reads peers' buffers"), "{why}");
}

#[test]
fn channels_stay_within_the_configuration_and_what_is_resident() {
    let narrow = Config { max_channels: 3, ..config(|_| {}) };
    assert_eq!(
        choices(4, Some(profile(4)), &narrow).choose(Collective::AllReduce, 1 << 20).unwrap().channels,
        3
    );
    assert_eq!(choices(8, None, &narrow).choose(Collective::AllReduce, 1 << 30).unwrap().channels, 3);
    let few = Situation { resident: 2, ..situation(8) };
    let wide = Config { min_channels: 4, ..config(|_| {}) };
    let wishes = Wishes { overrides: Overrides::default(), profile: None };
    let mut choices = Choices::new(wishes, &wide, &few, Rank(0)).unwrap();
    assert_eq!(choices.choose(Collective::AllReduce, 8).unwrap().channels, 2);
}

#[test]
fn every_choice_has_a_plan_that_a_rank_can_run() {
    for ranks in [1, 2, 3, 33, 64] {
        let mut choices = choices(ranks, None, &config(|_| {}));
        for collective in Collective::all(Rank(0)) {
            for bytes in [1, 1 << 14, 1 << 20, 1 << 30] {
                let Chosen { algorithm, channels, .. } = choices.choose(collective, bytes).unwrap();
                assert_eq!(cannot(&generate(algorithm, collective, ranks, channels).unwrap()), None);
            }
        }
    }
}

#[test]
fn ranks_that_would_choose_differently_are_named() {
    let terms = |change: fn(&mut Overrides), profile| {
        let config = config(change);
        Wishes { overrides: config.overrides.clone().unwrap(), profile }.terms(&config)
    };
    let usual = || terms(|_| {}, Some(profile(4)));
    assert_eq!(Terms::compare(&[usual(), usual(), usual()]), Ok(()));
    let odd = terms(|o| o.protocols = Some(List::parse("LL")), Some(profile(4)));
    let why = Terms::compare(&[usual(), odd, usual()]).unwrap_err().to_string();
    assert!(
        why.contains("overrides") && why.contains("on ranks 0, 2") && why.contains("on rank 1;"),
        "{why}"
    );
    let why = Terms::compare(&[usual(), terms(|_| {}, Some(profile(2)))]).unwrap_err().to_string();
    assert!(why.contains("the tuner's profile: `measured`"), "{why}");
}

#[test]
fn a_plan_is_refused_as_a_whole_though_some_ranks_part_could_run() {
    // The root of a direct broadcast only says that its data is there; the others read it.
    let plan = generate(Algorithm::OneShot, Collective::Broadcast { root: Rank(0) }, 3, 1).unwrap();
    assert!(cannot(&plan).unwrap().en.contains("reads peers' buffers"));
    assert_eq!(cannot_registered(&plan, RedOp::Sum, false), None);
    let plan = generate(Algorithm::Exchange, Collective::Broadcast { root: Rank(0) }, 3, 1).unwrap();
    assert_eq!(cannot(&plan), None);
}

/// Every rank adds up both inputs where they lie; `last` closes the program.
fn reads_inputs(last: &str) -> Plan {
    let barrier = "  signal to 1-r\n  wait from 1-r\n";
    let text = format!(
        "plan t v1\ncollective all_reduce\nranks 2\nchannels 2\nchunks 1\nevery rank:\n{barrier}  \
         reduce input[0], input[0] of 1-r into output[0]\n{last}"
    );
    crate::plan::text::parse(&text).unwrap().plan
}

/// Of a plan that leaves the last barrier out, a rank's launch may end, and its caller write to its input, while the peer reads it.
#[test]
fn a_plan_on_registered_buffers_has_to_hear_that_peers_have_read_them() {
    let closed = reads_inputs("  signal to 1-r\n  wait from 1-r\n");
    assert_eq!(cannot_registered(&closed, RedOp::Sum, false), None);
    let why = cannot_registered(&reads_inputs(""), RedOp::Sum, false).unwrap();
    assert!(why.en.contains("has to be proved right") && why.en.contains("may finish while"), "{why:?}");
    // One side that does not wait is enough.
    let mut half = closed.clone();
    let Some(Step::Wait { .. }) = half.programs[3].steps.pop() else {
        panic!("rank 1, channel 1 waits last")
    };
    half.programs[1].steps.retain(|step| !matches!(step, Step::Signal { .. }));
    half.programs[1].steps.insert(0, Step::Signal { to: Rank(1) });
    let why = cannot_registered(&half, RedOp::Sum, false).unwrap();
    assert!(why.en.contains("rank 1 may finish while"), "{why:?}");
    // In place the sum would go where the peer still reads.
    let why = cannot_registered(&closed, RedOp::Sum, true).unwrap();
    assert!(why.en.contains("has to be proved right"), "{why:?}");
}

#[test]
fn generated_plans_run_on_registered_buffers() {
    for ranks in [1, 2, 5, 16, 64] {
        for collective in Collective::all(Rank(ranks - 1)) {
            for algorithm in [Algorithm::OneShot, Algorithm::TwoShot] {
                let Ok(plan) = generate(algorithm, collective, ranks, 2) else { continue };
                assert_eq!(cannot_registered(&plan, RedOp::Avg, false), None, "{}", plan.name);
                if collective.alias().is_some() {
                    assert_eq!(cannot_registered(&plan, RedOp::PreMulSum, true), None, "{}", plan.name);
                }
            }
        }
    }
}

/// A launch knows one factor, its own rank's, and would multiply the peers' inputs by it too.
#[test]
fn peers_inputs_are_not_multiplied_by_a_ranks_own_factor() {
    for algorithm in [Algorithm::OneShot, Algorithm::TwoShot] {
        let plan = |collective| generate(algorithm, collective, 2, 1).unwrap();
        let of = |op, in_place| cannot_registered(&plan(Collective::AllReduce), op, in_place);
        assert!(of(RedOp::PreMulSum, false).unwrap().en.contains("knows its own factor only"));
        assert_eq!([of(RedOp::PreMulSum, true), of(RedOp::Sum, false)], [None, None]);
        let broadcast = plan(Collective::Broadcast { root: Rank(0) });
        assert_eq!(cannot_registered(&broadcast, RedOp::PreMulSum, false), None, "nothing is reduced");
    }
    let sends = generate(Algorithm::Ring, Collective::AllReduce, 2, 1).unwrap();
    assert_eq!(cannot_registered(&sends, RedOp::PreMulSum, false), None);
}

#[test]
fn profiles_that_come_with_the_engine_can_be_used() {
    for text in BUILT_IN {
        let profile: Profile = serde_json::from_str(text).unwrap();
        assert_eq!((profile.check(), profile.domain), (Ok(()), Domain::SharedGpuRanks));
    }
}

#[test]
fn a_profile_of_the_tune_report_is_loaded_if_it_is_of_ranks_that_launch_for_themselves() {
    let path = std::env::temp_dir().join(format!("ringlab-choice-{}.json", std::process::id()));
    let config = Config { profile: Some(path.clone()), ..config(|_| {}) };
    profile(4).save(&path).unwrap();
    let wishes = Wishes::new(&config).unwrap();
    assert_eq!(wishes.profile, Some(profile(4)));
    let mut choices = Choices::new(wishes, &config, &situation(4), Rank(0)).unwrap();
    assert_eq!(choices.choose(Collective::AllReduce, 4096).unwrap().algorithm, Algorithm::HalvingDoubling);
    Profile { domain: Domain::SharedGpu, ..profile(4) }.save(&path).unwrap();
    let why = Wishes::new(&config).unwrap_err().to_string();
    assert!(why.contains("is of shared_gpu") && why.contains("--procs --tune-report"), "{why}");
    std::fs::remove_file(&path).unwrap();
    assert!(Wishes::new(&config).unwrap_err().to_string().contains("cannot read"));
}

#[test]
fn nccls_variables_count_as_far_as_they_mean_something_here() {
    let read = |set: &[(&str, &str)]| {
        from_variables(|name| {
            let name = name.strip_prefix("RINGLAB_").unwrap();
            let found = |(full, value): &(&str, &str)| ((*full).to_owned(), (*value).to_owned());
            set.iter().find(|(full, _)| full.split_once('_').unwrap().1 == name).map(found)
        })
    };
    let overrides =
        read(&[("NCCL_ALGO", "NVLS,Ring"), ("NCCL_PROTO", "^LL128"), ("NCCL_NTHREADS", "512")]).unwrap();
    assert_eq!(overrides.algorithms, Some(List::parse("Ring")));
    assert!(overrides.protocols.is_some_and(|list| list.allows("LL") && !list.allows("LL128")));
    assert_eq!(overrides.threads, None);
    assert_eq!(read(&[("NCCL_ALGO", "^NVLS")]), Ok(Overrides::default()));
    let why = read(&[("NCCL_ALGO", "NVLSTree")]).unwrap_err().to_string();
    assert!(why.contains("NCCL_ALGO=NVLSTree names no algorithm of this library"), "{why}");
    assert!(read(&[("RINGLAB_ALGO", "NVLS")]).unwrap_err().to_string().contains("unknown algorithm `NVLS`"));
    assert_eq!(read(&[("RINGLAB_NTHREADS", "512")]).unwrap().threads, Some(512));
}

#[test]
fn of_nccls_lists_what_exists_here_counts() {
    assert_eq!(ours("^NVLS,NVLSTree"), "");
    assert_eq!(ours("NVLS,Ring"), "Ring");
    assert_eq!(ours("^Tree,nvls"), "^Tree");
}
