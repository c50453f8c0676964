//! The skeleton of a chapter, and the comparison of its two languages.

use crate::error::ContentError;

/// One thing that both languages must have at the same place.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// What it is, for people: `heading ## {#steps}`, `quiz busbw-8`.
    pub what: String,
    /// Everything that must be the same besides.
    pub detail: String,
    /// Where it stands, without a message.
    pub at: ContentError,
    /// Formulas after this item, before the next: inline and display.
    pub formulas: (u32, u32),
}

/// In the order of the file. The first item is the front matter.
#[derive(Debug, Default, Clone)]
pub(crate) struct Outline {
    pub items: Vec<Item>,
}

impl Outline {
    pub fn push(&mut self, what: impl Into<String>, detail: impl Into<String>, at: ContentError) {
        self.items.push(Item { what: what.into(), detail: detail.into(), at, formulas: (0, 0) });
    }

    /// How many items of this name there are.
    pub fn count(&self, what: &str) -> usize {
        self.items.iter().filter(|item| item.what == what).count()
    }

    pub fn formula(&mut self, display: bool) {
        if let Some(item) = self.items.last_mut() {
            if display {
                item.formulas.1 += 1;
            } else {
                item.formulas.0 += 1;
            }
        }
    }
}

/// What the second language (`en`) has differently from the first (`zh`); errors point into the second.
///
/// After the first item that is out of place the rest would only repeat it, so the comparison stops there.
pub(crate) fn compare(first: &Outline, second: &Outline) -> Vec<ContentError> {
    let mut errors = Vec::new();
    let mut report = |item: &Item, message: String| {
        let mut error = item.at.clone();
        error.message = message;
        errors.push(error);
    };
    let place = |item: &Item| format!("{}:{}", item.at.file, item.at.line);
    for (a, b) in first.items.iter().zip(&second.items) {
        if a.what != b.what {
            report(
                b,
                format!(
                    "here stands {}, but at the same place {} has {}; give both languages the same parts in the same order",
                    b.what,
                    place(a),
                    a.what
                ),
            );
            return errors;
        }
        if a.detail != b.detail {
            report(
                b,
                format!(
                    "{} is [{}] here, but [{}] in {}; make them the same",
                    b.what,
                    b.detail,
                    a.detail,
                    place(a)
                ),
            );
        }
        if a.formulas != b.formulas {
            let count = |(inline, display): (u32, u32)| format!("{inline} `$…$` and {display} `$$…$$`");
            report(
                b,
                format!(
                    "between {} and the next part there are {}, but {} at {}; both languages carry the same formulas",
                    b.what,
                    count(b.formulas),
                    count(a.formulas),
                    place(a)
                ),
            );
        }
    }
    let common = first.items.len().min(second.items.len());
    if let Some(missing) = first.items.get(common) {
        report(
            missing,
            format!("{} is missing in the other language; add it there or delete it here", missing.what),
        );
    }
    if let Some(extra) = second.items.get(common) {
        report(
            extra,
            format!("{} is missing in the other language; add it there or delete it here", extra.what),
        );
    }
    errors
}
