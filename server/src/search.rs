//! What can be searched for: sections of chapters, prompts of questions, terms, the reference pages and labs, as documents of
//! `ringlab_search`. One index a language of the page: a chapter without a translation is found in Chinese.
//!
//! Of a question only its prompt is here, and of a chapter no quiz: a search must not tell answers.

use ringlab_content::plain::{sections, words};
use ringlab_content::{Library, Term};
use ringlab_engine::text::Lang;
use ringlab_labs::catalogue::Catalogue;
use ringlab_search::{Document, Index, Kind, SearchError, Synonyms};

use crate::questions::Questions;

/// An index for each language of the pages.
#[derive(Debug)]
pub struct Search {
    zh: Index,
    en: Index,
}

impl Search {
    /// # Errors
    /// The index cannot be built: out of memory.
    pub fn build(
        library: &Library,
        questions: &Questions,
        catalogue: &Catalogue,
    ) -> Result<Search, SearchError> {
        let synonyms: Vec<Synonyms> = library.terms().map(names).collect();
        let build = |lang: Lang| Index::build(documents(lang, library, questions, catalogue), &synonyms);
        std::thread::scope(|scope| {
            let zh = scope.spawn(|| build(Lang::Zh));
            let en = build(Lang::En)?;
            let zh = zh.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(Search { zh, en })
        })
    }

    pub fn of(&self, lang: Lang) -> &Index {
        match lang {
            Lang::Zh => &self.zh,
            Lang::En => &self.en,
        }
    }
}

/// Of `AllReduce (全归约)` the words outside and inside the brackets are names, too.
fn names(term: &Term) -> Synonyms {
    let mut names = Vec::new();
    for name in [&term.zh, &term.en] {
        names.extend(
            name.split(['(', ')', '（', '）', '/', '、'])
                .map(str::trim)
                .filter(|n| !n.is_empty())
                .map(str::to_owned),
        );
    }
    names
}

fn documents(lang: Lang, library: &Library, questions: &Questions, catalogue: &Catalogue) -> Vec<Document> {
    let code = lang.code();
    let tag = lang.tag().to_owned();
    let pick = |zh: &str, en: &str| if lang == Lang::Zh { zh.to_owned() } else { en.to_owned() };
    let mut out = Vec::new();
    for title in library.titles() {
        let folder = title.folder();
        let Some(chapter) = library.readable(lang, &folder) else { continue };
        let of_chapter = Lang::from_code(&chapter.meta.lang).unwrap_or(lang);
        let context = match of_chapter {
            Lang::Zh => format!("第 {} 章 · {}", title.number, title.zh),
            Lang::En => format!("Chapter {} · {}", title.number, title.en),
        };
        for (i, mut section) in sections(chapter).into_iter().enumerate() {
            if i == 0 {
                section.text = format!("{} {}", chapter.meta.summary, section.text);
            }
            let anchor = if section.id.is_empty() { String::new() } else { format!("#{}", section.id) };
            out.push(Document {
                kind: Kind::Chapter,
                href: format!("/{code}/course/{folder}{anchor}"),
                title: section.title,
                context: context.clone(),
                text: section.text,
                lang: of_chapter.tag().to_owned(),
            });
        }
    }
    for card in questions.cards() {
        let prompt =
            questions.texts(card.number).map_or(String::new(), |texts| words(texts.prompt.get(lang)));
        out.push(Document {
            kind: Kind::Question,
            href: format!("/{code}/practice/{}", card.number),
            title: card.title.get(lang).to_owned(),
            context: match lang {
                Lang::Zh => format!("第 {} 题", card.number),
                Lang::En => format!("Question {}", card.number),
            },
            text: prompt,
            lang: tag.clone(),
        });
    }
    for term in library.terms() {
        out.push(Document {
            kind: Kind::Term,
            href: format!("/{code}/reference/glossary#term-{}", term.id),
            title: format!("{} · {}", term.name(lang), term.name(lang.other())),
            context: pick("术语", "Glossary"),
            text: term.definition(lang).to_owned(),
            lang: tag.clone(),
        });
    }
    let reference = library.reference(lang);
    for group in &reference.environment {
        for variable in &group.entries {
            out.push(Document {
                kind: Kind::Variable,
                href: format!("/{code}/reference/environment#{}", variable.name),
                title: variable.name.clone(),
                context: pick("环境变量", "Environment variable"),
                text: format!(
                    "{} {}",
                    words(&variable.meaning),
                    variable.note.as_deref().map(words).unwrap_or_default()
                ),
                lang: tag.clone(),
            });
        }
    }
    for group in &reference.formulas {
        for formula in &group.entries {
            out.push(Document {
                kind: Kind::Formula,
                href: format!("/{code}/reference/formulas#{}", formula.id),
                title: formula.title.clone(),
                context: pick("公式", "Formula"),
                text: words(&formula.letters),
                lang: tag.clone(),
            });
        }
    }
    for group in &reference.source_map {
        for entry in &group.entries {
            out.push(Document {
                kind: Kind::SourceMap,
                href: format!("/{code}/reference/source-map#{}", group.id),
                title: entry.title.clone(),
                context: pick("源码地图", "Source map"),
                text: format!("{} {} {}", entry.place.file, entry.place.symbol, words(&entry.note)),
                lang: tag.clone(),
            });
        }
    }
    for lab in catalogue.iter() {
        out.push(Document {
            kind: Kind::Lab,
            href: format!("/{code}/labs/{}", lab.id),
            title: lab.title.get(lang).to_owned(),
            context: pick("实验", "Lab"),
            text: lab.summary.get(lang).to_owned(),
            lang: tag.clone(),
        });
    }
    out
}
