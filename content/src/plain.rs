//! The words of rendered HTML without its markup, for a search index.

use crate::types::{Chapter, Segment};

/// A heading and what stands below it, up to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Anchor in the page; empty for what stands before the first heading.
    pub id: String,
    pub title: String,
    pub text: String,
}

/// A chapter's sections. Quizzes are left out: a search must not tell their answers. So are the terms at the end, which are found
/// as terms.
pub fn sections(chapter: &Chapter) -> Vec<Section> {
    let mut out = vec![Section { id: String::new(), title: chapter.meta.title.clone(), text: String::new() }];
    for segment in &chapter.segments {
        let html = match segment {
            Segment::Html { html } | Segment::Lab { html, .. } => html,
            Segment::Widget(_) | Segment::Quiz(_) => continue,
        };
        let html = html.split("<section class=\"terms\"").next().unwrap_or_default();
        let mut starts: Vec<usize> = html.match_indices("<h2 id=\"").map(|(at, _)| at).collect();
        starts.extend(html.match_indices("<h3 id=\"").map(|(at, _)| at));
        starts.sort_unstable();
        starts.push(html.len());
        append(&mut out, &html[..starts[0]]);
        for pair in starts.windows(2) {
            let part = &html[pair[0]..pair[1]];
            let id = part["<h2 id=\"".len()..].split('"').next().unwrap_or_default().to_owned();
            let (heading, rest) = part.split_once("</h").unwrap_or((part, ""));
            // Behind the heading's own end: `2>`.
            let rest = rest.split_once('>').map_or("", |(_, rest)| rest);
            out.push(Section {
                id,
                title: words(heading).trim_end_matches('#').trim_end().to_owned(),
                text: String::new(),
            });
            append(&mut out, rest);
        }
    }
    out.retain(|section| !section.text.is_empty());
    out
}

fn append(sections: &mut [Section], html: &str) {
    let text = words(html);
    if let Some(section) = sections.last_mut()
        && !text.is_empty()
    {
        if !section.text.is_empty() {
            section.text.push(' ');
        }
        section.text.push_str(&text);
    }
}

/// What is read aloud of a piece of HTML: no markup, no drawings, a formula once. Only for what this crate's renderer made.
pub fn words(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 2);
    let mut push = |text: &str| {
        for c in text.chars() {
            if !c.is_whitespace() {
                out.push(c);
            } else if !out.ends_with(' ') {
                out.push(' ');
            }
        }
    };
    visible(html, &mut |part| match part {
        Part::Text(text) => push(&unescape(text)),
        Part::Tag(name) if is_block(name) => push(" "),
        Part::Tag(_) => {}
    });
    out.trim().to_owned()
}

pub(crate) enum Part<'h> {
    /// Still escaped.
    Text(&'h str),
    /// Name of an element that opens or closes.
    Tag(&'h str),
}

/// What is not hidden from whoever listens: a formula stands in the page three times, as MathML, as TeX and as boxes.
pub(crate) fn visible<'h>(html: &'h str, part: &mut dyn FnMut(Part<'h>)) {
    // Elements open since the one that is left out, itself included.
    let mut hidden = 0_u32;
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        if hidden == 0 {
            part(Part::Text(&rest[..open]));
        }
        let length = rest[open..].find('>').map_or(rest.len() - open, |end| end + 1);
        let tag = &rest[open..open + length];
        let name = tag.trim_start_matches(['<', '/']).split([' ', '>', '/']).next().unwrap_or_default();
        if tag.starts_with("</") {
            hidden = hidden.saturating_sub(1);
        } else if !(tag.ends_with("/>") || matches!(name, "br" | "hr" | "img"))
            && (hidden > 0 || is_hidden(tag, name))
        {
            hidden += 1;
        }
        if hidden == 0 {
            part(Part::Tag(name));
        }
        rest = &rest[open + length..];
    }
    if hidden == 0 {
        part(Part::Text(rest));
    }
}

fn is_hidden(tag: &str, name: &str) -> bool {
    matches!(name, "svg" | "annotation")
        || tag.contains("class=\"katex-html\"")
        || tag.starts_with("<a class=\"anchor\"")
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "li"
            | "td"
            | "th"
            | "tr"
            | "dt"
            | "dd"
            | "div"
            | "br"
            | "figcaption"
            | "h2"
            | "h3"
            | "h4"
            | "pre"
    )
}

/// The five that [`crate::html`] writes.
fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    named.into_iter().fold(text.to_owned(), |text, (name, sign)| text.replace(name, sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_goes_and_words_stay_apart() {
        let html = "<p>每个 <code>rank</code> 发送 &lt;1&gt;</p><ul><li>一</li><li>二</li></ul><svg><text>x</text></svg><td>a</td><td>b</td>";
        assert_eq!(words(html), "每个 rank 发送 <1> 一 二 a b");
    }

    #[test]
    fn a_formula_is_read_once() {
        let html = "<span class=\"katex\"><span class=\"katex-mathml\"><math><mi>n</mi><annotation>n</annotation></math></span><span aria-hidden=\"true\" class=\"katex-html\"><span>n</span></span></span>。";
        assert_eq!(words(html), "n。");
    }
}
