//! The course's index and the front page: how far each chapter was read, and where to go on.

use ringlab_content::reading::{ChapterProgress, ReadingView};
use wasm_bindgen_futures::spawn_local;
use web_sys::Element;

use crate::dom::{self, esc};
use crate::strings::{self as s, Lang};
use crate::{api, sync};

/// `root`: an empty place for the link to go on.
pub fn start(root: &Element) {
    let lang = Lang::from_code(&root.get_attribute("data-lang").unwrap_or_default());
    let root = root.clone();
    sync::flush();
    spawn_local(async move {
        let Some(answer) = api::get(&format!("/api/v1/reading?lang={}", lang.code())).await else { return };
        let Ok(view) = serde_json::from_str::<ReadingView>(&answer.body) else { return };
        show(&root, lang, &view);
    });
}

fn show(root: &Element, lang: Lang, view: &ReadingView) {
    for chapter in view.chapters.iter().filter(|c| begun(c)) {
        let path = address(lang, chapter);
        for link in dom::all(&format!("li :is(h2, h3) a[href=\"{path}\"]")) {
            let Some(item) = link.closest("li").ok().flatten() else { continue };
            let facts = dom::within(&item, ".meta");
            let Some((place, line)) = facts.zip(dom::make("p", "reading-progress")) else { continue };
            line.set_inner_html(&format!(
                "<progress max=\"{}\" value=\"{}\" aria-hidden=\"true\"></progress> <span>{}</span>",
                chapter.sections.max(1),
                chapter.read,
                words(lang, chapter)
            ));
            let _ = place.insert_adjacent_element("afterend", &line);
        }
    }
    let last = view.chapters.iter().filter_map(|c| c.place.as_ref().map(|p| (p.at_ms, c, p)));
    let Some((_, chapter, place)) = last.max_by_key(|(at, ..)| *at) else { return };
    root.set_inner_html(&format!(
        "<p class=\"reading-on\"><a class=\"button primary\" href=\"{}#{}\">{}</a> <span>{}</span></p>",
        address(lang, chapter),
        esc(&place.section),
        s::go_on(lang),
        esc(&s::chapter(lang, chapter.number, &chapter.title))
    ));
}

fn begun(chapter: &ChapterProgress) -> bool {
    chapter.read + chapter.answered + chapter.notes > 0 || chapter.place.is_some()
}

fn address(lang: Lang, chapter: &ChapterProgress) -> String {
    format!("/{}/course/{}", lang.code(), chapter.folder)
}

fn words(lang: Lang, chapter: &ChapterProgress) -> String {
    let mut words = vec![s::progress(lang, chapter.read as usize, chapter.sections as usize)];
    if chapter.answered > 0 {
        words.push(s::quizzes(lang, chapter.right, chapter.quizzes));
    }
    if chapter.notes > 0 {
        words.push(s::note_count(lang, chapter.notes));
    }
    words.join(" · ")
}
