//! `--report`: how well the grader does, in one table and one file.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ringlab_content::bank::{Bank, FITS, Question};
use ringlab_content::grade::Reading;
use serde::Serialize;
use serde_json::json;

use crate::figures::{Figures, Scored, graded_file, graded_samples, rounded, shown};
use crate::origin;
use crate::out::say;

pub const ROUNDS: u32 = 10;
/// One full answer to every question, compared with every rubric, takes no longer.
const LIMIT_MS: f64 = 1000.0;

pub struct Wanted {
    pub to: Option<PathBuf>,
    pub answers: Option<PathBuf>,
    pub rounds: u32,
}

#[derive(Serialize)]
struct Set {
    name: &'static str,
    #[serde(flatten)]
    figures: Figures,
}

/// The most that answers of one sort earn, and which one does.
#[derive(Default, Serialize)]
struct Most {
    answers: usize,
    marks: u32,
    /// The question that it was given to, and what it is. `None` where nothing earns a mark.
    question: Option<u32>,
    answer: Option<String>,
}

impl Most {
    fn add(&mut self, marks: u32, question: u32, answer: impl FnOnce() -> String) {
        self.answers += 1;
        if marks > self.marks {
            *self = Most { marks, question: Some(question), answer: Some(answer()), ..*self };
        }
    }

    fn line(&self) -> String {
        let of = format!("over {} answers", self.answers);
        match (self.question, &self.answer) {
            (Some(question), Some(answer)) => {
                format!("{} marks, {of} ({answer} in question {question:02})", self.marks)
            }
            _ => format!("{} marks, {of}", self.marks),
        }
    }
}

#[derive(Serialize)]
struct Maxima {
    prompt: Most,
    /// By the names of concepts, and by phrases for them.
    keywords: Most,
    keyword_phrases: Most,
    /// By answers that fit the question which they were written for, and by the others.
    other_question: Most,
    other_question_poor: Most,
}

#[derive(Serialize)]
struct WronglyOther {
    /// Answers to their question, right or wrong.
    answers: usize,
    flagged: Vec<String>,
}

#[derive(Serialize)]
struct Time {
    answers: usize,
    rubrics: usize,
    rounds_ms: Vec<f64>,
    median_ms: f64,
    build: &'static str,
}

pub fn run(root: &Path, wanted: &Wanted) -> Result<(), String> {
    let bank = Bank::load(root).map_err(|errors| errors.to_string())?;
    let mut sets = Vec::new();
    let mut flagged = WronglyOther { answers: 0, flagged: Vec::new() };
    let mut add = |name, scored: &[Scored]| {
        flagged.add(scored);
        sets.push(Set { name, figures: Figures::of(scored) });
    };
    if let Some(path) = &wanted.answers {
        add("answers", &graded_file(&bank, path, true, |_, _| {})?);
    }
    add("samples tuned on", &graded_samples(&bank, false, None, |_, _, _| {}));
    add("samples kept aside", &graded_samples(&bank, true, None, |_, _, _| {}));
    let (other_question, other_question_poor) = other_question(&bank);
    let (keywords, keyword_phrases) = keywords(&bank);
    let maxima =
        Maxima { prompt: prompts(&bank), keywords, keyword_phrases, other_question, other_question_poor };
    let time = time(&bank, wanted.rounds);

    table(&sets).iter().for_each(say);
    say("");
    for (what, most) in [
        ("the prompt itself", &maxima.prompt),
        ("a list of keywords", &maxima.keywords),
        ("a list of phrases for them", &maxima.keyword_phrases),
        ("a good answer to another question", &maxima.other_question),
        ("a poor one", &maxima.other_question_poor),
    ] {
        say(format_args!("{what} earns at most {}", most.line()));
    }
    say(format_args!(
        "{} of {} answers wrongly taken for another question's {}",
        flagged.flagged.len(),
        flagged.answers,
        flagged.flagged.join(" ")
    ));
    say(format_args!(
        "{} answers against {} rubrics: {:.0} ms, the median of {} rounds ({} build)",
        time.answers,
        time.rubrics,
        time.median_ms,
        time.rounds_ms.len(),
        time.build
    ));
    let slow = time.build == "release" && time.median_ms >= LIMIT_MS;
    if let Some(path) = &wanted.to {
        let report = json!({
            "questions": bank.questions().count(),
            "sets": sets,
            "maxima": maxima,
            "wrongly_other_question": flagged,
            "time": time,
        });
        origin::write(path, &command(wanted), report)?;
    }
    if slow { Err(format!("the grader is too slow: {LIMIT_MS:.0} ms is the limit")) } else { Ok(()) }
}

/// As a reader would type it.
fn command(wanted: &Wanted) -> String {
    let mut command = "cargo xtask grade --report".to_owned();
    let path = |name: &str, path: &Option<PathBuf>| {
        path.as_ref().map_or_else(String::new, |path| format!("{name} {}", origin::shown(path)))
    };
    command += &path("", &wanted.to);
    command += &path(" --answers", &wanted.answers);
    if wanted.rounds != ROUNDS {
        command += &format!(" --rounds {}", wanted.rounds);
    }
    command
}

