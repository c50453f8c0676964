//! All the content, read, checked and rendered once.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::ErrorKind;
use std::path::Path;

use rayon::prelude::*;
use ringlab_engine::text::Lang;

use crate::chapter;
use crate::citations::Citation;
use crate::course::{self, ChapterTitle};
use crate::error::{ContentError, ContentErrors};
use crate::glossary::{self, Term};
use crate::highlight::Highlighter;
use crate::markdown::{Env, Math, State, heading_ids};
use crate::outline::{self, Outline};
use crate::reference::{self, Reference};
use crate::source::SourceFile;
use crate::types::{Chapter, Segment};

const INDEX: &str = "content/course/index.toml";
const GLOSSARY: &str = "content/glossary.toml";
const CATALOGUE: &str = "labs/catalogue";

/// No chapter is nearly as long; a file that is was put there by mistake.
const MAX_FILE: u64 = 2 << 20;

/// The course in both languages. Immutable after loading: share it behind an `Arc`.
#[derive(Debug)]
pub struct Library {
    titles: Vec<ChapterTitle>,
    glossary: BTreeMap<String, Term>,
    chapters: BTreeMap<(Lang, u32), Chapter>,
    reference: BTreeMap<Lang, Reference>,
    citations: Vec<Citation>,
    summaries: Vec<Summary>,
}

/// What one language of a chapter is made of, for a writer's overview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub lang: Lang,
    pub number: u32,
    pub folder: String,
    pub minutes: u32,
    pub headings: usize,
    pub formulas: u32,
    pub figures: u32,
    pub checks: u32,
    pub quizzes: usize,
    pub widgets: usize,
    pub sources: usize,
    pub terms: usize,
    /// Chinese characters of prose.
    pub characters: u32,
    /// How many of the five kinds of questions the quiz has.
    pub quiz_kinds: usize,
    pub misconceptions: usize,
    pub falsify: usize,
    /// Ids of all headings.
    pub heading_ids: Vec<String>,
}

impl Library {
    /// Reads everything below `root`: `content/`, the labs' ids in `labs/catalogue/` and the stored runs in `labs/measurements/`.
    ///
    /// # Errors
    /// All that is wrong, each with its file, line and column.
    pub fn load(root: &Path) -> Result<Library, ContentErrors> {
        let mut errors = Vec::new();
        let labs = lab_ids(root, &mut errors);
        Library::load_with(root, &labs, errors)
    }

    /// Like [`Library::load`], with the labs' ids given.
    ///
    /// # Errors
    /// All that is wrong, each with its file, line and column.
    pub fn load_with_labs(root: &Path, labs: &BTreeSet<String>) -> Result<Library, ContentErrors> {
        Library::load_with(root, labs, Vec::new())
    }

    fn load_with(
        root: &Path,
        labs: &BTreeSet<String>,
        mut errors: Vec<ContentError>,
    ) -> Result<Library, ContentErrors> {
        let titles = match read(root, INDEX, &mut errors) {
            Some(file) => course::read_index(&file, &mut errors),
            None => Vec::new(),
        };
        let glossary = match read(root, GLOSSARY, &mut errors) {
            Some(file) => glossary::read_glossary(&file, titles.len(), &mut errors),
            None => BTreeMap::new(),
        };
        stray_folders(root, &titles, &mut errors);
        let files = chapter_files(root, &titles, &mut errors);
        let references = reference_files(root, &mut errors);

        let (math, code) = (Math::default(), Highlighter::default());
        let mut library = Library {
            chapters: BTreeMap::new(),
            reference: BTreeMap::new(),
            citations: Vec::new(),
            summaries: Vec::new(),
            titles,
            glossary,
        };
        let mut outlines: BTreeMap<(u32, Lang), Outline> = BTreeMap::new();
        for lang in Lang::ALL {
            let mine = || files.iter().filter(move |((_, of), _)| *of == lang);
            let anchors =
                mine().map(|((number, _), file)| (*number, heading_ids(chapter::text_of(file)))).collect();
            let one = |(number, file): (u32, &SourceFile)| {
                let title = &library.titles[number as usize - 1];
                let folder = format!("content/course/{}", title.folder());
                let env = Env {
                    lang,
                    root,
                    folder: &folder,
                    number,
                    titles: &library.titles,
                    glossary: &library.glossary,
                    labs,
                    anchors: &anchors,
                    math: &math,
                    code: &code,
                };
                let mut state = State::default();
                state.errors.extend(glossary::strange_words(file, &library.glossary));
                let chapter = chapter::render(&env, &mut state, file, title);
                (number, chapter, state)
            };
            let env = Env {
                lang,
                root,
                folder: reference::FOLDER,
                number: 0,
                titles: &library.titles,
                glossary: &library.glossary,
                labs,
                anchors: &anchors,
                math: &math,
                code: &code,
            };
            let mut state = State::default();
            let pages = reference::read(&env, &mut state, &references);
            errors.append(&mut state.errors);
            if lang == Lang::Zh {
                // The same places stand in both languages.
                library.citations.append(&mut state.citations);
            }
            let files: Vec<(u32, &SourceFile)> = mine().map(|((number, _), file)| (*number, file)).collect();
            let all: Vec<_> = files.into_par_iter().map(one).collect();
            for (number, chapter, mut state) in all {
                if let Some(chapter) = chapter {
                    library.summaries.push(summary(lang, &chapter, &state));
                    library.chapters.insert((lang, number), chapter);
                }
                errors.append(&mut state.errors);
                library.citations.append(&mut state.citations);
                outlines.insert((number, lang), state.outline);
            }
            library.reference.insert(lang, pages);
        }
        for title in &library.titles {
            if let (Some(zh), Some(en)) =
                (outlines.get(&(title.number, Lang::Zh)), outlines.get(&(title.number, Lang::En)))
            {
                errors.extend(outline::compare(zh, en));
            }
        }
        if errors.is_empty() {
            return Ok(library);
        }
        errors.sort();
        errors.dedup();
        Err(ContentErrors(errors))
    }

