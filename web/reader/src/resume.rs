//! Offers to go on where the reader was. Nothing moves by itself.

use std::rc::Rc;

use ringlab_content::reading::Place;
use web_sys::Element;

use crate::chapter::Reader;
use crate::dom::{self, esc};
use crate::strings as s;

const ID: &str = "reader-resume";

pub fn offer(reader: &Rc<Reader>, place: &Place) {
    let Some(at) = reader.sections.iter().position(|section| section.id == place.section) else { return };
    let window = dom::window();
    let moved = window.scroll_y().unwrap_or(0.0) > 300.0;
    let asked = window.location().hash().is_ok_and(|hash| !hash.is_empty());
    // At the very beginning there is nothing to go on to.
    if moved || asked || (at == 0 && place.permille < 500) {
        return;
    }
    let Some(bar) = dom::make("section", "reader-resume") else { return };
    bar.set_id(ID);
    let lang = reader.lang;
    let _ = bar.set_attribute("aria-label", s::continue_here(lang));
    bar.set_inner_html(&format!(
        "<p>{} <strong>{}</strong></p><p class=\"actions\">\
         <button type=\"button\" class=\"button primary\" data-act=\"continue\">{}</button>\
         <button type=\"button\" class=\"button quiet\" data-act=\"dismiss\">{}</button></p>",
        s::last_time(lang),
        esc(&reader.sections[at].title),
        s::go_on(lang),
        s::dismiss(lang),
    ));
    let (reader, place) = (reader.clone(), place.clone());
    dom::on(&bar, "click", move |event| {
        let Some((act, _)) = dom::action(&event) else { return };
        close();
        if act == "continue" {
            go(&reader, at, place.permille);
        }
    });
    dom::on(&bar, "keydown", move |event| {
        if is_escape(&event) {
            close();
        }
    });
    // After the chapter's head: in the order of reading it is the first thing to decide on.
    let head = dom::one(".chapter-head");
    let _ = head.and_then(|head| head.insert_adjacent_element("afterend", &bar).ok());
}

pub fn is_escape(event: &web_sys::Event) -> bool {
    use wasm_bindgen::JsCast;
    event.dyn_ref::<web_sys::KeyboardEvent>().is_some_and(|key| key.key() == "Escape")
}

pub fn is_open() -> bool {
    dom::by_id(ID).is_some()
}

pub fn close() {
    if let Some(bar) = dom::by_id(ID) {
        bar.remove();
    }
}

fn go(reader: &Reader, at: usize, permille: u16) {
    let heading: &Element = &reader.sections[at].heading;
    let _ = heading.set_attribute("tabindex", "-1");
    dom::focus(heading);
    dom::show(heading, web_sys::ScrollLogicalPosition::Start);
    // Into the section as far as before, whatever its height is here.
    let top = heading.get_bounding_client_rect().top();
    let next = reader.sections.get(at + 1).map(|s| s.heading.get_bounding_client_rect().top());
    let bottom = next.unwrap_or_else(|| reader.article.get_bounding_client_rect().bottom());
    let window = dom::window().inner_height().ok().and_then(|h| h.as_f64()).unwrap_or(0.0);
    let into = (bottom - top) * f64::from(permille) / 1000.0 - window / 3.0;
    if into > 0.0 {
        dom::window().scroll_by_with_x_and_y(0.0, into);
    }
}
