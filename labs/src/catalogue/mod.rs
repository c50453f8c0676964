//! What a lab is: loaded from `labs/catalogue/<id>/lab.toml` (feature `catalogue`), shown by `web`, enforced by the server.

#[cfg(feature = "catalogue")]
mod load;
#[cfg(feature = "catalogue")]
mod markdown;
#[cfg(feature = "catalogue")]
mod reader;
#[cfg(feature = "catalogue")]
mod schema;

#[cfg(feature = "catalogue")]
pub use load::{Catalogue, CatalogueError, CatalogueErrors};

use serde::{Deserialize, Serialize};

use crate::job::{Backend, Limits};
use crate::text::Text;

/// A lab as people see it: everything but the checker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabView {
    pub id: String,
    /// Content hash of the lab's files.
    pub version: String,
    pub chapter: u32,
    pub title: Text,
    pub summary: Text,
    /// Instructions as HTML.
    pub body: Text,
    pub minutes: u32,
    pub backends: Vec<Backend>,
    pub params: Vec<Field>,
    pub prediction: Vec<Field>,
    /// Asked after the run.
    pub answers: Vec<Field>,
    /// The lab takes a plan; its starting text for given parameters is made by `starting_plan`.
    pub takes_plan: bool,
    pub limits: Limits,
    /// What is judged, in the order shown.
    pub checks: Vec<CheckSpec>,
    /// To be opened in this order.
    #[serde(default)]
    pub hints: Vec<Hint>,
    /// Sum of the checks' marks.
    pub max_marks: f64,
}

/// One judged thing, before anything was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckSpec {
    pub id: String,
    pub title: Text,
    pub marks: f64,
    /// How far an answer may be from the expected value, relative to it: 0.005 is half a per cent. `None`: exact.
    #[serde(default)]
    pub tolerance: Option<f64>,
}

/// A help that costs something; see [`Submission::hints`](crate::job::Submission::hints).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    /// HTML.
    pub body: Text,
    /// Marks.
    pub price: f64,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    pub label: Text,
    #[serde(default)]
    pub help: Option<Text>,
    #[serde(flatten)]
    pub kind: FieldKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FieldKind {
    Integer {
        min: i64,
        max: i64,
        default: Option<i64>,
        #[serde(default)]
        unit: String,
    },
    Number {
        min: f64,
        max: f64,
        default: Option<f64>,
        #[serde(default)]
        unit: String,
    },
    Choice {
        options: Vec<ChoiceOption>,
        default: String,
    },
    Text {
        max_chars: u32,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChoiceOption {
    pub value: String,
    pub label: Text,
}
