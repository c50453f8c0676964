//! What pages are made from, loaded once at start: the course, the question bank, the labs, the WASM build.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, bail};
use ringlab_content::Library;
use ringlab_labs::catalogue::Catalogue;
use sha2::{Digest as _, Sha256};

use ringlab_search::SearchError;

use crate::questions::Questions;
use crate::search::Search;
use crate::secret::hex;

#[derive(Debug)]
pub struct Site {
    pub library: Library,
    pub catalogue: Catalogue,
    pub questions: Questions,
    search: OnceLock<Search>,
    searching: Mutex<()>,
    /// Files below `/pkg/` by path.
    pub pkg: HashMap<String, PkgFile>,
    /// Content hash of the WASM build; empty without one.
    pub build: String,
}

#[derive(Debug)]
pub struct PkgFile {
    pub media_type: &'static str,
    pub bytes: axum::body::Bytes,
}

impl Site {
    /// Loads everything, or lists everything that is wrong: a server does not start with half a course.
    pub fn load(root: &Path, pkg: Option<&Path>) -> anyhow::Result<Site> {
        let catalogue = Catalogue::load(&root.join("labs/catalogue"));
        let course = Library::load(root).and_then(|library| {
            let questions = Questions::load(root, &library)?;
            Ok((library, questions))
        });
        let (catalogue, library, questions) = match (catalogue, course) {
            (Ok(catalogue), Ok((library, questions))) => (catalogue, library, questions),
            (catalogue, course) => {
                let errors = [catalogue.err().map(|e| e.to_string()), course.err().map(|e| e.to_string())];
                let errors: Vec<String> = errors.into_iter().flatten().collect();
                bail!(
                    "content below {} has errors; mend them and start again:\n{}",
                    root.display(),
                    errors.join("\n")
                );
            }
        };
        let mut files = HashMap::new();
        let mut build = String::new();
        if let Some(folder) = pkg {
            files = read_pkg(folder)?;
            build = hash(&files);
        }
        Ok(Site {
            library,
            catalogue,
            questions,
            search: OnceLock::new(),
            searching: Mutex::default(),
            pkg: files,
            build,
        })
    }

    /// The search index. Built by the first call, in about a second; blocks meanwhile.
    ///
    /// # Errors
    /// It cannot be built.
    pub fn search(&self) -> Result<&Search, SearchError> {
        let _one_builds = match self.search.get() {
            Some(search) => return Ok(search),
            None => self.searching.lock().unwrap_or_else(PoisonError::into_inner),
        };
        if let Some(search) = self.search.get() {
            return Ok(search);
        }
        let built = Search::build(&self.library, &self.questions, &self.catalogue)?;
        Ok(self.search.get_or_init(|| built))
    }
}

fn read_pkg(folder: &Path) -> anyhow::Result<HashMap<String, PkgFile>> {
    let mut files = HashMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let here = folder.join(&below);
        let entries = std::fs::read_dir(&here).with_context(|| {
            format!("reading the WASM build {}: build it, or leave --pkg out", here.display())
        })?;
        for entry in entries {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
                continue;
            }
            let (Some(name), Some(media_type)) = (path.to_str(), media_type(&path)) else { continue };
            let bytes =
                std::fs::read(entry.path()).with_context(|| format!("reading {}", entry.path().display()))?;
            files.insert(name.to_owned(), PkgFile { media_type, bytes: bytes.into() });
        }
    }
    for needed in ["ringlab.js", "ringlab_bg.wasm"] {
        if !files.contains_key(needed) {
            bail!("{} is no WASM build: {needed} is missing; build it, or leave --pkg out", folder.display());
        }
    }
    Ok(files)
}

/// What a browser may ask for; other files of the build (type declarations) stay here.
fn media_type(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "js" => Some("text/javascript; charset=utf-8"),
        "wasm" => Some("application/wasm"),
        _ => None,
    }
}

fn hash(files: &HashMap<String, PkgFile>) -> String {
    let mut names: Vec<&String> = files.keys().collect();
    names.sort_unstable();
    let mut hash = Sha256::new();
    for name in names {
        hash.update(name.as_bytes());
        hash.update(Sha256::digest(&files[name].bytes));
    }
    hex(&hash.finalize()[..8])
}
