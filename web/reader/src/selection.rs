//! Selected prose gets a small toolbar: highlight, note, cancel. By keyboard, Tab goes to it and Escape closes it.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use ringlab_content::reading::{NewNote, Quote};
use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent, MouseEvent};

use crate::chapter::Reader;
use crate::dom;
use crate::{marks, panel, strings as s};

const ID: &str = "reader-tools";
/// A selection that still grows has no toolbar yet.
const PAUSE_MS: i32 = 250;
const GAP: f64 = 8.0;

thread_local! {
    static WAITING: Cell<u32> = const { Cell::new(0) };
    static CHOSEN: RefCell<Option<(Range<u32>, String)>> = const { RefCell::new(None) };
}

pub fn start(reader: &Rc<Reader>) {
    let Some(tools) = build(reader) else { return };
    let document = dom::document();
    let (watching, shown) = (reader.clone(), tools.clone());
    dom::on(&document, "selectionchange", move |_| {
        let turn = WAITING.get() + 1;
        WAITING.set(turn);
        let (reader, tools) = (watching.clone(), shown.clone());
        dom::after(PAUSE_MS, move || {
            if WAITING.get() == turn {
                update(&reader, &tools);
            }
        });
    });
    let shown = tools.clone();
    dom::on(&document, "keydown", move |event| keys(&shown, &event));
    let pointing = reader.clone();
    dom::on(&reader.article, "click", move |event| {
        let Some(mouse) = event.dyn_ref::<MouseEvent>() else { return };
        let on_control = event.target().and_then(|t| t.dyn_into::<Element>().ok()).is_some_and(|t| {
            t.closest("a, button, input, select, textarea, summary, label").ok().flatten().is_some()
        });
        if !on_control
            && selected().is_none()
            && let Some(id) = marks::under(&pointing, mouse)
        {
            panel::open_at(&pointing, &id);
        }
    });
}

fn build(reader: &Rc<Reader>) -> Option<Element> {
    let lang = reader.lang;
    let tools = dom::make("div", "reader-tools")?;
    tools.set_id(ID);
    for (name, value) in [("role", "toolbar"), ("aria-label", s::selection_tools(lang)), ("hidden", "")] {
        let _ = tools.set_attribute(name, value);
    }
    let button = |act: &str, label: &str| {
        format!("<button type=\"button\" class=\"button\" data-act=\"{act}\">{label}</button>")
    };
    tools.set_inner_html(&format!(
        "{}{}{}",
        button("highlight", s::highlight(lang)),
        button("note", s::note(lang)),
        button("cancel", s::cancel(lang))
    ));
    // The selection must survive the press of a button.
    dom::on(&tools, "mousedown", |event| event.prevent_default());
    let (acting, shown) = (reader.clone(), tools.clone());
    dom::on(&tools, "click", move |event| {
        let Some((act, _)) = dom::action(&event) else { return };
        let chosen = CHOSEN.take();
        dom::hide(&shown, true);
        if let Some(selection) = dom::window().get_selection().ok().flatten() {
            let _ = selection.remove_all_ranges();
        }
        let Some(note) = chosen.filter(|_| act != "cancel").and_then(|c| make(&acting, c)) else { return };
        if act == "highlight" {
            acting.add(note);
        } else {
            panel::write(&acting, note, 0);
        }
    });
    dom::document().body()?.append_child(&tools).ok()?;
    Some(tools)
}

fn make(reader: &Reader, (positions, section): (Range<u32>, String)) -> Option<NewNote> {
    let quote: Quote = reader.text().quote(positions)?;
    Some(new_note(reader, section, Some(quote)))
}

pub fn new_note(reader: &Reader, section: String, quote: Option<Quote>) -> NewNote {
    NewNote {
        id: new_id(),
        section,
        lang: reader.text_lang.clone(),
        quote,
        colour: reader.colour.get(),
        text: String::new(),
    }
}

