//! Fenced blocks with a meaning, one file each.

mod aside;
mod check;
mod lab;
mod measured;
mod origin;
mod quiz;
mod source;
mod widget;

use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::error::ContentError;
use crate::markdown::{Env, State, inline, nested};
use crate::source::Fragment;
use crate::types::Segment;

pub(crate) const KINDS: [&str; 7] = ["widget", "quiz", "lab", "source", "check", "measured", "aside"];

pub(crate) enum Rendered {
    Html(String),
    Segment(Segment),
}

/// Renders the block `kind`, one of [`KINDS`]; `at` is the place of its fence. What is wrong goes to `state.errors`.
pub(crate) fn render(
    env: &Env<'_>,
    state: &mut State,
    kind: &str,
    body: &Fragment<'_>,
    at: ContentError,
) -> Rendered {
    let mut block = Block { env, state, body, at };
    let nothing = Rendered::Html(String::new());
    match kind {
        "widget" => block.widget().map_or(nothing, |widget| Rendered::Segment(Segment::Widget(widget))),
        "quiz" => block.quiz().map_or(nothing, |quiz| Rendered::Segment(Segment::Quiz(quiz))),
        "lab" => block.lab().map_or(nothing, Rendered::Segment),
        "source" => block.source().map_or(nothing, Rendered::Html),
        "check" => Rendered::Html(block.check()),
        "measured" => block.measured().map_or(nothing, Rendered::Html),
        "aside" => block.aside().map_or(nothing, Rendered::Html),
        _ => nothing,
    }
}

/// One block being read.
struct Block<'b, 'a> {
    env: &'b Env<'b>,
    state: &'b mut State,
    body: &'b Fragment<'a>,
    at: ContentError,
}

impl Block<'_, '_> {
    /// The body as TOML; `None` when it cannot be read.
    fn toml<T: DeserializeOwned>(&mut self, kind: &str) -> Option<T> {
        match self.body.toml(&format!("this `{kind}` block")) {
            Ok(value) => Some(value),
            Err(error) => {
                self.state.errors.push(error);
                None
            }
        }
    }

    /// About the block as a whole.
    fn problem(&mut self, message: impl Into<String>) {
        let mut error = self.at.clone();
        error.message = message.into();
        self.state.errors.push(error);
    }

    /// About one value of the block.
    fn problem_at<T>(&mut self, value: &Spanned<T>, message: impl Into<String>) {
        self.state.errors.push(self.body.error(value.span().start, message));
    }

    fn outline(&mut self, what: impl Into<String>, detail: impl Into<String>) {
        self.state.outline.push(what, detail, self.at.clone());
    }

    /// A text of several paragraphs.
    fn blocks(&mut self, text: &Spanned<String>) -> String {
        self.must_say(text);
        nested(self.env, self.state, &self.body.toml_string(text))
    }

    /// A text of one paragraph.
    fn line(&mut self, text: &Spanned<String>) -> String {
        self.must_say(text);
        inline(self.env, self.state, &self.body.toml_string(text))
    }

    fn must_say(&mut self, text: &Spanned<String>) {
        if text.get_ref().trim().is_empty() {
            self.problem_at(text, "this text is empty; write it");
        }
    }
}
