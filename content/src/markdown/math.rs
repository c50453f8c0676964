//! TeX by KaTeX, on the server: HTML for the eye, MathML for everyone else.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use katex::types::{OutputFormat, StrictMode, StrictSetting, TrustSetting};
use katex::{KatexContext, Settings};

use super::Writer;

/// Longer or deeper formulas are refused, which keeps the recursion of the TeX parser within any stack.
const MAX_LENGTH: usize = 4_000;
const MAX_DEPTH: usize = 40;

/// Commands that KaTeX would show in red, because they reach out of the formula.
const REFUSED: [&str; 9] = [
    "\\href",
    "\\url",
    "\\includegraphics",
    "\\htmlClass",
    "\\htmlId",
    "\\htmlStyle",
    "\\htmlData",
    "\\color",
    "\\textcolor",
];

/// KaTeX's tables, built once.
#[derive(Default)]
pub(crate) struct Math {
    context: KatexContext,
}

impl fmt::Debug for Math {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Math").finish_non_exhaustive()
    }
}

impl Math {
    /// HTML with MathML, or where in `tex` (a byte offset) what is wrong.
    pub fn html(&self, tex: &str, display: bool) -> Result<String, (usize, String)> {
        if let Some(command) = REFUSED.iter().find(|command| tex.contains(**command)) {
            let at = tex.find(*command).unwrap_or(0);
            return Err((
                at,
                format!(
                    "`{command}` is not allowed in a formula: links belong into the text, colours to the theme"
                ),
            ));
        }
        if tex.len() > MAX_LENGTH || nesting(tex) > MAX_DEPTH {
            return Err((
                0,
                format!(
                    "the formula is longer than {MAX_LENGTH} bytes or nested deeper than {MAX_DEPTH} levels; divide it"
                ),
            ));
        }
        let settings = Settings::builder()
            .display_mode(display)
            .output(OutputFormat::HtmlAndMathml)
            .throw_on_error(true)
            .strict(StrictSetting::Mode(StrictMode::Error))
            .trust(TrustSetting::Bool(false))
            .max_size(20.0)
            .max_expand(200)
            .build();
        // KaTeX is a translation of a large program; should it panic on some input, that input is an error in the text.
        match catch_unwind(AssertUnwindSafe(|| katex::render_to_string(&self.context, tex, &settings))) {
            Ok(Ok(html)) => Ok(in_order(&html)),
            Ok(Err(error)) => {
                let at = error.position().unwrap_or(0).min(tex.len());
                let mut message = format!("this formula cannot be read: {}", error.kind);
                if message.contains("nicode") {
                    message.push_str("; put words into \\text{…}");
                }
                Err((at, message))
            }
            Err(_) => Err((0, "this formula makes the renderer fail; write it more simply".to_owned())),
        }
    }
}

/// The same HTML with each tag's attributes sorted: katex-rs keeps those of MathML in a hash map, and a page must be the same on every
/// server and after every start.
fn in_order(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        let length = rest[open..].find('>').map_or(rest.len() - open, |end| end + 1);
        let (text, tag) = (&rest[..open], &rest[open..open + length]);
        out.push_str(text);
        rest = &rest[open + length..];
        let Some(space) = tag.find(' ') else {
            out.push_str(tag);
            continue;
        };
        let end = tag.len() - if tag.ends_with("/>") { 2 } else { 1 };
        // Values are quoted, and quotation marks in them are escaped: an attribute ends with its second quotation mark.
        let mut attributes: Vec<&str> = tag[space..end].split_inclusive("\" ").map(str::trim).collect();
        attributes.sort_unstable();
        out.push_str(&tag[..space]);
        for attribute in attributes.into_iter().filter(|attribute| !attribute.is_empty()) {
            out.push(' ');
            out.push_str(attribute);
        }
        out.push_str(&tag[end..]);
    }
    out.push_str(rest);
    out
}

/// How deep groups and environments are nested, at most.
fn nesting(tex: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for c in tex.chars() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest.max(tex.matches("\\left").count()).max(tex.matches("\\begin").count())
}

impl Writer<'_, '_> {
    pub(super) fn formula(&mut self, tex: &str, display: bool, range: Range<usize>) {
        self.state.formulas += 1;
        self.state.outline.formula(display);
        self.after_cjk = false;
        match self.env.math.html(tex, display) {
            Ok(html) => {
                if display {
                    // Wide formulas scroll by themselves.
                    self.out.push_str("<span class=\"formula\" tabindex=\"0\">");
                    self.out.push_str(&html);
                    self.out.push_str("</span>");
                } else {
                    self.out.push_str(&html);
                }
            }
            Err((at, message)) => {
                let delimiter = if display { 2 } else { 1 };
                self.error(range.start + delimiter + at, message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_formula_is_the_same_html() {
        let tex = r"\sum_{i=0}^{N-1} \left( x_i \right) = \begin{cases} 1 & x > 0 \\ 0 & \text{否则} \end{cases} \sqrt[3]{\overline{a}}";
        let first = Math::default().html(tex, true).unwrap();
        assert!(first.contains("<math display=\"block\" xmlns="), "{first}");
        for _ in 0..8 {
            assert_eq!(Math::default().html(tex, true).unwrap(), first);
        }
        assert_eq!(in_order("a<b>c<path d=\"M0 0\" a=\"1\"/></b>"), "a<b>c<path a=\"1\" d=\"M0 0\"/></b>");
    }

    #[test]
    fn a_bad_formula_says_where() {
        let math = Math::default();
        let error = |tex: &str| math.html(tex, false).unwrap_err();
        assert_eq!(error(r"a + \nope").0, 4);
        assert!(error("带宽 = 1").1.contains("\\text{…}"), "{:?}", error("带宽 = 1"));
        assert!(error(r"\href{https://example.org}{x}").1.contains("not allowed"));
        assert!(error(r"\frac{a}{").1.contains("cannot be read"));
        assert!(error(&"{".repeat(60)).1.contains("divide it"));
    }

    #[test]
    fn long_chains_do_not_exhaust_the_stack() {
        for piece in
            [r"\sqrt ", r"\frac ", "x^", r"\hat ", r"\text ", r"\bar", r"\left( ", "\\def\\a{\\a\\a}\\a "]
        {
            let tex = piece.repeat(MAX_LENGTH / piece.len());
            // Either verdict will do, as long as one comes back and points into the formula.
            if let Err((at, message)) = Math::default().html(&tex, false) {
                assert!(at <= tex.len() && !message.is_empty(), "{piece}: {at} {message}");
            }
        }
    }
}