/// A UUIDv7.
fn new_id() -> String {
    let mut bytes = [0u8; 16];
    if let Ok(crypto) = dom::window().crypto() {
        let _ = crypto.get_random_values_with_u8_array(&mut bytes);
    }
    bytes[..6].copy_from_slice(&(js_sys::Date::now() as u64).to_be_bytes()[2..]);
    bytes[6] = bytes[6] & 0x0f | 0x70;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut id = String::new();
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        id.push_str(&format!("{byte:02x}"));
    }
    id
}

fn selected() -> Option<web_sys::Range> {
    let selection = dom::window().get_selection().ok().flatten()?;
    if selection.is_collapsed() || selection.range_count() == 0 {
        return None;
    }
    selection.get_range_at(0).ok()
}

fn update(reader: &Rc<Reader>, tools: &Element) {
    let inside = selected().filter(|range| {
        range.common_ancestor_container().is_ok_and(|node| reader.article.contains(Some(&node)))
    });
    let chosen = inside.as_ref().and_then(|range| {
        let positions = reader.text().positions(range)?;
        let section = reader.text().section_at(positions.start).map(str::to_owned);
        let section = section.or_else(|| reader.sections.first().map(|s| s.id.clone()))?;
        Some((positions, section))
    });
    let (Some(range), Some((positions, section))) = (inside, chosen) else {
        CHOSEN.set(None);
        dom::hide(tools, true);
        return;
    };
    let fits = reader.text().quote(positions.clone()).is_some();
    panel::announce(if fits { s::selection_hint(reader.lang) } else { s::selection_long(reader.lang) });
    if !fits {
        CHOSEN.set(None);
        dom::hide(tools, true);
        return;
    }
    CHOSEN.set(Some((positions, section)));
    dom::hide(tools, false);
    place(tools, &range);
}

/// Above the selection, below it where there is no room; on a narrow window the style sheet puts it to the lower edge.
fn place(tools: &Element, range: &web_sys::Range) {
    let (at, own) = (range.get_bounding_client_rect(), tools.get_bounding_client_rect());
    let window = dom::window();
    let size = |n: Result<wasm_bindgen::JsValue, _>| n.ok().and_then(|n| n.as_f64()).unwrap_or(0.0);
    let (width, height) = (size(window.inner_width()), size(window.inner_height()));
    let above = at.top() - own.height() - GAP;
    let below = at.bottom() + GAP;
    let top = if above >= GAP { above } else { below.min(height - own.height() - GAP) };
    let left = at.left().clamp(GAP, (width - own.width() - GAP).max(GAP));
    let (x, y) = (window.scroll_x().unwrap_or(0.0), window.scroll_y().unwrap_or(0.0));
    let _ = tools.set_attribute("style", &format!("left:{:.0}px;top:{:.0}px", left + x, top + y));
}

fn keys(tools: &Element, event: &web_sys::Event) {
    let Some(key) = event.dyn_ref::<KeyboardEvent>() else { return };
    if tools.has_attribute("hidden") {
        return;
    }
    let active = dom::document().active_element();
    let inside = active.as_ref().is_some_and(|a| tools.contains(Some(a)));
    let buttons: Vec<Element> = dom::all(&format!("#{ID} button"));
    let at = buttons.iter().position(|b| Some(b) == active.as_ref());
    match (key.key().as_str(), at) {
        ("Escape", _) => {
            CHOSEN.set(None);
            dom::hide(tools, true);
            if let Some(selection) = dom::window().get_selection().ok().flatten() {
                // The caret stays where the selection ended.
                let _ = selection.collapse_to_end();
            }
        }
        ("Tab", None) if !inside && !key.shift_key() => {
            event.prevent_default();
            if let Some(first) = buttons.first() {
                dom::focus(first);
            }
        }
        ("ArrowRight" | "ArrowLeft", Some(at)) => {
            event.prevent_default();
            let step = if key.key() == "ArrowRight" { 1 } else { buttons.len() - 1 };
            dom::focus(&buttons[(at + step) % buttons.len()]);
        }
        _ => {}
    }
}
