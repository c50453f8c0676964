//! Watches what the reader looks at: marks sections as read, and remembers the place.

use std::cell::RefCell;
use std::rc::Rc;

use crate::attention::{Attentions, Extent, here, permille};
use crate::chapter::Reader;
use crate::outbox::Write;
use crate::{dom, resume, sync};

const TICK_MS: i32 = 500;
/// Whoever does nothing for so long has left the page open.
const AWAY_MS: f64 = 120_000.0;
/// A place is sent at most so often, and once more when the page goes away.
const PLACE_MS: f64 = 8_000.0;
/// Less than so many thousandths of a section is no other place.
const PLACE_STEP: u16 = 40;

struct Watch {
    attentions: Attentions,
    last: f64,
    touched: f64,
    sent_at: f64,
    place: Option<(usize, u16)>,
    sent: Option<(usize, u16)>,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

fn with<T>(act: impl FnOnce(&mut Watch) -> T) -> Option<T> {
    WATCH.with_borrow_mut(|watch| watch.as_mut().map(act))
}

pub fn start(reader: &Rc<Reader>) {
    let now = dom::now();
    WATCH.set(Some(Watch {
        attentions: Attentions::new(reader.sections.len()),
        last: now,
        touched: now,
        sent_at: f64::NEG_INFINITY,
        place: None,
        sent: None,
    }));
    known(reader);
    for event in ["scroll", "pointermove", "pointerdown", "keydown"] {
        dom::on(&dom::window(), event, |_| {
            with(|w| w.touched = dom::now());
        });
    }
    let ticking = reader.clone();
    dom::every(TICK_MS, move || tick(&ticking));
    let leaving = reader.clone();
    dom::on(&dom::window(), "pagehide", move |_| {
        if let Some(write) = with(|w| w.due(&leaving, true)).flatten() {
            sync::keep(&write);
        }
        sync::leave_behind();
    });
}

/// Sections that were read before are not read again.
pub fn known(reader: &Reader) {
    let read = reader.read.borrow();
    with(|w| {
        for (i, section) in reader.sections.iter().enumerate() {
            if read.contains(&section.id) {
                w.attentions.already_read(i);
            }
        }
    });
}

fn tick(reader: &Rc<Reader>) {
    let now = dom::now();
    let window = height();
    let away = dom::document().hidden();
    let news = with(|w| {
        let passed = now - std::mem::replace(&mut w.last, now);
        if away || now - w.touched > AWAY_MS {
            return vec![];
        }
        let extents = extents(reader);
        let news = w.attentions.watch(&extents, window, passed);
        if let Some(place) = w.attentions.place() {
            w.place = Some((place, permille(extents[place], window)));
        }
        news
    });
    for section in news.unwrap_or_default() {
        reader.mark_read(section);
    }
    if let Some(write) = with(|w| w.due(reader, false)).flatten() {
        sync::put(write);
    }
}

impl Watch {
    /// The place, when it is another and it is time to send it. Not before something was read: who only looks in leaves no trace.
    fn due(&mut self, reader: &Reader, hurry: bool) -> Option<Write> {
        let (section, permille) = self.place?;
        let same = self.sent.is_some_and(|(s, p)| s == section && p.abs_diff(permille) < PLACE_STEP);
        let now = dom::now();
        // Whoever has not decided yet whether to go on from the old place keeps it.
        let undecided = resume::is_open() && dom::window().scroll_y().unwrap_or(0.0) < height();
        if same || undecided || reader.read.borrow().is_empty() || (!hurry && now - self.sent_at < PLACE_MS) {
            return None;
        }
        let other = self.sent.is_some_and(|(s, _)| s != section);
        self.sent = self.place;
        self.sent_at = now;
        if other {
            resume::close();
        }
        let id = reader.sections.get(section)?.id.clone();
        Some(Write::Place { folder: reader.folder.clone(), section: id, permille })
    }
}

/// The section that the reader is in now.
pub fn current(reader: &Reader) -> Option<usize> {
    here(&extents(reader), height())
}

fn height() -> f64 {
    dom::window().inner_height().ok().and_then(|h| h.as_f64()).unwrap_or(0.0)
}

fn extents(reader: &Reader) -> Vec<Extent> {
    let tops: Vec<f64> = reader.sections.iter().map(|s| s.heading.get_bounding_client_rect().top()).collect();
    // What follows the last section is not the chapter's.
    let end = match dom::one(".neighbours") {
        Some(after) => after.get_bounding_client_rect().top(),
        None => reader.article.get_bounding_client_rect().bottom(),
    };
    let bottoms = tops.iter().copied().skip(1).chain([end]);
    tops.iter().zip(bottoms).map(|(top, bottom)| Extent { top: *top, bottom }).collect()
}
