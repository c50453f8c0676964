//! The notes of the chapter beside its text, and what becomes of them on their way to the server.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ringlab_content::reading::{Colour, NewNote};
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlInputElement, HtmlTextAreaElement};

use crate::chapter::Reader;
use crate::notes::{Entry, Passage, to_send};
use crate::outbox::{Write, note_key};
use crate::resume::is_escape;
use crate::sync::State;
use crate::{dom, marks, note_html, selection, store, strings as s, sync};

const PANEL: &str = "reader-panel";
const LIVE: &str = "reader-live";
/// How long a deletion can be undone.
const UNDO_MS: i32 = 60_000;
const SAVED_MS: i32 = 3_000;
/// Below this width the panel lies over the text.
const NARROW: f64 = 960.0;

/// A note that is being written; kept in this browser with every key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Edit {
    pub note: NewNote,
    pub base: u64,
}

thread_local! {
    static EDIT: RefCell<Option<Edit>> = const { RefCell::new(None) };
    static DRAWN: RefCell<String> = const { RefCell::new(String::new()) };
    static UNLOADED: Cell<bool> = const { Cell::new(false) };
    static STATE: Cell<State> = const { Cell::new(State::Idle) };
}

fn draft_key(reader: &Reader) -> String {
    format!("ringlab.draft/{}", reader.folder)
}

pub fn build(reader: &Rc<Reader>) {
    let lang = reader.lang;
    let Some(body) = dom::document().body() else { return };
    let (Some(dock), Some(panel), Some(live)) =
        (dom::make("div", "reader-dock"), dom::make("aside", PANEL), dom::make("p", "visually-hidden"))
    else {
        return;
    };
    dock.set_inner_html(&format!(
        "<p class=\"reader-status\" role=\"status\" hidden></p>\
         <button type=\"button\" class=\"button reader-toggle\" aria-expanded=\"false\" aria-controls=\"{PANEL}\">{} \
         <span class=\"reader-count\"></span></button>",
        s::notes(lang)
    ));
    panel.set_id(PANEL);
    let _ = panel.set_attribute("aria-label", s::notes_here(lang));
    dom::hide(&panel, true);
    panel.set_inner_html(&note_html::frame(lang));
    live.set_id(LIVE);
    let _ = live.set_attribute("aria-live", "polite");
    for part in [&dock, &panel, &live] {
        let _ = body.append_child(part);
    }
    if let Some(toggle) = dom::within(&dock, "button") {
        let reader = reader.clone();
        dom::on(&toggle, "click", move |_| {
            let shut = dom::by_id(PANEL).is_some_and(|p| p.has_attribute("hidden"));
            if shut { open(&reader) } else { close() }
        });
    }
    let acting = reader.clone();
    dom::on(&panel, "click", move |event| {
        if let Some((act, element)) = dom::action(&event) {
            let id = element.closest("[data-id]").ok().flatten().and_then(|e| e.get_attribute("data-id"));
            act_on(&acting, &act, id.as_deref());
        }
    });
    let typing = reader.clone();
    dom::on(&panel, "input", move |event| typed(&typing, &event));
    let sending = reader.clone();
    dom::on(&panel, "submit", move |event| {
        event.prevent_default();
        save(&sending);
    });
    let leaving = reader.clone();
    dom::on(&panel, "keydown", move |event| {
        if is_escape(&event) {
            // What is being written is not thrown away by a key.
            if EDIT.with_borrow(Option::is_none) { close() } else { finish(&leaving, false) }
        }
    });
    // Written before and never saved: it is here again.
    if let Some(edit) = store::recall(&draft_key(reader)).and_then(|t| serde_json::from_str::<Edit>(&t).ok())
    {
        EDIT.set(Some(edit));
        draw_form(reader);
        expand(true);
    }
    reader.show_notes();
}

