//! Links: within the chapter, to chapters and labs, to glossary terms, to the web.

use std::ops::Range;

use pulldown_cmark::LinkType;

use super::Writer;
use crate::course;
use crate::html::{escape, push};

impl Writer<'_, '_> {
    pub(super) fn link(&mut self, kind: LinkType, url: &str, title: &str, range: Range<usize>) {
        let words = self.capture();
        let at = range.start;
        if let LinkType::WikiLink { has_pothole } = kind {
            // In a table the bar is written `\|`, and pulldown-cmark leaves the backslash with the id.
            return self.term(url.trim_end_matches('\\'), has_pothole.then_some(words), at);
        }
        if !title.is_empty() {
            self.error(at, "a link has no title; say it in the text");
        }
        let href = match self.target(url) {
            Ok(href) => href,
            Err(message) => return self.error(at, message),
        };
        if words.trim().is_empty() {
            self.error(at, "a link needs words to click on");
        }
        let external = if href.starts_with("https:") { " rel=\"external noreferrer\"" } else { "" };
        push(&mut self.out, format_args!("<a href=\"{}\"{external}>{words}</a>", escape(&href)));
    }

    /// The address behind what the author wrote, or what is wrong with it.
    fn target(&self, url: &str) -> Result<String, String> {
        let lang = self.env.lang.code();
        if let Some(anchor) = url.strip_prefix('#') {
            let ids = self.env.anchors.get(&self.env.number);
            return match ids.is_some_and(|ids| ids.contains(anchor)) {
                true => Ok(url.to_owned()),
                false => Err(format!(
                    "no heading of this chapter has the id `{anchor}`; {}",
                    known("ids", ids.into_iter().flatten())
                )),
            };
        }
        if let Some(target) = url.strip_prefix("chapter:") {
            return self.chapter_target(target);
        }
        if let Some(id) = url.strip_prefix("lab:") {
            return match self.env.labs.contains(id) {
                true => Ok(format!("/{lang}/labs/{id}")),
                false => {
                    Err(format!("there is no lab `{id}` in labs/catalogue; {}", known("labs", self.env.labs)))
                }
            };
        }
        if url.starts_with("https://") {
            return Ok(url.to_owned());
        }
        Err(format!(
            "`{url}` is no link this course knows: use `#id`, `chapter:12`, `chapter:12#id`, `lab:id` or `https://…`"
        ))
    }

    fn chapter_target(&self, target: &str) -> Result<String, String> {
        let lang = self.env.lang.code();
        let (name, anchor) =
            target.split_once('#').map_or((target, None), |(name, anchor)| (name, Some(anchor)));
        let Some(chapter) = course::find(self.env.titles, name) else {
            return Err(format!(
                "there is no chapter `{name}`; write its number, 1 to {}",
                self.env.titles.len()
            ));
        };
        let ids = self.env.anchors.get(&chapter.number);
        match (ids, anchor) {
            (Some(_), None) => Ok(format!("/{lang}/course/{}", chapter.folder())),
            (Some(ids), Some(anchor)) if ids.contains(anchor) => {
                Ok(format!("/{lang}/course/{}#{anchor}", chapter.folder()))
            }
            (Some(ids), Some(anchor)) => Err(format!(
                "chapter {} has no heading with the id `{anchor}`; {}",
                chapter.number,
                known("ids", ids)
            )),
            // Announced with its title alone: its place in the index.
            (None, None) => Ok(format!("/{lang}/course#chapter-{:02}", chapter.number)),
            (None, Some(anchor)) => Err(format!(
                "chapter {} is not written yet, so it has no heading `{anchor}`; link to the chapter alone",
                chapter.number
            )),
        }
    }

    /// A glossary term: a link to its definition at the end of the page, with the definition at hand for the mouse.
    fn term(&mut self, id: &str, words: Option<String>, at: usize) {
        let Some(term) = self.env.glossary.get(id) else {
            return self.error(
                at,
                format!("`{id}` is not in content/glossary.toml; add [term.{id}] there, or mend the id"),
            );
        };
        self.state.terms.insert(id.to_owned());
        let name = term.name(self.env.lang);
        let words = words.unwrap_or_else(|| {
            self.state.prose.add(name);
            self.after_cjk = name.chars().next_back().is_some_and(crate::words::is_cjk);
            escape(name)
        });
        let definition = escape(term.definition(self.env.lang));
        push(
            &mut self.out,
            format_args!("<a class=\"term\" href=\"#term-{id}\" title=\"{definition}\">{words}</a>"),
        );
    }
}

/// `known ids: a, b, c`.
pub(crate) fn known<'k>(what: &str, names: impl IntoIterator<Item = &'k String>) -> String {
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    if names.is_empty() {
        format!("there are no {what} yet")
    } else {
        format!("known {what}: {}", names.join(", "))
    }
}
