//! Where things stand on a timeline: lanes, window, ticks, hits. Pure arithmetic, no browser.

use ringlab_engine::trace::{Span, Trace};
use ringlab_engine::types::{ChannelId, Rank};

/// One row: the spans of a rank on a channel, ordered by start.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    pub rank: Rank,
    pub channel: ChannelId,
    pub spans: Vec<Span>,
}

/// A trace cut into lanes.
#[derive(Debug, Clone, PartialEq)]
pub struct Lanes {
    pub lanes: Vec<Lane>,
    /// End of the last span; at least 1.
    pub total_ns: u64,
}

impl Lanes {
    /// Lanes in order of rank, then channel.
    pub fn of(trace: Trace) -> Lanes {
        let mut lanes: Vec<Lane> = Vec::new();
        let mut total_ns = 1;
        for span in trace.spans {
            total_ns = total_ns.max(span.end_ns);
            match lanes.iter_mut().find(|l| l.rank == span.rank && l.channel == span.channel) {
                Some(lane) => lane.spans.push(span),
                None => lanes.push(Lane { rank: span.rank, channel: span.channel, spans: vec![span] }),
            }
        }
        lanes.sort_by_key(|l| (l.rank, l.channel));
        for lane in &mut lanes {
            lane.spans.sort_by_key(|s| (s.start_ns, s.step));
        }
        Lanes { lanes, total_ns }
    }

    pub fn lane(&self, rank: Rank, channel: ChannelId) -> Option<&Lane> {
        self.lanes.iter().find(|l| l.rank == rank && l.channel == channel)
    }

    pub fn span(&self, pick: Pick) -> Option<&Span> {
        self.lanes.get(pick.lane)?.spans.get(pick.span)
    }
}

/// A span by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    pub lane: usize,
    pub span: usize,
}

/// The part of the time axis on display, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    pub start: f64,
    pub end: f64,
}

/// Narrowest window: below this, clocks have no more to tell.
const NARROWEST_NS: f64 = 50.0;

impl Window {
    pub fn all(total_ns: u64) -> Window {
        Window { start: 0.0, end: total_ns as f64 * 1.01 }
    }

    pub fn len(self) -> f64 {
        self.end - self.start
    }

    /// Pixels from the plot's left edge.
    pub fn x(self, ns: f64, width: f64) -> f64 {
        (ns - self.start) / self.len() * width
    }

    pub fn ns(self, x: f64, width: f64) -> f64 {
        self.start + x / width * self.len()
    }

    /// Scales the window by `factor` (below 1 zooms in) so that `at_ns` stays where it is.
    pub fn zoom(self, at_ns: f64, factor: f64, total_ns: u64) -> Window {
        let all = Window::all(total_ns);
        let len = (self.len() * factor).clamp(NARROWEST_NS.min(all.len()), all.len());
        let share = (at_ns - self.start) / self.len();
        Window { start: at_ns - share * len, end: at_ns + (1.0 - share) * len }.inside(all)
    }

    pub fn pan(self, by_ns: f64, total_ns: u64) -> Window {
        Window { start: self.start + by_ns, end: self.end + by_ns }.inside(Window::all(total_ns))
    }

    /// Moved just far enough to show a span, with some room around it.
    pub fn showing(self, span: &Span, total_ns: u64) -> Window {
        let (start, end) = (span.start_ns as f64, span.end_ns as f64);
        if start >= self.start && end <= self.end {
            self
        } else {
            self.pan((start + end) / 2.0 - (self.start + self.end) / 2.0, total_ns)
        }
    }

    fn inside(self, all: Window) -> Window {
        let len = self.len().min(all.len());
        let start = self.start.min(all.end - len).max(all.start);
        Window { start, end: start + len }
    }
}

/// Round times for the axis, at least `room` pixels apart: 1, 2 or 5 times a power of ten.
pub fn ticks(window: Window, width: f64, room: f64) -> Vec<f64> {
    let count = (width / room).max(1.0);
    let raw = window.len() / count;
    let mut unit = 1.0;
    while unit * 10.0 <= raw {
        unit *= 10.0;
    }
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|k| k * unit).find(|s| *s >= raw).unwrap_or(unit * 10.0);
    let first = (window.start / step).ceil() * step;
    (0..).map(|i| first + f64::from(i) * step).take_while(|t| *t <= window.end).take(100).collect()
}

