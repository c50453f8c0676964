//! Painting lanes on a canvas.

use web_sys::CanvasRenderingContext2d as Context;

use super::layout::{Lane, Lanes, Pick, Window, ticks, visible};
use crate::format;

/// Room for the lanes' names.
pub const GUTTER: f64 = 66.0;

/// Room for the axis.
pub const AXIS: f64 = 24.0;

/// Colours, as the style sheet resolved them for the theme.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Palette {
    pub ink: String,
    pub muted: String,
    pub rule: String,
    pub wait: String,
    pub send: String,
    pub reduce: String,
    pub sync: String,
}

/// What is on display.
#[derive(Debug)]
pub struct Scene<'a> {
    pub lanes: &'a Lanes,
    /// Drawn under each lane; `stretch` multiplies its times.
    pub beside: Option<(&'a Lanes, f64)>,
    pub window: Window,
    pub picked: Option<Pick>,
    pub width: f64,
    pub lane_height: f64,
}

impl Scene<'_> {
    pub fn height(&self) -> f64 {
        AXIS + self.lane_height * self.lanes.lanes.len() as f64
    }

    fn plot(&self) -> f64 {
        self.width - GUTTER
    }
}

/// Height of a lane: slimmer when there are many.
pub fn lane_height(lanes: usize, compared: bool) -> f64 {
    let alone = if lanes > 48 {
        14.0
    } else if lanes > 16 {
        18.0
    } else {
        26.0
    };
    if compared { alone * 1.7 } else { alone }
}

/// Paints everything; `scale` is the device's pixels per CSS pixel.
pub fn paint(c: &Context, scene: &Scene<'_>, palette: &Palette, scale: f64) {
    // A scale alone, whatever an earlier painting left.
    if c.set_transform(scale, 0.0, 0.0, scale, 0.0, 0.0).is_err() {
        return;
    }
    c.clear_rect(0.0, 0.0, scene.width, scene.height());
    c.set_font("12px system-ui, sans-serif");
    c.set_text_baseline("middle");
    axis(c, scene, palette);
    for (i, lane) in scene.lanes.lanes.iter().enumerate() {
        let y = AXIS + scene.lane_height * i as f64;
        c.set_fill_style_str(&palette.muted);
        text(c, &format!("r{} · c{}", lane.rank, lane.channel), 6.0, y + scene.lane_height / 2.0);
        c.set_fill_style_str(&palette.rule);
        c.fill_rect(0.0, y, scene.width, 1.0);
        c.save();
        c.begin_path();
        c.rect(GUTTER, y, scene.plot(), scene.lane_height);
        c.clip();
        let (top, full) = (y + 3.0, scene.lane_height - 5.0);
        match scene.beside {
            None => spans(c, scene, palette, lane, 1.0, top, full),
            Some((other, stretch)) => {
                spans(c, scene, palette, lane, 1.0, top, full * 0.55);
                if let Some(lane) = other.lane(lane.rank, lane.channel) {
                    c.set_global_alpha(0.55);
                    spans(c, scene, palette, lane, stretch, top + full * 0.6, full * 0.4);
                    c.set_global_alpha(1.0);
                }
            }
        }
        if let Some(pick) = scene.picked.filter(|p| p.lane == i)
            && let Some(span) = lane.spans.get(pick.span)
        {
            let x1 = GUTTER + scene.window.x(span.start_ns as f64, scene.plot());
            let x2 = GUTTER + scene.window.x(span.end_ns as f64, scene.plot());
            c.set_stroke_style_str(&palette.ink);
            c.set_line_width(2.0);
            let height = if scene.beside.is_some() { full * 0.55 } else { full };
            c.stroke_rect(x1 - 1.0, top - 1.0, (x2 - x1).max(2.0) + 2.0, height + 2.0);
        }
        c.restore();
    }
}

fn axis(c: &Context, scene: &Scene<'_>, palette: &Palette) {
    for tick in ticks(scene.window, scene.plot(), 90.0) {
        let x = GUTTER + scene.window.x(tick, scene.plot());
        c.set_fill_style_str(&palette.rule);
        c.fill_rect(x, AXIS - 5.0, 1.0, scene.height());
        c.set_fill_style_str(&palette.muted);
        if x < scene.width - 40.0 {
            text(c, &format::nanos(tick), x + 4.0, AXIS / 2.0);
        }
    }
}

fn spans(c: &Context, scene: &Scene<'_>, palette: &Palette, lane: &Lane, stretch: f64, y: f64, height: f64) {
    let seen = Window { start: scene.window.start / stretch, end: scene.window.end / stretch };
    let x = |ns: u64| GUTTER + scene.window.x(ns as f64 * stretch, scene.plot());
    let mut painted = f64::MIN;
    for span in &lane.spans[visible(lane, seen)] {
        let (start, ready, end) = (x(span.start_ns), x(span.ready_ns), x(span.end_ns));
        // Thousands of spans in one pixel need one rectangle.
        if end - painted < 0.4 && end - start < 0.4 {
            continue;
        }
        if ready - start > 0.3 {
            c.set_fill_style_str(&palette.wait);
            c.fill_rect(start, y + height * 0.25, ready - start, height * 0.5);
        }
        c.set_fill_style_str(colour(palette, &span.op));
        // A gap of light between neighbours as soon as there is room for it.
        let gap = if end - ready > 4.0 { 1.0 } else { 0.0 };
        c.fill_rect(ready, y, (end - ready - gap).max(0.6), height);
        painted = end;
    }
}

/// Moving bytes, adding them up, or only keeping order.
fn colour<'a>(palette: &'a Palette, op: &str) -> &'a str {
    if op == "signal" || op == "wait" {
        &palette.sync
    } else if op.contains("reduce") {
        &palette.reduce
    } else {
        &palette.send
    }
}

fn text(c: &Context, words: &str, x: f64, y: f64) {
    // Fails only for a canvas without a font engine.
    let _ = c.fill_text(words, x, y);
}
