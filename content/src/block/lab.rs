//! `lab`: where the chapter sends its reader to the runner.

use serde::Deserialize;
use toml::Spanned;

use super::Block;
use crate::markdown::known;
use crate::types::Segment;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    id: Spanned<String>,
    text: Spanned<String>,
}

impl Block<'_, '_> {
    pub(super) fn lab(&mut self) -> Option<Segment> {
        let body: Body = self.toml("lab")?;
        let id = body.id.get_ref().clone();
        self.outline(format!("lab {id}"), "");
        if !self.env.labs.contains(&id) {
            self.problem_at(
                &body.id,
                format!("there is no lab `{id}` in labs/catalogue; {}", known("labs", self.env.labs)),
            );
        }
        let html = self.blocks(&body.text);
        self.state.lab_blocks.insert(id.clone());
        Some(Segment::Lab { id, html })
    }
}
