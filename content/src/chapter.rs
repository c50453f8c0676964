//! One language of one chapter: front matter, text, and what stands at its end.

use ringlab_engine::text::Lang;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;

use crate::course::{self, ChapterTitle};
use crate::html::{escape, push};
use crate::markdown::{self, Env, State, inline, known};
use crate::source::{Fragment, SourceFile};
use crate::types::{Chapter, ChapterMeta, Segment, TocEntry};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrontMatter {
    number: Spanned<u32>,
    slug: Spanned<String>,
    title: Spanned<String>,
    summary: Spanned<String>,
    objectives: Vec<Spanned<String>>,
    prerequisites: Vec<Spanned<String>>,
    lab: Option<Spanned<String>>,
}

/// The front matter's TOML and the Markdown after it, or why they cannot be told apart.
fn split(file: &SourceFile) -> Result<(Fragment<'_>, Fragment<'_>), &'static str> {
    let rest = file
        .text
        .strip_prefix("+++\n")
        .ok_or("the file starts with `+++`, TOML, and `+++` again (see content/FORMAT.md)")?;
    let end = if rest.starts_with("+++\n") { Some(0) } else { rest.find("\n+++\n").map(|at| at + 1) };
    let end = 4 + end.ok_or("the front matter is never closed by a line `+++`")?;
    Ok((file.slice(4..end), file.slice(end + 4..file.text.len())))
}

/// The Markdown alone, for a first look at its headings.
pub(crate) fn text_of(file: &SourceFile) -> &str {
    file.text.find("\n+++\n").map_or(&file.text, |at| &file.text[at + 5..])
}

/// Renders `file`; what is wrong is in `state.errors`. `None` when there is no front matter to go by.
pub(crate) fn render(
    env: &Env<'_>,
    state: &mut State,
    file: &SourceFile,
    title: &ChapterTitle,
) -> Option<Chapter> {
    let (head, text) = match split(file) {
        Ok(parts) => parts,
        Err(message) => {
            state.errors.push(file.error(0, message));
            return None;
        }
    };
    let front: FrontMatter = match head.toml("the front matter") {
        Ok(front) => front,
        Err(error) => {
            state.errors.push(error);
            return None;
        }
    };
    check_against_index(env, state, &head, &front, title);
    let lab = front.lab.as_ref().map(|lab| lab.get_ref().clone());
    let counts = format!(
        "lab {lab:?}, {} objectives, {} prerequisites",
        front.objectives.len(),
        front.prerequisites.len()
    );
    state.outline.push("the front matter", counts, file.error(0, ""));
    let objectives =
        front.objectives.iter().map(|text| inline(env, state, &head.toml_string(text))).collect();
    let prerequisites =
        front.prerequisites.iter().map(|text| prerequisite(env, state, &head, text)).collect();
    let requires = required(env, state, &head, &front);

    let mut segments = markdown::chapter(env, state, &text);
    check_lab(state, &head, &front);
    let mut tail = markdown::notes_section(env, state);
    tail.push_str(&terms_section(env, state));
    match segments.last_mut() {
        Some(Segment::Html { html }) => html.push_str(&tail),
        _ if tail.is_empty() => {}
        _ => segments.push(Segment::Html { html: tail }),
    }
    if !state.terms.is_empty() {
        let html = env.pick("本章术语", "Terms in this chapter").to_owned();
        state.toc.push(TocEntry { level: 2, id: "terms".to_owned(), html });
    }
    let meta = ChapterMeta {
        number: title.number,
        slug: title.slug.clone(),
        title: front.title.into_inner(),
        lang: env.lang.code().to_owned(),
        summary: front.summary.into_inner(),
        minutes: state.prose.minutes(),
        objectives,
        prerequisites,
        requires,
        lab,
    };
    Some(Chapter { meta, version: version(&file.text), toc: std::mem::take(&mut state.toc), segments })
}

fn check_against_index(
    env: &Env<'_>,
    state: &mut State,
    head: &Fragment<'_>,
    front: &FrontMatter,
    title: &ChapterTitle,
) {
    let mut problem = |at: usize, message: String| state.errors.push(head.error(at, message));
    if *front.number.get_ref() != title.number {
        problem(
            front.number.span().start,
            format!("number is {} but the folder is {}", front.number.get_ref(), title.folder()),
        );
    }
    if *front.slug.get_ref() != title.slug {
        problem(
            front.slug.span().start,
            format!("slug is `{}` but content/course/index.toml has `{}`", front.slug.get_ref(), title.slug),
        );
    }
    let wanted = title.title(env.lang);
    if front.title.get_ref() != wanted {
        problem(
            front.title.span().start,
            format!(
                "the title differs from content/course/index.toml, which has `{wanted}`; make them the same"
            ),
        );
    }
    if front.summary.get_ref().trim().is_empty() {
        problem(front.summary.span().start, "write one or two sentences for the index".to_owned());
    }
    if front.objectives.is_empty() {
        problem(0, "`objectives` is empty; say what a reader can do afterwards".to_owned());
    }
    if let Some(lab) = &front.lab
        && !env.labs.contains(lab.get_ref())
    {
        let message =
            format!("there is no lab `{}` in labs/catalogue; {}", lab.get_ref(), known("labs", env.labs));
        problem(lab.span().start, message);
    }
}

