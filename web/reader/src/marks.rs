//! Highlights in the text: painted with the CSS Custom Highlight API, which leaves the document alone; where a browser has none, the margin of
//! the passage's block is marked.

use std::rc::Rc;

use js_sys::{Array, Function, Reflect};
use ringlab_content::reading::Colour;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, MouseEvent, Range};

use crate::chapter::Reader;
use crate::dom;
use crate::notes::{Entry, Passage, Standing};

const MARGIN: &str = "noted";
/// How long a passage that was jumped to is set off.
const FLASH_MS: i32 = 2_500;

/// `CSS.highlights` and the constructor of what it holds.
fn registry() -> Option<(JsValue, Function)> {
    let global = js_sys::global();
    let css = Reflect::get(&global, &"CSS".into()).ok()?;
    let registry = Reflect::get(&css, &"highlights".into()).ok().filter(|r| r.is_object())?;
    let constructor = Reflect::get(&global, &"Highlight".into()).ok()?.dyn_into().ok()?;
    Some((registry, constructor))
}

fn paint(name: &str, ranges: &[Range]) -> Option<()> {
    let (registry, constructor) = registry()?;
    let ranges: Array = ranges.iter().collect();
    let highlight = Reflect::construct(&constructor, &ranges).ok()?;
    let set: Function = Reflect::get(&registry, &"set".into()).ok()?.dyn_into().ok()?;
    set.call2(&registry, &name.into(), &highlight).ok().map(|_| ())
}

fn range(reader: &Reader, entry: &Entry) -> Option<Range> {
    match &entry.passage {
        Passage::Found(positions) if entry.standing != Standing::Deleted => reader.text().range(positions),
        _ => None,
    }
}

pub fn draw(reader: &Rc<Reader>, entries: &[Entry]) {
    for colour in Colour::ALL {
        let ranges: Vec<Range> =
            entries.iter().filter(|e| e.note.colour == colour).filter_map(|e| range(reader, e)).collect();
        paint(&format!("note-{}", colour.name()), &ranges);
    }
    if registry().is_none() {
        for block in dom::all(&format!(".{MARGIN}")) {
            let _ = block.class_list().remove_1(MARGIN);
        }
        for block in entries.iter().filter_map(|e| block(&range(reader, e)?)) {
            let _ = block.class_list().add_1(MARGIN);
        }
    }
}

fn block(range: &Range) -> Option<Element> {
    let node = range.start_container().ok()?;
    let element = node.parent_element()?;
    element.closest("p, li, td, th, pre, dd, blockquote, figcaption, h2, h3, h4").ok()?
}

/// Brings a note's passage into view and sets it off for a moment. False when it has none.
pub fn jump(reader: &Rc<Reader>, entry: &Entry) -> bool {
    let Some(range) = range(reader, entry) else { return false };
    let Some(block) = block(&range).or_else(|| range.start_container().ok()?.parent_element()) else {
        return false;
    };
    // A passage may lie in a fold.
    let mut around = block.closest("details:not([open])").ok().flatten();
    while let Some(fold) = around {
        let _ = fold.set_attribute("open", "");
        around = fold.parent_element().and_then(|p| p.closest("details:not([open])").ok().flatten());
    }
    dom::show(&block, web_sys::ScrollLogicalPosition::Center);
    let _ = block.set_attribute("tabindex", "-1");
    dom::focus(&block);
    paint("note-active", std::slice::from_ref(&range));
    let _ = block.class_list().add_1("note-target");
    dom::after(FLASH_MS, move || {
        paint("note-active", &[]);
        let _ = block.class_list().remove_1("note-target");
    });
    true
}

/// The note under the pointer.
pub fn under(reader: &Rc<Reader>, event: &MouseEvent) -> Option<String> {
    let (x, y) = (f64::from(event.client_x()), f64::from(event.client_y()));
    let hit = |entry: &Entry| {
        let Some(rects) = range(reader, entry).and_then(|r| r.get_client_rects()) else { return false };
        (0..rects.length())
            .filter_map(|i| rects.item(i))
            .any(|r| r.left() <= x && x <= r.right() && r.top() <= y && y <= r.bottom())
    };
    reader.entries().into_iter().find(hit).map(|e| e.note.id)
}
