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

/// The words of rendered HTML, for labels: still escaped, white space kept.
pub(crate) fn label(html: &str) -> String {
    let mut out = String::new();
    crate::plain::visible(html, &mut |part| {
        if let crate::plain::Part::Text(text) = part {
            out.push_str(text);
        }
    });
    out.trim().to_owned()
}
