//! Graded answers beside their references, and how well the two agree: what `--score`, `--samples` and `--report` say.

use std::collections::BTreeMap;
use std::path::Path;

use ringlab_content::bank::{Bank, Question, Sample};
use ringlab_content::grade::agreement;
use ringlab_content::report::Grade;
use serde::{Deserialize, Serialize};

/// One line of a file of answers.
#[derive(Deserialize)]
pub struct Line {
    pub id: String,
    pub question: u32,
    pub answer: String,
    #[serde(default)]
    pub kind: String,
    /// Id of the answer that this one translates, where the file says so.
    pub translates: Option<String>,
    #[serde(default)]
    pub points: Vec<Reference>,
    pub total: Option<u32>,
    #[serde(default)]
    pub fatal: bool,
}

#[derive(Deserialize)]
pub struct Reference {
    pub awarded: u32,
}

/// One answer beside its reference.
pub struct Scored {
    pub id: String,
    kind: String,
    /// What the answer earned that this one translates.
    original: Option<u32>,
    ours: u32,
    total: u32,
    /// Whether the reference, and whether we, found a basic error.
    fatal: (bool, bool),
    confidence: f32,
    person: bool,
    /// The question that it is said to answer instead.
    pub other_question: Option<u32>,
}

impl Scored {
    fn new(id: String, grade: &Grade, total: u32, fatal: bool) -> Scored {
        Scored {
            id,
            kind: String::new(),
            original: None,
            ours: grade.total,
            total,
            fatal: (fatal, !grade.fatal.is_empty()),
            confidence: grade.confidence,
            person: grade.person,
            other_question: grade.other_question.as_ref().map(|other| other.question),
        }
    }

    fn error(&self) -> f64 {
        f64::from(self.ours.abs_diff(self.total))
    }

    /// Whether the reference found an answer to its question, be it a wrong one: of few marks, it may really be about something else.
    pub fn is_an_answer(&self) -> bool {
        self.total > 2 || self.fatal.0
    }
}

/// Grades a file's answers, with `see` called for each; those with reference marks are returned. With `all` each must have them.
pub fn graded_file(
    bank: &Bank,
    path: &Path,
    all: bool,
    mut see: impl FnMut(&Line, &Grade),
) -> Result<Vec<Scored>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let mut scored: Vec<Scored> = Vec::new();
    let mut translations = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("{}:{}", path.display(), n + 1);
        let line: Line = serde_json::from_str(line).map_err(|error| format!("{}: {error}", place()))?;
        let grade = bank
            .read(&line.answer)
            .grade(line.question)
            .ok_or_else(|| format!("{}: question {} is not written yet", place(), line.question))?;
        see(&line, &grade);
        let Some(total) = line.total else {
            if all {
                return Err(format!("{}: `total`, the reference's marks, is missing here", place()));
            }
            continue;
        };
        translations.extend(line.translates.map(|original| (scored.len(), original)));
        scored.push(Scored { kind: line.kind, ..Scored::new(line.id, &grade, total, line.fatal) });
    }
    for (at, original) in translations {
        scored[at].original = scored.iter().find(|other| other.id == original).map(|other| other.ours);
    }
    Ok(scored)
}

/// Grades the rubrics' own samples, those kept aside or the others, with `see` called for each; answers to follow-ups are not returned.
pub fn graded_samples(
    bank: &Bank,
    held: bool,
    question: Option<u32>,
    mut see: impl FnMut(&str, &Sample, &Grade),
) -> Vec<Scored> {
    let mut scored = Vec::new();
    for question in bank.questions().filter(|it| question.is_none_or(|n| n == it.number)) {
        for sample in question.samples.iter().filter(|sample| sample.held == held) {
            let Some(grade) = graded(bank, question, sample) else { continue };
            let id = format!("{:02}/{}", question.number, sample.id);
            see(&id, sample, &grade);
            if sample.follow_up.is_none() {
                let original =
                    question.samples.iter().find(|other| Some(&other.id) == sample.translates.as_ref());
                let original = original.and_then(|original| graded(bank, question, original));
                scored.push(Scored {
                    original: original.map(|original| original.total),
                    ..Scored::new(id, &grade, sample.total(), sample.fatal)
                });
            }
        }
    }
    scored
}

fn graded(bank: &Bank, question: &Question, sample: &Sample) -> Option<Grade> {
    let answer = bank.read(&sample.text);
    match sample.follow_up {
        None => answer.grade(question.number),
        Some(n) => answer.grade_follow_up(question.number, n),
    }
}

/// Kinds of answers that should earn next to nothing.
const EMPTY: [&str; 3] = ["stuffing", "offtopic", "copy-question"];

