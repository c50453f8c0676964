//! The bank's rules (DESIGN §8): levels, topics, gates, sets and bands.

use ringlab_labs::text::Text;
use serde::{Deserialize, Serialize};

/// Questions are numbered from 1 to this.
pub const QUESTIONS: u32 = 54;
/// Points of one question.
pub const POINTS: u32 = 10;

/// Questions that a total cannot make up for.
pub const GATES: [u32; 13] = [4, 6, 14, 17, 18, 30, 31, 45, 46, 47, 51, 52, 54];
/// A gate is passed from this many points of 10: the rubrics' "semantics, data flow and evidence" begin there.
pub const GATE_PASS: u32 = 6;

/// The 45-minute screening.
pub const SCREENING: [u32; 8] = [1, 4, 6, 9, 14, 25, 33, 47];
/// The 90-minute interview without its last question, which is one of [`SENIOR_CHOICE`].
pub const SENIOR: [u32; 11] = [3, 11, 16, 23, 28, 30, 36, 40, 45, 49, 52];
pub const SENIOR_CHOICE: [u32; 2] = [53, 54];

/// Level of a question, 1 to 5.
pub fn level(question: u32) -> u32 {
    match question {
        ..=8 => 1,
        9..=20 => 2,
        21..=33 => 3,
        34..=44 => 4,
        _ => 5,
    }
}

pub fn level_title(level: u32) -> Text {
    match level {
        1 => Text::new("基础概念", "Foundations"),
        2 => Text::new("算法与并行策略", "Algorithms and parallelism"),
        3 => Text::new("NCCL 内部机制", "Inside NCCL"),
        4 => Text::new("大模型推理与生产", "Inference frameworks and production"),
        _ => Text::new("故障诊断与专家题", "Diagnosis and expert questions"),
    }
}

/// What a question is about, across the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    Semantics,
    Algorithms,
    Parallelism,
    Topology,
    Mechanism,
    Frameworks,
    Inference,
    Performance,
    Failures,
}

impl Topic {
    pub const ALL: [Topic; 9] = [
        Topic::Semantics,
        Topic::Algorithms,
        Topic::Parallelism,
        Topic::Topology,
        Topic::Mechanism,
        Topic::Frameworks,
        Topic::Inference,
        Topic::Performance,
        Topic::Failures,
    ];

    pub fn title(self) -> Text {
        match self {
            Topic::Semantics => Text::new("语义与契约", "Semantics and contracts"),
            Topic::Algorithms => Text::new("集合通信算法", "Collective algorithms"),
            Topic::Parallelism => Text::new("并行策略", "Parallelism"),
            Topic::Topology => Text::new("拓扑与传输", "Topology and transports"),
            Topic::Mechanism => Text::new("内部机制", "Mechanism"),
            Topic::Frameworks => Text::new("框架与控制面", "Frameworks and control plane"),
            Topic::Inference => Text::new("大模型推理", "LLM inference"),
            Topic::Performance => Text::new("性能分析", "Performance"),
            Topic::Failures => Text::new("故障与诊断", "Failures and diagnosis"),
        }
    }
}

pub fn topic(question: u32) -> Topic {
    match question {
        1 | 3..=6 | 31 => Topic::Semantics,
        9..=13 => Topic::Algorithms,
        14..=20 | 38 | 39 | 44 => Topic::Parallelism,
        2 | 23..=26 | 50 => Topic::Topology,
        21 | 22 | 27..=29 | 32 | 53 => Topic::Mechanism,
        7 | 8 | 33 | 34 | 35 => Topic::Frameworks,
        36 | 37 | 40..=43 => Topic::Inference,
        45 | 46 | 48 | 49 | 52 => Topic::Performance,
        _ => Topic::Failures,
    }
}

/// Where a total stands, on the scale of 540.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Band {
    Beginning,
    Basic,
    Working,
    Senior,
    Expert,
}

impl Band {
    pub const ALL: [Band; 5] = [Band::Beginning, Band::Basic, Band::Working, Band::Senior, Band::Expert];

    /// `total` of `max`, scaled to 540 and rounded down.
    pub fn of(total: u32, max: u32) -> Band {
        let scaled =
            if max == 0 { 0 } else { u64::from(total) * u64::from(QUESTIONS * POINTS) / u64::from(max) };
        match scaled {
            0..=180 => Band::Beginning,
            181..=300 => Band::Basic,
            301..=400 => Band::Working,
            401..=480 => Band::Senior,
            _ => Band::Expert,
        }
    }
}
