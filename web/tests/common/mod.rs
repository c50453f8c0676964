//! Data for pages: small, but of every kind.

pub mod interview;
pub mod reference;

use std::collections::BTreeMap;

use ringlab_content::reading::{Colour, Note, Quote};
use ringlab_content::types::{Chapter, ChapterMeta, Quiz, QuizKind, QuizOption, Segment, TocEntry, Widget};
use ringlab_engine::fifo::{Fifo, Protocol};
use ringlab_engine::trace::{Crossing, Origin, Span, Trace};
use ringlab_engine::types::{ChannelId, Rank};
use ringlab_interview::api::QuestionCard;
use ringlab_interview::bank;
use ringlab_labs::api::{JobState, JobView, RunnerView, StreamEvent};
use ringlab_labs::catalogue::{CheckSpec, ChoiceOption, Field, FieldKind, Hint, LabView};
use ringlab_labs::job::{
    Artifact, Backend, Check, Event, EventBody, HardwareInfo, JobResult, Level, Limits, Marks, Submission,
    Table, TaskResult, Verdict,
};
use ringlab_labs::text::{Lang, Text};
use ringlab_labs::wire::{Failure, FailureKind};
use ringlab_search::Results;
use ringlab_web::page::{ChapterCard, ChapterNotes, InterviewPage, Page, ReferencePage, Shell};

use reference::{formula, found, group, place, reference, search, term, variable};

pub fn shell(lang: Lang, path: &str) -> Shell {
    Shell { lang, path: path.into(), nonce: "n0nce".into(), build: "b1".into() }
}

pub fn meta(number: u32) -> ChapterMeta {
    ChapterMeta {
        number,
        slug: "ring-allreduce".into(),
        title: format!("Title {number} <&>"),
        lang: "en".into(),
        summary: "A summary.".into(),
        minutes: 20,
        objectives: vec!["derive 2(N − 1)/N".into()],
        prerequisites: vec!["8: busbw".into()],
        requires: vec![8],
        lab: Some("ring-allreduce".into()),
    }
}

fn option(html: &str, correct: bool) -> QuizOption {
    QuizOption { html: html.into(), correct, why: format!("<p>why {html}</p>") }
}

pub fn quizzes() -> Vec<Quiz> {
    let kinds = [
        QuizKind::Single { options: vec![option("one", false), option("two", true)] },
        QuizKind::Multiple { options: vec![option("a", true), option("b", true), option("c", false)] },
        QuizKind::Numeric { answer: 1.75, tolerance: 0.01, unit: "S".into() },
        QuizKind::Order { items: vec!["first".into(), "second".into(), "third".into()] },
        QuizKind::Matching { pairs: vec![("send".into(), "out".into()), ("recv".into(), "in".into())] },
    ];
    let quiz = |(i, kind)| Quiz {
        id: format!("q{i}"),
        prompt: format!("<p>Prompt {i}</p>"),
        kind,
        explanation: format!("<p>Explanation {i}</p>"),
    };
    kinds.into_iter().enumerate().map(quiz).collect()
}

pub fn chapter() -> Chapter {
    let widget = |kind: &str, params: &[(&str, &str)]| {
        Segment::Widget(Widget {
            kind: kind.into(),
            params: params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            fallback: format!("<p>fallback of {kind}</p>"),
        })
    };
    let mut segments = vec![
        Segment::Html { html: "<h2 id=\"why\">Why a ring</h2><p>Prose.</p>".into() },
        widget("ring-stepper", &[("ranks", "4")]),
        widget("bandwidth-calculator", &[("ranks", "8")]),
        widget("not-known-here", &[]),
        Segment::Lab { id: "ring-allreduce".into(), html: "<p>Go and run it.</p>".into() },
    ];
    segments.extend(quizzes().into_iter().map(Segment::Quiz));
    Chapter {
        meta: meta(12),
        version: "v".into(),
        toc: vec![TocEntry { level: 2, id: "why".into(), html: "Why a ring".into() }],
        segments,
    }
}

fn field(name: &str, kind: FieldKind) -> Field {
    Field {
        name: name.into(),
        label: Text::new(format!("{name} 标签"), format!("{name} label")),
        help: Some(Text::new("说明", "help")),
        kind,
    }
}

