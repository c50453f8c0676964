//! A lab's instructions: a small part of CommonMark to HTML. Chapters have their own, richer renderer in `content`.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub(super) struct MarkdownError {
    pub line: usize,
    pub message: String,
}

/// HTML of `source`: headings from `##`, paragraphs, emphasis, lists, code, tables, quotes, https links.
///
/// # Errors
/// The first of: raw HTML, an image, a top heading, a link that is not https.
pub(super) fn render(source: &str) -> Result<String, MarkdownError> {
    let mut events = Vec::new();
    for (event, range) in Parser::new_ext(source, Options::ENABLE_TABLES).into_offset_iter() {
        if let Some(message) = refused(&event) {
            let line = source[..range.start].matches('\n').count() + 1;
            return Err(MarkdownError { line, message });
        }
        match event {
            // A wide table scrolls by itself; it must not push the page wide on a phone.
            Event::Start(Tag::Table(_)) => {
                events.push(Event::Html(CowStr::Borrowed("<div class=\"table\" tabindex=\"0\">")));
                events.push(event);
            }
            Event::End(TagEnd::Table) => {
                events.push(event);
                events.push(Event::Html(CowStr::Borrowed("</div>")));
            }
            event => events.push(event),
        }
    }
    let mut out = String::new();
    html::push_html(&mut out, events.into_iter());
    Ok(out)
}

fn refused(event: &Event) -> Option<String> {
    match event {
        Event::Html(raw) | Event::InlineHtml(raw) => {
            Some(format!("raw HTML `{}` is not taken; write it as Markdown, or in backquotes", raw.trim()))
        }
        Event::Start(Tag::Image { .. }) => Some("images are not taken in a lab's text".to_owned()),
        Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => {
            Some("headings start at `##`: the page sets the title itself".to_owned())
        }
        Event::Start(Tag::Link { dest_url, .. }) if !dest_url.starts_with("https://") => {
            Some(format!("link to `{dest_url}`: only https:// links are taken"))
        }
        _ => None,
    }
}

/// Levels of the headings in order: both languages of a text must have the same.
pub(super) fn outline(source: &str) -> Vec<HeadingLevel> {
    let headings = |event| match event {
        Event::Start(Tag::Heading { level, .. }) => Some(level),
        _ => None,
    };
    Parser::new_ext(source, Options::ENABLE_TABLES).filter_map(headings).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_authors_need_becomes_html() {
        assert_eq!(
            render("## 时间\n\n`a<b` & *c*\n\n| S | t |\n|---|---|\n| 1 | 2 |\n").unwrap(),
            "<h2>时间</h2>\n<p><code>a&lt;b</code> &amp; <em>c</em></p>\n<div class=\"table\" tabindex=\"0\"><table><thead><tr>\
             <th>S</th><th>t</th></tr></thead><tbody>\n<tr><td>1</td><td>2</td></tr>\n</tbody></table>\n</div>"
        );
    }

    #[test]
    fn what_could_carry_a_script_is_refused_with_its_line() {
        for (source, line) in [
            ("a\n\n<script>alert(1)</script>\n", 3),
            ("a <b>b</b>", 1),
            ("[x](javascript:alert(1))", 1),
            ("\n![x](https://e.org/x.png)", 2),
            ("# Top", 1),
        ] {
            assert_eq!(render(source).unwrap_err().line, line, "{source}");
        }
    }

    proptest! {
        #[test]
        fn no_source_makes_a_script(source in "(<script>|[<>&\"'`# \n|a-z\\[\\]()!:/-]){0,60}") {
            if let Ok(html) = render(&source) {
                prop_assert!(!html.to_lowercase().contains("<script"), "{html}");
            }
        }
    }
}
