//! `widget`: an interactive figure, with words in its place for readers without JavaScript.

use std::collections::BTreeMap;

use toml::{Spanned, Value};

use super::Block;
use crate::ids::is_id;
use crate::types::Widget;

impl Block<'_, '_> {
    pub(super) fn widget(&mut self) -> Option<Widget> {
        let body: BTreeMap<Spanned<String>, Spanned<Value>> = self.toml("widget")?;
        let mut kind = None;
        let mut fallback = None;
        let mut params = BTreeMap::new();
        for (key, value) in body {
            let value_at = value.span();
            match (key.get_ref().as_str(), value.into_inner()) {
                ("kind", Value::String(text)) => {
                    if !is_id(&text) {
                        self.problem_at(
                            &key,
                            format!("kind `{text}`: use lower-case letters, digits and single hyphens"),
                        );
                    }
                    kind = Some(text);
                }
                ("fallback", Value::String(text)) => {
                    fallback = Some(self.blocks(&Spanned::new(value_at, text)))
                }
                (name @ ("kind" | "fallback"), _) => {
                    self.problem_at(&key, format!("`{name}` must be a string"))
                }
                (_, Value::String(text)) => drop(params.insert(key.into_inner(), text)),
                (_, Value::Integer(number)) => drop(params.insert(key.into_inner(), number.to_string())),
                (_, Value::Float(number)) => drop(params.insert(key.into_inner(), number.to_string())),
                (_, Value::Boolean(flag)) => drop(params.insert(key.into_inner(), flag.to_string())),
                (name, _) => {
                    self.problem_at(&key, format!("`{name}` must be a string, a number or true/false"))
                }
            }
        }
        let (Some(kind), Some(fallback)) = (kind, fallback) else {
            self.problem("a widget needs `kind` (which one) and `fallback` (what it shows, in words, for readers without JavaScript)");
            return None;
        };
        let detail: Vec<String> = params.iter().map(|(key, value)| format!("{key}={value}")).collect();
        self.outline(format!("widget {kind}"), detail.join(" "));
        Some(Widget { kind, params, fallback })
    }
}
