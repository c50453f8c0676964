//! Escaping: the one way in which an author's words enter HTML.

use std::fmt::Write;

/// Appends `text`, safe as an element's text and as a quoted attribute's value.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_escaped(&mut out, text);
    out
}

/// Formats into a `String`, which cannot fail.
pub(crate) fn push(out: &mut String, args: std::fmt::Arguments<'_>) {
    out.write_fmt(args).expect("writing to a String does not fail");
}

/// The words of rendered HTML, for labels: still escaped, and a formula read once (KaTeX writes it three times).
pub(crate) fn label(html: &str) -> String {
    let mut out = String::new();
    // Elements open since the one that is left out, itself included.
    let mut hidden = 0_u32;
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        if hidden == 0 {
            out.push_str(&rest[..open]);
        }
        let length = rest[open..].find('>').map_or(rest.len() - open, |end| end + 1);
        let tag = &rest[open..open + length];
        if tag.starts_with("</") {
            hidden = hidden.saturating_sub(1);
        } else if !tag.ends_with("/>")
            && (hidden > 0 || tag.starts_with("<annotation") || tag.starts_with("<span class=\"katex-html\""))
        {
            hidden += 1;
        }
        rest = &rest[open + length..];
    }
    if hidden == 0 {
        out.push_str(rest);
    }
    out.trim().to_owned()
}
