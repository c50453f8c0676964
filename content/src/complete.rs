//! What every chapter of the course must have, beyond being well-formed.

use std::ops::RangeInclusive;

use ringlab_engine::text::Lang;

use crate::error::ContentError;
use crate::library::{Library, Summary};

/// Chinese characters of prose, with the quiz: a chapter is read in one sitting.
const CHARACTERS: RangeInclusive<u32> = 4_000..=9_000;
const QUIZZES: RangeInclusive<usize> = 6..=10;
const QUIZ_KINDS: usize = 4;
const FIGURES: u32 = 2;
const MISCONCEPTIONS: usize = 2;
/// Ids of the sections with which a chapter ends.
const LAST_SECTIONS: [&str; 2] = ["summary", "further"];

/// What chapters of `library` lack. Chinese alone is looked at: a translation has the same parts.
pub fn check_complete(library: &Library) -> Vec<ContentError> {
    let chapters = library.summaries().iter().filter(|summary| summary.lang == Lang::Zh);
    chapters
        .flat_map(|summary| {
            let file = format!("content/course/{}/zh.md", summary.folder);
            lacks(summary).into_iter().map(move |message| ContentError::of_file(file.clone(), message))
        })
        .collect()
}

fn lacks(summary: &Summary) -> Vec<String> {
    let mut out = Vec::new();
    let mut want = |holds: bool, message: String| {
        if !holds {
            out.push(message);
        }
    };
    let Summary { characters, quizzes, quiz_kinds, figures, misconceptions, falsify, checks, .. } = summary;
    want(
        CHARACTERS.contains(characters),
        format!("{characters} Chinese characters; write {} to {}", CHARACTERS.start(), CHARACTERS.end()),
    );
    want(
        QUIZZES.contains(quizzes),
        format!("{quizzes} questions in the quiz; write {} to {}", QUIZZES.start(), QUIZZES.end()),
    );
    want(
        *quiz_kinds >= QUIZ_KINDS,
        format!("{quiz_kinds} kinds of questions in the quiz; use at least {QUIZ_KINDS} of the five"),
    );
    want(*figures >= FIGURES, format!("{figures} figures; draw at least {FIGURES}"));
    want(
        *misconceptions >= MISCONCEPTIONS,
        format!("{misconceptions} `misconception` asides; write at least {MISCONCEPTIONS}"),
    );
    want(*falsify >= 1, "no `falsify` aside; say what observation would refute the chapter".to_owned());
    want(*checks >= 1, "no worked numbers in a `check` block".to_owned());
    for id in LAST_SECTIONS {
        let there = summary.heading_ids.iter().any(|heading| heading == id);
        want(there, format!("no section `{{#{id}}}`; a chapter ends with its summary and further reading"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            lang: Lang::Zh,
            number: 1,
            folder: "01-one".into(),
            minutes: 20,
            headings: 9,
            formulas: 4,
            figures: 2,
            checks: 3,
            quizzes: 7,
            widgets: 0,
            sources: 5,
            terms: 8,
            characters: 5_000,
            quiz_kinds: 4,
            misconceptions: 2,
            falsify: 1,
            heading_ids: vec!["summary".into(), "further".into()],
        }
    }

    #[test]
    fn each_missing_part_is_named() {
        assert_eq!(lacks(&summary()), Vec::<String>::new());
        let short = Summary { characters: 100, quizzes: 2, quiz_kinds: 1, figures: 0, ..summary() };
        assert_eq!(lacks(&short).len(), 4);
        let bare = Summary { misconceptions: 1, falsify: 0, checks: 0, heading_ids: Vec::new(), ..summary() };
        let lacks = lacks(&bare);
        assert_eq!(lacks.len(), 5);
        assert!(lacks[1].contains("refute"), "{lacks:#?}");
    }
}
