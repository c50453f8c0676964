//! A chapter's page: its parts share one [`Reader`].

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use ringlab_content::reading::{ChapterReading, Colour, NewNote, Note};
use wasm_bindgen_futures::spawn_local;
use web_sys::Element;

use crate::notes::{Entry, Notes, Passage};
use crate::outbox::Write;
use crate::strings::Lang;
use crate::sync::{self, Event};
use crate::text::TextMap;
use crate::{api, dom, marks, panel, quiz, resume, selection, toc, watch};

/// A page that is looked at again asks anew, at most this often.
const STALE_MS: f64 = 10_000.0;
const RETRY_MS: i32 = 15_000;

pub struct Section {
    pub id: String,
    /// As text.
    pub title: String,
    pub heading: Element,
}

pub struct Reader {
    /// Of the page around the text.
    pub lang: Lang,
    /// Of the text.
    pub text_lang: String,
    pub folder: String,
    pub article: Element,
    pub sections: Vec<Section>,
    pub read: RefCell<BTreeSet<String>>,
    pub notes: RefCell<Notes>,
    pub colour: Cell<Colour>,
    /// The server's state was seen: only then is there anything to compare with.
    pub loaded: Cell<bool>,
    pub asked_at: Cell<f64>,
    text: OnceCell<TextMap>,
    passages: RefCell<HashMap<String, Passage>>,
}

/// `root`: the element that names the chapter.
pub fn start(root: &Element) {
    let attribute = |name: &str| root.get_attribute(name).unwrap_or_default();
    let Some(article) = dom::one(".chapter-body") else { return };
    let reader = Rc::new(Reader {
        lang: Lang::from_code(&attribute("data-lang")),
        text_lang: attribute("data-text-lang"),
        folder: attribute("data-folder"),
        article,
        sections: toc::sections(),
        read: RefCell::default(),
        notes: RefCell::default(),
        colour: Cell::new(Colour::Yellow),
        loaded: Cell::new(false),
        asked_at: Cell::new(f64::NEG_INFINITY),
        text: OnceCell::new(),
        passages: RefCell::default(),
    });
    for write in sync::pending() {
        if let Write::Section { folder, id } = write
            && folder == reader.folder
        {
            reader.read.borrow_mut().insert(id);
        }
    }
    toc::show(&reader);
    panel::build(&reader);
    watch::start(&reader);
    selection::start(&reader);
    quiz::start(&reader);
    let hears = reader.clone();
    sync::listen(move |event| hears.hear(event));
    let again = reader.clone();
    dom::on(&dom::document(), "visibilitychange", move |_| {
        if !dom::document().hidden() && dom::now() - again.asked_at.get() > STALE_MS {
            again.load();
        }
    });
    reader.load();
}

impl Reader {
    /// Asks the server; again after a while when it does not answer.
    pub fn load(self: &Rc<Self>) {
        let reader = self.clone();
        reader.asked_at.set(dom::now());
        spawn_local(async move {
            let answer = api::get(&format!("/api/v1/reading/{}", reader.folder)).await;
            let view = answer
                .filter(|a| a.status == 200)
                .and_then(|a| serde_json::from_str::<ChapterReading>(&a.body).ok());
            match view {
                Some(view) => reader.take(view),
                None => {
                    panel::unloaded(&reader, true);
                    let again = reader.clone();
                    dom::after(RETRY_MS, move || again.load());
                }
            }
        });
    }

    fn take(self: &Rc<Self>, view: ChapterReading) {
        let first = !self.loaded.replace(true);
        panel::unloaded(self, false);
        self.read.borrow_mut().extend(view.read);
        self.notes.borrow_mut().stored = view.notes;
        quiz::take(self, view.quizzes);
        watch::known(self);
        toc::show(self);
        self.show_notes();
        if first {
            if !panel::asked_for(self)
                && let Some(place) = &view.place
            {
                resume::offer(self, place);
            }
            sync::flush();
        }
    }

    pub fn mark_read(&self, section: usize) {
        let Some(section) = self.sections.get(section) else { return };
        if self.read.borrow_mut().insert(section.id.clone()) {
            sync::put(Write::Section { folder: self.folder.clone(), id: section.id.clone() });
            toc::show(self);
        }
    }

