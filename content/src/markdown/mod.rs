//! Markdown to HTML and segments, event by event.
//!
//! Everything an author writes goes through `push_escaped`; nothing of the source reaches the page as HTML. Whatever Markdown leaves
//! standing as plain characters although it was meant as markup (`**`, `$`, `[^1]`, `[[`) is an error, not a surprise on the page.

mod code;
mod flow;
mod link;
mod math;
mod notes;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TextMergeWithOffset};
use ringlab_engine::text::Lang;

use crate::citations::Citation;
use crate::course::ChapterTitle;
use crate::error::ContentError;
use crate::glossary::Term;
use crate::highlight::Highlighter;
use crate::outline::Outline;
use crate::source::Fragment;
use crate::types::{Segment, TocEntry};
use crate::words::Prose;

pub(crate) use link::known;
pub(crate) use math::Math;
pub(crate) use notes::section as notes_section;

/// What a chapter can refer to. Shared by all chapters of a language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Env<'a> {
    pub lang: Lang,
    pub root: &'a Path,
    /// Folder of the chapter, below the root, with `/`.
    pub folder: &'a str,
    pub number: u32,
    pub titles: &'a [ChapterTitle],
    pub glossary: &'a BTreeMap<String, Term>,
    pub labs: &'a BTreeSet<String>,
    /// Heading ids of the chapters written in this language, by number.
    pub anchors: &'a BTreeMap<u32, BTreeSet<String>>,
    pub math: &'a Math,
    pub code: &'a Highlighter,
}

impl Env<'_> {
    /// One of two words by language.
    pub fn pick<'w>(&self, zh: &'w str, en: &'w str) -> &'w str {
        match self.lang {
            Lang::Zh => zh,
            Lang::En => en,
        }
    }

    /// One of two values by language.
    pub fn pick_of<'v, T>(&self, zh: &'v T, en: &'v T) -> &'v T {
        match self.lang {
            Lang::Zh => zh,
            Lang::En => en,
        }
    }
}

/// What is collected while a chapter is rendered.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub errors: Vec<ContentError>,
    pub outline: Outline,
    pub toc: Vec<TocEntry>,
    pub prose: Prose,
    pub terms: BTreeSet<String>,
    /// Ids in the page, of headings and quizzes, and the drawings' names.
    pub ids: BTreeSet<String>,
    pub citations: Vec<Citation>,
    pub lab_blocks: BTreeSet<String>,
    pub notes: notes::Notes,
    pub formulas: u32,
    pub figures: u32,
    pub checks: u32,
}

/// Where a text stands, hence what it may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A chapter's own text: headings, blocks, footnotes.
    Chapter,
    /// Text within a block: paragraphs, lists, tables, code, formulas.
    Nested,
    /// One paragraph without its `<p>`.
    Inline,
}

pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_MATH
        | Options::ENABLE_WIKILINKS
}

/// A chapter's text.
pub(crate) fn chapter(env: &Env<'_>, state: &mut State, text: &Fragment<'_>) -> Vec<Segment> {
    let mut writer = Writer::new(env, state, text, Place::Chapter);
    writer.run();
    writer.flush();
    writer.segments
}

/// Text within a block: HTML.
pub(crate) fn nested(env: &Env<'_>, state: &mut State, text: &Fragment<'_>) -> String {
    render(env, state, text, Place::Nested)
}

/// Words on one line: a title, an option, a caption. HTML without a paragraph around it.
pub(crate) fn inline(env: &Env<'_>, state: &mut State, text: &Fragment<'_>) -> String {
    render(env, state, text, Place::Inline)
}

fn render(env: &Env<'_>, state: &mut State, text: &Fragment<'_>, place: Place) -> String {
    let mut writer = Writer::new(env, state, text, place);
    writer.run();
    writer.out
}

/// The ids of a chapter's headings, for links into it.
pub(crate) fn heading_ids(text: &str) -> BTreeSet<String> {
    Parser::new_ext(text, options())
        .filter_map(|event| match event {
            Event::Start(Tag::Heading { id, .. }) => id.map(|id| id.to_string()),
            _ => None,
        })
        .collect()
}

/// One pass over the events of one text.
struct Writer<'a, 's> {
    env: &'a Env<'a>,
    state: &'s mut State,
    text: &'a Fragment<'a>,
    place: Place,
    events: Vec<(Event<'a>, Range<usize>)>,
    /// Index of the event at hand.
    at: usize,
    /// Open block elements around it.
    depth: u32,
    out: String,
    segments: Vec<Segment>,
    table: flow::TableState,
    /// Whether the last character written was Chinese, so that a broken line needs no space.
    after_cjk: bool,
}

impl<'a, 's> Writer<'a, 's> {
    fn new(env: &'a Env<'a>, state: &'s mut State, text: &'a Fragment<'a>, place: Place) -> Writer<'a, 's> {
        let parser = Parser::new_ext(&text.text, options()).into_offset_iter();
        Writer {
            env,
            state,
            text,
            place,
            events: TextMergeWithOffset::new(parser).collect(),
            at: 0,
            depth: 0,
            out: String::new(),
            segments: Vec::new(),
            table: flow::TableState::default(),
            after_cjk: false,
        }
    }

    fn run(&mut self) {
        while self.at < self.events.len() {
            self.event();
        }
    }