/// The lab that the front matter names is where the text sends its reader.
fn check_lab(state: &mut State, head: &Fragment<'_>, front: &FrontMatter) {
    if let Some(lab) = &front.lab
        && !state.lab_blocks.contains(lab.get_ref())
    {
        let message = format!(
            "the text has no `lab` block for `{}`; add one where the reader should go there",
            lab.get_ref()
        );
        state.errors.push(head.error(lab.span().start, message));
    }
}

/// The chapters that this one builds on: earlier ones, so that the course has an order to be read in.
fn required(env: &Env<'_>, state: &mut State, head: &Fragment<'_>, front: &FrontMatter) -> Vec<u32> {
    let mut numbers = Vec::new();
    for text in &front.prerequisites {
        let Some((name, _)) = text.get_ref().split_once(':') else { continue };
        let Some(chapter) = course::find(env.titles, name.trim()) else { continue };
        if chapter.number >= env.number {
            let message =
                format!("chapter {} comes later than this one; a prerequisite comes earlier", chapter.number);
            state.errors.push(head.error(text.span().start, message));
        }
        numbers.push(chapter.number);
    }
    numbers
}

/// `8: why busbw …` becomes a link to chapter 8 and the words.
fn prerequisite(env: &Env<'_>, state: &mut State, head: &Fragment<'_>, text: &Spanned<String>) -> String {
    let words = head.toml_string(text);
    let chapter = words
        .text
        .split_once(':')
        .and_then(|(name, reason)| Some((course::find(env.titles, name.trim())?, reason)));
    let Some((chapter, reason)) = chapter else {
        // Knowledge from outside the course.
        return inline(env, state, &words);
    };
    let skipped = words.text.len() - reason.len();
    let lead = reason.len() - reason.trim_start().len();
    let reason = inline(env, state, &words.slice(skipped + lead..words.text.len()));
    let lang = env.lang.code();
    let href = match env.anchors.contains_key(&chapter.number) {
        true => format!("/{lang}/course/{}", chapter.folder()),
        false => format!("/{lang}/course#chapter-{:02}", chapter.number),
    };
    let title = escape(chapter.title(env.lang));
    let colon = env.pick("：", ": ");
    format!("<a href=\"{href}\">{}. {title}</a>{colon}{reason}", chapter.number)
}

/// Definitions of the terms that the chapter uses: what a term's link leads to, with or without JavaScript.
fn terms_section(env: &Env<'_>, state: &State) -> String {
    if state.terms.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let title = env.pick("本章术语", "Terms in this chapter");
    push(
        &mut out,
        format_args!(
            "<section class=\"terms\" aria-labelledby=\"terms\"><h2 id=\"terms\">{title}</h2><dl>\n"
        ),
    );
    for term in state.terms.iter().filter_map(|id| env.glossary.get(id)) {
        let other = escape(term.name(env.lang.other()));
        let tag = env.lang.other().tag();
        let (id, name, definition) =
            (&term.id, escape(term.name(env.lang)), escape(term.definition(env.lang)));
        let taught = match env
            .titles
            .iter()
            .find(|title| title.number == term.chapter && term.chapter != env.number)
        {
            Some(title) => {
                let label = env.pick("第 {} 章", "chapter {}").replace("{}", &title.number.to_string());
                format!(
                    " <a class=\"term-chapter\" href=\"/{}/course/{}\">{label}</a>",
                    env.lang.code(),
                    title.folder()
                )
            }
            None => String::new(),
        };
        push(
            &mut out,
            format_args!(
                "<dt id=\"term-{id}\"><dfn>{name}</dfn> <span lang=\"{tag}\">{other}</span></dt><dd>{definition}{taught}</dd>\n"
            ),
        );
    }
    out.push_str("</dl></section>\n");
    out
}

fn version(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        push(&mut hex, format_args!("{byte:02x}"));
        hex
    })
}

/// The two files of a chapter.
pub(crate) fn file_name(lang: Lang) -> String {
    format!("{}.md", lang.code())
}
