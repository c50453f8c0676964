//! The worker process by itself, on real jobs.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use common::{Folder, RUNNER, job, plan_text, task};
use ringlab_engine::plan::Algorithm;
use ringlab_engine::trace::Trace;
use ringlab_engine::types::{DType, RedOp};
use ringlab_labs::job::{CollectiveTask, Event, EventBody, JobSpec};
use ringlab_labs::wire::{Failure, FailureKind};
use ringlab_runner::line::{Line, MAX_SPEC, Outcome};

/// Runs a worker on `input` in `folder`: its events, its last line and how it ended. It holds itself to the job's limits; a test of ours
/// that hung would end at its CPU limit.
fn run(input: &[u8], folder: &Path) -> (Vec<Event>, Option<Line>, ExitStatus) {
    let mut child = Command::new(RUNNER)
        .arg("worker")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A worker that refuses its input may end before it has read it all.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let mut lines: Vec<Line> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    let last = lines.pop_if(|line| !matches!(line, Line::Event(_)));
    let events = lines.into_iter().map(|line| match line {
        Line::Event(event) => event,
        other => panic!("a last line in the middle: {other:?}"),
    });
    (events.collect(), last, output.status)
}

fn run_job(spec: &JobSpec, folder: &Path) -> (Vec<Event>, Line) {
    let (events, last, status) = run(&serde_json::to_vec(spec).unwrap(), folder);
    assert!(status.success());
    (events, last.expect("a last line"))
}

fn done(spec: &JobSpec, folder: &Path) -> (Vec<Event>, Outcome) {
    match run_job(spec, folder) {
        (events, Line::Result(outcome)) => (events, outcome),
        (_, other) => panic!("{other:?}"),
    }
}

fn failed(spec: &JobSpec) -> Failure {
    match run_job(spec, Folder::new().path()).1 {
        Line::Failure(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_ring_moves_two_times_n_minus_one_over_n_and_every_element_is_right() {
    let folder = Folder::new();
    let (events, outcome) = done(&job(vec![task(Algorithm::Ring, 4)]), folder.path());
    let result = &outcome.tasks[0];
    assert_eq!((result.elements, result.wrong, result.comm_steps), (2 * 4 * 1000, 0, 7));
    // 1000 floats in 4 chunks: each rank sends 2 (4 - 1) chunks; chunks end on 16 bytes, so 252, 252, 252 and 244 elements.
    assert_eq!(result.moved_bytes.iter().sum::<u64>(), 2 * 3 * 4000);
    assert!(result.moved_bytes.iter().all(|&n| n.abs_diff(6000) <= 2 * 8 * 4), "{:?}", result.moved_bytes);
    assert!(!result.times_us.is_empty() && result.times_us.iter().all(|&t| t > 0.0), "{:?}", result.times_us);
    assert!(!result.clock.is_empty());

    assert_eq!(
        events.iter().map(|e| e.seq).collect::<Vec<_>>(),
        (1..=events.len() as u64).collect::<Vec<_>>()
    );
    assert!(events.is_sorted_by_key(|e| e.at_ms));
    let mut phases: Vec<&str> = events
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::Progress { phase, .. } => Some(phase.as_str()),
            _ => None,
        })
        .collect();
    phases.dedup();
    assert_eq!(phases, ["verify", "warmup", "measure", "check", "trace"]);

    let names: Vec<&str> = outcome.artifacts.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["plan-first.txt", "trace-first.json"]);
    assert_eq!(
        std::fs::read_to_string(folder.path().join("plan-first.txt")).unwrap(),
        plan_text(Algorithm::Ring, 4)
    );
    let trace: Trace =
        serde_json::from_slice(&std::fs::read(folder.path().join(result.trace.as_ref().unwrap())).unwrap())
            .unwrap();
    assert_eq!((trace.ranks, trace.dropped), (4, 0));
    assert_eq!(trace.spans.len(), 4 * 7, "one tile: seven steps on each of four ranks");
}