fn expand(open: bool) {
    if let Some(panel) = dom::by_id(PANEL) {
        dom::hide(&panel, !open);
    }
    if let Some(toggle) = dom::one(".reader-toggle") {
        let _ = toggle.set_attribute("aria-expanded", if open { "true" } else { "false" });
    }
}

fn open(reader: &Rc<Reader>) {
    expand(true);
    reader.show_notes();
    if let Some(first) = dom::one(&format!("#{PANEL} textarea, #{PANEL} [data-act=close]")) {
        dom::focus(&first);
    }
}

fn close() {
    expand(false);
    if let Some(toggle) = dom::one(".reader-toggle") {
        dom::focus(&toggle);
    }
}

/// Opens the panel at one note.
pub fn open_at(reader: &Rc<Reader>, id: &str) {
    expand(true);
    reader.show_notes();
    if let Some(item) = item(id) {
        dom::show(&item, web_sys::ScrollLogicalPosition::Nearest);
        dom::focus(&item);
    }
}

fn item(id: &str) -> Option<Element> {
    dom::all(&format!("#{PANEL} [data-id]"))
        .into_iter()
        .find(|e| e.get_attribute("data-id").as_deref() == Some(id))
}

/// The address names a note: its passage is where the reader wants to be. False when it names none.
pub fn asked_for(reader: &Rc<Reader>) -> bool {
    let search = dom::window().location().search().unwrap_or_default();
    let id = web_sys::UrlSearchParams::new_with_str(&search).ok().and_then(|p| p.get("note"));
    let entry = id.and_then(|id| reader.entries().into_iter().find(|e| e.note.id == id));
    let Some(entry) = entry else { return false };
    if !marks::jump(reader, &entry) {
        open_at(reader, &entry.note.id);
    }
    true
}

/// Opens the editor; `base` is the version the note was read at, 0 for a new one.
pub fn write(reader: &Rc<Reader>, note: NewNote, base: u64) {
    EDIT.set(Some(Edit { note, base }));
    keep_draft(reader);
    draw_form(reader);
    expand(true);
    list(reader, &reader.entries());
    if let Some(text) = dom::one(&format!("#{PANEL} textarea")) {
        dom::focus(&text);
        dom::show(&text, web_sys::ScrollLogicalPosition::Nearest);
    }
}

fn keep_draft(reader: &Reader) {
    let text = EDIT.with_borrow(|edit| edit.as_ref().and_then(|e| serde_json::to_string(e).ok()));
    match text {
        Some(text) => store::remember(&draft_key(reader), &text),
        None => store::forget(&draft_key(reader)),
    }
}

fn typed(reader: &Rc<Reader>, event: &Event) {
    let Some(target) = event.target() else { return };
    EDIT.with_borrow_mut(|edit| {
        let Some(edit) = edit else { return };
        if let Some(area) = target.dyn_ref::<HtmlTextAreaElement>() {
            edit.note.text = area.value();
        } else if let Some(colour) =
            target.dyn_ref::<HtmlInputElement>().and_then(|i| Colour::from_name(&i.value()))
        {
            edit.note.colour = colour;
            reader.colour.set(colour);
        }
    });
    keep_draft(reader);
}

fn save(reader: &Rc<Reader>) {
    let Some(mut edit) = EDIT.with_borrow(Clone::clone) else { return };
    edit.note.text = edit.note.text.trim_end().to_owned();
    if edit.note.quote.is_none() && edit.note.text.trim().is_empty() {
        if let Some(error) = dom::one(&format!("#{PANEL} .form-error")) {
            error.set_text_content(Some(s::empty_note(reader.lang)));
            dom::hide(&error, false);
        }
        return;
    }
    let id = edit.note.id.clone();
    // Written down before the draft goes: at no moment is it nowhere.
    sync::put(Write::Note { folder: reader.folder.clone(), base: edit.base, note: edit.note });
    {
        let mut notes = reader.notes.borrow_mut();
        notes.refused.remove(&id);
        notes.conflicts.remove(&id);
    }
    finish(reader, true);
    if let Some(item) = item(&id) {
        dom::focus(&item);
    }
}

