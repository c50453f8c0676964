use proptest::prelude::*;

use super::*;
use crate::plan::{Algorithm, Buffer, Place, Program, Range, Scratch, Step, VERSION, generate};
use crate::text::Lang;
use crate::types::{ChannelId, Collective, Rank};

fn head(body: &str) -> String {
    format!("plan t v1\ncollective all_reduce\nranks 4\nchannels 1\nchunks n\n{body}")
}

#[track_caller]
fn refused(text: &str, line: u32, column: u32, words: &str) {
    let error = parse(text).unwrap_err();
    assert_eq!((error.line, error.column), (line, column), "{error}");
    assert!(error.message.en.contains(words), "{error}");
    assert!(!error.message.zh.is_empty() && error.message.zh != error.message.en);
}

#[test]
fn mistakes_are_named_where_they_are() {
    refused("", 1, 1, "the text is empty");
    refused("plan t v2\n", 1, 8, "`v1` belongs here");
    refused("plan t v1\nrnaks 4\n", 2, 1, "did you mean `ranks`?");
    refused("plan t v1\ncollective allreduce\n", 2, 12, "did you mean `all_reduce`?");
    refused("plan t v1\nranks 4\nchannels 1\nchunks 1\n", 1, 1, "`collective` is missing");
    refused("plan t v1\ncollective all_reduce\nranks 65\nchannels 1\nchunks 1\n", 1, 1, "choose 1 to 64");
    refused(&head("every rank:\n  sned input[0] to 1\n"), 7, 3, "did you mean `send`?");
    refused(&head("every rank:\n  send input[0]\n"), 7, 16, "send input[k] to RANK");
    refused(&head("every rank:\n  send inptu[0] to 1\n"), 7, 8, "did you mean `input`?");
    refused(&head("every rank:\n  send input[0] to nxt\n"), 7, 20, "`nxt` is not known");
    refused(&head("every rank:\n  send input[r-1] to (r+1) % n\n"), 7, 14, "cannot be negative");
    refused(&head("every rank:\n  send input[r] to r+1\n"), 7, 3, "there is no rank 4");
    refused(&head("every rank:\n  send input[r+1] to (r+1) % n\n"), 7, 3, "out of bounds");
    refused(&head("every rank:\n  send input[0] to r\n"), 7, 3, "names itself");
    refused(&head("every rank:\n  recv from (r+1) % n into input[0]\n"), 7, 3, "read-only");
    refused(&head("every rank:\n  send input[0/(r-r)] to 1\n"), 7, 14, "must be above 0");
    refused(&head("every rank：\n"), 6, 11, "full-width");
    refused(&head("every rank:\n\tsend input[0] to 1\n"), 7, 1, "tab");
    refused(&head("every rank:\n  send input[0] to 1 // x\n"), 7, 22, "comments start with `#`");
    refused(&head("every rank:\nsend input[0] to 1\n"), 6, 12, "something indented must follow");
    refused(&head("every rank:\n  wait from 1\n    wait from 1\n"), 8, 5, "indentation");
    refused(&head("send input[0] to 1\n"), 6, 1, "belongs, indented, below");
    refused(&head("rank 4:\n  wait from 1\n"), 6, 6, "there is no rank 4");
    refused(&head("every rank:\n  let n = 3\n"), 7, 7, "a word of the language");
    refused(&head("every rank:\n  else:\n"), 7, 3, "no `if`");
    refused(
        &head("every rank:\n  for k in 0..999999999:\n    let x = 1\n"),
        7,
        3,
        "units of work, which is the limit",
    );
    refused(&head("every rank:\n  reduce input[0] into output[0]\n"), 7, 3, "use copy for one");
    refused(&head("every rank:\n  copy input[0..2] into output[0]\n"), 7, 3, "same length");
    refused(
        &head(&format!("rank {}1{}:\n  wait from 1\n", "(".repeat(20), ")".repeat(20))),
        6,
        22,
        "nested more",
    );
    refused(&head(&format!("rank 0{}:\n  wait from 1\n", "+0".repeat(80))), 6, 135, "at most 64 operators");
    refused(&"#".repeat(70_000), 1, 1, "70000 bytes");
}

#[test]
fn steps_know_their_lines() {
    let parsed = parse(&parametric(Algorithm::Ring, Collective::AllReduce, 4, 2, Lang::En).unwrap()).unwrap();
    let line = |step| parsed.lines.line(Location { rank: Rank(3), channel: ChannelId(1), step });
    assert_eq!((line(0), line(1), line(2), line(6), line(7)), (Some(11), Some(13), Some(13), Some(19), None));
}