/// How well a set of answers was graded. What there is nothing to say of is `None`.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub n: usize,
    /// Quadratic weighted, over totals from 0 to 10.
    pub kappa: f64,
    pub mae: f64,
    /// Where the reference gave 4 to 7 marks.
    pub mae_4_to_7: Option<f64>,
    /// Answers that are off by two marks or more.
    pub errors_of_2: usize,
    /// Answers in which the reference found a basic error.
    pub fatal: usize,
    pub fatal_recall: Option<f64>,
    /// Of the answers without one, the share in which we found one.
    pub false_fatal: Option<f64>,
    pub translations: Translations,
    pub person: Person,
    pub confidence: Confidence,
    pub most_by_kind: BTreeMap<&'static str, Option<u32>>,
}

#[derive(Debug, Serialize)]
pub struct Translations {
    pub pairs: usize,
    /// Pairs that are at most a mark apart.
    pub near: usize,
    pub share: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct Person {
    /// Answers for which a person is asked.
    pub asked: usize,
    pub mae_asked: Option<f64>,
    pub mae_alone: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct Confidence {
    pub right: Option<f64>,
    pub wrong: Option<f64>,
}

impl Figures {
    pub fn of(scored: &[Scored]) -> Figures {
        let pairs: Vec<(u32, u32)> = scored.iter().map(|answer| (answer.ours, answer.total)).collect();
        let whole = agreement(&pairs);
        let apart = || scored.iter().filter_map(|answer| Some(answer.original?.abs_diff(answer.ours)));
        let errors = |wanted: &dyn Fn(&Scored) -> bool| {
            mean(scored.iter().filter(|answer| wanted(answer)).map(Scored::error))
        };
        let accused = |wanted: bool| {
            let found = scored.iter().filter(|answer| answer.fatal.0 == wanted).map(|answer| answer.fatal.1);
            mean(found.map(|found| f64::from(u8::from(found))))
        };
        let confidence = |right: bool| {
            let answers = scored.iter().filter(|answer| (answer.ours == answer.total) == right);
            mean(answers.map(|answer| f64::from(answer.confidence)))
        };
        let most = |kind: &str| scored.iter().filter(|a| a.kind == kind).map(|a| a.ours).max();
        Figures {
            n: whole.n,
            kappa: rounded(whole.kappa),
            mae: rounded(whole.mae),
            mae_4_to_7: errors(&|answer| (4..=7).contains(&answer.total)),
            errors_of_2: pairs.iter().filter(|(ours, total)| ours.abs_diff(*total) >= 2).count(),
            fatal: scored.iter().filter(|answer| answer.fatal.0).count(),
            fatal_recall: accused(true),
            false_fatal: accused(false),
            translations: Translations {
                pairs: apart().count(),
                near: apart().filter(|apart| *apart <= 1).count(),
                share: mean(apart().map(|apart| f64::from(u8::from(apart <= 1)))),
            },
            person: Person {
                asked: scored.iter().filter(|answer| answer.person).count(),
                mae_asked: errors(&|answer| answer.person),
                mae_alone: errors(&|answer| !answer.person),
            },
            confidence: Confidence { right: confidence(true), wrong: confidence(false) },
            most_by_kind: EMPTY.into_iter().map(|kind| (kind, most(kind))).collect(),
        }
    }

    /// What `--score` prints of a file: the agreement last.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("reference totals 4 to 7: mae {}", shown(self.mae_4_to_7))];
        for kind in EMPTY {
            let most = self.most_by_kind.get(kind).copied().flatten();
            lines
                .push(format!("{kind}: at most {}", most.map_or("-".into(), |most| format!("{most} marks"))));
        }
        lines.push(format!("translations within 1 mark: {}", shown(self.translations.share)));
        let Confidence { right, wrong } = self.confidence;
        lines.push(format!("confidence where right {}, where not {}", shown(right), shown(wrong)));
        lines.push(format!(
            "mae without a person {}, where a person is asked for {}",
            shown(self.person.mae_alone),
            shown(self.person.mae_asked)
        ));
        lines.push(self.agreement());
        lines
    }

    /// The one line that programs look for.
    pub fn agreement(&self) -> String {
        format!(
            "kappa {:.3}  mae {:.3}  fatal-recall {:.3}  false-fatal {:.3}  n {}",
            self.kappa,
            self.mae,
            self.fatal_recall.unwrap_or(1.0),
            self.false_fatal.unwrap_or(0.0),
            self.n
        )
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| rounded(sum / f64::from(n)))
}

/// To four places: more would say nothing.
pub fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

pub fn shown(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}
