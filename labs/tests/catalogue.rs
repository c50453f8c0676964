//! Loading a catalogue from disk: the real one, and broken ones made on the spot.

use std::fs;
use std::path::{Path, PathBuf};

use ringlab_labs::catalogue::{Catalogue, CatalogueErrors, LabView};

fn real() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("catalogue")
}

/// A copy of the lab `busbw` with one of its files changed; loaded, then removed.
fn load_changed(
    name: &str,
    file: &str,
    change: impl Fn(String) -> String,
) -> Result<Catalogue, CatalogueErrors> {
    let dir = std::env::temp_dir().join(format!("ringlab-catalogue-{}-{name}", std::process::id()));
    let lab = dir.join("busbw");
    fs::create_dir_all(&lab).unwrap();
    for entry in ["lab.toml", "zh.md", "en.md"] {
        let text = fs::read_to_string(real().join("busbw").join(entry)).unwrap();
        fs::write(lab.join(entry), if entry == file { change(text) } else { text }).unwrap();
    }
    let loaded = Catalogue::load(&dir);
    fs::remove_dir_all(&dir).unwrap();
    loaded
}

fn errors(name: &str, file: &str, change: impl Fn(String) -> String) -> Vec<String> {
    let errors = load_changed(name, file, change).unwrap_err().0;
    errors.into_iter().map(|e| format!("{}: {}: {}", e.file, e.field, e.message)).collect()
}

#[test]
fn the_real_catalogue_holds_both_labs() {
    let catalogue = Catalogue::load(&real()).unwrap_or_else(|e| panic!("{e}"));
    let labs: Vec<(&str, u32, f64)> =
        catalogue.iter().map(|lab| (lab.id.as_str(), lab.chapter, lab.max_marks)).collect();
    assert_eq!(labs, [("busbw", 8, 12.0), ("ring-allreduce", 12, 10.0)]);
    assert!(catalogue.get("busbw").unwrap().body.zh.contains("<h2>"));
    assert!(catalogue.get("../busbw").is_none());
}

#[test]
fn a_lab_reaches_the_browser_unchanged() {
    for lab in Catalogue::load(&real()).unwrap().iter() {
        let sent = serde_json::to_string(lab).unwrap();
        assert_eq!(serde_json::from_str::<LabView>(&sent).unwrap(), *lab);
    }
}

#[test]
fn a_version_follows_every_file() {
    let version = |name, file: &str| {
        let change = |text: String| text.replace("algbw", "algbw ").replace("S / t", "S / t ");
        let change = |text: String| {
            if file == "lab.toml" { text.replace("minutes = 30", "minutes = 31") } else { change(text) }
        };
        load_changed(name, file, change).unwrap().get("busbw").unwrap().version.clone()
    };
    let versions =
        [version("v0", "none"), version("v1", "lab.toml"), version("v2", "zh.md"), version("v3", "en.md")];
    assert_eq!(versions[0], Catalogue::load(&real()).unwrap().get("busbw").unwrap().version);
    assert_eq!(versions.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
}

#[test]
fn every_error_is_collected_with_its_file_and_field() {
    let found = errors("many", "lab.toml", |text| {
        text.replace("chapter = 8", "chapter = 80")
            .replace("wall_ms = 90_000", "wall_ms = \"long\"")
            .replace("type = \"integer\"", "type = \"int\"")
            .replace("marks = 2", "marks = 2\nmark = 3")
            .replace("takes_plan = false", "takes_plan = false\ncolour = \"red\"")
    });
    assert_eq!(
        found,
        [
            "busbw/lab.toml: chapter: must be from 1 to 36, got 80",
            "busbw/lab.toml: limits.wall_ms: must be a whole number, got string `\"long\"`",
            "busbw/lab.toml: answers[8].type: unknown type `int`; known: integer, number, choice, text",
            "busbw/lab.toml: checks[9].mark: is not a known key; see labs/catalogue/README.md",
            "busbw/lab.toml: colour: is not a known key; see labs/catalogue/README.md",
        ]
    );
}

#[test]
fn data_that_the_checker_cannot_use_is_refused() {
    assert_eq!(
        errors("misfit", "lab.toml", |text| text.replace("name = \"algbw_a\"", "name = \"algbw_e\"")),
        [
            "busbw/lab.toml: answers: `algbw_a` is missing: this lab's checker reads it",
            "busbw/lab.toml: answers: `algbw_e` is unknown to this lab's checker",
        ]
    );
    assert_eq!(
        errors("backends", "lab.toml", |text| text
            .replace("backends = [\"cpu\", \"cuda\"]", "backends = [\"cpu\"]")),
        ["busbw/lab.toml: params: the options of `backend` must be the lab's `backends`, in order"]
    );
    assert_eq!(
        errors("id", "lab.toml", |text| text.replace("id = \"busbw\"", "id = \"busbww\"")),
        [
            "busbw/lab.toml: id: is `busbww`, but the folder is named `busbw`",
            "busbw/lab.toml: id: there is no checker for a lab `busbww`",
        ]
    );
}

#[test]
fn texts_are_held_to_their_form() {
    assert_eq!(
        errors("html", "en.md", |text| format!("<b>hi</b>\n\n{text}")),
        ["busbw/en.md: : line 1: raw HTML `<b>` is not taken; write it as Markdown, or in backquotes"]
    );
    assert_eq!(
        errors("outline", "en.md", |text| text.replace("## Conventions", "### Conventions")),
        ["busbw/en.md: : its headings do not match those of zh.md in number and level"]
    );
    assert_eq!(
        errors("blank", "lab.toml", |text| text.replace("en = \"Backend\"", "en = \" \"")),
        ["busbw/lab.toml: params[0].label.en: is blank"]
    );
}

#[test]
fn a_folder_without_labs_is_an_error() {
    let told = Catalogue::load(Path::new("/nonexistent")).unwrap_err().to_string();
    assert!(told.contains("cannot read the folder"), "{told}");
}