#[test]
fn arithmetic_wraps_and_rounds_down() {
    let text = head("rank 0:\n  copy input[(0-1) % n] into output[-(-7 / 2) - 1]\n");
    let plan = parse(&text).unwrap().plan;
    let at = |buffer| Range { buffer, start: 3, len: 1 };
    let src = Place { rank: None, range: at(Buffer::Input) };
    assert_eq!(plan.programs[0].steps, [Step::Copy { src, dst: at(Buffer::Output) }]);
}

#[test]
fn the_parametric_texts_are_the_generated_plans() {
    for ranks in 1..=16 {
        let roots = [0, ranks / 2, ranks - 1];
        let collectives: Vec<_> = roots.into_iter().flat_map(|root| Collective::all(Rank(root))).collect();
        for (algorithm, collective) in
            Algorithm::ALL.into_iter().flat_map(|a| collectives.iter().map(move |c| (a, *c)))
        {
            let Ok(plan) = generate(algorithm, collective, ranks, 2) else { continue };
            for lang in Lang::ALL {
                let text = parametric(algorithm, collective, ranks, 2, lang).unwrap();
                assert_eq!(parse(&text).map(|p| p.plan).as_ref(), Ok(&plan), "{text}");
            }
            assert_eq!(
                parse_within(&print(&plan), &Limits { bytes: 1 << 20, ..Limits::default() }).unwrap().plan,
                plan
            );
        }
    }
}

#[test]
fn the_largest_standard_texts_fit_the_bounds() {
    for algorithm in Algorithm::ALL {
        let all_reduces = algorithm.supports(Collective::AllReduce);
        let collective = if all_reduces { Collective::AllReduce } else { Collective::AllToAll };
        let text = parametric(algorithm, collective, 64, 32, Lang::En).unwrap();
        match parse(&text) {
            Ok(parsed) => assert_eq!(parsed.plan.programs.len(), 64 * 32),
            Err(error) => {
                // Without loops, 64 ranks are too long a text.
                let written_out = matches!(algorithm, Algorithm::Tree | Algorithm::HalvingDoubling);
                let bound =
                    if written_out { "the limit is 65536" } else { "expands to more than 262144 steps" };
                assert!(error.message.en.contains(bound), "{error}");
            }
        }
    }
}

/// Texts of 64 KiB that once took minutes: what costs time in one statement has to count as work.
#[test]
fn the_most_expensive_texts_are_refused_soon() {
    let head = "plan t v1\ncollective all_gather\nranks 1\nchannels 1\nchunks 1\nrank 0:\n".to_string();
    let filled = |mut text: String, line: &dyn Fn(usize) -> String, room: usize| {
        let mut lines = (0..).map(line);
        while text.len() + 200 + room < Limits::default().bytes {
            text += &lines.next().expect("endless");
        }
        text
    };
    let long = format!("n{}", "-n".repeat(64));
    let arms = filled(
        format!("{head}  for i in 0..1000000:\n    if 0 == 1:\n      let z = 1\n"),
        &|_| format!("    else if {long} == 1:\n      let z = 1\n"),
        0,
    );
    let names = filled(head, &|i| format!("  let a{i:x} = 0\n"), 200);
    let names = format!("{names}  for i in 0..1000000:\n    let x = {long}\n");
    for text in [arms, names] {
        let started = std::time::Instant::now();
        let error = parse(&text).unwrap_err();
        assert!(error.message.en.contains("units of work"), "{error}");
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }
}

#[test]
fn a_name_that_is_not_known_lists_a_few() {
    let lets: String = (0..2000).map(|i| format!("  let name_{i} = 0\n")).collect();
    let error = parse(&head(&format!("rank 0:\n{lets}  signal to elsewhere\n"))).unwrap_err();
    assert!(error.message.en.ends_with("name_7, name_8, ...."), "{error}");
    assert!(error.message.zh.len() < 400);
}

