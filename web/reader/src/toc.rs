//! The table of contents says what was read, in words and with a mark.

use web_sys::Element;

use crate::chapter::{Reader, Section};
use crate::{dom, strings as s};

/// The chapter's sections, in their order.
pub fn sections() -> Vec<Section> {
    let link = |link: Element| {
        let id = link.get_attribute("href")?.strip_prefix('#')?.to_owned();
        Some(Section { title: link.text_content().unwrap_or_default(), heading: dom::by_id(&id)?, id })
    };
    dom::all(".toc-side a[href^='#']").into_iter().filter_map(link).collect()
}

pub fn show(reader: &Reader) {
    let read = reader.read.borrow();
    for link in dom::all(".toc a[href^='#']") {
        let id = link.get_attribute("href").unwrap_or_default();
        if !read.contains(id.trim_start_matches('#')) || dom::within(&link, ".toc-read").is_some() {
            continue;
        }
        if let Some(mark) = dom::make("span", "toc-read") {
            mark.set_inner_html(&format!(
                "<span aria-hidden=\"true\">✓</span><span class=\"visually-hidden\"> ({})</span>",
                s::read_mark(reader.lang)
            ));
            let _ = link.append_child(&mark);
        }
    }
    let count = reader.sections.iter().filter(|section| read.contains(&section.id)).count();
    if count == 0 {
        return;
    }
    let text = s::progress(reader.lang, count, reader.sections.len());
    for (place, tag) in [(".toc-side .toc-title", "p"), (".toc-top summary", "span")] {
        let Some(place) = dom::one(place) else { continue };
        let beside = if tag == "p" { place.next_element_sibling() } else { dom::within(&place, "span") };
        let line = match beside.filter(|e| e.class_list().contains("toc-progress")) {
            Some(line) => Some(line),
            None => dom::make(tag, "toc-progress").inspect(|line| {
                let at = if tag == "p" { "afterend" } else { "beforeend" };
                let _ = place.insert_adjacent_element(at, line);
            }),
        };
        if let Some(line) = line {
            line.set_text_content(Some(&text));
        }
    }
}
