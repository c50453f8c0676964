//! Grades answers with the rubrics of content/interview. See content/README.md.

mod figures;
mod origin;
mod out;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use figures::{Figures, Line};
use out::say;
use ringlab_content::bank::Bank;
use ringlab_content::report::{Grade, Verdict};
use serde_json::json;

const USAGE: &str = "\
ringlab-grade [--root DIR] FILE.jsonl [--score] [--explain] [--json FILE]
ringlab-grade [--root DIR] --samples [--question N] [--explain]
ringlab-grade [--root DIR] --report [FILE.json] [--answers FILE.jsonl] [--rounds N]

  FILE.jsonl   one answer a line: {\"id\", \"question\", \"lang\", \"answer\"}; one grade a line is printed
  --score      the file holds reference marks too (\"points\", \"total\", \"fatal\"): print the agreement last
  --json       write the figures of --score there, with date, commit (RINGLAB_COMMIT, or git's), command and hardware
  --explain    for people instead of programs: every claim with the sentence that earned it, and what the reference gave
  --samples    grade the rubrics' own samples, those kept aside apart
  --question   only the samples of this question
  --report     all figures of the grader as a table, and in FILE.json: agreement, the most that empty and strange answers earn, time
  --answers    answers with reference marks, for a set of figures of their own
  --rounds     rounds behind the median of the time (10)

Exit status 1 when something cannot be read, and from a release build when --report found the grader too slow.";

#[derive(Default)]
struct Arguments {
    root: PathBuf,
    file: Option<PathBuf>,
    score: bool,
    explain: bool,
    samples: bool,
    question: Option<u32>,
    json: Option<PathBuf>,
    report: Option<report::Wanted>,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let result = match &arguments.report {
        Some(wanted) => report::run(&arguments.root, wanted),
        None if arguments.samples => samples(&arguments),
        None => file(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut words = words.peekable();
    let mut arguments = Arguments { root: PathBuf::from("."), ..Arguments::default() };
    let (mut to, mut answers, mut rounds, mut report) = (None, None, None, false);
    while let Some(word) = words.next() {
        let number = |word: Option<String>| word.and_then(|word| word.parse::<u32>().ok());
        match word.as_str() {
            "--root" => arguments.root = words.next().ok_or("--root needs a folder")?.into(),
            "--question" => {
                arguments.question = Some(number(words.next()).ok_or("--question needs a number")?);
            }
            "--json" => arguments.json = Some(words.next().ok_or("--json needs a file")?.into()),
            "--score" => arguments.score = true,
            "--explain" => arguments.explain = true,
            "--samples" => arguments.samples = true,
            "--report" => {
                report = true;
                to = words.next_if(|word| !word.starts_with("--")).map(PathBuf::from);
            }
            "--answers" => answers = Some(words.next().ok_or("--answers needs a file")?.into()),
            "--rounds" => {
                let number = number(words.next()).filter(|rounds| *rounds > 0);
                rounds = Some(number.ok_or("--rounds needs a number from 1")?);
            }
            other if other.starts_with("--") => return Err(format!("there is no option `{other}`")),
            other => arguments.file = Some(other.into()),
        }
    }
    if [arguments.samples, arguments.file.is_some(), report].into_iter().filter(|given| *given).count() != 1 {
        return Err("give a file of answers, --samples or --report".to_owned());
    }
    if arguments.json.is_some() && !arguments.score {
        return Err("--json records the figures of --score; give both".to_owned());
    }
    if !report && (answers.is_some() || rounds.is_some()) {
        return Err("--answers and --rounds belong to --report".to_owned());
    }
    if report {
        arguments.report = Some(report::Wanted { to, answers, rounds: rounds.unwrap_or(report::ROUNDS) });
    }
    Ok(arguments)
}

fn load(arguments: &Arguments) -> Result<Bank, String> {
    Bank::load(&arguments.root).map_err(|errors| errors.to_string())
}

fn file(arguments: &Arguments) -> Result<(), String> {
    let bank = load(arguments)?;
    let path = arguments.file.clone().unwrap_or_default();
    let started = Instant::now();
    let scored = figures::graded_file(&bank, &path, arguments.score, |line, grade| {
        if arguments.explain {
            let reference: Vec<u32> = line.points.iter().map(|point| point.awarded).collect();
            say(explain(&line.id, grade, line.total, &reference, line.fatal));
        } else {
            say(json_line(line, grade));
        }
    })?;
    if arguments.score {
        let milliseconds = started.elapsed().as_millis() as u64;
        let figures = Figures::of(&scored);
        figures.lines().iter().for_each(say);
        if let Some(path) = &arguments.json {
            let figures = json!({ "figures": figures, "milliseconds": milliseconds });
            origin::write(path, "cargo xtask grade FILE.jsonl --score", figures)?;
        }
    }
    Ok(())
}

fn samples(arguments: &Arguments) -> Result<(), String> {
    let bank = load(arguments)?;
    let started = Instant::now();
    let mut graded = 0;
    for held in [false, true] {
        let scored = figures::graded_samples(&bank, held, arguments.question, |id, sample, grade| {
            graded += 1;
            if arguments.explain {
                say(explain(id, grade, Some(sample.total()), &sample.points, sample.fatal));
            }
        });
        let figures = Figures::of(&scored);
        let name = if held { "kept aside" } else { "tuned on" };
        say(format_args!(
            "samples {name}: {}; translations within 1 mark: {} of {}",
            figures.agreement(),
            figures.translations.near,
            figures.translations.pairs
        ));
    }
    eprintln!("{graded} answers in {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
    Ok(())
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