/// Ends the editing. Not `done`: only when nothing was changed, or the reader says so.
fn finish(reader: &Rc<Reader>, done: bool) {
    let edit = EDIT.with_borrow(Clone::clone);
    if let Some(edit) = edit.filter(|_| !done) {
        let before = reader.entries().into_iter().find(|e| e.note.id == edit.note.id);
        if edit.note.text != before.map_or_else(String::new, |e| e.note.text) {
            return;
        }
    }
    EDIT.set(None);
    keep_draft(reader);
    draw_form(reader);
    reader.show_notes();
}

fn act_on(reader: &Rc<Reader>, act: &str, id: Option<&str>) {
    match act {
        "close" => return close(),
        "cancel" => {
            finish(reader, true);
            return focus_on(id);
        }
        "new" => {
            let at = crate::watch::current(reader).unwrap_or(0);
            if let Some(section) = reader.sections.get(at) {
                write(reader, selection::new_note(reader, section.id.clone(), None), 0);
            }
            return;
        }
        _ => {}
    }
    let Some(entry) = id.and_then(|id| reader.entries().into_iter().find(|e| e.note.id == id)) else {
        return;
    };
    let folder = reader.folder.clone();
    let id = entry.note.id.clone();
    match act {
        "jump" => {
            if narrow() {
                expand(false);
            }
            let section = reader.sections.iter().find(|s| s.id == entry.note.section);
            if !marks::jump(reader, &entry)
                && let Some(section) = section
            {
                dom::show(&section.heading, web_sys::ScrollLogicalPosition::Start);
            }
        }
        "edit" => write(reader, to_send(&entry.note), entry.note.version),
        "delete" => delete(reader, entry),
        "undo" => {
            reader.notes.borrow_mut().deleted.remove(&id);
            reader.add(to_send(&entry.note));
            focus_on(Some(&id));
        }
        "mine" => {
            reader.notes.borrow_mut().conflicts.remove(&id);
            sync::put(Write::Note { folder, base: entry.note.version, note: to_send(&entry.note) });
            reader.show_notes();
        }
        "theirs" => {
            reader.notes.borrow_mut().conflicts.remove(&id);
            sync::drop_key(&note_key(&folder, &id));
            reader.show_notes();
        }
        _ => {}
    }
}

fn delete(reader: &Rc<Reader>, entry: Entry) {
    let id = entry.note.id.clone();
    let write = Write::Delete { folder: reader.folder.clone(), id: id.clone(), base: entry.note.version };
    {
        let mut notes = reader.notes.borrow_mut();
        notes.deleted.insert(id.clone(), entry.note);
        notes.refused.remove(&id);
        notes.conflicts.remove(&id);
    }
    sync::put(write);
    reader.show_notes();
    if let Some(undo) = item(&id).and_then(|item| dom::within(&item, "[data-act=undo]")) {
        dom::focus(&undo);
    }
    let reader = reader.clone();
    dom::after(UNDO_MS, move || {
        if reader.notes.borrow_mut().deleted.remove(&id).is_some() {
            reader.show_notes();
        }
    });
}

fn focus_on(id: Option<&str>) {
    let target = id.and_then(item).or_else(|| dom::one(&format!("#{PANEL} [data-act=close]")));
    if let Some(target) = target {
        dom::focus(&target);
    }
}

fn narrow() -> bool {
    dom::window().inner_width().ok().and_then(|w| w.as_f64()).is_some_and(|w| w < NARROW)
}

/// What the list shows now.
pub fn show(reader: &Rc<Reader>, entries: &[Entry]) {
    let count = entries.iter().filter(|e| e.standing != crate::notes::Standing::Deleted).count();
    if let Some(badge) = dom::one(".reader-count") {
        badge.set_text_content(Some(&if count == 0 { String::new() } else { count.to_string() }));
    }
    list(reader, entries);
}

