//! Grades answers with the rubrics of content/interview. See content/README.md.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use ringlab_content::bank::{Bank, Question};
use ringlab_content::grade::agreement;
use ringlab_content::report::{Grade, Verdict};
use serde::Deserialize;
use serde_json::json;

const USAGE: &str = "\
ringlab-grade [--root DIR] FILE.jsonl [--score] [--explain] [--json FILE]
ringlab-grade [--root DIR] --samples [--question N] [--explain]

  FILE.jsonl   one answer a line: {\"id\", \"question\", \"lang\", \"answer\"}; one grade a line is printed
  --score      the file holds reference marks too (\"points\", \"total\", \"fatal\"): print the agreement last
  --json       write the figures of --score there, with date, commit (RINGLAB_COMMIT, or git's) and command
  --explain    for people instead of programs: every claim with the sentence that earned it, and what the reference gave
  --samples    grade the rubrics' own samples, those kept aside apart
  --question   only the samples of this question

Exit status 1 when something cannot be read.";

#[derive(Default)]
struct Arguments {
    root: PathBuf,
    file: Option<PathBuf>,
    score: bool,
    explain: bool,
    samples: bool,
    question: Option<u32>,
    json: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    question: u32,
    answer: String,
    #[serde(default)]
    kind: String,
    /// Id of the answer that this one translates, where the file says so.
    translates: Option<String>,
    #[serde(default)]
    points: Vec<Reference>,
    total: Option<u32>,
    #[serde(default)]
    fatal: bool,
}

#[derive(Deserialize)]
struct Reference {
    awarded: u32,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let result = if arguments.samples { samples(&arguments) } else { file(&arguments) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments { root: PathBuf::from("."), ..Arguments::default() };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--root" => arguments.root = words.next().ok_or("--root needs a folder")?.into(),
            "--question" => {
                let number = words.next().and_then(|word| word.parse().ok());
                arguments.question = Some(number.ok_or("--question needs a number")?);
            }
            "--json" => arguments.json = Some(words.next().ok_or("--json needs a file")?.into()),
            "--score" => arguments.score = true,
            "--explain" => arguments.explain = true,
            "--samples" => arguments.samples = true,
            other if other.starts_with("--") => return Err(format!("there is no option `{other}`")),
            other => arguments.file = Some(other.into()),
        }
    }
    if arguments.samples == arguments.file.is_some() {
        return Err("give a file of answers, or --samples".to_owned());
    }
    if arguments.json.is_some() && !arguments.score {
        return Err("--json records the figures of --score; give both".to_owned());
    }
    Ok(arguments)
}

/// Counts of the question "is there a fatal error?".
#[derive(Default)]
struct FatalCount {
    wanted: usize,
    found: usize,
    sound: usize,
    accused: usize,
}

impl FatalCount {
    fn add(&mut self, wanted: bool, ours: bool) {
        if wanted {
            self.wanted += 1;
            self.found += usize::from(ours);
        } else {
            self.sound += 1;
            self.accused += usize::from(ours);
        }
    }

    fn recall(&self) -> f64 {
        if self.wanted == 0 { 1.0 } else { self.found as f64 / self.wanted as f64 }
    }

    fn accused(&self) -> f64 {
        if self.sound == 0 { 0.0 } else { self.accused as f64 / self.sound as f64 }
    }
}

fn file(arguments: &Arguments) -> Result<(), String> {
    let bank = Bank::load(&arguments.root).map_err(|errors| errors.to_string())?;
    let path = arguments.file.clone().unwrap_or_default();
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let mut scored = Vec::new();
    let started = Instant::now();
    let mut out = std::io::stdout().lock();
    let mut say =
        |line: String| writeln!(out, "{line}").map_err(|error| format!("cannot write the grades: {error}"));
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("{}:{}", path.display(), n + 1);
        let line: Line = serde_json::from_str(line).map_err(|error| format!("{}: {error}", place()))?;
        let grade = bank
            .read(&line.answer)
            .grade(line.question)
            .ok_or_else(|| format!("{}: question {} is not written yet", place(), line.question))?;
        if arguments.explain {
            let reference: Vec<u32> = line.points.iter().map(|point| point.awarded).collect();
            say(explain(&line.id, &grade, line.total, &reference, line.fatal))?;
        } else {
            say(json_line(&line, &grade).to_string())?;
        }
        if arguments.score {
            let total = line.total.ok_or_else(|| format!("{}: --score needs `total`", place()))?;
            scored.push(Scored {
                id: line.id,
                kind: line.kind,
                translates: line.translates,
                ours: grade.total,
                total,
                fatal: (line.fatal, !grade.fatal.is_empty()),
                confidence: grade.confidence,
                person: grade.person,
            });
        }
    }
    if arguments.score {
        let (lines, mut figures) = figures(&scored);
        lines.into_iter().try_for_each(&mut say)?;
        if let Some(path) = &arguments.json {
            figures["milliseconds"] = json!(started.elapsed().as_millis() as u64);
            figures["date"] = json!(told("date", &["-u", "+%Y-%m-%d"]));
            let commit = std::env::var("RINGLAB_COMMIT").ok();
            figures["commit"] = json!(commit.or_else(|| told("git", &["rev-parse", "HEAD"])));
            figures["command"] = json!("cargo xtask grade FILE.jsonl --score");
            std::fs::write(path, format!("{figures:#}\n"))
                .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// What a program prints, if it runs and has something to say.
fn told(program: &str, words: &[&str]) -> Option<String> {
    let output = std::process::Command::new(program).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// One answer beside its reference.
struct Scored {
    id: String,
    kind: String,
    translates: Option<String>,
    ours: u32,
    total: u32,
    /// Whether the reference, and whether we, found a basic error.
    fatal: (bool, bool),
    confidence: f32,
    person: bool,
}

impl Scored {
    fn error(&self) -> f64 {
        f64::from(self.ours.abs_diff(self.total))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

/// The figures of a file: as lines, the agreement last, and as JSON.
fn figures(scored: &[Scored]) -> (Vec<String>, serde_json::Value) {
    let pairs: Vec<(u32, u32)> = scored.iter().map(|answer| (answer.ours, answer.total)).collect();
    let mut fatal = FatalCount::default();
    scored.iter().for_each(|answer| fatal.add(answer.fatal.0, answer.fatal.1));
    let text = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let middle = mean(scored.iter().filter(|a| (4..=7).contains(&a.total)).map(Scored::error));
    let most =
        |kind: &str| scored.iter().filter(|answer| answer.kind == kind).map(|answer| answer.ours).max();
    let empty = ["stuffing", "offtopic", "copy-question"].map(|kind| (kind, most(kind)));
    let pair = |answer: &Scored| {
        let original = scored.iter().find(|other| Some(&other.id) == answer.translates.as_ref())?;
        Some(f64::from(u8::from(answer.ours.abs_diff(original.ours) <= 1)))
    };
    let translated = mean(scored.iter().filter_map(pair));
    let right = mean(scored.iter().filter(|a| a.error() < 1.0).map(|a| f64::from(a.confidence)));
    let wrong = mean(scored.iter().filter(|a| a.error() >= 1.0).map(|a| f64::from(a.confidence)));
    let alone = mean(scored.iter().filter(|a| !a.person).map(Scored::error));
    let person = mean(scored.iter().filter(|a| a.person).map(Scored::error));
    let mut lines = vec![format!("reference totals 4 to 7: mae {}", text(middle))];
    for (kind, most) in &empty {
        lines
            .push(format!("{kind}: at most {}", most.map_or("-".to_owned(), |most| format!("{most} marks"))));
    }
    lines.push(format!("translations within 1 mark: {}", text(translated)));
    lines.push(format!("confidence where right {}, where not {}", text(right), text(wrong)));
    lines.push(format!("mae without a person {}, where a person is asked for {}", text(alone), text(person)));
    lines.push(score_line(&pairs, &fatal));
    let whole = agreement(&pairs);
    let json = json!({
        "n": whole.n,
        "kappa": whole.kappa,
        "mae": whole.mae,
        "mae_4_to_7": middle,
        "fatal_recall": fatal.recall(),
        "false_fatal": fatal.accused(),
        "most_by_kind": empty.iter().map(|(kind, most)| ((*kind).to_owned(), json!(most))).collect::<serde_json::Map<_, _>>(),
        "translations_within_1": translated,
        "confidence": { "right": right, "wrong": wrong, "mae_alone": alone, "mae_person": person },
    });
    (lines, json)
}

fn score_line(pairs: &[(u32, u32)], fatal: &FatalCount) -> String {
    let agreement = agreement(pairs);
    format!(
        "kappa {:.3}  mae {:.3}  fatal-recall {:.3}  false-fatal {:.3}  n {}",
        agreement.kappa,
        agreement.mae,
        fatal.recall(),
        fatal.accused(),
        agreement.n
    )
}

fn json_line(line: &Line, grade: &Grade) -> serde_json::Value {
    let points: Vec<serde_json::Value> = grade
        .points
        .iter()
        .map(|point| json!({ "awarded": point.awarded, "max": point.max, "evidence": point.reasons }))
        .collect();
    json!({
        "id": line.id,
        "question": line.question,
        "total": grade.total,
        "fatal": !grade.fatal.is_empty(),
        "other_question": grade.other_question.as_ref().map(|other| other.question),
        "confidence": grade.confidence,
        "person": grade.person,
        "points": points,
        "fatal_errors": grade.fatal,
        "remarks": grade.remarks,
        "version": grade.version,
    })
}

fn explain(id: &str, grade: &Grade, total: Option<u32>, reference: &[u32], fatal: bool) -> String {
    let mut out = format!("== {id}: {}", grade.total);
    if let Some(total) = total {
        out += &format!(" (reference {total}{})", if fatal { ", fatal" } else { "" });
    }
    out += &format!(
        ", confidence {}{}\n",
        grade.confidence,
        if grade.person { ", a person should look" } else { "" }
    );
    for (i, point) in grade.points.iter().enumerate() {
        let wanted = reference.get(i).map_or_else(String::new, |wanted| match *wanted == point.awarded {
            true => String::new(),
            false => format!(" <-- reference {wanted}"),
        });
        out += &format!("   {}/{} {}{wanted}\n", point.awarded, point.max, point.label.en);
        for reason in &point.reasons {
            let sign = match reason.verdict {
                Verdict::Full => "+",
                Verdict::Partial => "~",
                Verdict::Missing => "-",
                Verdict::Cancelled => "x",
            };
            let quotes: Vec<&str> = reason.quotes.iter().map(|quote| quote.text.as_str()).collect();
            out += &format!("      {sign} {} [{}] {}\n", reason.claim, reason.marks, quotes.join(" ┃ "));
        }
    }
    for remark in grade.fatal.iter().chain(&grade.remarks) {
        let quote = remark.quote.as_ref().map_or("", |quote| &quote.text);
        out += &format!("   ! {:?}: {} « {quote} »\n", remark.kind, remark.label.en);
    }
    out
}

fn samples(arguments: &Arguments) -> Result<(), String> {
    let bank = Bank::load(&arguments.root).map_err(|errors| errors.to_string())?;
    let started = Instant::now();
    let mut graded = 0;
    for held in [false, true] {
        let (mut pairs, mut fatal) = (Vec::new(), FatalCount::default());
        let (mut translated, mut near) = (0, 0);
        let wanted = |it: &&Question| arguments.question.is_none_or(|n| n == it.number);
        for question in bank.questions().filter(wanted) {
            for sample in question.samples.iter().filter(|sample| sample.held == held) {
                let answer = bank.read(&sample.text);
                let grade = match sample.follow_up {
                    None => answer.grade(question.number),
                    Some(n) => answer.grade_follow_up(question.number, n),
                };
                let Some(grade) = grade else { continue };
                graded += 1;
                if arguments.explain {
                    let id = format!("{:02}/{}", question.number, sample.id);
                    println!("{}", explain(&id, &grade, Some(sample.total()), &sample.points, sample.fatal));
                }
                if sample.follow_up.is_none() {
                    pairs.push((grade.total, sample.total()));
                    fatal.add(sample.fatal, !grade.fatal.is_empty());
                }
                let original =
                    question.samples.iter().find(|other| Some(&other.id) == sample.translates.as_ref());
                if let Some(original) =
                    original.and_then(|original| bank.read(&original.text).grade(question.number))
                {
                    translated += 1;
                    near += usize::from(original.total.abs_diff(grade.total) <= 1);
                }
            }
        }
        let name = if held { "kept aside" } else { "tuned on" };
        println!(
            "samples {name}: {}; translations within 1 mark: {near} of {translated}",
            score_line(&pairs, &fatal)
        );
    }
    eprintln!("{graded} answers in {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
