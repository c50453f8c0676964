//! Footnotes, gathered at the end of the chapter.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Env, Place, State, Writer};
use crate::html::push;

#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// By name, in the order of their first reference (the number is the place in this order).
    numbers: BTreeMap<String, usize>,
    texts: BTreeMap<String, String>,
}

impl Writer<'_, '_> {
    pub(super) fn footnote_reference(&mut self, name: &str, range: Range<usize>) {
        if self.place != Place::Chapter {
            return self.error(range.start, "a footnote goes into the chapter's own text, not into a block");
        }
        let next = self.state.notes.numbers.len() + 1;
        let first = !self.state.notes.numbers.contains_key(name);
        let number = *self.state.notes.numbers.entry(name.to_owned()).or_insert(next);
        let id = if first { format!(" id=\"note-from-{number}\"") } else { String::new() };
        let label = self.env.pick("注释", "Note");
        push(
            &mut self.out,
            format_args!(
                "<sup><a class=\"note\" href=\"#note-{number}\"{id} aria-label=\"{label} {number}\">{number}</a></sup>"
            ),
        );
    }

    pub(super) fn footnote_definition(&mut self, name: &str, range: Range<usize>) {
        let html = self.capture();
        if self.place != Place::Chapter {
            return self.error(range.start, "a footnote goes into the chapter's own text, not into a block");
        }
        if self.state.notes.texts.insert(name.to_owned(), html).is_some() {
            self.error(range.start, format!("footnote `{name}` is defined twice; give each its own name"));
        }
        let here = self.here(range.start);
        self.state.outline.push(format!("footnote {name}"), "", here);
    }
}

/// The notes' section, empty without notes. Definitions that nothing refers to are errors.
pub(crate) fn section(env: &Env<'_>, state: &mut State) -> String {
    let notes = std::mem::take(&mut state.notes);
    for name in notes.texts.keys().filter(|name| !notes.numbers.contains_key(*name)) {
        let what = format!("footnote {name}");
        if let Some(item) = state.outline.items.iter().find(|item| item.what == what) {
            let mut error = item.at.clone();
            error.message = format!(
                "nothing refers to footnote `{name}`; write `[^{name}]` where it belongs, or delete it"
            );
            state.errors.push(error);
        }
    }
    let mut ordered: Vec<(usize, &String)> =
        notes.numbers.iter().map(|(name, number)| (*number, name)).collect();
    if ordered.is_empty() {
        return String::new();
    }
    ordered.sort_unstable();
    let mut out = String::new();
    push(
        &mut out,
        format_args!(
            "<section class=\"notes\" aria-labelledby=\"notes\"><h2 id=\"notes\">{}</h2><ol>\n",
            env.pick("注释", "Notes")
        ),
    );
    let back = env.pick("回到正文", "Back to the text");
    for (number, name) in ordered {
        let text = notes.texts.get(name).map_or("", String::as_str);
        push(
            &mut out,
            format_args!(
                "<li id=\"note-{number}\">{text}<a class=\"back\" href=\"#note-from-{number}\" aria-label=\"{back}\">↩</a></li>\n"
            ),
        );
    }
    out.push_str("</ol></section>\n");
    out
}
