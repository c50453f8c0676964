//! One answer on its way to the server, without a browser: when to send, what a reply means, what is shown. Times are milliseconds of one
//! monotonic clock.

use ringlab_interview::api::{Draft, SaveDraft, Saved};
use serde::{Deserialize, Serialize};

/// Pause after the last key before the text is sent.
const PAUSE_MS: f64 = 600.0;
/// Who types without a pause is saved this often.
const LONGEST_MS: f64 = 1_700.0;
/// Waits between attempts when no answer comes.
const BACK_OFF_MS: [f64; 5] = [1_000.0, 2_000.0, 4_000.0, 8_000.0, 15_000.0];

/// What stands beside the editor.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    Empty,
    Typing,
    Saving,
    Saved(Option<i64>),
    /// Kept in this browser; tried again by itself.
    Offline,
    /// Another tab has a newer text.
    Conflict,
    /// The server's reason.
    Refused(String),
}

/// What this browser keeps of an answer that the server does not have yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    pub tab: String,
    pub base: u64,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    pub text: String,
    /// What the server has, as far as is known, and its version.
    stored: String,
    version: u64,
    saved_ms: Option<i64>,
    /// First key since the last send, and the last one.
    first: Option<f64>,
    last: f64,
    sending: Option<String>,
    failures: u32,
    retry_at: f64,
    conflict: Option<Draft>,
    refused: Option<String>,
}

impl Slot {
    /// `kept`: what an earlier life of this page did not get across. Whether it may still be saved, the server decides by its base.
    pub fn new(draft: Draft, kept: Option<Kept>, now: f64) -> Slot {
        let kept = kept.filter(|k| k.text != draft.text);
        let (text, version) = match &kept {
            Some(kept) => (kept.text.clone(), kept.base),
            None => (draft.text.clone(), draft.version),
        };
        Slot {
            text,
            stored: draft.text,
            version,
            saved_ms: draft.saved_ms,
            first: kept.map(|_| now),
            last: now,
            sending: None,
            failures: 0,
            retry_at: 0.0,
            conflict: None,
            refused: None,
        }
    }

    pub fn typed(&mut self, text: String, now: f64) {
        self.text = text;
        self.last = now;
        self.first.get_or_insert(now);
        self.refused = None;
    }

    pub fn unsaved(&self) -> bool {
        self.text != self.stored || self.sending.is_some()
    }

    /// Whether the text should be sent now; `hurry`: without waiting for a pause.
    pub fn due(&self, now: f64, hurry: bool) -> bool {
        let free = self.sending.is_none() && self.conflict.is_none() && self.refused.is_none();
        if !free || self.text == self.stored {
            return false;
        }
        let paused = now - self.last >= PAUSE_MS || self.first.is_some_and(|first| now - first >= LONGEST_MS);
        hurry || (paused && now >= self.retry_at)
    }

    /// What to send. The text typed from here on is a new one.
    pub fn begin(&mut self, tab: &str) -> SaveDraft {
        self.sending = Some(self.text.clone());
        self.first = None;
        self.request(tab)
    }

    pub fn request(&self, tab: &str) -> SaveDraft {
        SaveDraft { tab: tab.to_owned(), base: self.version, text: self.text.clone() }
    }

    pub fn saved(&mut self, saved: &Saved, now: f64) {
        if let Some(text) = self.sending.take() {
            self.stored = text;
        }
        self.version = saved.version;
        self.saved_ms = Some(saved.saved_ms);
        self.failures = 0;
        self.retry_at = 0.0;
        if self.text != self.stored {
            self.first.get_or_insert(now);
        }
    }

    /// No answer, or a server that cannot answer now.
    pub fn failed(&mut self, now: f64) {
        self.sending = None;
        let wait = BACK_OFF_MS[(self.failures as usize).min(BACK_OFF_MS.len() - 1)];
        self.failures += 1;
        self.retry_at = now + wait;
        self.first.get_or_insert(now);
    }

    /// The network is back: do not wait any longer.
    pub fn retry_now(&mut self) {
        self.retry_at = 0.0;
    }

    pub fn refused(&mut self, why: String) {
        self.sending = None;
        self.refused = Some(why);
    }

    /// The server has another text than the one this was made from. Equal texts are no conflict.
    pub fn conflicted(&mut self, current: Draft) {
        self.sending = None;
        self.failures = 0;
        if current.text == self.text {
            self.adopt(current);
        } else {
            self.conflict = Some(current);
        }
    }

    pub fn conflict(&self) -> Option<&Draft> {
        self.conflict.as_ref()
    }

    /// This text is the one to keep: it is saved over the other, which stays in the history.
    pub fn keep_mine(&mut self, now: f64) {
        if let Some(other) = self.conflict.take() {
            self.version = other.version;
            self.stored = other.text;
            self.first = Some(now);
        }
    }

    pub fn take_theirs(&mut self) {
        if let Some(other) = self.conflict.take() {
            self.adopt(other);
        }
    }

    fn adopt(&mut self, draft: Draft) {
        self.text.clone_from(&draft.text);
        self.stored = draft.text;
        self.version = draft.version;
        self.saved_ms = draft.saved_ms;
        self.first = None;
    }

    pub fn kept(&self, tab: &str) -> Option<Kept> {
        (self.text != self.stored).then(|| Kept {
            tab: tab.to_owned(),
            base: self.version,
            text: self.text.clone(),
        })
    }

