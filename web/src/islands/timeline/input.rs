//! Pointer, wheel, pinch and keys on the timeline.

use std::sync::Arc;

use leptos::html::Canvas;
use leptos::prelude::*;
use web_sys::{HtmlCanvasElement, KeyboardEvent, PointerEvent, WheelEvent};

use super::draw::GUTTER;
use super::layout::{Lanes, Pick, Window};
use super::viewer::pick_at;

/// A pointer that is down, in canvas pixels.
#[derive(Debug, Clone, Copy)]
struct Finger {
    id: i32,
    x: f64,
}

/// What the canvas does with its events.
#[derive(Debug, Clone)]
pub struct Handlers {
    lanes: Arc<Lanes>,
    window: RwSignal<Window>,
    picked: RwSignal<Option<Pick>>,
    compare: RwSignal<bool>,
    canvas: NodeRef<Canvas>,
    fingers: StoredValue<Vec<Finger>>,
}

impl Handlers {
    pub fn new(
        lanes: Arc<Lanes>,
        window: RwSignal<Window>,
        picked: RwSignal<Option<Pick>>,
        compare: RwSignal<bool>,
        canvas: NodeRef<Canvas>,
    ) -> Handlers {
        Handlers { lanes, window, picked, compare, canvas, fingers: StoredValue::new(vec![]) }
    }

    fn total(&self) -> u64 {
        self.lanes.total_ns
    }

    fn canvas(&self) -> Option<HtmlCanvasElement> {
        self.canvas.get_untracked()
    }

    fn plot_width(&self) -> f64 {
        self.canvas().map_or(1.0, |c| (f64::from(c.client_width()) - GUTTER).max(1.0))
    }

    /// Nanoseconds of one pixel.
    fn per_pixel(&self) -> f64 {
        self.window.get_untracked().len() / self.plot_width()
    }

    fn ns_at(&self, x: f64) -> f64 {
        self.window.get_untracked().ns((x - GUTTER).max(0.0), self.plot_width())
    }

    /// Zooms once the chart has the focus, or with Ctrl as a trackpad's pinch sends it; a page that is scrolled past stays a page.
    pub fn wheel(&self, e: &WheelEvent) {
        let focused = document().active_element() == self.canvas().map(Into::into);
        if !(e.ctrl_key() || focused) {
            return;
        }
        e.prevent_default();
        if e.shift_key() || e.delta_x().abs() > e.delta_y().abs() {
            let by = (e.delta_x() + if e.shift_key() { e.delta_y() } else { 0.0 }) * self.per_pixel();
            self.window.update(|w| *w = w.pan(by, self.total()));
        } else {
            let at = self.ns_at(f64::from(e.offset_x()));
            let factor = (e.delta_y().clamp(-120.0, 120.0) / 240.0).exp2();
            self.window.update(|w| *w = w.zoom(at, factor, self.total()));
        }
    }

    pub fn down(&self, e: &PointerEvent) {
        if let Some(canvas) = self.canvas() {
            // Without capture a drag ends at the edge; nothing worse.
            let _ = canvas.set_pointer_capture(e.pointer_id());
        }
        self.fingers.update_value(|f| f.push(Finger { id: e.pointer_id(), x: f64::from(e.offset_x()) }));
    }

    pub fn moved(&self, e: &PointerEvent) {
        let x = f64::from(e.offset_x());
        let mut fingers = self.fingers.get_value();
        let Some(own) = fingers.iter().position(|f| f.id == e.pointer_id()) else {
            self.pick(x, f64::from(e.offset_y()));
            return;
        };
        let before = fingers[own].x;
        if let [a, b] = fingers[..] {
            let (old, centre) = ((a.x - b.x).abs().max(1.0), (a.x + b.x) / 2.0);
            fingers[own].x = x;
            let new = (fingers[0].x - fingers[1].x).abs().max(1.0);
            let at = self.ns_at(centre);
            self.window.update(|w| *w = w.zoom(at, old / new, self.total()));
        } else {
            let by = (before - x) * self.per_pixel();
            fingers[own].x = x;
            self.window.update(|w| *w = w.pan(by, self.total()));
        }
        self.fingers.set_value(fingers);
    }

    pub fn up(&self, e: &PointerEvent) {
        self.fingers.update_value(|f| f.retain(|finger| finger.id != e.pointer_id()));
        self.pick(f64::from(e.offset_x()), f64::from(e.offset_y()));
    }

    fn pick(&self, x: f64, y: f64) {
        let width = self.plot_width() + GUTTER;
        let found =
            pick_at(&self.lanes, self.window.get_untracked(), width, self.compare.get_untracked(), x, y);
        if found.is_some() && found != self.picked.get_untracked() {
            self.picked.set(found);
        }
    }

    pub fn key(&self, e: &KeyboardEvent) {
        if e.ctrl_key() || e.meta_key() || e.alt_key() {
            return;
        }
        let total = self.total();
        let middle = |w: Window| (w.start + w.end) / 2.0;
        match e.key().as_str() {
            "ArrowLeft" => self.window.update(|w| *w = w.pan(-w.len() * 0.15, total)),
            "ArrowRight" => self.window.update(|w| *w = w.pan(w.len() * 0.15, total)),
            "+" | "=" => self.window.update(|w| *w = w.zoom(middle(*w), 0.6, total)),
            "-" | "_" => self.window.update(|w| *w = w.zoom(middle(*w), 1.0 / 0.6, total)),
            "0" => self.window.set(Window::all(total)),
            "ArrowUp" => self.choose(|p, _| Pick { lane: p.lane.saturating_sub(1), ..p }),
            "ArrowDown" => self.choose(|p, _| Pick { lane: p.lane + 1, ..p }),
            "[" | "," => self.choose(|p, _| Pick { span: p.span.saturating_sub(1), ..p }),
            "]" | "." => self.choose(|p, _| Pick { span: p.span + 1, ..p }),
            "Home" => self.choose(|p, _| Pick { span: 0, ..p }),
            "End" => self.choose(|p, lanes| Pick { span: lanes.lanes[p.lane].spans.len(), ..p }),
            _ => return,
        }
        e.prevent_default();
    }

    /// Chooses another step, kept within the lanes, and brings it into view.
    fn choose(&self, next: impl Fn(Pick, &Lanes) -> Pick) {
        if self.lanes.lanes.is_empty() {
            return;
        }
        let wanted = match self.picked.get_untracked() {
            Some(now) => next(now, &self.lanes),
            None => Pick { lane: 0, span: 0 },
        };
        let lane = wanted.lane.min(self.lanes.lanes.len() - 1);
        let span = wanted.span.min(self.lanes.lanes[lane].spans.len().saturating_sub(1));
        let pick = Pick { lane, span };
        self.picked.set(Some(pick));
        if let Some(span) = self.lanes.span(pick) {
            self.window.update(|w| *w = w.showing(span, self.total()));
        }
    }
}
