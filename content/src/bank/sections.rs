//! A question's text: front matter, then sections with fixed ids.

use serde::Deserialize;
use toml::Spanned;

use crate::error::ContentError;
use crate::source::SourceFile;

/// One language of one question. Markdown, as the chapters' (content/FORMAT.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// The question in one line.
    pub title: String,
    /// What a candidate sees: it names every aspect the rubric pays for.
    pub prompt: String,
    /// The answer in a few sentences.
    pub core: String,
    /// The answer with derivations, limits and versions.
    pub deep: String,
    pub follow_ups: Vec<FollowUp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowUp {
    pub prompt: String,
    pub answer: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Front {
    number: Spanned<u32>,
    title: Spanned<String>,
}

pub(super) fn read(file: &SourceFile, number: u32, errors: &mut Vec<ContentError>) -> Option<Texts> {
    let Some((head, body)) = file.text.strip_prefix("+++\n").and_then(|rest| rest.split_once("\n+++\n"))
    else {
        errors.push(
            file.error(0, "the file starts with `+++`, TOML with `number` and `title`, and `+++` again"),
        );
        return None;
    };
    let front: Front = match file.slice(4..4 + head.len()).toml("the front matter") {
        Ok(front) => front,
        Err(error) => {
            errors.push(error);
            return None;
        }
    };
    if *front.number.get_ref() != number {
        let at = 4 + front.number.span().start;
        errors.push(
            file.error(at, format!("`number` is {} but the folder is {number:02}", front.number.get_ref())),
        );
    }
    let from = file.text.len() - body.len();
    let found = headings(file, from, errors);
    let follow_ups = found.iter().filter(|section| section.id.starts_with("follow-up-")).count();
    let mut wanted = vec!["prompt".to_owned(), "core".to_owned(), "deep".to_owned()];
    for n in 1..=follow_ups {
        wanted.extend([format!("follow-up-{n}"), format!("answer-{n}")]);
    }
    let ids: Vec<&str> = found.iter().map(|section| section.id.as_str()).collect();
    if ids != wanted || follow_ups == 0 {
        let at = found.first().map_or(from, |section| section.at);
        errors.push(file.error(
            at,
            format!(
                "the sections are {}; a question has `## … {{#prompt}}`, core, deep, follow-up-1, answer-1, and so on, in this order",
                ids.join(", ")
            ),
        ));
        return None;
    }
    let mut texts = found.iter().map(|section| file.text[section.body.clone()].trim().to_owned());
    for section in &found {
        if file.text[section.body.clone()].trim().is_empty() {
            errors.push(file.error(section.at, format!("section `{}` is empty", section.id)));
        }
    }
    let mut next = || texts.next().unwrap_or_default();
    Some(Texts {
        title: front.title.into_inner(),
        prompt: next(),
        core: next(),
        deep: next(),
        follow_ups: (0..follow_ups).map(|_| FollowUp { prompt: next(), answer: next() }).collect(),
    })
}

struct Section {
    id: String,
    at: usize,
    body: std::ops::Range<usize>,
}

fn headings(file: &SourceFile, from: usize, errors: &mut Vec<ContentError>) -> Vec<Section> {
    let mut out: Vec<Section> = Vec::new();
    let mut at = from;
    let mut fenced = false;
    for line in file.text[from..].split_inclusive('\n') {
        fenced ^= line.starts_with("```");
        if line.starts_with("## ") && !fenced {
            if let Some(last) = out.last_mut() {
                last.body.end = at;
            }
            let id =
                line.trim_end().strip_suffix('}').and_then(|line| Some(line.rsplit_once("{#")?.1.to_owned()));
            if id.is_none() {
                errors.push(file.error(at, "this heading has no id; write `## Words {#prompt}`"));
            }
            out.push(Section { id: id.unwrap_or_default(), at, body: at + line.len()..file.text.len() });
        } else if out.is_empty() && !line.trim().is_empty() {
            errors.push(
                file.error(at, "this text stands before the first section; begin with `## … {#prompt}`"),
            );
        }
        at += line.len();
    }
    out
}
