//! Checks the content and says what to mend, or what there is. See content/README.md.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use ringlab_content::bank::Bank;
use ringlab_content::{Library, check_complete, check_overlap, check_sources, highlight};
use ringlab_engine::text::Lang;

const USAGE: &str = "\
ringlab-content-check [--root DIR] [--sources OWNER/NAME=GIT_DIR]… [--originals DIR [--allow FILE]] [--write-css FILE]

  --root DIR                     the repository (default: .)
  --sources OWNER/NAME=GIT_DIR   also check that each `source` block's file and symbol exist at its tag in this git directory
  --originals DIR                also check that no run of 16 characters stands word for word in the documents there
  --allow FILE                   lines that may (titles)
  --write-css FILE               only write the style sheet of highlighted code

Prints one line an error (file:line:column: message) and exits with 1, or prints a summary and exits with 0.";

#[derive(Default)]
struct Arguments {
    root: PathBuf,
    sources: BTreeMap<String, PathBuf>,
    originals: Option<PathBuf>,
    allow: Option<PathBuf>,
    css: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("{message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if let Some(path) = &arguments.css {
        return match std::fs::write(path, highlight::style_sheet()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{} cannot be written: {error}", path.display());
                ExitCode::FAILURE
            }
        };
    }
    check(&arguments)
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { root: PathBuf::from("."), ..Arguments::default() };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--root" => arguments.root = value()?.into(),
            "--originals" => arguments.originals = Some(value()?.into()),
            "--allow" => arguments.allow = Some(value()?.into()),
            "--write-css" => arguments.css = Some(value()?.into()),
            "--sources" => {
                let text = value()?;
                let (repo, path) = text
                    .split_once('=')
                    .ok_or_else(|| format!("--sources takes OWNER/NAME=GIT_DIR, not `{text}`"))?;
                arguments.sources.insert(repo.to_owned(), path.into());
            }
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("there is no option `{other}`")),
        }
    }
    Ok(Some(arguments))
}

fn check(arguments: &Arguments) -> ExitCode {
    let start = Instant::now();
    let library = match Library::load(&arguments.root) {
        Ok(library) => library,
        Err(errors) => return refuse(&errors.0),
    };
    let (mut errors, unchecked) = check_sources(&library, &arguments.sources);
    errors.extend(check_complete(&library));
    if let Some(originals) = &arguments.originals {
        let allowed = match arguments.allow.as_ref().map(std::fs::read_to_string).transpose() {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => {
                eprintln!("--allow cannot be read: {error}");
                return ExitCode::FAILURE;
            }
        };
        let allowed: Vec<String> =
            allowed.lines().filter(|l| !l.trim().is_empty()).map(str::to_owned).collect();
        match check_overlap(&arguments.root, originals, &allowed) {
            Ok(copied) => errors.extend(copied),
            Err(error) => {
                eprintln!("--originals {}: {error}", originals.display());
                return ExitCode::FAILURE;
            }
        }
    }
    if !errors.is_empty() {
        return refuse(&errors);
    }
    let bank = match Bank::load(&arguments.root) {
        Ok(bank) => bank,
        Err(errors) => return refuse(&errors.0),
    };
    if let Err(errors) = bank.html(&arguments.root, &library) {
        return refuse(&errors.0);
    }
    for summary in library.summaries() {
        println!(
            "{} {}: {} min, {} headings, {} formulas, {} figures, {} checked sums, {} quizzes, {} widgets, {} sources, {} terms",
            summary.folder,
            summary.lang.code(),
            summary.minutes,
            summary.headings,
            summary.formulas,
            summary.figures,
            summary.checks,
            summary.quizzes,
            summary.widgets,
            summary.sources,
            summary.terms,
        );
    }
    let samples: usize = bank.questions().map(|question| question.samples.len()).sum();
    println!("{} of 54 interview questions written, {samples} graded samples", bank.questions().count());
    let cited = library.citations().len();
    println!(
        "{} of {} chapters written, {} of them in English, too; {} terms; {} citations, {} checked in a checkout; no errors ({} ms)",
        library.chapters(Lang::Zh).count(),
        library.titles().len(),
        library.chapters(Lang::En).count(),
        library.terms().count(),
        cited,
        cited - unchecked,
        start.elapsed().as_millis(),
    );
    ExitCode::SUCCESS
}

fn refuse(errors: &[ringlab_content::ContentError]) -> ExitCode {
    for error in errors {
        println!("{error}");
    }
    let count = errors.len();
    eprintln!("{count} {} to mend", if count == 1 { "error" } else { "errors" });
    ExitCode::FAILURE
}
