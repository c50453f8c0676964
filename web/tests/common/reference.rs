//! Pages one looks things up in.

use ringlab_content::reference::{Formula, Group, MapEntry, Place, Variable, VariableKind};
use ringlab_search::{Hit, Kind, Piece, Results};
use ringlab_web::page::{Page, ReferencePage, SearchPage, TermCard};

pub fn reference(shown: ReferencePage) -> Page {
    Page::Reference { shown, chapters: vec![(12, "12-ring-allreduce".into())] }
}

pub fn group<T>(entry: T) -> Vec<Group<T>> {
    vec![Group { id: "group".into(), title: "Group".into(), entries: vec![entry] }]
}

pub fn term() -> TermCard {
    TermCard {
        id: "ring".into(),
        name: "环".into(),
        other: "ring".into(),
        definition: "A <cycle>.".into(),
        chapter: 12,
    }
}

fn at() -> Place {
    Place {
        repo: "NVIDIA/nccl".into(),
        tag: "v2.22.3-1".into(),
        file: "src/debug.cc".into(),
        symbol: "NCCL_DEBUG".into(),
    }
}

pub fn variable() -> Variable {
    Variable {
        name: "NCCL_DEBUG".into(),
        kind: VariableKind::Words,
        default: "unset".into(),
        meaning: "What is logged.".into(),
        note: Some("A trap.".into()),
        place: Some(at()),
        since: None,
        chapter: Some(12),
    }
}

pub fn formula() -> Formula {
    Formula {
        id: "busbw".into(),
        title: "Bus bandwidth".into(),
        tex: "S/t".into(),
        formula: "<math><mi>S</mi></math>".into(),
        letters: "S: bytes".into(),
        example: Some("1 GB in 1 s".into()),
        chapter: 12,
        anchor: Some("cost".into()),
    }
}

pub fn place() -> MapEntry {
    MapEntry { title: "Logging".into(), place: at(), note: "Levels.".into(), chapter: None }
}

pub fn search(query: &str, results: Results) -> Page {
    Page::Search(SearchPage { query: query.into(), kind: Some(Kind::Term), offset: 20, limit: 20, results })
}

pub fn found() -> Results {
    let piece = |text: &str, found| Piece { text: text.into(), found };
    let hit = Hit {
        kind: Kind::Chapter,
        href: "/zh/course/12-ring-allreduce#cost".into(),
        title: vec![piece("环", true), piece(" <AllReduce>", false)],
        context: "第 12 章".into(),
        snippet: vec![piece("沿", false), piece("环", true)],
        lang: "zh-Hans".into(),
    };
    Results { total: 60, partial: true, hits: vec![hit] }
}
