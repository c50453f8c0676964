//! `aside`: a misconception, what would falsify a claim, a trap, or more depth.

use serde::Deserialize;
use toml::Spanned;

use super::Block;
use crate::html::label;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    kind: Spanned<String>,
    title: Spanned<String>,
    text: Spanned<String>,
}

impl Block<'_, '_> {
    pub(super) fn aside(&mut self) -> Option<String> {
        let body: Body = self.toml("aside")?;
        let kind = body.kind.get_ref().as_str();
        self.outline(format!("aside {kind}"), "");
        let name = match kind {
            "misconception" => self.env.pick("常见误解", "Misconception"),
            "falsify" => self.env.pick("怎样才算推翻", "What would falsify this"),
            "trap" => self.env.pick("陷阱", "Trap"),
            "deeper" => self.env.pick("再深一层", "Going deeper"),
            _ => {
                self.problem_at(
                    &body.kind,
                    format!("`{kind}` is no kind of aside; use misconception, falsify, trap or deeper"),
                );
                return None;
            }
        };
        let title = self.line(&body.title);
        let text = self.blocks(&body.text);
        Some(format!(
            "<div class=\"aside aside-{kind}\" role=\"note\" aria-label=\"{name}: {}\"><p class=\"aside-kind\">{name}</p>\
             <p class=\"aside-title\">{title}</p>\n{text}</div>\n",
            label(&title)
        ))
    }
}
