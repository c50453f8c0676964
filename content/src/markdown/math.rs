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
            Ok(Ok(html)) => Ok(html),
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
