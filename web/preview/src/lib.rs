//! See README.md.

use std::cell::OnceCell;

use katex::types::{OutputFormat, StrictMode, StrictSetting, TrustSetting};
use katex::{KatexContext, Settings};
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};
use wasm_bindgen::prelude::wasm_bindgen;

/// Longer than any answer that the server takes; what is beyond is not shown.
const LONGEST: usize = 100_000;

/// Markdown, formulae between `$` or `$$`, tables. Safe to put into a page, whatever the text is.
#[wasm_bindgen]
pub fn render(markdown: &str) -> String {
    let mut end = markdown.len().min(LONGEST);
    while !markdown.is_char_boundary(end) {
        end -= 1;
    }
    let options = Options::ENABLE_MATH | Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let events = Parser::new_ext(&markdown[..end], options).filter_map(tame);
    let mut out = String::new();
    html::push_html(&mut out, events);
    out
}

/// Raw HTML becomes text, a picture its description, an unusual link its words.
fn tame(event: Event<'_>) -> Option<Event<'_>> {
    Some(match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::InlineMath(tex) => Event::InlineHtml(formula(&tex, false).into()),
        Event::DisplayMath(tex) => Event::InlineHtml(formula(&tex, true).into()),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => return None,
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let dest_url = if harmless(&dest_url, link_type) { dest_url } else { CowStr::from("#") };
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        other => other,
    })
}

fn harmless(url: &str, kind: LinkType) -> bool {
    let url = url.to_ascii_lowercase();
    kind == LinkType::Email || ["http://", "https://", "mailto:"].iter().any(|known| url.starts_with(known))
}

thread_local! {
    static KATEX: OnceCell<KatexContext> = const { OnceCell::new() };
}

/// A formula beyond these is shown as it was written: they keep the recursion of the TeX parser within any stack.
const MAX_TEX: usize = 4_000;
const MAX_DEPTH: usize = 40;

fn deep(tex: &str) -> bool {
    let step = |(now, most): (usize, usize), byte| match byte {
        b'{' => (now + 1, most.max(now + 1)),
        b'}' => (now.saturating_sub(1), most),
        _ => (now, most),
    };
    tex.len() > MAX_TEX
        || tex.bytes().fold((0, 0), step).1 > MAX_DEPTH
        || tex.matches("\\left").count() + tex.matches("\\begin").count() > MAX_DEPTH
}

fn formula(tex: &str, display: bool) -> String {
    if deep(tex) {
        return as_written(tex, display);
    }
    let settings = Settings::builder()
        .display_mode(display)
        .output(OutputFormat::HtmlAndMathml)
        .throw_on_error(true)
        .strict(StrictSetting::Mode(StrictMode::Ignore))
        .trust(TrustSetting::Bool(false))
        .max_size(20.0)
        .max_expand(200)
        .build();
    let made =
        KATEX.with(|cell| katex::render_to_string(cell.get_or_init(KatexContext::default), tex, &settings));
    made.unwrap_or_else(|_| as_written(tex, display))
}

fn as_written(tex: &str, display: bool) -> String {
    let dollars = if display { "$$" } else { "$" };
    format!("<code class=\"formula-error\">{dollars}{}{dollars}</code>", escaped(tex))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn markdown_and_formulae_become_html() {
        let html = render("**环** 的时间是 $2(N-1)/N$\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n$$S/B$$\n");
        assert!(html.contains("<strong>环</strong>"), "{html}");
        assert!(html.contains("<table>"), "{html}");
        assert_eq!(html.matches("<math").count(), 2, "{html}");
        assert!(html.contains("katex-display"), "{html}");
    }

    #[test]
    fn html_of_the_answer_is_shown_and_never_run() {
        for hostile in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[x](javascript:alert(1))",
            "![x](https://elsewhere.example/a.png)",
            "<https://fine.example> [y](data:text/html,x)",
            "$\\href{javascript:alert(1)}{x}$",
            "<div\nonclick=alert(1)>\n\ntext",
            "```\n</code><script>\n```",
            "[x](https://a.example \"\\\" onmouseover=alert(1) \")",
        ] {
            let html = render(hostile);
            for bad in ["<script", "<img", "\"javascript:", "\"data:", "<div", "\" onmouseover="] {
                assert!(!html.contains(bad), "{hostile}: {html}");
            }
        }
    }

    #[test]
    fn a_formula_that_is_wrong_stays_as_it_was_written() {
        let html = render("$\\frac{<b>}$ and $x$");
        assert!(html.contains("formula-error"), "{html}");
        assert!(html.contains("&lt;b&gt;"), "{html}");
        assert!(html.contains("<math"), "{html}");
    }
}
