//! What the API would say, for a look at the islands without a server.
#![allow(dead_code)] // The tests and the preview each use their part.

use ringlab_content::report::{Grade, Label, PointGrade, Quote, Reason, Remark, RemarkKind, Verdict};
use ringlab_interview::api::*;
use ringlab_interview::bank::{self, Band};
use ringlab_labs::text::Text;
use serde_json::{Value, json};

use super::card;

/// 2026-03-01 12:30 UTC.
const NOW: i64 = 1_772_368_200_000;
const ANSWER: &str =
    "每个 rank 都要以相同顺序调用；系数是 $2(N-1)/N$。\n\nThe root sends <everything> twice.";

fn model() -> ModelAnswer {
    let follow = FollowUp {
        prompt: Text::new("<p>换成树会怎样？</p>", "<p>What about a tree?</p>"),
        answer: Text::new("<p>步数变成对数。</p>", "<p>The steps become logarithmic.</p>"),
    };
    let link = ChapterLink {
        number: 12,
        title: Text::new("环形 all-reduce", "Ring all-reduce"),
        path: Some("/course/12-ring-allreduce".into()),
    };
    ModelAnswer {
        core: Text::new(
            "<p>顺序必须一致，否则互相等待。</p>",
            "<p>The order must agree, or ranks wait for each other.</p>",
        ),
        deep: Text::new("<p>展开。</p>", "<p>More.</p>"),
        follow_ups: vec![follow],
        chapters: vec![link],
    }
}

fn label(zh: &str, en: &str) -> Label {
    Label { zh: zh.into(), en: en.into() }
}

fn grade() -> Grade {
    let quoted = |text: &str| {
        let start = ANSWER.find(text).expect("it is in the answer");
        Quote { start, end: start + text.len(), text: text.into() }
    };
    let reason = |zh, en, verdict, quotes| Reason {
        claim: "c".into(),
        label: label(zh, en),
        verdict,
        marks: 2.0,
        quotes,
    };
    let point = |zh, en, max, awarded, reasons| PointGrade { label: label(zh, en), max, awarded, reasons };
    Grade {
        version: "v".into(),
        total: 6,
        max: 10,
        points: vec![
            point(
                "调用顺序",
                "Order of calls",
                4,
                4,
                vec![reason(
                    "所有 rank 顺序相同",
                    "the same order on every rank",
                    Verdict::Full,
                    vec![quoted("每个 rank 都要以相同顺序调用")],
                )],
            ),
            point(
                "流量系数",
                "Traffic factor",
                3,
                2,
                vec![reason("2(N−1)/N", "2(N − 1)/N", Verdict::Partial, vec![quoted("$2(N-1)/N$")])],
            ),
            point(
                "死锁",
                "Deadlock",
                3,
                0,
                vec![reason("不一致会死锁", "disagreement is a deadlock", Verdict::Missing, vec![])],
            ),
        ],
        fatal: vec![Remark {
            kind: RemarkKind::Fatal,
            label: label("把广播当成发送两次", "takes broadcast for sending twice"),
            quote: Some(quoted("The root sends <everything> twice.")),
        }],
        remarks: vec![],
        confidence: 0.41,
        person: true,
        other_question: None,
    }
}

pub fn sitting(state: SittingState) -> SittingView {
    let question = |number: u32| SittingQuestion {
        question: card(number),
        prompt: Text::new(
            "<p>说明集合通信为什么要求各 rank 以相同的顺序调用，并给出系数。</p>",
            "<p>Say why every rank must call collectives in the same order, and give the factor.</p>",
        ),
        draft: if number == 1 {
            Draft { version: 3, text: ANSWER.into(), saved_ms: Some(NOW) }
        } else {
            Draft::default()
        },
    };
    SittingView {
        id: "one".into(),
        title: "NCCL 初筛 · Screening".into(),
        name: "候选人甲".into(),
        state,
        now_ms: NOW,
        started_ms: NOW - 60_000,
        ends_ms: NOW + 44 * 60_000,
        ended_ms: (state != SittingState::Running).then_some(NOW),
        questions: bank::SCREENING.map(question).to_vec(),
        report: true,
    }
}