    /// A chapter by number, slug or folder: `12`, `ring-allreduce`, `12-ring-allreduce`.
    pub fn chapter(&self, lang: Lang, name: &str) -> Option<&Chapter> {
        self.chapters.get(&(lang, course::find(&self.titles, name)?.number))
    }

    /// The chapter in `lang`, or in Chinese while it is not translated.
    pub fn readable(&self, lang: Lang, name: &str) -> Option<&Chapter> {
        self.chapter(lang, name).or_else(|| self.chapter(Lang::Zh, name))
    }

    /// The chapters written so far, by number.
    pub fn chapters(&self, lang: Lang) -> impl Iterator<Item = &Chapter> {
        self.chapters.iter().filter(move |((of, _), _)| *of == lang).map(|(_, chapter)| chapter)
    }

    /// All chapters of the course, written or announced, by number.
    pub fn titles(&self) -> &[ChapterTitle] {
        &self.titles
    }

    /// The reference pages; empty where a language was not loaded.
    pub fn reference(&self, lang: Lang) -> &Reference {
        static NONE: Reference =
            Reference { environment: Vec::new(), formulas: Vec::new(), source_map: Vec::new() };
        self.reference.get(&lang).unwrap_or(&NONE)
    }

    /// The glossary, by id.
    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        self.glossary.values()
    }

    #[cfg(feature = "grade")]
    pub(crate) fn glossary(&self) -> &BTreeMap<String, Term> {
        &self.glossary
    }

    /// Heading ids of the chapters written in `lang`, by number.
    #[cfg(feature = "grade")]
    pub(crate) fn anchors(&self, lang: Lang) -> BTreeMap<u32, BTreeSet<String>> {
        let ids = |chapter: &Chapter| chapter.toc.iter().map(|entry| entry.id.clone()).collect();
        self.chapters(lang).map(|chapter| (chapter.meta.number, ids(chapter))).collect()
    }

    /// Every `source` block, for [`crate::check_sources`].
    pub fn citations(&self) -> &[Citation] {
        &self.citations
    }

    pub fn summaries(&self) -> &[Summary] {
        &self.summaries
    }
}

fn summary(lang: Lang, chapter: &Chapter, state: &State) -> Summary {
    let count = |kind: fn(&Segment) -> bool| chapter.segments.iter().filter(|segment| kind(segment)).count();
    Summary {
        lang,
        number: chapter.meta.number,
        folder: format!("{:02}-{}", chapter.meta.number, chapter.meta.slug),
        minutes: chapter.meta.minutes,
        headings: chapter.toc.len(),
        formulas: state.formulas,
        figures: state.figures,
        checks: state.checks,
        quizzes: count(|segment| matches!(segment, Segment::Quiz(_))),
        widgets: count(|segment| matches!(segment, Segment::Widget(_))),
        sources: state.citations.len(),
        terms: state.terms.len(),
        characters: state.prose.characters,
        quiz_kinds: chapter
            .segments
            .iter()
            .filter_map(|segment| match segment {
                Segment::Quiz(quiz) => Some(std::mem::discriminant(&quiz.kind)),
                _ => None,
            })
            .collect::<HashSet<_>>()
            .len(),
        misconceptions: state.outline.count("aside misconception"),
        falsify: state.outline.count("aside falsify"),
        heading_ids: chapter.toc.iter().map(|entry| entry.id.clone()).collect(),
    }
}

