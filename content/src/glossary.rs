//! `content/glossary.toml`: the terms of the field, one definition each.

use std::collections::BTreeMap;

use ringlab_engine::text::Lang;
use serde::Deserialize;
use toml::Spanned;

use crate::error::ContentError;
use crate::ids::is_id;
use crate::source::SourceFile;

/// One term in both languages. Definitions are plain text: they also stand in `title` attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    pub id: String,
    pub zh: String,
    pub en: String,
    pub zh_def: String,
    pub en_def: String,
    /// Where it is taught.
    pub chapter: u32,
    /// Other words for it, which no chapter may use: one thing has one name.
    pub avoid: Vec<String>,
}

impl Term {
    pub fn name(&self, lang: Lang) -> &str {
        match lang {
            Lang::Zh => &self.zh,
            Lang::En => &self.en,
        }
    }

    pub fn definition(&self, lang: Lang) -> &str {
        match lang {
            Lang::Zh => &self.zh_def,
            Lang::En => &self.en_def,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GlossaryFile {
    term: BTreeMap<Spanned<String>, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    zh: Spanned<String>,
    en: Spanned<String>,
    zh_def: Spanned<String>,
    en_def: Spanned<String>,
    chapter: Spanned<u32>,
    #[serde(default)]
    avoid: Vec<String>,
}

/// Words in a chapter for which the glossary has another.
pub(crate) fn strange_words(file: &SourceFile, glossary: &BTreeMap<String, Term>) -> Vec<ContentError> {
    let words = glossary.values().flat_map(|term| term.avoid.iter().map(move |word| (term, word)));
    words
        .filter_map(|(term, word)| {
            let at = file.text.find(word.as_str())?;
            let names = format!("{} ({})", term.zh, term.en);
            Some(file.error(at, format!("`{word}` has another name in this course: {names}; use that one")))
        })
        .collect()
}

/// Reads the glossary; `chapters` is how many the course has.
pub(crate) fn read_glossary(
    file: &SourceFile,
    chapters: usize,
    errors: &mut Vec<ContentError>,
) -> BTreeMap<String, Term> {
    let parsed: GlossaryFile = match file.whole().toml("the glossary") {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.push(error);
            return BTreeMap::new();
        }
    };
    let mut terms = BTreeMap::new();
    for (id, entry) in parsed.term {
        let at = id.span().start;
        let id = id.into_inner();
        if !is_id(&id) {
            errors.push(
                file.error(at, format!("term id `{id}`: use lower-case letters, digits and single hyphens")),
            );
        }
        for text in [&entry.zh, &entry.en, &entry.zh_def, &entry.en_def] {
            if text.get_ref().trim().is_empty() {
                errors.push(file.error(
                    text.span().start,
                    format!("`{id}` has an empty text; write it in both languages"),
                ));
            }
        }
        let chapter = *entry.chapter.get_ref();
        if chapter == 0 || chapter as usize > chapters {
            let message =
                format!("`{id}` is taught in chapter {chapter}, but the course has chapters 1 to {chapters}");
            errors.push(file.error(entry.chapter.span().start, message));
        }
        let term = Term {
            zh: entry.zh.into_inner(),
            en: entry.en.into_inner(),
            zh_def: entry.zh_def.into_inner(),
            en_def: entry.en_def.into_inner(),
            id: id.clone(),
            chapter,
            avoid: entry.avoid,
        };
        terms.insert(id, term);
    }
    terms
}