pub fn report() -> Report {
    let change = Overridden {
        point: 2,
        from: 0,
        to: 2,
        why: "图示里说清楚了 / clear from the figure".into(),
        by: "Ada".into(),
        at_ms: NOW,
    };
    let question = |number: u32| QuestionReport {
        question: card(number),
        prompt: Text::new("<p>题面</p>", "<p>Prompt</p>"),
        answer: ANSWER.into(),
        seconds: 312,
        grade: grade(),
        overrides: vec![change.clone()],
        total: 8,
        model: model(),
    };
    let share = |title: Text, total| Share { title, total, max: 20 };
    Report {
        sitting: "one".into(),
        title: "NCCL 初筛 · Screening".into(),
        name: Some("候选人甲 <A>".into()),
        started_ms: NOW - 2_700_000,
        ended_ms: NOW,
        state: SittingState::Submitted,
        is_final: false,
        total: 48,
        max: 80,
        scaled: 324,
        band: Band::Working,
        gates: vec![
            GateResult { question: 4, total: 8, passed: true },
            GateResult { question: 14, total: 3, passed: false },
        ],
        levels: (1..=5).map(|n| share(bank::level_title(n), n * 4)).collect(),
        topics: bank::Topic::ALL.iter().zip(3..).map(|(t, n)| share(t.title(), n)).collect(),
        questions: vec![question(1), question(4)],
        study: vec![Study { chapter: model().chapters.remove(0), lost: 7, questions: vec![1, 4] }],
        events: vec![
            StampedEvent { at_ms: NOW - 2_000_000, event: SittingEvent::Left { question: 1 } },
            StampedEvent {
                at_ms: NOW - 1_990_000,
                event: SittingEvent::Pasted { question: 4, characters: 300 },
            },
        ],
    }
}

/// Replies by path below `/api/v1`.
pub fn replies() -> Vec<(&'static str, Value)> {
    let invitation = InvitationView {
        title: "NCCL 初筛 · Screening".into(),
        label: "候选人甲".into(),
        questions: 8,
        seconds: 2_700,
        now_ms: NOW,
        expires_ms: NOW + 86_400_000,
        usable: Usable::Yes,
        sitting: None,
    };
    let item = |number, attempts, last| PracticeItem {
        question: card(number),
        attempts,
        last_total: last,
        best_total: last,
        due_ms: last.map(|n| NOW + i64::from(n) - 7),
    };
    let invited = |label: &str, state, sitting: Option<&str>| Invitation {
        id: label.into(),
        label: label.into(),
        code: None,
        expires_ms: NOW,
        revoked: false,
        sitting: sitting.map(Into::into),
        state,
    };
    let assessment = AssessmentView {
        id: "a".into(),
        title: "NCCL 初筛 · Screening".into(),
        set: QuestionSet::Screening,
        questions: bank::SCREENING.map(card).to_vec(),
        seconds: 2_700,
        blind: true,
        two_reviewers: false,
        report_at_once: true,
        created_ms: NOW,
        closed_ms: None,
        invitations: vec![
            invited("候选人甲", Some(SittingState::Submitted), Some("one")),
            invited("乙", None, None),
        ],
    };
    let queued = ReviewItem {
        sitting: "one".into(),
        assessment: "a".into(),
        title: "NCCL 初筛 · Screening".into(),
        name: None,
        ended_ms: NOW,
        total: 48,
        max: 80,
        confidence: 0.41,
        asks: vec![4, 14],
        confirmed_by: vec![],
        is_final: false,
    };
    let statistics = QuestionStatistics {
        question: card(4),
        answers: 31,
        facility: Some(0.62),
        discrimination: Some(0.4),
        median_seconds: Some(312),
        agreement: Some(0.87),
        reviewed: 12,
    };
    let entry = AuditEntry {
        at_ms: NOW,
        who: "Ada".into(),
        what: "point".into(),
        from: Some("0".into()),
        to: Some("2".into()),
        why: "clear from the figure".into(),
    };
    let review = ReviewView {
        report: report(),
        order: vec![4, 1],
        confirmed_by: vec![],
        two_reviewers: true,
        log: vec![entry],
        opinions: vec![JudgeView { question: 4, model: "a-model".into(), points: vec![1, 0], fatal: true }],
    };
    let account = AccountView { id: Some("u".into()), role: Role::Learner, email: None, display_name: None };
    vec![
        ("account", json!(account)),
        ("invitations/by-code/c0de", json!(invitation)),
        ("sittings/one", json!(sitting(SittingState::Running))),
        ("sittings/one/report", json!(report())),
        (
            "practice",
            json!(PracticeView {
                now_ms: NOW,
                items: vec![item(1, 2, Some(4)), item(4, 1, Some(9)), item(6, 0, None)]
            }),
        ),
        ("assessments", json!([assessment])),
        ("review", json!([queued])),
        ("review/statistics", json!([statistics])),
        ("review/sittings/one", json!(review)),
    ]
}