pub fn lab() -> LabView {
    LabView {
        id: "ring-allreduce".into(),
        version: "abc".into(),
        chapter: 12,
        title: Text::new("环形 all-reduce", "Ring all-reduce"),
        summary: Text::new("预测并运行。", "Predict and run."),
        body: Text::new("<p>中文说明</p>", "<p>English instructions</p>"),
        minutes: 30,
        backends: vec![Backend::Cpu, Backend::Cuda],
        params: vec![
            field("ranks", FieldKind::Integer { min: 2, max: 8, default: Some(4), unit: String::new() }),
            field(
                "backend",
                FieldKind::Choice {
                    options: vec![ChoiceOption {
                        value: "cpu".into(),
                        label: Text::new("处理器", "processor"),
                    }],
                    default: "cpu".into(),
                },
            ),
        ],
        prediction: vec![field(
            "steps",
            FieldKind::Integer { min: 0, max: 100, default: None, unit: String::new() },
        )],
        answers: vec![field(
            "busbw",
            FieldKind::Number { min: 0.0, max: 1e6, default: None, unit: "GB/s".into() },
        )],
        takes_plan: true,
        limits: Limits {
            wall_ms: 60_000,
            memory_bytes: 1 << 30,
            output_bytes: 1 << 20,
            collective_ms: 5_000,
        },
        checks: vec![CheckSpec {
            id: "steps".into(),
            title: Text::new("步数", "Steps"),
            marks: 5.0,
            tolerance: None,
        }],
        hints: vec![Hint { body: Text::new("<p>提示</p>", "<p>hint</p>"), price: 0.5 }],
        max_marks: 10.0,
    }
}

pub fn hardware() -> HardwareInfo {
    HardwareInfo {
        cpu: "Test CPU".into(),
        cores: 2,
        memory_bytes: 24 << 30,
        os: "Linux".into(),
        gpus: vec![],
        backends: vec![Backend::Cpu],
    }
}

pub fn runner() -> RunnerView {
    RunnerView {
        name: "local".into(),
        hardware: hardware(),
        version: "0.1.0".into(),
        busy: true,
        last_seen: "2026-03-01T12:30:45Z".into(),
    }
}

pub fn job(state: JobState) -> JobView {
    let done = state == JobState::Done;
    let text = Text::new;
    JobView {
        id: "01957a00-0000-7000-8000-000000000001".into(),
        lab: "ring-allreduce".into(),
        lab_version: "abc".into(),
        seed: 42,
        state,
        attempt: 1,
        max_attempts: 3,
        created: "2026-03-01T12:30:45Z".into(),
        started: done.then(|| "2026-03-01T12:30:46Z".into()),
        finished: done.then(|| "2026-03-01T12:30:49Z".into()),
        submission: Submission {
            lab: "ring-allreduce".into(),
            params: BTreeMap::from([("ranks".into(), 4.into())]),
            prediction: BTreeMap::from([("steps".into(), 6.into())]),
            code: None,
            hints: 0,
        },
        plan: None,
        runner: done.then(|| "local".into()),
        result: done.then(|| JobResult {
            schema: 1,
            hardware: hardware(),
            tasks: vec![TaskResult {
                id: "run".into(),
                elements: 1000,
                wrong: 0,
                first_wrong: None,
                times_us: vec![12.5],
                clock: "host".into(),
                moved_bytes: vec![1500; 4],
                comm_steps: 6,
                trace: Some("trace.json".into()),
            }],
            artifacts: vec![],
            engine: "0.1.0".into(),
        }),
        artifacts: if done {
            vec![Artifact {
                name: "trace.json".into(),
                media_type: "application/json".into(),
                bytes: 2048,
                sha256: "00".repeat(32),
            }]
        } else {
            vec![]
        },
        answers: None,
        marks: done.then(|| Marks {
            lab_version: "abc".into(),
            checks: vec![Check {
                id: "steps".into(),
                title: text("步数", "Steps"),
                expected: "6".into(),
                got: "6".into(),
                tolerance: String::new(),
                verdict: Verdict::Pass,
                marks: 5.0,
                max: 5.0,
                why: text("2(N−1)", "2(N − 1)"),
            }],
            total: 5.0,
            max: 10.0,
            tables: vec![Table {
                id: "traffic".into(),
                title: text("流量", "Traffic"),
                columns: vec![text("rank", "rank"), text("字节", "bytes")],
                rows: vec![vec!["0".into(), "1500".into()]],
                source: text("实测", "measured"),
            }],
        }),
    }
}

pub fn failed() -> JobState {
    JobState::Failed { failure: Failure { kind: FailureKind::Limit, message: "took <60 s>".into() } }
}

pub fn trace() -> Trace {
    let span = |rank: u32| Span {
        rank: Rank(rank),
        channel: ChannelId(0),
        tile: 0,
        step: 0,
        op: "send".into(),
        from: None,
        to: Some(Rank(1 - rank)),
        bytes: 64,
        start_ns: 0,
        ready_ns: 1000,
        end_ns: 3500,
        crossing: Crossing { sent: Some(4 * u64::from(rank)..8), ..Crossing::default() },
    };
    Trace {
        version: 1,
        origin: Origin::Measured { backend: "cpu".into(), hardware: "Test CPU".into(), clock: "tsc".into() },
        ranks: 2,
        channels: 1,
        fifo: Some(Fifo { protocol: Protocol::Ll128, chunk_steps: 4, slice_steps: 2 }),
        slot_bytes: Some(65_536),
        spans: vec![span(0), span(1)],
        dropped: 3,
    }
}

