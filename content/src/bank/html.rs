//! The bank's texts as HTML, by the renderer of the chapters.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use ringlab_engine::text::{Lang, Text};

use super::{Bank, Question, Texts};
use crate::error::{ContentError, ContentErrors};
use crate::highlight::Highlighter;
use crate::library::{Library, lab_ids};
use crate::markdown::{Env, Math, State, chapter, notes_section};
use crate::source::SourceFile;
use crate::types::Segment;

/// A question's texts, rendered. HTML that can be trusted; the title is plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionHtml {
    pub title: Text,
    pub prompt: Text,
    pub core: Text,
    pub deep: Text,
    /// Prompt and answer.
    pub follow_ups: Vec<(Text, Text)>,
}

impl Bank {
    /// Renders every question; links lead into `library`, and both were loaded from `root`.
    ///
    /// # Errors
    /// All that is wrong, each with its file, line and column.
    pub fn html(&self, root: &Path, library: &Library) -> Result<BTreeMap<u32, QuestionHtml>, ContentErrors> {
        let (math, code) = (Math::default(), Highlighter::default());
        let anchors = [library.anchors(Lang::Zh), library.anchors(Lang::En)];
        let mut errors = Vec::new();
        let labs = lab_ids(root, &mut errors);
        let one = |question: &Question| {
            let mut errors = Vec::new();
            let parts = Lang::ALL.map(|lang| {
                let env = Env {
                    lang,
                    root,
                    folder: &format!("{}/{:02}", super::FOLDER, question.number),
                    // A question has no headings to link to.
                    number: 0,
                    titles: library.titles(),
                    glossary: library.glossary(),
                    labs: &labs,
                    anchors: &anchors[usize::from(lang == Lang::En)],
                    math: &math,
                    code: &code,
                };
                render(&env, question, &mut errors)
            });
            (question.number, parts, errors)
        };
        let questions: Vec<&Question> = self.questions().collect();
        let all: Vec<_> = questions.into_par_iter().map(one).collect();
        let mut both: BTreeMap<u32, [Parts; 2]> = BTreeMap::new();
        for (number, parts, mut wrong) in all {
            errors.append(&mut wrong);
            both.insert(number, parts);
        }
        if errors.is_empty() {
            return Ok(self
                .questions()
                .filter_map(|q| Some((q.number, join(q, both.remove(&q.number)?))))
                .collect());
        }
        errors.sort();
        errors.dedup();
        Err(ContentErrors(errors))
    }
}

/// One language: prompt, core, deep, then follow-ups and their answers in turn.
type Parts = Vec<String>;

fn join(question: &Question, [zh, en]: [Parts; 2]) -> QuestionHtml {
    let mut texts = zh.into_iter().zip(en).map(|(zh, en)| Text::new(zh, en));
    let mut next = || texts.next().unwrap_or_else(|| Text::new("", ""));
    QuestionHtml {
        title: Text::new(&question.zh.title, &question.en.title),
        prompt: next(),
        core: next(),
        deep: next(),
        follow_ups: question.zh.follow_ups.iter().map(|_| (next(), next())).collect(),
    }
}

fn render(env: &Env<'_>, question: &Question, errors: &mut Vec<ContentError>) -> Parts {
    let (texts, name) = match env.lang {
        Lang::Zh => (&question.zh, "zh.md"),
        Lang::En => (&question.en, "en.md"),
    };
    let path = format!("{}/{name}", env.folder);
    let Some(file) = super::read(env.root, &path, errors) else { return Parts::new() };
    let mut from = 0;
    sources(texts)
        .map(|text| {
            // In the order of the file, so that equal texts are told apart.
            let at = file.text[from..].find(text).map_or(from, |at| from + at);
            from = at;
            section(env, &file, at..(at + text.len()).min(file.text.len()), errors)
        })
        .collect()
}

fn sources(texts: &Texts) -> impl Iterator<Item = &str> {
    let follow_ups = texts.follow_ups.iter().flat_map(|f| [f.prompt.as_str(), f.answer.as_str()]);
    [texts.prompt.as_str(), &texts.core, &texts.deep].into_iter().chain(follow_ups)
}

fn section(
    env: &Env<'_>,
    file: &SourceFile,
    range: std::ops::Range<usize>,
    errors: &mut Vec<ContentError>,
) -> String {
    let start = range.start;
    let mut state = State::default();
    let segments = chapter(env, &mut state, &file.slice(range));
    let mut html = String::new();
    for segment in segments {
        match segment {
            Segment::Html { html: part } => html.push_str(&part),
            Segment::Lab { .. } | Segment::Quiz(_) | Segment::Widget(_) => {
                errors.push(file.error(
                    start,
                    "this section holds a `lab`, `quiz` or `widget` block; a question's text stands still",
                ));
            }
        }
    }
    html.push_str(&notes_section(env, &mut state));
    if let Some(term) = state.terms.first() {
        errors.push(file.error(start, format!("`[[{term}]]` leads to the end of a chapter, which a question does not have; write the word alone")));
    }
    errors.append(&mut state.errors);
    html
}
