//! How a question is graded, compiled: what `read` makes of `rubric.toml` and the shared `lexicon.toml`.

use std::collections::HashSet;
use std::sync::Arc;

use super::matching::{Concepts, Window};
use super::names::{Names, Spellings};
use super::pattern::Pattern;
use crate::report::Label;

/// Synonyms and spellings that all questions share.
#[derive(Debug, Default, Clone)]
pub(crate) struct Lexicon {
    pub concepts: Concepts,
    pub vars: Spellings,
    pub names: Arc<Names>,
    /// The file, for the version of the rubrics that use it.
    pub text: String,
}

/// How one question is graded.
#[derive(Debug)]
pub struct Rubric {
    /// Content hash of this rubric and the lexicon.
    pub version: String,
    /// Chapters to study, by number.
    pub chapters: Vec<u32>,
    /// Questions that share facts with this one: their answers may earn marks here.
    pub neighbours: Vec<u32>,
    pub(crate) points: Vec<Point>,
    pub(crate) fatal: Vec<Fatal>,
    pub(crate) follow_ups: Vec<Vec<Point>>,
    pub(crate) concepts: Concepts,
    /// Shared with the other rubrics that add no names to the lexicon's.
    pub(crate) names: Arc<Names>,
    /// Stems of all words of all patterns: a word that is one of them is no misspelling of another.
    pub(crate) vocabulary: HashSet<String>,
}

impl Rubric {
    /// For each concept that a claim asks for, in the claims' order, the ways to write it: what a list of keywords would be made of.
    pub fn keywords(&self) -> Vec<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        let mut name = |concept: &str| {
            if !names.iter().any(|known| known == concept) {
                names.push(concept.to_owned());
            }
        };
        for claim in self.points.iter().flat_map(|point| &point.claims) {
            let asked = claim.when.iter().chain(&claim.part).chain(&claim.items);
            asked.for_each(|pattern| pattern.concepts(&mut name));
        }
        let spellings = |name: &String| {
            let mut out = Vec::new();
            let patterns = self.concepts.get(name).into_iter().flatten();
            patterns.for_each(|pattern| pattern.phrases(&mut |phrase| out.push(phrase.written())));
            out
        };
        names.iter().map(spellings).filter(|spellings| !spellings.is_empty()).collect()
    }
}

#[derive(Debug)]
pub(crate) struct Point {
    pub label: Label,
    pub max: u32,
    pub claims: Vec<Claim>,
    pub contradictions: Vec<Statement>,
}

#[derive(Debug)]
pub(crate) struct Claim {
    pub id: String,
    pub label: Label,
    pub marks: f32,
    pub window: Window,
    pub when: Vec<Pattern>,
    pub part: Vec<Pattern>,
    pub unless: Vec<Pattern>,
    /// Instead of `when`: things to name, and the marks for naming so many of them.
    pub items: Vec<Pattern>,
    pub scale: Vec<f32>,
}

/// Something an answer may state as a whole.
#[derive(Debug)]
pub(crate) struct Statement {
    pub label: Label,
    pub window: Window,
    pub when: Vec<Pattern>,
    pub unless: Vec<Pattern>,
}

#[derive(Debug)]
pub(crate) struct Fatal {
    pub statement: Statement,
    /// Points (from 0) that earn nothing because of it.
    pub zero: Vec<usize>,
}
