//! Fences: code to be coloured, and blocks with a meaning.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event};

use ringlab_engine::plan;

use super::{Place, Writer};
use crate::block;
use crate::highlight::Language;
use crate::html::push;

impl<'a> Writer<'a, '_> {
    pub(super) fn fence(&mut self, kind: CodeBlockKind<'a>, range: Range<usize>) {
        let inside = self.skip();
        let at = range.start;
        let CodeBlockKind::Fenced(info) = kind else {
            return self.error(at, "code stands between ``` fences, not indented");
        };
        let mut code = String::new();
        let mut body_start = None;
        for (event, range) in &self.events[inside] {
            if let Event::Text(text) = event {
                body_start.get_or_insert(range.start);
                code.push_str(text);
            }
        }
        let body_start = body_start.unwrap_or(range.end);
        let name = info.trim();
        if self.place == Place::Inline {
            return self.error(at, "one paragraph is expected here: no code blocks");
        }
        let fence = self.text.text.get(range.clone()).unwrap_or("");
        let closed = fence
            .trim_end()
            .rsplit('\n')
            .next()
            .is_some_and(|line| line.trim_start_matches(['>', ' ', '\t']).starts_with(['`', '~']));
        if !closed || !fence.trim_end().contains('\n') {
            self.error(at, "this fence is never closed; end the block with a line of ```");
        }
        if let Ok(language) = name.parse::<Language>() {
            if language == Language::Plan {
                self.whole_plan(&code, body_start);
            }
            return self.code(language, &code, at);
        }
        if !block::KINDS.contains(&name) {
            let languages: Vec<&str> = Language::ALL.iter().map(|language| language.name()).collect();
            let what = if name.is_empty() {
                "this fence has no name".to_owned()
            } else {
                format!("`{name}` names no block")
            };
            let message =
                format!("{what}; code: {}; blocks: {}", languages.join(", "), block::KINDS.join(", "));
            return self.error(at, message);
        }
        if self.place != Place::Chapter || self.depth > 0 {
            return self.error(
                at,
                format!(
                    "a `{name}` block stands in the chapter's own text, not in a block, list or quotation"
                ),
            );
        }
        let body_range = body_start..body_start + code.len();
        if self.text.text.get(body_range.clone()) != Some(code.as_str()) {
            return self.error(at, format!("start the `{name}` block in the first column"));
        }
        let body = self.text.slice(body_range);
        let rendered = block::render(self.env, self.state, name, &body, self.text.error(at, ""));
        match rendered {
            block::Rendered::Html(html) => self.out.push_str(&html),
            block::Rendered::Segment(segment) => {
                self.flush();
                self.segments.push(segment);
            }
        }
    }

    /// A text that starts with the header of a plan is a whole one: a reader may copy it, so it must be read by the engine.
    fn whole_plan(&mut self, code: &str, start: usize) {
        let starts = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        if !code.lines().find(starts).is_some_and(|line| line.starts_with("plan ")) {
            return;
        }
        if let Err(error) = plan::text::parse(code) {
            let line_start: usize =
                code.split_inclusive('\n').take((error.line as usize).saturating_sub(1)).map(str::len).sum();
            let line = code[line_start..].lines().next().unwrap_or("");
            let column: usize =
                line.chars().take((error.column as usize).saturating_sub(1)).map(char::len_utf8).sum();
            self.error(
                start + line_start + column,
                format!("this plan cannot be read: {}", error.message.en),
            );
        }
    }

    fn code(&mut self, language: Language, code: &str, at: usize) {
        if self.place == Place::Chapter {
            let here = self.here(at);
            self.state.outline.push(format!("code in {}", language.name()), "", here);
        }
        let html = self.env.code.html(language, code);
        let label = self.env.pick("代码", "Code");
        let name = language.name();
        push(
            &mut self.out,
            format_args!(
                "<pre class=\"code\" data-language=\"{name}\" role=\"region\" aria-label=\"{label} ({name})\" tabindex=\"0\"><code>{html}</code></pre>\n"
            ),
        );
    }
}
