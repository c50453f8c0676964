//! The three files, read and rendered.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use super::types::{Formula, Group, MapEntry, Place, Reference, Variable, VariableKind};
use crate::citations::{Citation, is_path, is_repository, is_tag};
use crate::ids::is_id;
use crate::markdown::{Env, State, inline};
use crate::source::{Fragment, SourceFile};

pub(crate) const FOLDER: &str = "content/reference";

/// The version that the course explains.
const TAG: &str = "v2.22.3-1";
const NCCL: &str = "NVIDIA/nccl";

/// What there is of `environment.toml`, `formulas.toml`, `source-map.toml`.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub environment: Option<SourceFile>,
    pub formulas: Option<SourceFile>,
    pub source_map: Option<SourceFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupEntry<T> {
    id: Spanned<String>,
    zh: Spanned<String>,
    en: Spanned<String>,
    #[serde(default = "Vec::new", alias = "variable", alias = "formula")]
    entry: Vec<T>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupFile<T> {
    #[serde(default)]
    tag: Option<Spanned<String>>,
    #[serde(default)]
    nccl_tests_tag: Option<Spanned<String>>,
    group: Vec<GroupEntry<T>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariableEntry {
    name: Spanned<String>,
    kind: VariableKind,
    default: Spanned<String>,
    zh: Spanned<String>,
    en: Spanned<String>,
    note_zh: Option<Spanned<String>>,
    note_en: Option<Spanned<String>>,
    file: Option<Spanned<String>>,
    symbol: Option<Spanned<String>>,
    since: Option<Spanned<String>>,
    chapter: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FormulaEntry {
    id: Spanned<String>,
    zh: Spanned<String>,
    en: Spanned<String>,
    tex: Spanned<String>,
    where_zh: Spanned<String>,
    where_en: Spanned<String>,
    example: Option<Spanned<String>>,
    chapter: Spanned<u32>,
    anchor: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaceEntry {
    zh: Spanned<String>,
    en: Spanned<String>,
    repo: Spanned<String>,
    file: Spanned<String>,
    symbol: Spanned<String>,
    note_zh: Spanned<String>,
    note_en: Spanned<String>,
    chapter: Option<Spanned<u32>>,
}

/// One language of the pages; what is wrong, and every place in source to be checked, goes to `state`.
pub(crate) fn read(env: &Env<'_>, state: &mut State, files: &Files) -> Reference {
    let mut reference = Reference::default();
    if let Some(file) = &files.environment {
        reference.environment = Reader::new(env, state, file).groups(Reader::variable);
    }
    if let Some(file) = &files.formulas {
        reference.formulas = Reader::new(env, state, file).groups(Reader::formula);
    }
    if let Some(file) = &files.source_map {
        reference.source_map = Reader::new(env, state, file).groups(Reader::place);
    }
    reference
}

struct Reader<'r> {
    env: &'r Env<'r>,
    state: &'r mut State,
    file: Fragment<'r>,
    ids: BTreeSet<String>,
    tag: String,
    tests_tag: Option<String>,
}

impl<'r> Reader<'r> {
    fn new(env: &'r Env<'r>, state: &'r mut State, file: &'r SourceFile) -> Reader<'r> {
        Reader { env, state, file: file.whole(), ids: BTreeSet::new(), tag: TAG.to_owned(), tests_tag: None }
    }

    fn groups<E: DeserializeOwned, T>(mut self, one: fn(&mut Self, &E) -> Option<T>) -> Vec<Group<T>> {
        let parsed: GroupFile<E> = match self.file.toml("this file") {
            Ok(parsed) => parsed,
            Err(error) => {
                self.state.errors.push(error);
                return Vec::new();
            }
        };
        if let Some(tag) = &parsed.tag {
            self.tag = self.tag_of(tag);
        }
        self.tests_tag = parsed.nccl_tests_tag.as_ref().map(|tag| self.tag_of(tag));
        let mut groups = Vec::new();
        for group in &parsed.group {
            self.id(&group.id);
            let title = self.plain(self.env.pick_of(&group.zh, &group.en));
            if group.entry.is_empty() {
                self.problem(&group.id, "this group is empty; write its entries, or delete it");
            }
            let entries = group.entry.iter().filter_map(|entry| one(&mut self, entry)).collect();
            groups.push(Group { id: group.id.get_ref().clone(), title, entries });
        }
        groups
    }

    fn variable(&mut self, entry: &VariableEntry) -> Option<Variable> {
        let name = entry.name.get_ref();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        {
            self.problem(&entry.name, format!("`{name}` is no name of an environment variable"));
        }
        if !self.ids.insert(name.to_lowercase()) {
            self.problem(&entry.name, format!("`{name}` stands here twice; keep one"));
        }
        let place = match (&entry.file, &entry.symbol) {
            (Some(file), Some(symbol)) => Some(self.cite(NCCL, file, symbol)),
            (None, None) if entry.since.is_some() => None,
            _ => {
                self.problem(
                    &entry.name,
                    format!("give `file` and `symbol` where `{name}` is read, or `since` if only later versions do"),
                );
                None
            }
        };
        let note = self.env.pick_of(&entry.note_zh, &entry.note_en).as_ref().map(|note| self.line(note));
        if entry.note_zh.is_some() != entry.note_en.is_some() {
            self.problem(&entry.name, "a note is written in both languages, or in none");
        }
        Some(Variable {
            name: name.clone(),
            kind: entry.kind,
            default: self.plain(&entry.default),
            meaning: self.line(self.env.pick_of(&entry.zh, &entry.en)),
            note,
            place,
            since: entry.since.as_ref().map(|since| self.plain(since)),
            chapter: entry.chapter.as_ref().map(|chapter| self.chapter(chapter)),
        })
    }

    fn formula(&mut self, entry: &FormulaEntry) -> Option<Formula> {
        self.id(&entry.id);
        let chapter = self.chapter(&entry.chapter);
        if let Some(anchor) = &entry.anchor
            && let Some(ids) = self.env.anchors.get(&chapter)
            && !ids.contains(anchor.get_ref())
        {
            self.problem(anchor, format!("chapter {chapter} has no heading `{}`", anchor.get_ref()));
        }
        let formula = match self.env.math.html(entry.tex.get_ref(), true) {
            Ok(html) => html,
            Err((_, message)) => {
                self.problem(&entry.tex, message);
                return None;
            }
        };
        // An anchor of a chapter that waits for its translation is the same in Chinese.
        Some(Formula {
            id: entry.id.get_ref().clone(),
            title: self.plain(self.env.pick_of(&entry.zh, &entry.en)),
            tex: entry.tex.get_ref().clone(),
            formula,
            letters: self.line(self.env.pick_of(&entry.where_zh, &entry.where_en)),
            example: entry.example.as_ref().map(|example| self.plain(example)),
            chapter,
            anchor: entry.anchor.as_ref().map(|anchor| anchor.get_ref().clone()),
        })
    }

    fn place(&mut self, entry: &PlaceEntry) -> Option<MapEntry> {
        Some(MapEntry {
            title: self.plain(self.env.pick_of(&entry.zh, &entry.en)),
            place: self.cite_in(&entry.repo, &entry.file, &entry.symbol),
            note: self.line(self.env.pick_of(&entry.note_zh, &entry.note_en)),
            chapter: entry.chapter.as_ref().map(|chapter| self.chapter(chapter)),
        })
    }

    fn cite_in(&mut self, repo: &Spanned<String>, file: &Spanned<String>, symbol: &Spanned<String>) -> Place {
        if !is_repository(repo.get_ref()) {
            self.problem(repo, format!("`{}` is no repository; write `OWNER/NAME`", repo.get_ref()));
        }
        self.cite(&repo.get_ref().clone(), file, symbol)
    }

    fn cite(&mut self, repo: &str, file: &Spanned<String>, symbol: &Spanned<String>) -> Place {
        if !is_path(file.get_ref()) {
            self.problem(file, format!("`{}` is no path within the repository", file.get_ref()));
        }
        if symbol.get_ref().trim().is_empty() {
            self.problem(symbol, "`symbol` names what to look at in the file");
        }
        let tag = if repo == NCCL { Some(&self.tag) } else { self.tests_tag.as_ref() };
        let Some(tag) = tag.cloned() else {
            self.problem(
                file,
                format!("`nccl_tests_tag` at the head of the file says which version of {repo} is meant"),
            );
            return Place {
                repo: repo.into(),
                tag: String::new(),
                file: String::new(),
                symbol: String::new(),
            };
        };
        let place = Place {
            repo: repo.to_owned(),
            tag,
            file: file.get_ref().clone(),
            symbol: symbol.get_ref().clone(),
        };
        let at = self.file.error(symbol.span().start, "");
        let Place { repo, tag, file, symbol } = place.clone();
        self.state.citations.push(Citation { repo, tag, file, symbol, at });
        place
    }

    fn tag_of(&mut self, tag: &Spanned<String>) -> String {
        if !is_tag(tag.get_ref()) {
            self.problem(tag, format!("`{}` is no tag; write it as in the repository", tag.get_ref()));
        }
        tag.get_ref().clone()
    }

    fn id(&mut self, id: &Spanned<String>) {
        if !is_id(id.get_ref()) {
            self.problem(
                id,
                format!("id `{}`: use lower-case letters, digits and single hyphens", id.get_ref()),
            );
        } else if !self.ids.insert(id.get_ref().clone()) {
            self.problem(id, format!("id `{}` is used twice in this file", id.get_ref()));
        }
    }

    fn chapter(&mut self, chapter: &Spanned<u32>) -> u32 {
        let number = *chapter.get_ref();
        if !self.env.titles.iter().any(|title| title.number == number) {
            self.problem(chapter, format!("the course has no chapter {number}"));
        }
        number
    }

    /// Words that are shown as they are.
    fn plain(&mut self, text: &Spanned<String>) -> String {
        if text.get_ref().trim().is_empty() {
            self.problem(text, "this text is empty; write it");
        }
        text.get_ref().clone()
    }

    /// One line of Markdown.
    fn line(&mut self, text: &Spanned<String>) -> String {
        if text.get_ref().trim().is_empty() {
            self.problem(text, "this text is empty; write it");
        }
        inline(self.env, self.state, &self.file.toml_string(text))
    }

    fn problem<T>(&mut self, value: &Spanned<T>, message: impl Into<String>) {
        self.state.errors.push(self.file.error(value.span().start, message));
    }
}