/// The editor, apart from the list: a note that is being written is left in peace when the list changes.
fn draw_form(reader: &Reader) {
    let html = EDIT.with_borrow(|edit| edit.as_ref().map(|e| note_html::form(reader.lang, e)));
    if let Some(place) = dom::one(&format!("#{PANEL} .reader-form")) {
        place.set_inner_html(&html.unwrap_or_default());
    }
}

fn list(reader: &Rc<Reader>, entries: &[Entry]) {
    let edited = EDIT.with_borrow(|edit| edit.as_ref().map(|e| e.note.id.clone()));
    let Some(place) = dom::one(&format!("#{PANEL} .reader-list")) else { return };
    // The focus outlives a list that is drawn anew.
    let focused = dom::document().active_element().filter(|a| place.contains(Some(a)));
    let focused = focused.and_then(|a| {
        let id = a.closest("[data-id]").ok().flatten()?.get_attribute("data-id")?;
        Some((id, a.get_attribute("data-act")))
    });
    let mut html = String::new();
    if entries.is_empty() && edited.is_none() {
        html.push_str(&format!("<p class=\"muted\">{}</p>", s::none_here(reader.lang)));
    }
    html.push_str("<ol class=\"note-list\">");
    for entry in entries.iter().filter(|e| edited.as_ref() != Some(&e.note.id)) {
        let title = reader.title_of(&entry.note.section).unwrap_or_default();
        html.push_str(&note_html::item(reader.lang, entry, &reader.folder, title));
    }
    html.push_str("</ol>");
    // A list that is as it was stays: a button must not go away under a finger.
    if DRAWN.with_borrow(|drawn| *drawn == html) {
        return;
    }
    place.set_inner_html(&html);
    DRAWN.set(html);
    if let Some((id, act)) = focused
        && let Some(item) = item(&id)
    {
        let control = act.and_then(|act| dom::within(&item, &format!("[data-act={act}]")));
        dom::focus(&control.unwrap_or(item));
    }
}

/// For a screen reader.
pub fn announce(text: &str) {
    if let Some(live) = dom::by_id(LIVE) {
        live.set_text_content(Some(text));
    }
}

pub fn unloaded(reader: &Reader, unloaded: bool) {
    UNLOADED.set(unloaded);
    status(reader, false);
}

pub fn state(reader: &Reader, state: State) {
    STATE.set(state);
    let trouble = dom::one(".reader-status").is_some_and(|line| line.class_list().contains("trouble"));
    match state {
        State::Offline => status(reader, false),
        State::Idle if trouble => status(reader, true),
        State::Idle | State::Saving => {}
    }
}

/// A note has arrived; sections and places do so without a word.
pub fn saved(reader: &Reader) {
    if STATE.get() != State::Offline {
        status(reader, true);
    }
}

fn status(reader: &Reader, just_saved: bool) {
    let Some(line) = dom::one(".reader-status") else { return };
    let lang = reader.lang;
    let trouble = STATE.get() == State::Offline || UNLOADED.get();
    let text = match STATE.get() {
        State::Offline => s::offline(lang),
        _ if UNLOADED.get() => s::unloaded(lang),
        _ if just_saved => s::saved(lang),
        State::Saving | State::Idle => "",
    };
    let _ = line.class_list().toggle_with_force("trouble", trouble);
    line.set_text_content(Some(text));
    dom::hide(&line, text.is_empty());
    if just_saved && !trouble {
        dom::after(SAVED_MS, move || {
            if !line.class_list().contains("trouble") {
                dom::hide(&line, true);
            }
        });
    }
}

/// Whether a passage can be gone to.
pub fn can_jump(entry: &Entry) -> bool {
    matches!(entry.passage, Passage::Found(_) | Passage::None)
}
