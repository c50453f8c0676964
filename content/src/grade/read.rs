//! `rubric.toml` and `lexicon.toml`: read, checked, compiled. An error names the place and what to do.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;

use super::matching::{Concepts, Window};
use super::names::{Names, Spellings};
use super::pattern::Pattern;
use super::rubric::{Claim, Fatal, Lexicon, Point, Rubric, Statement};
use super::words::stem;
use crate::error::ContentError;
use crate::report::Label;
use crate::source::{Fragment, SourceFile};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LexiconFile {
    #[serde(default)]
    vars: BTreeMap<String, Vec<String>>,
    concepts: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RubricFile {
    #[serde(default)]
    chapters: Vec<u32>,
    #[serde(default)]
    neighbours: Vec<u32>,
    #[serde(default)]
    vars: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    concepts: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    point: Vec<PointFile>,
    fatal: Vec<FatalFile>,
    #[serde(default)]
    follow_up: Vec<FollowUpFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointFile {
    zh: Spanned<String>,
    en: Spanned<String>,
    max: Spanned<u32>,
    claim: Vec<ClaimFile>,
    #[serde(default)]
    contradiction: Vec<StatementFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    id: Spanned<String>,
    zh: Spanned<String>,
    en: Spanned<String>,
    marks: Option<Spanned<f32>>,
    #[serde(default)]
    window: Option<Spanned<String>>,
    #[serde(default)]
    when: Vec<Spanned<String>>,
    #[serde(default)]
    part: Vec<Spanned<String>>,
    #[serde(default)]
    unless: Vec<Spanned<String>>,
    #[serde(default)]
    items: Vec<Spanned<String>>,
    #[serde(default)]
    scale: Vec<f32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatementFile {
    zh: Spanned<String>,
    en: Spanned<String>,
    #[serde(default)]
    window: Option<Spanned<String>>,
    when: Vec<Spanned<String>>,
    #[serde(default)]
    unless: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FatalFile {
    zh: Spanned<String>,
    en: Spanned<String>,
    #[serde(default)]
    window: Option<Spanned<String>>,
    when: Vec<Spanned<String>>,
    #[serde(default)]
    unless: Vec<Spanned<String>>,
    #[serde(default)]
    zero: Vec<Spanned<usize>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FollowUpFile {
    point: Vec<PointFile>,
}

pub(crate) fn read_lexicon(file: &SourceFile, errors: &mut Vec<ContentError>) -> Lexicon {
    let whole = file.whole();
    let parsed: LexiconFile = match whole.toml("the lexicon") {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.push(error);
            return Lexicon::default();
        }
    };
    let mut reader = Reader { whole: &whole, errors };
    let mut concepts = Concepts::new();
    reader.concepts(&parsed.concepts, &mut concepts);
    let names: BTreeSet<&str> = concepts.keys().map(String::as_str).collect();
    reader.known_concepts(&parsed.concepts, &concepts, &names);
    reader.no_cycles(&parsed.concepts, &concepts);
    let names = Arc::new(Names::new(&parsed.vars));
    Lexicon { concepts, vars: parsed.vars, names, text: file.text.clone() }
}

pub(crate) fn read_rubric(
    file: &SourceFile,
    lexicon: &Lexicon,
    errors: &mut Vec<ContentError>,
) -> Option<Rubric> {
    let whole = file.whole();
    let parsed: RubricFile = match whole.toml("the rubric") {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.push(error);
            return None;
        }
    };
    let before = errors.len();
    let mut reader = Reader { whole: &whole, errors };
    let mut concepts = lexicon.concepts.clone();
    reader.concepts(&parsed.concepts, &mut concepts);
    let names: BTreeSet<&str> = concepts.keys().map(String::as_str).collect();
    reader.known_concepts(&parsed.concepts, &concepts, &names);
    reader.no_cycles(&parsed.concepts, &concepts);
    let points = reader.points(&parsed.point, &names);
    let sum: u32 = points.iter().map(|point| point.max).sum();
    if sum != 10 {
        reader.problem(0, format!("the points' `max` add up to {sum}; a question has 10"));
    }
    let fatal = reader.fatal(&parsed.fatal, &names, points.len());
    let follow_ups =
        parsed.follow_up.iter().map(|follow_up| reader.points(&follow_up.point, &names)).collect();
    if errors.len() > before {
        return None;
    }
    let vocabulary = vocabulary(&concepts, points.iter().flat_map(|point| &point.claims));
    Some(Rubric {
        version: version(&[&file.text, &lexicon.text]),
        chapters: parsed.chapters,
        neighbours: parsed.neighbours,
        points,
        fatal,
        follow_ups,
        vocabulary,
        concepts,
        names: names_of(lexicon, parsed.vars),
    })
}

/// The lexicon's names, or those with the rubric's own.
fn names_of(lexicon: &Lexicon, own: Spellings) -> Arc<Names> {
    if own.is_empty() {
        return Arc::clone(&lexicon.names);
    }
    let mut vars = lexicon.vars.clone();
    for (name, spellings) in own {
        // A spelling means one thing in one question.
        for others in vars.values_mut() {
            others.retain(|spelling| !spellings.contains(spelling));
        }
        vars.insert(name, spellings);
    }
    Arc::new(Names::new(&vars))
}

struct Reader<'a, 'e> {
    whole: &'a Fragment<'a>,
    errors: &'e mut Vec<ContentError>,
}

impl Reader<'_, '_> {
    fn problem(&mut self, at: usize, message: impl Into<String>) {
        self.errors.push(self.whole.error(at, message));
    }

    fn concepts(&mut self, file: &BTreeMap<Spanned<String>, Vec<Spanned<String>>>, concepts: &mut Concepts) {
        for (name, patterns) in file {
            let id = name.get_ref();
            if !crate::ids::is_id(id) {
                self.problem(
                    name.span().start,
                    format!("concept `{id}`: use lower-case letters, digits and single hyphens"),
                );
            }
            if concepts.contains_key(id) {
                self.problem(
                    name.span().start,
                    format!("concept `{id}` is in content/interview/lexicon.toml already; extend it there or choose another name"),
                );
                continue;
            }
            let patterns = patterns.iter().filter_map(|pattern| self.pattern(pattern)).collect();
            concepts.insert(id.clone(), patterns);
        }
    }

    fn pattern(&mut self, text: &Spanned<String>) -> Option<Pattern> {
        match Pattern::parse(text.get_ref()) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.errors.push(self.whole.toml_string(text).error(error.at, error.message));
                None
            }
        }
    }

    fn known_concepts(
        &mut self,
        file: &BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
        concepts: &Concepts,
        names: &BTreeSet<&str>,
    ) {
        for name in file.keys() {
            for pattern in concepts.get(name.get_ref()).into_iter().flatten() {
                self.known(pattern, names, name.span().start);
            }
        }
    }

    fn known(&mut self, pattern: &Pattern, names: &BTreeSet<&str>, at: usize) {
        let mut unknown = Vec::new();
        pattern.concepts(&mut |name| {
            if !names.contains(name) {
                unknown.push(name.to_owned());
            }
        });
        for name in unknown {
            let near =
                names.iter().filter(|known| known.contains(name.as_str()) || name.contains(**known)).take(4);
            let near: Vec<&str> = near.copied().collect();
            let hint =
                if near.is_empty() { String::new() } else { format!(" (there is {})", near.join(", ")) };
            self.problem(
                at,
                format!("there is no concept `@{name}`{hint}; add it to the lexicon or to `[concepts]` here"),
            );
        }
    }

    /// A concept that is made of itself would never be found.
    fn no_cycles(&mut self, file: &BTreeMap<Spanned<String>, Vec<Spanned<String>>>, concepts: &Concepts) {
        for name in file.keys() {
            let mut seen = BTreeSet::new();
            let mut todo = vec![name.get_ref().clone()];
            while let Some(next) = todo.pop() {
                for pattern in concepts.get(&next).into_iter().flatten() {
                    pattern.concepts(&mut |inner| {
                        if seen.insert(inner.to_owned()) {
                            todo.push(inner.to_owned());
                        }
                    });
                }
            }
            if seen.contains(name.get_ref()) {
                self.problem(
                    name.span().start,
                    format!("concept `{}` is made of itself; break the circle", name.get_ref()),
                );
            }
        }
    }

    fn patterns(&mut self, list: &[Spanned<String>], names: &BTreeSet<&str>) -> Vec<Pattern> {
        let mut out = Vec::new();
        for text in list {
            if let Some(pattern) = self.pattern(text) {
                self.known(&pattern, names, text.span().start);
                out.push(pattern);
            }
        }
        out
    }

    fn window(&mut self, window: Option<&Spanned<String>>) -> Window {
        match window.map(|w| w.get_ref().as_str()) {
            None | Some("sentence") => Window::Sentence,
            Some("clause") => Window::Clause,
            Some("near") => Window::Near,
            Some("answer") => Window::Answer,
            Some(other) => {
                let at = window.map_or(0, |w| w.span().start);
                self.problem(
                    at,
                    format!("there is no window `{other}`; use clause, sentence, near or answer"),
                );
                Window::Sentence
            }
        }
    }

    fn label(&mut self, zh: &Spanned<String>, en: &Spanned<String>) -> Label {
        for text in [zh, en] {
            if text.get_ref().trim().is_empty() {
                self.problem(
                    text.span().start,
                    "this label is empty; say in a few words what is meant, in both languages",
                );
            }
        }
        Label { zh: zh.get_ref().clone(), en: en.get_ref().clone() }
    }

    fn points(&mut self, files: &[PointFile], names: &BTreeSet<&str>) -> Vec<Point> {
        let mut ids = BTreeSet::new();
        files.iter().map(|file| self.point(file, names, &mut ids)).collect()
    }

    fn point<'f>(
        &mut self,
        file: &'f PointFile,
        names: &BTreeSet<&str>,
        ids: &mut BTreeSet<&'f str>,
    ) -> Point {
        let claims: Vec<Claim> = file.claim.iter().map(|claim| self.claim(claim, names, ids)).collect();
        let reach: f32 = claims.iter().map(|claim| claim.marks).sum();
        let max = *file.max.get_ref();
        if reach < max as f32 {
            self.problem(
                file.max.span().start,
                format!(
                    "the claims of this point bring {reach} marks, but `max` is {max}; raise their `marks`"
                ),
            );
        }
        Point {
            label: self.label(&file.zh, &file.en),
            max,
            claims,
            contradictions: file
                .contradiction
                .iter()
                .map(|c| self.statement(&c.zh, &c.en, c.window.as_ref(), &c.when, &c.unless, names))
                .collect(),
        }
    }

    fn claim<'f>(
        &mut self,
        file: &'f ClaimFile,
        names: &BTreeSet<&str>,
        ids: &mut BTreeSet<&'f str>,
    ) -> Claim {
        let at = file.id.span().start;
        if !crate::ids::is_id(file.id.get_ref()) {
            self.problem(
                at,
                format!(
                    "claim id `{}`: use lower-case letters, digits and single hyphens",
                    file.id.get_ref()
                ),
            );
        }
        if !ids.insert(file.id.get_ref()) {
            self.problem(
                at,
                format!(
                    "claim id `{}` is used twice; give each claim of a question its own",
                    file.id.get_ref()
                ),
            );
        }
        let top = file.scale.last().copied();
        let marks = file.marks.as_ref().map(|marks| *marks.get_ref()).or(top).unwrap_or(0.0);
        if marks <= 0.0 || (marks * 2.0).fract() != 0.0 {
            self.problem(
                at,
                format!("`marks` of `{}` is {marks}; give whole or half marks above 0", file.id.get_ref()),
            );
        }
        match (file.when.is_empty(), file.items.is_empty()) {
            (true, true) => self
                .problem(at, format!("claim `{}` has no `when`; say how people put it", file.id.get_ref())),
            (false, false) => self.problem(
                at,
                format!("claim `{}` has both `when` and `items`; make two claims", file.id.get_ref()),
            ),
            (true, false) if file.scale.len() != file.items.len() + 1 => self.problem(
                at,
                format!(
                    "claim `{}` has {} items, so `scale` needs {} marks: for naming none, one, two, …",
                    file.id.get_ref(),
                    file.items.len(),
                    file.items.len() + 1
                ),
            ),
            _ => {}
        }
        Claim {
            id: file.id.get_ref().clone(),
            label: self.label(&file.zh, &file.en),
            marks,
            window: self.window(file.window.as_ref()),
            when: self.patterns(&file.when, names),
            part: self.patterns(&file.part, names),
            unless: self.patterns(&file.unless, names),
            items: self.patterns(&file.items, names),
            scale: file.scale.clone(),
        }
    }

    fn statement(
        &mut self,
        zh: &Spanned<String>,
        en: &Spanned<String>,
        window: Option<&Spanned<String>>,
        when: &[Spanned<String>],
        unless: &[Spanned<String>],
        names: &BTreeSet<&str>,
    ) -> Statement {
        Statement {
            label: self.label(zh, en),
            window: self.window(window),
            when: self.patterns(when, names),
            unless: self.patterns(unless, names),
        }
    }

    fn fatal(&mut self, files: &[FatalFile], names: &BTreeSet<&str>, points: usize) -> Vec<Fatal> {
        let mut out = Vec::new();
        for file in files {
            let statement =
                self.statement(&file.zh, &file.en, file.window.as_ref(), &file.when, &file.unless, names);
            let mut zero = Vec::new();
            for point in &file.zero {
                match *point.get_ref() {
                    n if n >= 1 && n <= points => zero.push(n - 1),
                    n => self.problem(
                        point.span().start,
                        format!("there is no point {n}; points are counted from 1 to {points}"),
                    ),
                }
            }
            out.push(Fatal { statement, zero });
        }
        out
    }
}

fn vocabulary<'c>(concepts: &'c Concepts, claims: impl Iterator<Item = &'c Claim>) -> HashSet<String> {
    let mut out = HashSet::new();
    let mut words = |pattern: &Pattern| {
        pattern.phrases(&mut |phrase| out.extend(phrase.pieces.iter().map(|piece| stem(&piece.text))));
    };
    concepts.values().flatten().for_each(&mut words);
    for claim in claims {
        let all = claim.when.iter().chain(&claim.part).chain(&claim.unless).chain(&claim.items);
        all.for_each(&mut words);
    }
    out
}

fn version(texts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
