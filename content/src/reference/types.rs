//! What the reference pages show: plain data in one language. HTML strings are the renderer's and trusted.

/// Entries that belong together, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<T> {
    /// Anchor in the page.
    pub id: String,
    pub title: String,
    pub entries: Vec<T>,
}

/// A file and symbol of a repository at a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `NVIDIA/nccl`
    pub repo: String,
    pub tag: String,
    pub file: String,
    pub symbol: String,
}

/// An environment variable of NCCL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub kind: VariableKind,
    /// What an unset variable means.
    pub default: String,
    /// HTML: what it changes and when one wants that.
    pub meaning: String,
    /// HTML: a trap, or what later versions do.
    pub note: Option<String>,
    /// Where it is read; `None` for one that only later versions read.
    pub place: Option<Place>,
    /// The first version that reads it, if later than the course's.
    pub since: Option<String>,
    pub chapter: Option<u32>,
}

/// What a variable's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableKind {
    Integer,
    Words,
    Path,
    List,
    Size,
    Flag,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula {
    /// Anchor in the page.
    pub id: String,
    pub title: String,
    /// As written, for whoever copies it.
    pub tex: String,
    /// HTML.
    pub formula: String,
    /// HTML: what the letters stand for, with units.
    pub letters: String,
    /// A worked number.
    pub example: Option<String>,
    /// Where it is derived.
    pub chapter: u32,
    /// Heading id there.
    pub anchor: Option<String>,
}

/// From a concept to where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapEntry {
    pub title: String,
    pub place: Place,
    /// HTML: what one sees there.
    pub note: String,
    pub chapter: Option<u32>,
}

/// All reference pages in one language.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reference {
    pub environment: Vec<Group<Variable>>,
    pub formulas: Vec<Group<Formula>>,
    pub source_map: Vec<Group<MapEntry>>,
}
