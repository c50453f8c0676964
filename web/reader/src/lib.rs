//! See README.md.

pub mod anchor;
pub mod attention;
pub mod notes;
pub mod outbox;
pub mod strings;

mod api;
mod chapter;
mod dom;
mod marks;
mod note_html;
mod overview;
mod panel;
mod quiz;
mod resume;
mod selection;
mod store;
mod sync;
mod text;
mod toc;
mod watch;

use wasm_bindgen::prelude::wasm_bindgen;

/// Called by the page's script, once, when the module is loaded.
#[wasm_bindgen]
pub fn read() {
    dom::on(&dom::window(), "online", |_| sync::retry_now());
    for root in dom::all("[data-reader]") {
        match root.get_attribute("data-reader").as_deref() {
            Some("chapter") => chapter::start(&root),
            Some("overview") => overview::start(&root),
            // What is still on its way belongs to the page: it is shown once it has arrived.
            Some("notes") => catch_up(),
            _ => {}
        }
    }
}

fn catch_up() {
    if sync::pending().is_empty() {
        return;
    }
    sync::listen(|event| {
        if matches!(event, sync::Event::State(sync::State::Idle)) && sync::pending().is_empty() {
            let _ = dom::window().location().reload();
        }
    });
    sync::flush();
}
