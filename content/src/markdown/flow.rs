//! Paragraphs, headings, lists, tables, emphasis, figures.

use std::ops::Range;

use pulldown_cmark::{Alignment, Event, Tag, TagEnd};

use super::{Place, Writer};
use crate::html::{escape, label as label_of, push, push_escaped};
use crate::ids::is_id;
use crate::source::SourceFile;
use crate::types::TocEntry;

/// Which cell of which table is being written.
#[derive(Debug, Default)]
pub(super) struct TableState {
    alignments: Vec<Alignment>,
    head: bool,
    column: usize,
}

pub(super) const ALONE: &str =
    "a figure stands alone in its paragraph: put an empty line before and after it";

/// Ids that the page itself uses.
const TAKEN: [&str; 2] = ["terms", "notes"];
const TAKEN_PREFIXES: [&str; 5] = ["term-", "note-", "fig-", "quiz-", "chapter-"];

impl<'a> Writer<'a, '_> {
    pub(super) fn paragraph(&mut self, range: Range<usize>) {
        if let Some((Event::Start(Tag::Image { dest_url, title, .. }), image)) =
            self.events.get(self.at).cloned()
        {
            self.at += 1;
            let inside = self.skip();
            if matches!(self.events.get(self.at), Some((Event::End(TagEnd::Paragraph), _))) {
                self.at += 1;
                let alt: String = self.events[inside].iter().map(|(event, _)| plain_of(event)).collect();
                return self.figure(&dest_url, &title, &alt, image);
            }
            self.error(image.start, ALONE);
        }
        if self.place == Place::Inline {
            if self.depth > 0 || !self.out.is_empty() {
                self.error(range.start, "one paragraph is expected here; join the lines");
            }
            return;
        }
        self.out.push_str("<p>");
    }

    /// A tag without further meaning.
    pub(super) fn open(&mut self, tag: Tag<'a>, range: Range<usize>) {
        let block = !matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough);
        if block {
            self.depth += 1;
            if self.place == Place::Inline
                && !matches!(tag, Tag::TableHead | Tag::TableRow | Tag::TableCell | Tag::Item)
            {
                self.error(range.start, "one paragraph is expected here: no lists, tables or quotations");
            }
        }
        match tag {
            Tag::BlockQuote(_) => self.out.push_str("<blockquote>"),
            Tag::List(None) => self.out.push_str("<ul>"),
            Tag::List(Some(1)) => self.out.push_str("<ol>"),
            Tag::List(Some(first)) => push(&mut self.out, format_args!("<ol start=\"{first}\">")),
            Tag::Item => self.out.push_str("<li>"),
            Tag::Table(alignments) => {
                if self.place == Place::Chapter {
                    let here = self.here(range.start);
                    self.state.outline.push("a table", format!("{} columns", alignments.len()), here);
                }
                self.table = TableState { alignments, head: false, column: 0 };
                // Wide tables scroll by themselves, by keyboard too.
                let label = self.env.pick("表格", "Table");
                push(
                    &mut self.out,
                    format_args!(
                        "<div class=\"table\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\"><table>"
                    ),
                );
            }
            Tag::TableHead => {
                self.table.head = true;
                self.table.column = 0;
                self.out.push_str("<thead><tr>");
            }
            Tag::TableRow => {
                self.table.column = 0;
                self.out.push_str("<tr>");
            }
            Tag::TableCell => {
                self.out.push_str(if self.table.head { "<th scope=\"col\"" } else { "<td" });
                match self.table.alignments.get(self.table.column) {
                    Some(Alignment::Right) => self.out.push_str(" class=\"right\""),
                    Some(Alignment::Center) => self.out.push_str(" class=\"center\""),
                    _ => {}
                }
                self.out.push('>');
                self.table.column += 1;
            }
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<del>"),
            // The rest is not switched on.
            _ => {}
        }
    }

    pub(super) fn close(&mut self, tag: TagEnd) {
        if !matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Paragraph) {
            self.depth = self.depth.saturating_sub(1);
        }
        let html = match tag {
            TagEnd::Paragraph if self.place == Place::Inline => "",
            TagEnd::Paragraph => "</p>\n",
            TagEnd::BlockQuote(_) => "</blockquote>\n",
            TagEnd::List(false) => "</ul>\n",
            TagEnd::List(true) => "</ol>\n",
            TagEnd::Item => "</li>\n",
            TagEnd::Table => "</tbody></table></div>\n",
            TagEnd::TableHead => {
                self.table.head = false;
                "</tr></thead><tbody>\n"
            }
            TagEnd::TableRow => "</tr>\n",
            TagEnd::TableCell if self.table.head => "</th>",
            TagEnd::TableCell => "</td>",
            TagEnd::Emphasis => "</em>",
            TagEnd::Strong => "</strong>",
            TagEnd::Strikethrough => "</del>",
            _ => "",
        };
        self.out.push_str(html);
    }

    pub(super) fn heading(&mut self, level: u8, id: Option<&str>, no_attributes: bool, range: Range<usize>) {
        let at = range.start;
        let html = self.capture();
        if self.place != Place::Chapter || self.depth > 0 {
            return self.error(
                at,
                "a heading belongs to the chapter's own text, not into a block, list or quotation",
            );
        }
        if !no_attributes {
            self.error(at, "a heading carries an id alone: `## Text {#stable-id}`");
        }
        if html.contains("<a ") {
            self.error(at, "no links or glossary terms in a heading; put them into the text below it");
        }
        let previous = self.state.toc.last().map_or(1, |entry| entry.level);
        if !(2..=4).contains(&level) {
            return self.error(at, "use `##`, `###` and `####`; the title comes from the front matter");
        }
        if level > previous + 1 {
            self.error(
                at,
                format!(
                    "this heading skips a level: after `{}` comes at most `{}`",
                    "#".repeat(previous.into()),
                    "#".repeat(usize::from(previous) + 1)
                ),
            );
        }
        let Some(id) = id else {
            return self.error(
                at,
                "this heading has no id: write `## Text {#stable-id}`, the same id in both languages",
            );
        };
        let id = id.to_owned();
        if !is_id(&id) {
            self.error(at, format!("id `{id}`: use lower-case letters, digits and single hyphens"));
        } else if TAKEN.contains(&id.as_str()) || TAKEN_PREFIXES.iter().any(|prefix| id.starts_with(prefix)) {
            self.error(at, format!("id `{id}` is one the page uses itself; choose another"));
        } else if !self.state.ids.insert(id.clone()) {
            self.error(at, format!("id `{id}` is used twice; give each heading its own"));
        }
        let here = self.here(at);
        self.state.outline.push(format!("heading {} {{#{id}}}", "#".repeat(level.into())), "", here);
        let id = escape(&id);
        let label = self.env.pick("本节的链接：", "Link to this section: ");
        push(
            &mut self.out,
            format_args!(
                "<h{level} id=\"{id}\">{html} <a class=\"anchor\" href=\"#{id}\" aria-label=\"{label}{}\">#</a></h{level}>\n",
                label_of(&html)
            ),
        );
        self.state.toc.push(TocEntry { level, id, html });
    }

    fn figure(&mut self, url: &str, caption: &str, alt: &str, range: Range<usize>) {
        let at = range.start;
        if self.place == Place::Inline || self.depth > 0 {
            return self.error(at, "a figure does not go into a list, table or quotation");
        }
        let Some(name) =
            url.strip_prefix("fig/").and_then(|file| file.strip_suffix(".svg")).filter(|name| is_id(name))
        else {
            return self.error(at, format!("`{url}` is not a figure of this chapter: write `fig/NAME.svg`, NAME in lower-case letters, digits, hyphens"));
        };
        if alt.trim().is_empty() {
            self.error(at, "say between the brackets what the figure shows, for readers who cannot see it");
        }
        if caption.trim().is_empty() {
            self.error(at, "give the figure a caption: `![alternative text](fig/name.svg \"caption\")`");
        }
        if !self.state.ids.insert(format!("fig-{name}")) {
            self.error(at, format!("figure `{name}` stands twice in this chapter; refer to it by a link `[words](#…)` instead"));
        }
        let here = self.here(at);
        self.state.outline.push(format!("figure {name}"), "", here);
        self.state.figures += 1;
        let path = format!("{}/fig/{name}.svg", self.env.folder);
        let svg = match std::fs::read_to_string(self.env.root.join(&path)) {
            Ok(text) => SourceFile::new(path, text),
            Err(error) => {
                return self.error(at, format!("{path} cannot be read: {error}; draw it, or mend the name"));
            }
        };
        let words_path = format!("{}/fig/{name}.toml", self.env.folder);
        let words = match std::fs::read_to_string(self.env.root.join(&words_path)) {
            Ok(text) => Some(SourceFile::new(words_path, text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return self.error(at, format!("{words_path} cannot be read: {error}")),
        };
        let drawing =
            crate::figure::inline(name, &svg, words.as_ref(), self.env.lang, alt, &mut self.state.errors);
        push(&mut self.out, format_args!("<figure class=\"figure\" id=\"fig-{name}\">{drawing}<figcaption>"));
        push_escaped(&mut self.out, caption);
        self.out.push_str("</figcaption></figure>\n");
        self.state.prose.add(caption);
    }
}

/// The words of an event, for alternative texts.
fn plain_of<'e>(event: &'e Event<'_>) -> &'e str {
    match event {
        Event::Text(text) | Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => text,
        Event::SoftBreak | Event::HardBreak => " ",
        _ => "",
    }
}
