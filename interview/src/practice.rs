//! When a question should be practised again. Pure: times are arguments, in milliseconds.
//!
//! A question climbs a ladder of waits. A strong answer climbs one rung, a fair one stays, a weak one (also one given after the model
//! answer was revealed) falls to the lowest, which is minutes away: what was weak comes back in the same sitting, what was strong in
//! days, then weeks. A strong answer before its time moves nothing up, since every answer is followed by the model answer, and saying
//! at once what was just read proves nothing. So the third rung means: right once, and right again at least a day later.

use crate::api::PracticeItem;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// The ladder. Each wait is a little more than twice the one below, as in the well-tried schedules (Leitner's boxes, SM-2).
pub const WAITS: [i64; 7] = [10 * MINUTE, DAY, 3 * DAY, 7 * DAY, 16 * DAY, 35 * DAY, 80 * DAY];

/// The next answer within this time after a reveal counts as seen.
pub const SEEN: i64 = DAY;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    Weak,
    Fair,
    Strong,
}

impl Quality {
    /// From the share of the points: under 60 % is weak (as a gate is failed), from 80 % strong. Seen before, it is weak whatever it earned.
    pub fn of(total: u32, max: u32, seen: bool) -> Quality {
        let (total, max) = (u64::from(total), u64::from(max));
        if seen || max == 0 || total * 10 < max * 6 {
            Quality::Weak
        } else if total * 10 < max * 8 {
            Quality::Fair
        } else {
            Quality::Strong
        }
    }
}

/// Where a question stands after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Index into [`WAITS`].
    pub rung: usize,
    pub due_ms: i64,
}

/// After an answer of this quality at this time. `before` is `None` for the first.
pub fn after(before: Option<Schedule>, quality: Quality, at_ms: i64) -> Schedule {
    let rung = match (quality, before) {
        (Quality::Weak, _) => 0,
        (Quality::Fair | Quality::Strong, None) => 1,
        // Said again before its time: it keeps its place, and is not put off either beyond that place's wait.
        (_, Some(before)) if at_ms < before.due_ms => before.rung,
        (Quality::Fair, Some(before)) => before.rung.max(1),
        (Quality::Strong, Some(before)) => (before.rung + 1).min(WAITS.len() - 1),
    };
    Schedule { rung, due_ms: at_ms.saturating_add(WAITS[rung]) }
}

/// After all answers to a question, oldest first. `None` when there are none.
pub fn schedule(answers: impl IntoIterator<Item = (Quality, i64)>) -> Option<Schedule> {
    answers.into_iter().fold(None, |before, (quality, at_ms)| Some(after(before, quality, at_ms)))
}

/// In the order to practise: what is due, longest overdue first; what was never tried, by number; what can wait, soonest first.
pub fn sort(items: &mut [PracticeItem], now_ms: i64) {
    items.sort_by_key(|item| {
        let (group, time) = match item.due_ms {
            Some(due) if due <= now_ms => (0, due),
            None => (1, 0),
            Some(due) => (2, due),
        };
        (group, time, item.question.number)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::QuestionCard;
    use crate::bank::topic;
    use proptest::prelude::*;
    use ringlab_labs::text::Text;

    fn quality() -> impl Strategy<Value = Quality> {
        prop_oneof![Just(Quality::Weak), Just(Quality::Fair), Just(Quality::Strong)]
    }

    /// Answers with the time that passed before each.
    fn history() -> impl Strategy<Value = Vec<(Quality, i64)>> {
        prop::collection::vec((quality(), 0..100 * DAY), 1..20).prop_map(|answers| {
            let mut at = 0;
            answers
                .into_iter()
                .map(|(quality, passed)| {
                    at += passed;
                    (quality, at)
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn a_weak_answer_comes_back_within_minutes_whatever_was_before(history in history(), passed in 0..100 * DAY) {
            let at = history.last().unwrap().1 + passed;
            let next = after(schedule(history), Quality::Weak, at);
            prop_assert_eq!(next.due_ms, at + WAITS[0]);
        }

        #[test]
        fn a_better_answer_never_comes_back_earlier(history in history(), passed in 0..100 * DAY) {
            let at = history.last().unwrap().1 + passed;
            let before = schedule(history);
            let due = [Quality::Weak, Quality::Fair, Quality::Strong].map(|q| after(before, q, at).due_ms);
            prop_assert!(due[0] <= due[1] && due[1] <= due[2], "{:?}", due);
        }

        #[test]
        fn strong_answers_when_due_wait_longer_each_time_up_to_the_top(late in prop::collection::vec(0..DAY, 10)) {
            let mut at = 0;
            let mut now = after(None, Quality::Strong, at);
            for late in late {
                let wait = now.due_ms - at;
                at = now.due_ms + late;
                now = after(Some(now), Quality::Strong, at);
                prop_assert!(now.due_ms - at > wait || now.rung == WAITS.len() - 1);
            }
            prop_assert_eq!(now.rung, WAITS.len() - 1);
        }

        #[test]
        fn repeating_it_at_once_earns_no_rung(history in history(), early in 0..100i64) {
            let before = schedule(history).unwrap();
            let again = after(Some(before), Quality::Strong, before.due_ms - 1 - early);
            prop_assert_eq!(again.rung, before.rung);
        }

        #[test]
        fn it_is_always_due_later_than_it_was_answered(history in history()) {
            let last = history.last().unwrap().1;
            prop_assert!(schedule(history).unwrap().due_ms > last);
        }

        #[test]
        fn what_was_seen_is_weak(total in 0u32..=10) {
            prop_assert_eq!(Quality::of(total, 10, true), Quality::Weak);
        }
    }

    #[test]
    fn the_share_of_the_points_is_the_quality() {
        let of = |total, max| Quality::of(total, max, false);
        assert_eq!(
            [of(5, 10), of(6, 10), of(7, 10), of(8, 10)],
            [Quality::Weak, Quality::Fair, Quality::Fair, Quality::Strong]
        );
        assert_eq!([of(2, 4), of(3, 4), of(4, 4)], [Quality::Weak, Quality::Fair, Quality::Strong]);
        assert_eq!(of(0, 0), Quality::Weak);
        assert!(after(None, Quality::Strong, i64::MAX).due_ms == i64::MAX);
    }

    #[test]
    fn the_overdue_come_first_then_the_new_then_those_that_can_wait() {
        let item = |number, due_ms| PracticeItem {
            question: QuestionCard {
                number,
                title: Text::new("", ""),
                level: 1,
                topic: topic(number),
                gate: false,
            },
            attempts: 0,
            last_total: None,
            best_total: None,
            due_ms,
        };
        let mut items = [
            item(1, Some(900)),
            item(2, None),
            item(3, Some(20)),
            item(4, None),
            item(5, Some(10)),
            item(6, Some(101)),
        ];
        sort(&mut items, 100);
        assert_eq!(items.map(|i| i.question.number), [5, 3, 2, 4, 6, 1]);
    }
}