#[test]
fn tasks_of_one_job_run_one_after_another_in_place_and_with_other_types() {
    let tasks = vec![
        CollectiveTask { id: "a".into(), in_place: true, trace: false, ..task(Algorithm::TwoShot, 3) },
        CollectiveTask {
            id: "b".into(),
            dtype: DType::Bf16,
            op: RedOp::Avg,
            block: 77_777,
            ..task(Algorithm::TwoShot, 4)
        },
        CollectiveTask { id: "c".into(), warmup: 0, iterations: 0, block: 0, ..task(Algorithm::OneShot, 2) },
    ];
    let folder = Folder::new();
    let (events, outcome) = done(&job(tasks), folder.path());
    let ids: Vec<_> = outcome.tasks.iter().map(|t| (t.id.as_str(), t.wrong, t.trace.is_some())).collect();
    assert_eq!(ids, [("a", 0, false), ("b", 0, true), ("c", 0, true)]);
    assert_eq!((outcome.tasks[1].elements, outcome.tasks[2].elements), (2 * 4 * 77_777, 0));
    assert_eq!(outcome.tasks[2].times_us, Vec::<f64>::new(), "nothing was timed");
    let reported = events.iter().filter(|e| matches!(e.body, EventBody::TaskDone { .. })).count();
    assert_eq!(reported, 3);
}

#[test]
fn a_plan_that_loses_a_step_is_refused_with_its_counter_example() {
    let mut spec = task(Algorithm::Ring, 3);
    // Rank 2 no longer receives what rank 1 sends it last.
    let at = spec.plan.rfind("recv ").expect("a ring ends with a recv");
    let end = at + spec.plan[at..].find('\n').unwrap_or(spec.plan.len() - at);
    spec.plan.replace_range(at..end, "");
    let failure = failed(&job(vec![spec]));
    assert_eq!(failure.kind, FailureKind::Job);
    assert!(failure.message.contains("the plan is refused"), "{}", failure.message);
    assert!(failure.message.contains("line"), "says where: {}", failure.message);
}

#[test]
fn a_text_that_is_no_plan_is_refused_with_its_line() {
    let failure = failed(&job(vec![CollectiveTask {
        plan: "plan x v1\nnonsense\n".into(),
        ..task(Algorithm::Ring, 2)
    }]));
    assert_eq!(failure.kind, FailureKind::Job);
    assert!(failure.message.contains("line 2"), "{}", failure.message);
}

#[test]
fn a_plan_of_another_size_than_its_task_is_refused() {
    let failure = failed(&job(vec![CollectiveTask { ranks: 3, ..task(Algorithm::Ring, 2) }]));
    assert_eq!(failure.kind, FailureKind::Job);
    assert!(
        failure.message.contains("3 ranks") && failure.message.contains("2 ranks"),
        "{}",
        failure.message
    );
}

#[test]
fn beyond_the_output_limit_the_log_is_cut_and_the_result_arrives() {
    let mut spec = job(vec![task(Algorithm::Ring, 2)]);
    spec.limits.output_bytes = 600;
    let (events, outcome) = done(&spec, Folder::new().path());
    let cut = events
        .iter()
        .position(|e| matches!(e.body, EventBody::Truncated { limit_bytes: 600 }))
        .expect("a notice");
    assert!(events[cut..].iter().all(|e| !matches!(e.body, EventBody::Log { .. })));
    assert!(events[cut..].iter().any(|e| matches!(e.body, EventBody::TaskDone { .. })));
    assert_eq!(outcome.tasks[0].wrong, 0);
}

#[test]
fn a_job_larger_than_its_memory_limit_is_told_the_figures() {
    let mut spec = job(vec![CollectiveTask { block: 64 << 20, ..task(Algorithm::Ring, 2) }]);
    spec.limits.memory_bytes = 512 << 20;
    let failure = failed(&spec);
    assert_eq!(failure.kind, FailureKind::Limit);
    assert!(failure.message.contains("512.0 MiB"), "{}", failure.message);
}

#[test]
fn an_input_that_is_no_job_or_too_long_ends_with_a_word_about_it() {
    for input in [&b"{}"[..], b"", b"[1", &vec![b' '; MAX_SPEC as usize + 1]] {
        let (events, last, status) = run(input, Folder::new().path());
        assert_eq!((events.len(), last, status.code()), (0, None, Some(1)));
    }
}
