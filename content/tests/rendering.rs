//! The sample course under `tests/sample`, rendered and compared with `tests/golden`. After a wanted change run the test with
//! `RINGLAB_UPDATE_GOLDEN=1` and read the difference.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ringlab_content::Library;
use ringlab_content::types::{Chapter, Segment};
use ringlab_engine::text::Lang;

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sample")
}

/// A chapter as text that a person can compare: one part a paragraph.
fn dump(chapter: &Chapter) -> String {
    let mut out = String::new();
    out.push_str(&json(&chapter.meta));
    for entry in &chapter.toc {
        out.push_str(&format!("\n\n== toc {} {}\n{}", entry.level, entry.id, entry.html));
    }
    for segment in &chapter.segments {
        match segment {
            Segment::Html { html } => out.push_str(&format!("\n\n== html\n{html}")),
            other => out.push_str(&format!("\n\n== segment\n{}", json(other))),
        }
    }
    out.push('\n');
    out
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn the_sample_chapter_renders_as_agreed() {
    let library = Library::load(&sample()).unwrap_or_else(|errors| panic!("{errors}"));
    for lang in Lang::ALL {
        let chapter = library.chapter(lang, "02-ring").unwrap();
        let got = dump(chapter);
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/ring.{}.txt", lang.code()));
        if std::env::var_os("RINGLAB_UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &got).unwrap();
        }
        let wanted = std::fs::read_to_string(&path).unwrap();
        let first = got.lines().zip(wanted.lines()).position(|(a, b)| a != b);
        assert!(got == wanted, "{} differs, first in line {:?}", path.display(), first.map(|line| line + 1));
    }
}

#[test]
fn a_chapter_is_found_by_number_slug_and_folder() {
    let library = Library::load(&sample()).unwrap();
    for name in ["2", "02", "ring", "02-ring"] {
        assert_eq!(library.chapter(Lang::En, name).unwrap().meta.title, "Rings and steps", "{name}");
    }
    for name in ["1", "busbw", "3", "", "../ring"] {
        assert!(library.chapter(Lang::En, name).is_none(), "{name}");
    }
    assert_eq!(library.titles().len(), 2);
    assert_eq!(library.chapters(Lang::Zh).count(), 1);
}

#[test]
fn a_lab_that_is_not_in_the_catalogue_is_named_with_its_place() {
    let errors = Library::load_with_labs(&sample(), &BTreeSet::from(["busbw".to_owned()])).unwrap_err();
    let lines: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
    let wanted = "content/course/02-ring/zh.md:8:7: there is no lab `ring-allreduce` in labs/catalogue; known labs: busbw";
    assert!(lines.iter().any(|line| line == wanted), "{lines:#?}");
    // The front matter, the link and the block, in both languages.
    assert_eq!(lines.len(), 6, "{lines:#?}");
}

#[test]
fn the_course_of_this_repository_loads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = Library::load(&root).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(library.titles().len(), 36);
    assert_eq!(library.titles()[7].folder(), "08-algbw-busbw");
    assert_eq!(library.titles()[11].folder(), "12-ring-allreduce");
    assert!(library.terms().count() >= 60);
}