/// Plans that pass the structural check and nothing more.
fn plans() -> impl Strategy<Value = Plan> {
    let collective = prop::sample::select(Collective::all(Rank(1)).to_vec());
    (collective, 2u32..5, 1u32..4, 1u32..4, prop::collection::vec(1u32..4, 0..3)).prop_flat_map(
        |(collective, ranks, channels, chunks, scratch)| {
            let scratch: Vec<Scratch> = scratch
                .into_iter()
                .enumerate()
                .map(|(i, chunks)| Scratch { name: format!("tmp_{i}"), chunks })
                .collect();
            let empty = Plan {
                version: VERSION,
                name: "Some_name2".into(),
                collective,
                ranks,
                channels,
                chunks,
                scratch,
                programs: Vec::new(),
            };
            let programs = (ranks * channels) as usize;
            prop::collection::vec(prop::collection::vec(any::<[u8; 8]>(), 0..5), programs).prop_map(
                move |seeds| {
                    let mut plan = empty.clone();
                    plan.programs = (0u32..)
                        .zip(&seeds)
                        .map(|(i, seeds)| {
                            let (rank, channel) = (Rank(i / channels), ChannelId(i % channels));
                            let steps = seeds.iter().map(|seed| step(&plan, rank, *seed)).collect();
                            Program { rank, channel, steps }
                        })
                        .collect();
                    plan
                },
            )
        },
    )
}

fn step(plan: &Plan, rank: Rank, seed: [u8; 8]) -> Step {
    let peer = |s: u8| Rank((rank.0 + 1 + u32::from(s) % (plan.ranks - 1)) % plan.ranks);
    let len = 1 + u32::from(seed[1] % 2);
    let range_of = |owner: Rank, s: u8, writable: bool| {
        let mut buffers = vec![Buffer::Output];
        buffers.extend((0..plan.scratch.len()).map(|i| Buffer::Scratch(i as u16)));
        if !writable {
            buffers.push(Buffer::Input);
        }
        let given = |b: &Buffer| match b {
            Buffer::Input => plan.collective.has_input(owner),
            Buffer::Output => plan.collective.has_output(owner),
            Buffer::Scratch(_) => true,
        };
        let long = |b: &Buffer| given(b) && plan.buffer_chunks(*b).unwrap() >= len;
        let fitting: Vec<Buffer> = buffers.into_iter().filter(long).collect();
        let buffer = *fitting.get(usize::from(s) % fitting.len().max(1))?;
        let start = u32::from(s / 8) % (plan.buffer_chunks(buffer).unwrap() - len + 1);
        Some(Range { buffer, start, len })
    };
    let range = |s: u8, writable: bool| range_of(rank, s, writable);
    let place = |s: u8| {
        let of = Rank(u32::from(s / 16) % plan.ranks);
        Some(Place { rank: (of != rank).then_some(of), range: range_of(of, s, false)? })
    };
    let (from, to) = (peer(seed[2]), peer(seed[3]));
    let made = (|| {
        let (src, dst) = (range(seed[4], false)?, range(seed[5], true)?);
        Some(match seed[0] % 10 {
            0 => Step::Send { to, src },
            1 => Step::Recv { from, dst },
            2 => Step::RecvReduceCopy { from, src, dst },
            3 => Step::RecvReduceSend { from, src, to },
            4 => Step::RecvReduceCopySend { from, src, dst, to },
            5 => Step::RecvCopySend { from, dst, to },
            6 => Step::Copy { src: place(seed[6])?, dst },
            7 => Step::Reduce { srcs: vec![place(seed[6])?, place(seed[7])?, place(seed[4])?], dst },
            8 => Step::Signal { to },
            _ => Step::Wait { from },
        })
    })();
    made.unwrap_or(Step::Signal { to })
}

proptest! {
    #[test]
    fn a_printed_plan_parses_to_itself(plan in plans()) {
        prop_assert_eq!(plan.check(), Ok(()));
        let text = print(&plan);
        prop_assert_eq!(parse(&text).map(|p| p.plan), Ok(plan), "{}", text);
    }

    #[test]
    fn no_text_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_change_of_a_plan_makes_it_panic(
        algorithm in 0usize..3, edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..6, ".{0,6}"), 1..12),
    ) {
        let text = parametric(Algorithm::ALL[algorithm], Collective::AllReduce, 5, 2, Lang::Zh).unwrap();
        let mut chars: Vec<char> = text.chars().collect();
        for (at, cut, insert) in edits {
            let at = at.index(chars.len() + 1).min(chars.len());
            let end = (at + cut).min(chars.len());
            chars.splice(at..end, insert.chars());
        }
        let text: String = chars.into_iter().collect();
        if let Err(error) = parse(&text) {
            let lines = text.lines().count().max(1);
            prop_assert!(error.line as usize <= lines, "{} in {:?}", error, text);
        }
    }
}

#[test]
fn the_example_of_the_manual_is_the_generated_ring() {
    let manual = include_str!("../LANGUAGE.md");
    let example = manual.split("```").nth(1).unwrap();
    let plan = parse(example).unwrap().plan;
    assert_eq!(plan, generate(Algorithm::Ring, Collective::AllReduce, 4, 2).unwrap());
}