/// Reads a text file; one that must exist and does not is an error.
fn read(root: &Path, path: &str, errors: &mut Vec<ContentError>) -> Option<SourceFile> {
    let full = root.join(path);
    let text = std::fs::metadata(&full).and_then(|meta| match meta.len() {
        0..=MAX_FILE => std::fs::read_to_string(&full),
        size => Err(std::io::Error::other(format!("{size} bytes are more than the {MAX_FILE} allowed"))),
    });
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            errors.push(ContentError::of_file(path, format!("this file cannot be read: {error}")));
            return None;
        }
    };
    if text.starts_with('\u{feff}') {
        errors.push(ContentError::of_file(
            path,
            "the file starts with a byte order mark; save it as UTF-8 without one",
        ));
    }
    let file = SourceFile::new(path, text.trim_start_matches('\u{feff}').replace("\r\n", "\n"));
    if text.contains('\r') {
        errors.push(file.error(
            text.find('\r').unwrap_or(0),
            "the lines end in CR LF; save the file with Unix line ends",
        ));
    }
    Some(file)
}

/// Names of the folders in `labs/catalogue` that hold a `lab.toml`.
pub(crate) fn lab_ids(root: &Path, errors: &mut Vec<ContentError>) -> BTreeSet<String> {
    folders(root, CATALOGUE, errors)
        .into_iter()
        .filter(|id| root.join(CATALOGUE).join(id).join("lab.toml").is_file())
        .collect()
}

fn folders(root: &Path, path: &str, errors: &mut Vec<ContentError>) -> BTreeSet<String> {
    let entries = match std::fs::read_dir(root.join(path)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return BTreeSet::new(),
        Err(error) => {
            errors.push(ContentError::of_file(path, format!("this folder cannot be read: {error}")));
            return BTreeSet::new();
        }
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// Folders that belong to no chapter: most often a slip of the pen.
fn stray_folders(root: &Path, titles: &[ChapterTitle], errors: &mut Vec<ContentError>) {
    for name in folders(root, "content/course", errors) {
        if titles.is_empty() || titles.iter().any(|title| title.folder() == name) {
            continue;
        }
        let number = name.split('-').next().and_then(|number| number.parse::<u32>().ok());
        let hint = number.and_then(|number| titles.iter().find(|title| title.number == number));
        let hint = hint
            .map_or_else(String::new, |title| format!("; chapter {} is {}", title.number, title.folder()));
        errors.push(ContentError::of_file(
            format!("content/course/{name}"),
            format!("{INDEX} has no such chapter{hint}"),
        ));
    }
}

/// The reference files. A folder without them has no such pages; one of them alone is a mistake.
fn reference_files(root: &Path, errors: &mut Vec<ContentError>) -> reference::Files {
    if !root.join(reference::FOLDER).is_dir() {
        return reference::Files::default();
    }
    let mut file = |name: &str| read(root, &format!("{}/{name}.toml", reference::FOLDER), errors);
    reference::Files {
        environment: file("environment"),
        formulas: file("formulas"),
        source_map: file("source-map"),
    }
}

/// The files of chapters that are written. Chinese comes first: a chapter may wait for its English, not the other way round.
fn chapter_files(
    root: &Path,
    titles: &[ChapterTitle],
    errors: &mut Vec<ContentError>,
) -> BTreeMap<(u32, Lang), SourceFile> {
    let mut files = BTreeMap::new();
    for (i, title) in titles.iter().enumerate() {
        let folder = format!("content/course/{}", title.folder());
        let path = |lang: Lang| format!("{folder}/{}", chapter::file_name(lang));
        let exists = |lang: Lang| root.join(path(lang)).is_file();
        // A misnumbered index is an error of its own; its chapters cannot be found by number.
        if title.number as usize != i + 1 || !Lang::ALL.into_iter().any(exists) {
            continue;
        }
        for lang in Lang::ALL {
            if !exists(lang) {
                if lang == Lang::Zh {
                    let message = format!(
                        "{} is there, but this file is missing; write the chapter in Chinese first",
                        path(Lang::En)
                    );
                    errors.push(ContentError::of_file(path(lang), message));
                }
            } else if let Some(file) = read(root, &path(lang), errors) {
                files.insert((title.number, lang), file);
            }
        }
    }
    files
}