    pub fn status(&self) -> Status {
        if self.conflict.is_some() {
            return Status::Conflict;
        }
        if let Some(why) = &self.refused {
            return Status::Refused(why.clone());
        }
        if self.failures > 0 {
            return Status::Offline;
        }
        if self.sending.is_some() {
            return Status::Saving;
        }
        if self.text != self.stored {
            return Status::Typing;
        }
        if self.version == 0 { Status::Empty } else { Status::Saved(self.saved_ms) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Slot {
        Slot::new(Draft::default(), None, 0.0)
    }

    fn saved(version: u64) -> Saved {
        Saved { version, saved_ms: 7, now_ms: 8, ends_ms: 9 }
    }

    #[test]
    fn a_pause_is_saved_within_a_second() {
        let mut slot = fresh();
        assert_eq!(slot.status(), Status::Empty);
        slot.typed("a".into(), 100.0);
        assert!(!slot.due(500.0, false));
        assert!(slot.due(700.0, false));
        assert_eq!(slot.begin("t"), SaveDraft { tab: "t".into(), base: 0, text: "a".into() });
        assert_eq!(slot.status(), Status::Saving);
        slot.saved(&saved(1), 800.0);
        assert_eq!(slot.status(), Status::Saved(Some(7)));
        assert!(!slot.due(9_000.0, true));
    }

    #[test]
    fn typing_without_a_pause_is_saved_every_two_seconds() {
        let mut slot = fresh();
        let mut sent = vec![];
        for tick in 0..100 {
            let now = f64::from(tick) * 100.0;
            slot.typed("x".repeat(tick as usize + 1), now);
            if slot.due(now, false) {
                slot.begin("t");
                sent.push(now);
                slot.saved(&saved(u64::from(tick as u32) + 1), now + 50.0);
            }
        }
        let mut last = 0.0;
        for at in &sent {
            assert!(at - last <= 2_000.0, "{sent:?}");
            last = *at;
        }
        assert!(sent.len() >= 4, "{sent:?}");
    }

    #[test]
    fn what_is_typed_during_a_save_is_saved_next() {
        let mut slot = fresh();
        slot.typed("a".into(), 0.0);
        slot.begin("t");
        slot.typed("ab".into(), 10.0);
        assert!(!slot.due(5_000.0, true), "one at a time");
        slot.saved(&saved(1), 20.0);
        assert!(slot.unsaved());
        assert!(slot.due(5_000.0, false));
        assert_eq!(slot.begin("t").base, 1);
    }

    #[test]
    fn without_a_network_attempts_grow_rarer_and_nothing_is_dropped() {
        let mut slot = fresh();
        slot.typed("a".into(), 0.0);
        let mut now = 1_000.0;
        for wait in [1_000.0, 2_000.0, 4_000.0, 8_000.0, 15_000.0, 15_000.0] {
            assert!(slot.due(now, false));
            slot.begin("t");
            slot.failed(now);
            assert_eq!(slot.status(), Status::Offline);
            assert!(!slot.due(now + wait - 1.0, false));
            now += wait;
        }
        slot.retry_now();
        assert_eq!(slot.begin("t").text, "a");
        slot.saved(&saved(1), now);
        assert_eq!(slot.status(), Status::Saved(Some(7)));
    }

    #[test]
    fn a_conflict_waits_for_a_choice() {
        let theirs = Draft { version: 5, text: "theirs".into(), saved_ms: Some(3) };
        let mut slot = fresh();
        slot.typed("mine".into(), 0.0);
        slot.begin("t");
        slot.conflicted(theirs.clone());
        assert_eq!(slot.status(), Status::Conflict);
        assert!(!slot.due(9_000.0, true));

        let mut mine = slot.clone();
        mine.keep_mine(1.0);
        assert_eq!(mine.begin("t"), SaveDraft { tab: "t".into(), base: 5, text: "mine".into() });

        slot.take_theirs();
        assert_eq!((slot.text.as_str(), slot.status()), ("theirs", Status::Saved(Some(3))));
        assert_eq!(slot.kept("t"), None);
    }

    #[test]
    fn the_same_text_in_two_tabs_is_no_conflict() {
        let mut slot = fresh();
        slot.typed("same".into(), 0.0);
        slot.begin("t");
        slot.conflicted(Draft { version: 2, text: "same".into(), saved_ms: Some(1) });
        assert_eq!(slot.status(), Status::Saved(Some(1)));
    }

    #[test]
    fn after_a_crash_the_browser_s_text_is_sent_with_the_version_it_was_made_from() {
        let stored = Draft { version: 4, text: "abc".into(), saved_ms: Some(1) };
        let kept = Kept { tab: "t".into(), base: 3, text: "abcdef".into() };
        let mut slot = Slot::new(stored.clone(), Some(kept), 0.0);
        assert_eq!(slot.text, "abcdef");
        assert!(slot.due(700.0, false));
        assert_eq!(slot.begin("t").base, 3);
        // What the server has already is nothing to send.
        let same = Kept { tab: "t".into(), base: 3, text: "abc".into() };
        let slot = Slot::new(stored, Some(same), 0.0);
        assert!(!slot.unsaved());
        assert_eq!(slot.request("t").base, 4);
    }
}
