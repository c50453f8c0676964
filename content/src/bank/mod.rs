//! The question bank below `content/interview`: texts in two languages, rubric and graded samples, read and checked.

mod answer;
#[cfg(feature = "render")]
mod html;
mod samples;
mod sections;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::error::{ContentError, ContentErrors};
use crate::grade::read::{read_lexicon, read_rubric};
use crate::grade::rubric::Lexicon;
use crate::grade::{Prompts, Reading, Rubric, grade, grade_follow_up};
use crate::report::Grade;
use crate::source::SourceFile;

pub use answer::{Answer, FITS};
#[cfg(feature = "render")]
pub use html::QuestionHtml;
pub use samples::Sample;
pub use sections::Texts;

const FOLDER: &str = "content/interview";
const LEXICON: &str = "content/interview/lexicon.toml";

/// All questions that are written, by number.
#[derive(Debug)]
pub struct Bank {
    questions: BTreeMap<u32, Question>,
}

/// One question of the bank.
#[derive(Debug)]
pub struct Question {
    /// From 1 to 54.
    pub number: u32,
    pub zh: Texts,
    pub en: Texts,
    pub rubric: Rubric,
    pub samples: Vec<Sample>,
    /// Read when the first answer is graded: it takes the dictionary, for which a starting server does not wait.
    prompts: OnceLock<Prompts>,
    follow_up_prompts: OnceLock<Vec<Prompts>>,
}

impl Bank {
    /// Reads everything below `root/content/interview`.
    ///
    /// # Errors
    /// All that is wrong, each with its file, line and column.
    pub fn load(root: &Path) -> Result<Bank, ContentErrors> {
        let mut errors = Vec::new();
        let lexicon = match read(root, LEXICON, &mut errors) {
            Some(file) => read_lexicon(&file, &mut errors),
            None => Lexicon::default(),
        };
        let mut questions = BTreeMap::new();
        // Without a sound lexicon every rubric would repeat its errors.
        if errors.is_empty() {
            let read = |number| {
                let mut errors = Vec::new();
                (question(root, number, &lexicon, &mut errors), errors)
            };
            let numbers = folders(root, &mut errors);
            let all: Vec<_> = numbers.into_par_iter().map(read).collect();
            for (question, mut wrong) in all {
                errors.append(&mut wrong);
                questions.extend(question.map(|question| (question.number, question)));
            }
        }
        if errors.is_empty() {
            return Ok(Bank { questions });
        }
        errors.sort();
        errors.dedup();
        Err(ContentErrors(errors))
    }

    pub fn question(&self, number: u32) -> Option<&Question> {
        self.questions.get(&number)
    }

    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.values()
    }
}

impl Question {
    /// Grades an answer to the question itself, by its own rubric alone. `Bank::read` compares it with the other questions, too.
    pub fn grade(&self, answer: &Reading<'_>) -> Grade {
        let prompts = || Prompts::new(&[&self.zh.prompt, &self.en.prompt]);
        grade(&self.rubric, self.prompts.get_or_init(prompts), answer)
    }

    /// Whether the two really share facts, as one of the rubrics says.
    pub fn is_neighbour_of(&self, other: &Question) -> bool {
        self.rubric.neighbours.contains(&other.number) || other.rubric.neighbours.contains(&self.number)
    }

    /// Grades an answer to follow-up `n`, from 1. `None` when there is no such follow-up.
    pub fn grade_follow_up(&self, n: usize, answer: &Reading<'_>) -> Option<Grade> {
        let index = n.checked_sub(1)?;
        let prompts = || {
            let pairs = self.zh.follow_ups.iter().zip(&self.en.follow_ups);
            pairs.map(|(zh, en)| Prompts::new(&[&zh.prompt, &en.prompt])).collect()
        };
        let prompts = self.follow_up_prompts.get_or_init(prompts).get(index)?;
        grade_follow_up(&self.rubric, index, prompts, answer)
    }
}

fn question(root: &Path, number: u32, lexicon: &Lexicon, errors: &mut Vec<ContentError>) -> Option<Question> {
    let path = |name: &str| format!("{FOLDER}/{number:02}/{name}");
    let before = errors.len();
    let zh = read(root, &path("zh.md"), errors).and_then(|file| sections::read(&file, number, errors));
    let en = read(root, &path("en.md"), errors).and_then(|file| sections::read(&file, number, errors));
    let rubric_file = read(root, &path("rubric.toml"), errors);
    let rubric = rubric_file.as_ref().and_then(|file| read_rubric(file, lexicon, errors));
    let samples_file = read(root, &path("samples.toml"), errors);
    let (zh, en, rubric, samples_file) = (zh?, en?, rubric?, samples_file?);
    let wanted = rubric.follow_ups.len();
    for (texts, name) in [(&zh, "zh.md"), (&en, "en.md")] {
        if texts.follow_ups.len() != wanted {
            errors.push(ContentError::of_file(
                path(name),
                format!(
                    "there are {} follow-ups here but {wanted} `[[follow-up]]` tables in rubric.toml; make them the same",
                    texts.follow_ups.len()
                ),
            ));
        }
    }
    let samples = samples::read(&samples_file, &rubric, errors);
    let question = Question {
        number,
        zh,
        en,
        rubric,
        samples,
        prompts: OnceLock::new(),
        follow_up_prompts: OnceLock::new(),
    };
    (errors.len() == before).then_some(question)
}

/// Numbers of the questions' folders.
fn folders(root: &Path, errors: &mut Vec<ContentError>) -> Vec<u32> {
    let entries = match std::fs::read_dir(root.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            errors.push(ContentError::of_file(FOLDER, format!("this folder cannot be read: {error}")));
            return Vec::new();
        }
    };
    let mut numbers = Vec::new();
    for entry in entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir()) {
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.parse::<u32>() {
            Ok(number) if (1..=54).contains(&number) && name.len() == 2 => numbers.push(number),
            _ => errors.push(ContentError::of_file(
                format!("{FOLDER}/{name}"),
                "a question's folder is its number with two digits, 01 to 54",
            )),
        }
    }
    numbers.sort_unstable();
    numbers
}

fn read(root: &Path, path: &str, errors: &mut Vec<ContentError>) -> Option<SourceFile> {
    match std::fs::read_to_string(root.join(path)) {
        Ok(text) => Some(SourceFile::new(path, text.replace("\r\n", "\n"))),
        Err(error) => {
            errors.push(ContentError::of_file(path, format!("this file cannot be read: {error}")));
            None
        }
    }
}
