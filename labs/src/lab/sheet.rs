//! From single rulings to the sheet of marks.

use std::collections::BTreeMap;

use super::show;
use crate::api::FieldError;
use crate::catalogue::{CheckSpec, LabView};
use crate::job::{Check, Marks, Table, Verdict};
use crate::text::Text;

/// What a checker found: a ruling for each check, and the tables beside them.
pub(super) struct Judged {
    pub rulings: BTreeMap<String, Ruling>,
    pub tables: Vec<Table>,
}

/// Verdict on one check.
pub(super) struct Ruling {
    pub verdict: Verdict,
    pub expected: String,
    pub got: String,
    pub why: Text,
}

impl Ruling {
    pub fn decided(pass: bool, expected: impl Into<String>, got: impl Into<String>, why: Text) -> Ruling {
        let verdict = if pass { Verdict::Pass } else { Verdict::Fail };
        Ruling { verdict, expected: expected.into(), got: got.into(), why }
    }

    /// Says nothing about what is expected.
    pub fn pending() -> Ruling {
        Ruling {
            verdict: Verdict::Pending,
            expected: String::new(),
            got: String::new(),
            why: Text::new("交上答案之后判。", "Judged once you have answered."),
        }
    }

    /// The run did not bring what the check is about; named in both languages.
    pub fn unmeasured(zh: &str, en: &str) -> Ruling {
        Ruling::decided(
            false,
            "",
            "",
            Text::new(
                format!(
                    "这次运行没有带回可用的测量（{zh}），判不了。请重跑一次；再出现就把运行编号交给管理员。"
                ),
                format!(
                    "The run brought back no usable measurement of {en}. Run again; if it repeats, report \
                     the run's number."
                ),
            ),
        )
    }
}

/// Orders the rulings as the lab lists its checks, weighs them, and takes the price of opened hints off.
pub(super) fn assemble(lab: &LabView, hints: u32, judged: Result<Judged, Vec<FieldError>>) -> Marks {
    let (rulings, tables, fallback) = match judged {
        Ok(judged) => (judged.rulings, judged.tables, Text::new("没有得到裁定。", "no ruling was made")),
        Err(errors) => (BTreeMap::new(), Vec::new(), unjudgeable(&errors)),
    };
    let mut rulings = rulings;
    let mut checks: Vec<Check> = lab
        .checks
        .iter()
        .map(|spec| {
            let ruling = rulings.remove(&spec.id);
            weigh(spec, ruling.unwrap_or_else(|| Ruling::decided(false, "", "", fallback.clone())))
        })
        .collect();
    checks.extend(price(lab, hints));
    let earned: f64 = checks.iter().map(|check| check.marks).sum();
    Marks {
        lab_version: lab.version.clone(),
        checks,
        total: earned.clamp(0.0, lab.max_marks.max(0.0)),
        max: lab.max_marks,
        tables,
    }
}

fn weigh(spec: &CheckSpec, ruling: Ruling) -> Check {
    Check {
        id: spec.id.clone(),
        title: spec.title.clone(),
        expected: ruling.expected,
        got: ruling.got,
        tolerance: spec
            .tolerance
            .map(|relative| format!("±{} %", show::plain(relative * 100.0)))
            .unwrap_or_default(),
        marks: if ruling.verdict == Verdict::Pass { spec.marks } else { 0.0 },
        verdict: ruling.verdict,
        max: spec.marks,
        why: ruling.why,
    }
}

/// Opened hints as a line of their own, so that every mark taken off is explained.
fn price(lab: &LabView, hints: u32) -> Option<Check> {
    let opened = &lab.hints[..lab.hints.len().min(hints as usize)];
    if opened.is_empty() {
        return None;
    }
    let price: f64 = opened.iter().map(|hint| hint.price).sum();
    Some(Check {
        id: "hints".to_owned(),
        title: Text::new("打开过的提示", "Hints opened"),
        expected: String::new(),
        got: opened.len().to_string(),
        tolerance: String::new(),
        verdict: Verdict::Pass,
        marks: -price,
        max: 0.0,
        why: Text::new(
            format!("提交时已打开 {} 条提示，共扣 {} 分。", opened.len(), show::plain(price)),
            format!(
                "{} hint(s) were open when this was sent; they cost {} in all",
                opened.len(),
                show::plain(price)
            ),
        ),
    })
}

fn unjudgeable(errors: &[FieldError]) -> Text {
    let told = |get: fn(&Text) -> &str| {
        let lines: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, get(&e.message))).collect();
        lines.join("; ")
    };
    Text::new(
        format!("提交或答案不合这个实验的要求，判不了：{}", told(|text| &text.zh)),
        format!(
            "the submission or the answers do not fit this lab, so nothing can be judged: {}",
            told(|text| &text.en)
        ),
    )
}
