//! `content/course/index.toml`: the 36 chapters, written or announced.

use serde::Deserialize;
use toml::Spanned;

use crate::error::ContentError;
use crate::ids::is_id;
use crate::source::SourceFile;
use ringlab_engine::text::Lang;

/// One of the course's chapters by its title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChapterTitle {
    pub number: u32,
    /// Without the number: `ring-allreduce`.
    pub slug: String,
    pub zh: String,
    pub en: String,
}

impl ChapterTitle {
    /// Name of its folder and last part of its URL: `12-ring-allreduce`.
    pub fn folder(&self) -> String {
        format!("{:02}-{}", self.number, self.slug)
    }

    pub fn title(&self, lang: Lang) -> &str {
        match lang {
            Lang::Zh => &self.zh,
            Lang::En => &self.en,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexFile {
    chapter: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    number: Spanned<u32>,
    slug: Spanned<String>,
    zh: Spanned<String>,
    en: Spanned<String>,
}

/// Reads the index: numbers from 1 without gaps, slugs unique, no empty title.
pub(crate) fn read_index(file: &SourceFile, errors: &mut Vec<ContentError>) -> Vec<ChapterTitle> {
    let parsed: IndexFile = match file.whole().toml("the course index") {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.push(error);
            return Vec::new();
        }
    };
    let mut titles: Vec<ChapterTitle> = Vec::new();
    for (i, entry) in parsed.chapter.into_iter().enumerate() {
        let number = *entry.number.get_ref();
        if number as usize != i + 1 {
            let message = format!(
                "chapter {number} stands at place {}; number the chapters from 1 without gaps",
                i + 1
            );
            errors.push(file.error(entry.number.span().start, message));
        }
        let slug = entry.slug.get_ref();
        if !is_id(slug) || slug.starts_with(|c: char| c.is_ascii_digit()) {
            let message =
                format!("slug `{slug}`: use lower-case letters, digits and single hyphens, a letter first");
            errors.push(file.error(entry.slug.span().start, message));
        }
        if titles.iter().any(|title| title.slug == *slug) {
            errors.push(file.error(
                entry.slug.span().start,
                format!("slug `{slug}` is used twice; give each chapter its own"),
            ));
        }
        for title in [&entry.zh, &entry.en] {
            if title.get_ref().trim().is_empty() {
                errors.push(file.error(
                    title.span().start,
                    format!("chapter {number} has an empty title; write it in both languages"),
                ));
            }
        }
        let (slug, zh, en) = (entry.slug.into_inner(), entry.zh.into_inner(), entry.en.into_inner());
        titles.push(ChapterTitle { number, slug, zh, en });
    }
    titles
}

/// The chapter a person means by `12`, `ring-allreduce` or `12-ring-allreduce`.
pub(crate) fn find<'a>(titles: &'a [ChapterTitle], name: &str) -> Option<&'a ChapterTitle> {
    titles
        .iter()
        .find(|title| title.slug == name || title.folder() == name || name.parse() == Ok(title.number))
}
