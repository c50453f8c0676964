//! What the server hands to a page: plain data, already fetched. A page never asks for anything itself.

use ringlab_content::reading::Note;
use ringlab_content::reference::{Formula, Group, MapEntry, Variable};
use ringlab_content::types::{Chapter, ChapterMeta, TocEntry};
use ringlab_engine::trace::Trace;
use ringlab_interview::api::QuestionCard;
use ringlab_labs::api::{JobView, RunnerView, StreamEvent};
use ringlab_labs::catalogue::LabView;
use ringlab_labs::text::{Lang, Text};
use ringlab_search::{Kind, Results};

/// What every page has around it.
#[derive(Debug, Clone)]
pub struct Shell {
    pub lang: Lang,
    /// Path after the language, with its leading slash: `/course/12-ring-allreduce`; the language switch keeps it.
    pub path: String,
    /// CSP nonce of this response; every inline script carries it.
    pub nonce: String,
    /// Content hash of the WASM build, for immutable URLs; empty in a build without it.
    pub build: String,
}

/// One page and what it shows.
#[derive(Debug, Clone)]
pub enum Page {
    Home {
        chapters: Vec<ChapterMeta>,
        labs: Vec<LabView>,
        runners: Vec<RunnerView>,
    },
    Course {
        chapters: Vec<ChapterCard>,
    },
    /// The same chapters by what builds on what.
    Path {
        chapters: Vec<ChapterCard>,
    },
    /// `questions`: those of the bank that the chapter prepares for.
    Chapter {
        chapter: Chapter,
        previous: Option<ChapterMeta>,
        next: Option<ChapterMeta>,
        questions: Vec<QuestionCard>,
    },
    /// The visitor's own notes.
    Notes {
        chapters: Vec<ChapterNotes>,
    },
    /// `chapters`: number and folder of each, for links.
    Reference {
        shown: ReferencePage,
        chapters: Vec<(u32, String)>,
    },
    Search(SearchPage),
    Labs {
        labs: Vec<LabView>,
    },
    /// `jobs`: the visitor's own earlier runs of this lab, newest first.
    Lab {
        lab: LabView,
        seed: u64,
        runners: Vec<RunnerView>,
        jobs: Vec<JobView>,
        chapter: Option<ChapterMeta>,
    },
    /// `events`: the current attempt's log so far. `trace`: the first trace artifact of a finished run, if it has one. Both are shown
    /// where no island runs; in a browser the run panel asks the API itself.
    Run {
        job: Box<JobView>,
        lab: LabView,
        events: Vec<StreamEvent>,
        trace: Option<Box<Trace>>,
    },
    Interview(InterviewPage),
    /// A page for people with what went wrong and where to go: 404, 403, 500.
    Error {
        status: u16,
        title: String,
        detail: String,
    },
}

/// Pages of accounts and interview sessions. What they show is the visitor's own and changes by the second: their islands ask the API for
/// it once the page is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterviewPage {
    Front,
    Account,
    Invitation {
        code: String,
    },
    Sitting {
        id: String,
    },
    Report {
        id: String,
    },
    Practice,
    /// `prompt`: HTML.
    PracticeQuestion {
        question: QuestionCard,
        prompt: Text,
    },
    Assessments,
    Review,
    ReviewSitting {
        id: String,
    },
}

/// One of the 36 chapters in the index: written, or announced with its title alone.
#[derive(Debug, Clone)]
pub struct ChapterCard {
    pub number: u32,
    pub title: String,
    pub written: Option<ChapterMeta>,
}

/// The visitor's notes on one chapter, in the order of its text.
#[derive(Debug, Clone)]
pub struct ChapterNotes {
    /// 0 for a chapter that is not in the course any more.
    pub number: u32,
    pub title: String,
    /// Last part of its address; `None` while there is nothing to open.
    pub folder: Option<String>,
    pub sections: Vec<TocEntry>,
    pub notes: Vec<Note>,
}

/// What one looks up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferencePage {
    /// With how many entries each of the others has.
    Front {
        terms: usize,
        variables: usize,
        formulas: usize,
        places: usize,
    },
    Glossary {
        terms: Vec<TermCard>,
    },
    Environment {
        groups: Vec<Group<Variable>>,
    },
    Formulas {
        groups: Vec<Group<Formula>>,
    },
    SourceMap {
        groups: Vec<Group<MapEntry>>,
    },
}

/// A term of the glossary in the page's language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermCard {
    pub id: String,
    pub name: String,
    /// In the other language.
    pub other: String,
    pub definition: String,
    /// Where it is taught.
    pub chapter: u32,
}

/// What was looked for, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPage {
    pub query: String,
    pub kind: Option<Kind>,
    pub offset: usize,
    /// Hits of one page.
    pub limit: usize,
    pub results: Results,
}