/// The span under a time in a lane: the one that covers it, else the nearest within `slack_ns`.
pub fn hit(lane: &Lane, ns: f64, slack_ns: f64) -> Option<usize> {
    let distance = |s: &Span| (s.start_ns as f64 - ns).max(ns - s.end_ns as f64).max(0.0);
    let after = lane.spans.partition_point(|s| (s.start_ns as f64) <= ns);
    // Spans of one lane hardly overlap: the neighbours of the cut are the candidates.
    let candidates = after.saturating_sub(3)..(after + 1).min(lane.spans.len());
    candidates
        .map(|i| (i, distance(&lane.spans[i])))
        .filter(|(_, d)| *d <= slack_ns)
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(i, _)| i)
}

/// Indices of the spans that can touch the window. Spans of a lane run one after another, so the ends are ordered like the starts.
pub fn visible(lane: &Lane, window: Window) -> std::ops::Range<usize> {
    let from = lane.spans.partition_point(|s| (s.end_ns as f64) < window.start);
    let to = lane.spans.partition_point(|s| (s.start_ns as f64) <= window.end);
    from..to.max(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringlab_engine::trace::{Crossing, Origin};

    fn span(rank: u32, start: u64, end: u64) -> Span {
        Span {
            rank: Rank(rank),
            channel: ChannelId(0),
            tile: 0,
            step: 0,
            op: "send".into(),
            from: None,
            to: None,
            bytes: 1,
            start_ns: start,
            ready_ns: start,
            end_ns: end,
            crossing: Crossing::default(),
        }
    }

    fn lanes() -> Lanes {
        Lanes::of(Trace {
            version: 1,
            origin: Origin::Simulated { model: "test".into() },
            ranks: 2,
            channels: 1,
            fifo: None,
            slot_bytes: None,
            spans: vec![span(1, 0, 400), span(0, 500, 900), span(0, 0, 300), span(1, 400, 1000)],
            dropped: 0,
        })
    }

    #[test]
    fn lanes_are_ordered_and_so_are_their_spans() {
        let lanes = lanes();
        assert_eq!(lanes.total_ns, 1000);
        assert_eq!(lanes.lanes.iter().map(|l| l.rank.0).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(lanes.lanes[0].spans.iter().map(|s| s.start_ns).collect::<Vec<_>>(), [0, 500]);
    }

    #[test]
    fn zooming_keeps_the_point_under_the_pointer() {
        let window = Window::all(1000);
        let at = 300.0;
        let before = window.x(at, 640.0);
        let zoomed = window.zoom(at, 0.5, 1000);
        assert!((zoomed.x(at, 640.0) - before).abs() < 1e-6);
        assert!((zoomed.len() - window.len() / 2.0).abs() < 1e-6);
    }

    #[test]
    fn the_window_never_leaves_the_trace() {
        let all = Window::all(1000);
        assert_eq!(all.zoom(500.0, 4.0, 1000), all);
        let near = all.zoom(100.0, 0.2, 1000);
        assert_eq!(near.pan(-1e9, 1000).start, 0.0);
        assert!((near.pan(1e9, 1000).end - all.end).abs() < 1e-6);
        assert!(near.zoom(100.0, 1e-9, 1000).len() >= NARROWEST_NS - 1e-9);
    }

    #[test]
    fn ticks_are_round_and_apart() {
        let marks = ticks(Window { start: 130.0, end: 1130.0 }, 500.0, 80.0);
        assert_eq!(marks, [200.0, 400.0, 600.0, 800.0, 1000.0]);
    }

    #[test]
    fn a_hit_prefers_what_covers_the_point() {
        let lanes = lanes();
        assert_eq!(hit(&lanes.lanes[0], 100.0, 0.0), Some(0));
        assert_eq!(hit(&lanes.lanes[0], 400.0, 0.0), None);
        assert_eq!(hit(&lanes.lanes[0], 440.0, 70.0), Some(1));
        assert_eq!(hit(&lanes.lanes[0], 950.0, 60.0), Some(1));
    }

    #[test]
    fn only_spans_in_the_window_are_drawn() {
        let lanes = lanes();
        assert_eq!(visible(&lanes.lanes[0], Window { start: 350.0, end: 1000.0 }), 1..2);
        assert_eq!(visible(&lanes.lanes[0], Window { start: 310.0, end: 490.0 }), 1..1);
        assert_eq!(visible(&lanes.lanes[0], Window { start: 0.0, end: 1000.0 }), 0..2);
    }

    #[test]
    fn a_chosen_span_comes_into_view() {
        let window = Window { start: 0.0, end: 200.0 };
        let moved = window.showing(&span(0, 500, 600), 1000);
        assert!(moved.start <= 500.0 && moved.end >= 600.0);
        assert_eq!(moved.showing(&span(0, 520, 560), 1000), moved);
    }
}
