//! Loading `labs/catalogue`: every lab or every error.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::reader::Errors;
use super::{LabView, markdown, schema};
use crate::lab;
use crate::text::{Lang, Text};

/// The labs of an installation by id.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    labs: BTreeMap<String, LabView>,
}

/// One thing an author has to mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueError {
    /// Relative to the catalogue: `busbw/lab.toml`.
    pub file: String,
    /// `params[0].max`; empty when it is the file as a whole.
    pub field: String,
    pub message: String,
}

/// All errors of a catalogue, in the order of the files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the lab catalogue has {} error(s):{}", .0.len(), lines(.0))]
pub struct CatalogueErrors(pub Vec<CatalogueError>);

fn lines(errors: &[CatalogueError]) -> String {
    let line = |e: &CatalogueError| match e.field.as_str() {
        "" => format!("\n  {}: {}", e.file, e.message),
        field => format!("\n  {}: {field}: {}", e.file, e.message),
    };
    errors.iter().map(line).collect()
}

impl Catalogue {
    /// Reads every folder of `dir` as a lab: `lab.toml`, `zh.md`, `en.md`.
    ///
    /// # Errors
    /// Everything that is wrong with any of them, each with its file and field.
    pub fn load(dir: &Path) -> Result<Catalogue, CatalogueErrors> {
        let errors = Errors::default();
        let mut labs = BTreeMap::new();
        for id in folders(dir, &errors) {
            if let Some(lab) = load_lab(dir, &id, &errors) {
                labs.insert(id, lab);
            }
        }
        let errors = errors.take();
        if errors.is_empty() { Ok(Catalogue { labs }) } else { Err(CatalogueErrors(errors)) }
    }

    pub fn get(&self, id: &str) -> Option<&LabView> {
        self.labs.get(id)
    }

    /// By chapter, then id.
    pub fn iter(&self) -> impl Iterator<Item = &LabView> {
        let mut labs: Vec<&LabView> = self.labs.values().collect();
        labs.sort_by_key(|lab| (lab.chapter, &lab.id));
        labs.into_iter()
    }
}

fn folders(dir: &Path, errors: &Errors) -> Vec<String> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            errors.push("", "", format!("cannot read the folder {}: {error}", dir.display()));
            return Vec::new();
        }
    };
    let mut ids = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) if entry.path().is_dir() => ids.push(entry.file_name().to_string_lossy().into_owned()),
            Ok(_) => {}
            Err(error) => errors.push("", "", format!("cannot read the folder {}: {error}", dir.display())),
        }
    }
    ids.sort();
    if ids.is_empty() {
        errors.push("", "", format!("{} holds no lab", dir.display()));
    }
    ids
}

fn load_lab(dir: &Path, id: &str, errors: &Errors) -> Option<LabView> {
    let mut hash = Sha256::new();
    let mut read = |name: &str| {
        let file = format!("{id}/{name}");
        match fs::read_to_string(dir.join(&file)) {
            Ok(text) => {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(&text);
                Some(text)
            }
            Err(error) => {
                errors.push(&file, "", format!("cannot be read: {error}"));
                None
            }
        }
    };
    let (source, zh, en) = (read("lab.toml"), read("zh.md"), read("en.md"));
    let file = format!("{id}/lab.toml");
    let table = match source?.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => {
            errors.push(&file, "", error.to_string());
            return None;
        }
    };
    let view = schema::read(&file, table, errors);
    let body = body(id, zh?, en?, errors);
    let mut view = view?;
    if view.id != id {
        errors.push(&file, "id", format!("is `{}`, but the folder is named `{id}`", view.id));
    }
    for (field, message) in lab::misfits(&view) {
        errors.push(&file, &field, message);
    }
    // Marks are made by code as well as by these files: its revision is part of the version.
    hash.update(lab::revision(&view.id)?.to_le_bytes());
    view.version = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    view.body = body?;
    Some(view)
}

fn body(id: &str, zh: String, en: String, errors: &Errors) -> Option<Text> {
    if markdown::outline(&zh) != markdown::outline(&en) {
        errors.push(
            &format!("{id}/en.md"),
            "",
            "its headings do not match those of zh.md in number and level",
        );
    }
    let html = |lang: Lang, source: &str| {
        let file = format!("{id}/{}.md", lang.code());
        if source.trim().is_empty() {
            errors.push(&file, "", "is blank");
        }
        markdown::render(source).map_err(|error| errors.push(&file, "", error.to_string())).ok()
    };
    let (zh, en) = (html(Lang::Zh, &zh), html(Lang::En, &en));
    Some(Text { zh: zh?, en: en? })
}
