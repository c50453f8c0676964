//! Which sections were really read: looked at for some seconds, to their end. Pure; heights and positions are pixels of the window.

/// One section as it stands in the window now: where it begins and ends, from the window's top.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    pub top: f64,
    pub bottom: f64,
}

/// Longest step that counts: a page that stood still (asleep, hidden) was not being read.
const LONGEST_STEP_MS: f64 = 1_500.0;
/// For each window's height of text.
const PER_WINDOW_MS: f64 = 4_000.0;
const AT_LEAST_MS: f64 = 2_500.0;
const AT_MOST_MS: f64 = 30_000.0;

#[derive(Debug, Clone, Default)]
struct Attention {
    seen_ms: f64,
    end_seen: bool,
    read: bool,
}

/// The attention that the sections got so far.
#[derive(Debug, Default)]
pub struct Attentions {
    sections: Vec<Attention>,
    /// The section looked at, since when.
    current: Option<(usize, f64)>,
}

impl Attentions {
    pub fn new(sections: usize) -> Attentions {
        Attentions { sections: vec![Attention::default(); sections], current: None }
    }

    pub fn already_read(&mut self, section: usize) {
        if let Some(it) = self.sections.get_mut(section) {
            it.read = true;
        }
    }

    /// `passed_ms` went by with the sections where they stand; returns those that are read now and were not before.
    pub fn watch(&mut self, extents: &[Extent], window: f64, passed_ms: f64) -> Vec<usize> {
        let passed = passed_ms.min(LONGEST_STEP_MS);
        let mut news = Vec::new();
        for (i, (it, extent)) in self.sections.iter_mut().zip(extents).enumerate() {
            let height = (extent.bottom - extent.top).max(1.0);
            let visible = extent.bottom.min(window) - extent.top.max(0.0);
            // Most of it is to be seen, or it fills a good part of the window.
            if visible < 0.6 * height && visible < 0.35 * window {
                continue;
            }
            it.seen_ms += passed;
            it.end_seen |= extent.bottom <= window + 4.0;
            let needed = (PER_WINDOW_MS * height / window.max(1.0)).clamp(AT_LEAST_MS, AT_MOST_MS);
            if !it.read && it.end_seen && it.seen_ms >= needed {
                it.read = true;
                news.push(i);
            }
        }
        let now = here(extents, window);
        self.current = match (self.current, now) {
            (Some((before, since)), Some(now)) if before == now => Some((now, since + passed)),
            (_, now) => now.map(|now| (now, 0.0)),
        };
        news
    }

    /// The section in which the reader stays, once that is for more than a moment.
    pub fn place(&self) -> Option<usize> {
        self.current.filter(|(_, since)| *since >= AT_LEAST_MS).map(|(section, _)| section)
    }
}

/// The section at the reading line, a third down the window.
pub fn here(extents: &[Extent], window: f64) -> Option<usize> {
    extents.iter().rposition(|e| e.top <= window / 3.0)
}

/// How far into a section the reading line is, in thousandths.
pub fn permille(extent: Extent, window: f64) -> u16 {
    let height = (extent.bottom - extent.top).max(1.0);
    (((window / 3.0 - extent.top) / height).clamp(0.0, 1.0) * 1000.0) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tops: &[f64], end: f64) -> Vec<Extent> {
        let bottoms = tops.iter().copied().skip(1).chain([end]);
        tops.iter().zip(bottoms).map(|(top, bottom)| Extent { top: *top, bottom }).collect()
    }

    #[test]
    fn a_short_section_is_read_after_some_seconds_in_view() {
        let mut all = Attentions::new(2);
        let page = at(&[100.0, 400.0], 5_000.0);
        let mut seconds = 0;
        while all.watch(&page, 900.0, 500.0).is_empty() {
            seconds += 1;
        }
        assert!((4..8).contains(&seconds), "{seconds} half seconds");
        for _ in 0..200 {
            assert_eq!(
                all.watch(&page, 900.0, 500.0),
                Vec::<usize>::new(),
                "the long one's end was never seen"
            );
        }
    }

    #[test]
    fn scrolling_through_reads_nothing() {
        let mut all = Attentions::new(20);
        for step in 0..40 {
            let tops: Vec<f64> = (0..20).map(|i| f64::from(i) * 600.0 - f64::from(step) * 300.0).collect();
            assert_eq!(all.watch(&at(&tops, 12_000.0), 900.0, 300.0), Vec::<usize>::new());
        }
        assert_eq!(all.place(), None);
    }

    #[test]
    fn a_long_section_takes_its_time_and_its_end() {
        let mut all = Attentions::new(1);
        let mut read_at = None;
        for half in 0..60 {
            let top = -f64::from(half) * 60.0;
            if all.watch(&at(&[top], top + 2_700.0), 900.0, 500.0) == [0] {
                read_at = Some(half);
                break;
            }
        }
        assert_eq!(read_at, Some(30), "as soon as the end comes into view");
    }

    #[test]
    fn a_page_that_slept_was_not_read_meanwhile() {
        let mut all = Attentions::new(1);
        assert!(all.watch(&at(&[0.0], 500.0), 900.0, 3_600_000.0).is_empty());
    }

    #[test]
    fn the_place_is_where_the_reader_stays() {
        let page = at(&[-500.0, 200.0, 700.0], 2_000.0);
        assert_eq!(here(&page, 900.0), Some(1));
        assert_eq!(permille(page[1], 900.0), 200);
        let mut all = Attentions::new(3);
        for _ in 0..5 {
            all.watch(&page, 900.0, 500.0);
            assert_eq!(all.place(), None);
        }
        all.watch(&page, 900.0, 500.0);
        assert_eq!(all.place(), Some(1));
    }
}