pub fn events() -> Vec<StreamEvent> {
    let body =
        EventBody::Log { level: Level::Info, source: "worker".into(), message: "plan <verified>".into() };
    vec![StreamEvent { attempt: 1, event: Event { seq: 1, at_ms: 12, body } }]
}

pub fn card(number: u32) -> QuestionCard {
    QuestionCard {
        number,
        title: Text::new("集合通信的顺序", "The order of collectives"),
        level: bank::level(number),
        topic: bank::topic(number),
        gate: bank::GATES.contains(&number),
    }
}

/// Every kind of page, with its path.
fn notes() -> ChapterNotes {
    let quote = Quote { before: String::new(), exact: "S/N <bytes>".into(), after: String::new() };
    let note = |id: &str, section: &str| Note {
        id: id.into(),
        section: section.into(),
        lang: "en".into(),
        quote: Some(quote.clone()),
        colour: Colour::Blue,
        text: "why?".into(),
        version: 1,
        created_ms: 0,
        changed_ms: 0,
    };
    ChapterNotes {
        number: 12,
        title: "Title".into(),
        folder: Some("12-ring-allreduce".into()),
        sections: vec![TocEntry { level: 2, id: "time".into(), html: "Time".into() }],
        notes: vec![note("n1", "time"), note("n2", "gone")],
    }
}

pub fn pages() -> Vec<(&'static str, Page)> {
    let run = |state: JobState| {
        let trace = (state == JobState::Done).then(|| Box::new(trace()));
        Page::Run { job: Box::new(job(state)), lab: lab(), events: events(), trace }
    };
    vec![
        ("/", Page::Home { chapters: vec![meta(8), meta(12)], labs: vec![lab()], runners: vec![runner()] }),
        (
            "/course",
            Page::Course {
                chapters: vec![
                    ChapterCard { number: 1, title: "Announced".into(), written: None },
                    ChapterCard { number: 12, title: "Title".into(), written: Some(meta(12)) },
                ],
            },
        ),
        (
            "/course/12-ring-allreduce",
            Page::Chapter {
                chapter: chapter(),
                previous: Some(meta(11)),
                next: None,
                questions: vec![card(9)],
            },
        ),
        ("/notes", Page::Notes { chapters: vec![notes()] }),
        (
            "/course/path",
            Page::Path {
                chapters: vec![
                    ChapterCard { number: 1, title: "Announced".into(), written: None },
                    ChapterCard { number: 12, title: "Title".into(), written: Some(meta(12)) },
                ],
            },
        ),
        ("/reference", reference(ReferencePage::Front { terms: 2, variables: 1, formulas: 1, places: 1 })),
        ("/reference/glossary", reference(ReferencePage::Glossary { terms: vec![term()] })),
        ("/reference/environment", reference(ReferencePage::Environment { groups: group(variable()) })),
        ("/reference/formulas", reference(ReferencePage::Formulas { groups: group(formula()) })),
        ("/reference/source-map", reference(ReferencePage::SourceMap { groups: group(place()) })),
        ("/search", search("", Results::default())),
        ("/search?nothing", search("xyzzy", Results::default())),
        ("/search?found", search("环 <b>", found())),
        ("/labs", Page::Labs { labs: vec![lab()] }),
        (
            "/labs/ring-allreduce",
            Page::Lab {
                lab: lab(),
                seed: 42,
                runners: vec![runner()],
                jobs: vec![job(JobState::Done)],
                chapter: Some(meta(12)),
            },
        ),
        ("/runs/done", run(JobState::Done)),
        ("/runs/queued", run(JobState::Queued { position: 2, reason: Text::new("都在忙", "all busy") })),
        ("/runs/running", run(JobState::Running)),
        ("/runs/failed", run(failed())),
        ("/runs/cancelled", run(JobState::Cancelled)),
        ("/interview", Page::Interview(InterviewPage::Front)),
        ("/sign-in", Page::Interview(InterviewPage::Account)),
        ("/invitations/c0de", Page::Interview(InterviewPage::Invitation { code: "c0de".into() })),
        ("/sittings/one", Page::Interview(InterviewPage::Sitting { id: "one".into() })),
        ("/sittings/one/report", Page::Interview(InterviewPage::Report { id: "one".into() })),
        ("/practice", Page::Interview(InterviewPage::Practice)),
        (
            "/practice/4",
            Page::Interview(InterviewPage::PracticeQuestion {
                question: card(4),
                prompt: Text::new("<p>题面</p>", "<p>Prompt</p>"),
            }),
        ),
        ("/assessments", Page::Interview(InterviewPage::Assessments)),
        ("/review", Page::Interview(InterviewPage::Review)),
        ("/review/sittings/one", Page::Interview(InterviewPage::ReviewSitting { id: "one".into() })),
        (
            "/nowhere",
            Page::Error { status: 404, title: "Not found".into(), detail: "There is no page here.".into() },
        ),
    ]
}