    /// The prose, read when it is first needed.
    pub fn text(&self) -> &TextMap {
        self.text.get_or_init(|| {
            let ids: Vec<String> = self.sections.iter().map(|s| s.id.clone()).collect();
            TextMap::of(&self.article, &ids)
        })
    }

    pub fn entries(&self) -> Vec<Entry> {
        let pending: Vec<Write> = sync::pending().into_iter().filter(|w| w.folder() == self.folder).collect();
        let rank = |id: &str| self.sections.iter().position(|s| s.id == id).unwrap_or(usize::MAX);
        self.notes.borrow().entries(&pending, |note| self.passage(note), rank)
    }

    fn passage(&self, note: &Note) -> Passage {
        let Some(quote) = &note.quote else { return Passage::None };
        if note.lang != self.text_lang {
            return Passage::Elsewhere;
        }
        if let Some(known) = self.passages.borrow().get(&note.id) {
            return known.clone();
        }
        let found = match self.text().find(quote, &note.section) {
            Some(range) => Passage::Found(range),
            None => Passage::Lost,
        };
        self.passages.borrow_mut().insert(note.id.clone(), found.clone());
        found
    }

    /// In the text and in the list.
    pub fn show_notes(self: &Rc<Self>) {
        let entries = self.entries();
        marks::draw(self, &entries);
        panel::show(self, &entries);
    }

    pub fn title_of(&self, section: &str) -> Option<&str> {
        self.sections.iter().find(|s| s.id == section).map(|s| s.title.as_str())
    }

    pub fn add(self: &Rc<Self>, note: NewNote) {
        sync::put(Write::Note { folder: self.folder.clone(), base: 0, note });
        self.show_notes();
    }

    fn hear(self: &Rc<Self>, event: &Event) {
        let mine = |write: &Write| write.folder() == self.folder;
        match event {
            Event::State(state) => panel::state(self, *state),
            Event::Stored(write, body) if mine(write) => {
                match write {
                    Write::Note { note, .. } => self.stored(note, body),
                    Write::Delete { id, .. } => self.notes.borrow_mut().stored.retain(|n| n.id != *id),
                    Write::Quiz { id, .. } => quiz::stored(id, body),
                    Write::Section { .. } | Write::Place { .. } => return,
                }
                if matches!(write, Write::Note { .. } | Write::Delete { .. }) {
                    panel::saved(self);
                }
                self.show_notes();
            }
            Event::Conflict(write, current) if mine(write) => {
                match write {
                    Write::Quiz { id, response, .. } => quiz::conflict(self, id, response, current),
                    Write::Note { .. } | Write::Delete { .. } => self.conflict(write, current),
                    Write::Section { .. } | Write::Place { .. } => {}
                }
                self.show_notes();
            }
            Event::Refused(write, why) if mine(write) => {
                if let Write::Note { note, .. } = write {
                    self.notes.borrow_mut().refused.insert(note.id.clone(), why.clone());
                    self.show_notes();
                }
            }
            _ => {}
        }
    }

    fn stored(&self, sent: &NewNote, body: &str) {
        let Ok(note) = serde_json::from_str::<Note>(body) else { return };
        let mut notes = self.notes.borrow_mut();
        notes.conflicts.remove(&note.id);
        notes.refused.remove(&note.id);
        // A note posted again after its deletion never arrived is there as it was before: what was sent is the newer.
        let newer = (note.text != sent.text || note.colour != sent.colour).then_some(note.version);
        notes.store(note);
        drop(notes);
        if let Some(base) = newer {
            sync::keep(&Write::Note { folder: self.folder.clone(), base, note: sent.clone() });
            dom::after(0, sync::flush);
        }
    }

    fn conflict(&self, write: &Write, current: &str) {
        let Ok(current) = serde_json::from_str::<Note>(current) else { return };
        let mut notes = self.notes.borrow_mut();
        if matches!(write, Write::Delete { .. }) {
            // It says something else by now: it is not deleted unseen.
            notes.deleted.remove(&current.id);
            sync::drop_key(&write.key());
        } else {
            notes.conflicts.insert(current.id.clone(), current.clone());
        }
        notes.store(current);
    }
}