fn table(sets: &[Set]) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<20}{:>5}{:>8}{:>8}{:>9}{:>9}{:>14}{:>13}{:>20}{:>10}{:>20}",
        "",
        "n",
        "kappa",
        "mae",
        "mae 4–7",
        "off ≥ 2",
        "fatal recall",
        "false fatal",
        "translations ≤ 1",
        "person",
        "mae with, without"
    )];
    for Set { name, figures } in sets {
        let translations = &figures.translations;
        lines.push(format!(
            "{name:<20}{:>5}{:>8.3}{:>8.3}{:>9}{:>9}{:>14}{:>13}{:>20}{:>10}{:>20}",
            figures.n,
            figures.kappa,
            figures.mae,
            shown(figures.mae_4_to_7),
            figures.errors_of_2,
            format!("{} of {}", shown(figures.fatal_recall), figures.fatal),
            shown(figures.false_fatal),
            format!("{} of {}", shown(translations.share), translations.pairs),
            figures.person.asked,
            format!("{}, {}", shown(figures.person.mae_asked), shown(figures.person.mae_alone)),
        ));
    }
    lines
}

impl WronglyOther {
    fn add(&mut self, scored: &[Scored]) {
        let answers = || scored.iter().filter(|answer| answer.is_an_answer());
        self.answers += answers().count();
        self.flagged.extend(answers().filter_map(|answer| {
            let other = answer.other_question?;
            Some(format!("{} ({other:02})", answer.id))
        }));
    }
}

/// Each prompt as the answer to itself.
fn prompts(bank: &Bank) -> Most {
    let mut most = Most::default();
    for question in bank.questions() {
        for (name, prompt) in [("zh", &question.zh.prompt), ("en", &question.en.prompt)] {
            most.add(question.grade(&Reading::new(prompt)).total, question.number, || name.to_owned());
        }
    }
    most
}

/// Lists of the concepts that a rubric asks for, as people write lists: by the name that each concept is best known by, and by other
/// spellings. Those are whole phrases at times (`walks off`), so that a list of them says more than names do.
fn keywords(bank: &Bank) -> (Most, Most) {
    let (mut names, mut phrases) = (Most::default(), Most::default());
    let between = [
        ("commas", ", "),
        ("Chinese commas", "、"),
        ("semicolons", "; "),
        ("lines", "\n- "),
        ("spaces", " "),
    ];
    for question in bank.questions() {
        let concepts = question.rubric.keywords();
        let first: Vec<&str> = concepts.iter().filter_map(|words| words.first()).map(|s| &**s).collect();
        let last: Vec<&str> = concepts.iter().filter_map(|words| words.last()).map(|s| &**s).collect();
        let all: Vec<&str> = concepts.iter().flatten().map(|s| &**s).collect();
        let add = |most: &mut Most, which: &str, words: &[&str]| {
            for (name, between) in between {
                let list = words.join(between);
                let marks = question.grade(&Reading::new(&list)).total;
                most.add(marks, question.number, || format!("{which} spellings with {name}"));
            }
        };
        add(&mut names, "first", &first);
        add(&mut phrases, "last", &last);
        add(&mut phrases, "all", &all);
    }
    (names, phrases)
}

/// Samples given to questions that share no facts with theirs: those that fit their own, and the others.
fn other_question(bank: &Bank) -> (Most, Most) {
    let (mut good, mut poor) = (Most::default(), Most::default());
    for own in bank.questions() {
        for sample in own.samples.iter().filter(|sample| sample.is_an_answer()) {
            let answer = bank.read(&sample.text);
            let earned = answer.earned();
            let most =
                if earned.get(&own.number).is_some_and(|own| *own >= FITS) { &mut good } else { &mut poor };
            let strange = |other: &&Question| other.number != own.number && !other.is_neighbour_of(own);
            for other in bank.questions().filter(strange) {
                // Caps only take: what earned no more before them need not be graded.
                let before = earned.get(&other.number).copied().unwrap_or(0);
                let marks = match before > most.marks {
                    true => answer.grade(other.number).map_or(0, |grade| grade.total),
                    false => before,
                };
                most.add(marks, other.number, || format!("{:02}/{}", own.number, sample.id));
            }
        }
    }
    (good, poor)
}

/// The fullest sample of each question, read and compared with every rubric.
fn time(bank: &Bank, rounds: u32) -> Time {
    let fullest = |question: &Question| {
        let answers = question.samples.iter().filter(|sample| sample.follow_up.is_none()).enumerate();
        answers.max_by_key(|(n, sample)| (sample.total(), Reverse(*n))).map(|(_, sample)| sample.text.clone())
    };
    let texts: Vec<String> = bank.questions().filter_map(fullest).collect();
    let rounds_ms: Vec<f64> = (0..rounds)
        .map(|_| {
            let started = Instant::now();
            for text in &texts {
                std::hint::black_box(bank.read(text).earned());
            }
            rounded(started.elapsed().as_secs_f64() * 1e3)
        })
        .collect();
    let mut sorted = rounds_ms.clone();
    sorted.sort_by(f64::total_cmp);
    let middle = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    Time {
        answers: texts.len(),
        rubrics: bank.questions().count(),
        rounds_ms,
        median_ms: rounded(middle),
        build: if cfg!(debug_assertions) { "debug" } else { "release" },
    }
}