    /// Writes the event at hand and moves behind it.
    fn event(&mut self) {
        let (event, range) = self.events[self.at].clone();
        self.at += 1;
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.close(tag),
            Event::Text(text) => self.words(&text, range),
            Event::Code(code) => {
                self.out.push_str("<code>");
                crate::html::push_escaped(&mut self.out, &code);
                self.out.push_str("</code>");
                self.state.prose.add(&code);
                self.after_cjk = false;
            }
            Event::InlineMath(tex) => self.formula(&tex, false, range),
            Event::DisplayMath(tex) => self.formula(&tex, true, range),
            Event::Html(html) | Event::InlineHtml(html) => self.raw_html(&html, range.start),
            Event::FootnoteReference(name) => self.footnote_reference(&name, range),
            Event::SoftBreak => {
                let next_is_cjk = match self.events.get(self.at) {
                    Some((Event::Text(text), _)) => text.chars().next().is_some_and(crate::words::is_cjk),
                    _ => false,
                };
                if !(self.after_cjk && next_is_cjk) {
                    self.out.push('\n');
                }
            }
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            // Not switched on in `options`.
            Event::TaskListMarker(_) => {}
        }
    }

    fn error(&mut self, offset: usize, message: impl Into<String>) {
        self.state.errors.push(self.text.error(offset, message));
    }

    /// Where an item of the outline stands.
    fn here(&self, offset: usize) -> ContentError {
        self.text.error(offset, "")
    }

    /// Index of the end tag that closes the element just opened.
    fn end_of_element(&self) -> usize {
        let mut depth = 0_u32;
        for (i, (event, _)) in self.events.iter().enumerate().skip(self.at) {
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) if depth == 0 => return i,
                Event::End(_) => depth -= 1,
                _ => {}
            }
        }
        self.events.len()
    }

    /// The HTML of the element just opened; moves behind its end tag.
    fn capture(&mut self) -> String {
        let end = self.end_of_element();
        let outer = std::mem::take(&mut self.out);
        while self.at < end {
            self.event();
        }
        self.at = end + 1;
        std::mem::replace(&mut self.out, outer)
    }

    /// Moves behind the end tag of the element just opened, and gives the events before it.
    fn skip(&mut self) -> Range<usize> {
        let inside = self.at..self.end_of_element();
        self.at = inside.end + 1;
        inside
    }

    fn flush(&mut self) {
        if !self.out.trim().is_empty() {
            let html = std::mem::take(&mut self.out);
            self.segments.push(Segment::Html { html });
        }
        self.out.clear();
    }

    fn words(&mut self, text: &str, range: Range<usize>) {
        self.leftover_markup(text, range);
        crate::html::push_escaped(&mut self.out, text);
        self.state.prose.add(text);
        self.after_cjk = text.chars().next_back().is_some_and(crate::words::is_cjk);
    }

    fn raw_html(&mut self, html: &str, at: usize) {
        let html = html.trim();
        self.error(
            at,
            format!("raw HTML is not allowed: `{html}`; write Markdown, or put code between backquotes"),
        );
    }

    /// Characters that were meant as markup and were not read as such.
    fn leftover_markup(&mut self, text: &str, range: Range<usize>) {
        let Some(raw) = self.text.text.get(range.clone()) else { return };
        let before = &self.text.text[..range.start];
        // Behind a backslash a sign is meant as itself; the backslash may stand before this piece of text.
        let escaped = |at: usize| if at == 0 { before.ends_with('\\') } else { raw[..at].ends_with('\\') };
        let bare = |sign: &str| raw.match_indices(sign).map(|(at, _)| at).find(|&at| !escaped(at));
        let problems = [
            (
                "$",
                "this `$` opens or closes no formula: write `$x$` without white space inside, or `\\$` for the sign itself",
            ),
            (
                "**",
                "this `**` was not read as emphasis: move punctuation or quotation marks out of it, or put a space outside",
            ),
            ("[^", "this footnote has no definition: add a line `[^name]: text`, or write `\\[^`"),
            (
                "[[",
                "this is not a glossary term: write `[[id]]` or `[[id|words]]`, or `\\[[` for the signs themselves",
            ),
            ("~~", "this `~~` was not read as strikethrough: put no white space inside it"),
        ];
        for (sign, message) in problems {
            if text.contains(sign)
                && let Some(at) = bare(sign)
            {
                self.error(range.start + at, message);
            }
        }
    }

    fn start(&mut self, tag: Tag<'a>, range: Range<usize>) {
        match tag {
            Tag::Heading { level, id, classes, attrs } => {
                let plain = classes.is_empty() && attrs.is_empty();
                self.heading(level as u8, id.as_deref(), plain, range);
            }
            Tag::CodeBlock(kind) => self.fence(kind, range),
            Tag::Link { link_type, dest_url, title, .. } => self.link(link_type, &dest_url, &title, range),
            Tag::Image { .. } => {
                self.skip();
                self.error(range.start, flow::ALONE);
            }
            Tag::FootnoteDefinition(name) => self.footnote_definition(&name, range),
            Tag::Paragraph => self.paragraph(range),
            Tag::HtmlBlock => {
                let inside = self.skip();
                let html: String = match self.events.get(inside.start) {
                    Some((Event::Html(html), _)) => html.to_string(),
                    _ => String::new(),
                };
                self.raw_html(&html, range.start);
            }
            tag => self.open(tag, range),
        }
    }
}

#[cfg(test)]
mod tests;
