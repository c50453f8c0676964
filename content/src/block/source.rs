//! `source`: a file and symbol of a named tag, and what one sees there.

use serde::Deserialize;
use toml::Spanned;

use super::Block;
use crate::citations::{Citation, is_path, is_repository, is_tag};
use crate::html::escape;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    tag: Spanned<String>,
    repo: Option<Spanned<String>>,
    file: Spanned<String>,
    symbol: Spanned<String>,
    note: Spanned<String>,
}

impl Block<'_, '_> {
    pub(super) fn source(&mut self) -> Option<String> {
        let body: Body = self.toml("source")?;
        let repo = body.repo.as_ref().map_or("NVIDIA/nccl", |repo| repo.get_ref()).to_owned();
        let (tag, file, symbol) = (body.tag.get_ref(), body.file.get_ref(), body.symbol.get_ref());
        if let Some(value) = &body.repo
            && !is_repository(&repo)
        {
            self.problem_at(value, format!("`{repo}` is no repository; write `OWNER/NAME`"));
        }
        if !is_tag(tag) {
            self.problem_at(
                &body.tag,
                format!("`{tag}` is no tag; write it as in the repository: `v2.22.3-1`"),
            );
        }
        if !is_path(file) {
            self.problem_at(
                &body.file,
                format!("`{file}` is no path within the repository: `src/device/all_reduce.h`"),
            );
        }
        if symbol.trim().is_empty() || symbol.contains('\n') {
            self.problem_at(
                &body.symbol,
                "`symbol` names what to look at in the file: a function, type, macro or variable",
            );
        }
        self.outline(format!("source {symbol}"), format!("{repo} {tag} {file}"));
        let at = self.at.clone();
        self.state.citations.push(Citation {
            repo: repo.clone(),
            tag: tag.clone(),
            file: file.clone(),
            symbol: symbol.clone(),
            at,
        });
        let note = self.blocks(&body.note);
        let (repo, tag, file, symbol) = (escape(&repo), escape(tag), escape(file), escape(symbol));
        let label = self.env.pick("源码", "Source");
        Some(format!(
            "<div class=\"source\" role=\"note\" aria-label=\"{label}: {symbol}\"><p class=\"source-place\"><span class=\"source-kind\">{label}</span> \
             <a href=\"https://github.com/{repo}/blob/{tag}/{file}\" rel=\"external noreferrer\"><code>{file}</code></a> \
             <code class=\"symbol\">{symbol}</code> <span class=\"source-tag\">{repo} {tag}</span></p>\n{note}</div>\n"
        ))
    }
}
