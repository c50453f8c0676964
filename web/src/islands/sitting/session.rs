//! What a running session shares: the answers on their way, the clock, the events, the other tabs.

use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_interview::api::{Conflict, Saved, SittingEvent, SittingState, SittingView};
use ringlab_labs::text::Lang;

use super::autosave::{Kept, Slot, Status};
use super::clock::{Offset, announced, monotonic};
use super::tabs;
use crate::islands::client;
use crate::islands::remote::{self, Failure, Remote};
use crate::strings_interview as ti;

const TICK: Duration = Duration::from_millis(200);
/// Before the end everything unsent goes out without waiting for a pause.
const LAST_CALL_MS: i64 = 3_000;
/// After the end the server is asked this often whether it has closed the session.
const AFTER_MS: f64 = 1_500.0;
/// Pastes up to this many characters are not worth telling.
const SMALL_PASTE: u32 = 200;

/// One question's answer.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    pub number: u32,
    pub slot: StoredValue<Slot>,
    pub status: RwSignal<Status>,
    pub text: RwSignal<String>,
    pub replace: RwSignal<Option<String>>,
}

#[derive(Clone, Copy)]
pub struct Session {
    pub lang: Lang,
    pub id: StoredValue<String>,
    pub works: StoredValue<Vec<Work>>,
    pub current: RwSignal<usize>,
    pub left_ms: RwSignal<i64>,
    pub announcement: RwSignal<&'static str>,
    pub locked: RwSignal<bool>,
    pub other_tab: RwSignal<bool>,
    pub remote: Remote<SittingView>,
    tab: StoredValue<String>,
    offset: StoredValue<Offset, LocalStorage>,
    ends_ms: StoredValue<i64>,
    events: StoredValue<Vec<SittingEvent>>,
    telling: StoredValue<bool>,
    away_since: StoredValue<Option<f64>>,
    offline_since: StoredValue<Option<f64>>,
    ask_again_at: StoredValue<f64>,
}

impl Session {
    /// Begins to save and to count; ends with the view that made it.
    pub fn begin(lang: Lang, view: &SittingView, remote: Remote<SittingView>) -> Session {
        let now = monotonic();
        let work = |q: &ringlab_interview::api::SittingQuestion| {
            let number = q.question.number;
            let kept =
                client::recall(&key(&view.id, number)).and_then(|t| serde_json::from_str::<Kept>(&t).ok());
            let slot = Slot::new(q.draft.clone(), kept, now);
            Work {
                number,
                status: RwSignal::new(slot.status()),
                text: RwSignal::new(slot.text.clone()),
                replace: RwSignal::new(None),
                slot: StoredValue::new(slot),
            }
        };
        let offset = Offset::default();
        offset.correct(now, now, view.now_ms);
        let session = Session {
            lang,
            id: StoredValue::new(view.id.clone()),
            works: StoredValue::new(view.questions.iter().map(work).collect()),
            current: RwSignal::new(0),
            left_ms: RwSignal::new(view.ends_ms - view.now_ms),
            announcement: RwSignal::new(""),
            locked: RwSignal::new(false),
            other_tab: RwSignal::new(false),
            remote,
            tab: StoredValue::new(tabs::id(&view.id)),
            offset: StoredValue::new_local(offset),
            ends_ms: StoredValue::new(view.ends_ms),
            events: StoredValue::new(vec![]),
            telling: StoredValue::new(false),
            away_since: StoredValue::new(None),
            offline_since: StoredValue::new(None),
            ask_again_at: StoredValue::new(0.0),
        };
        if let Ok(handle) = set_interval_with_handle(move || session.tick(), TICK) {
            on_cleanup(move || handle.clear());
        }
        tabs::watch(&view.id, session.tab, session.other_tab);
        session.listen();
        Effect::new(move |_| {
            session.current.track();
            session.tell(SittingEvent::Opened { question: session.question() });
        });
        session
    }

    fn listen(self) {
        let handles = [
            window_event_listener_untyped("online", move |_| {
                self.each(|w| w.slot.update_value(Slot::retry_now));
            }),
            window_event_listener_untyped("blur", move |_| self.left()),
            window_event_listener_untyped("focus", move |_| self.returned()),
            window_event_listener_untyped("visibilitychange", move |_| {
                if document().hidden() { self.left() } else { self.returned() }
            }),
            window_event_listener_untyped("pagehide", move |_| self.leave_behind()),
            window_event_listener_untyped("beforeunload", move |e| {
                if self.unsaved() {
                    e.prevent_default();
                }
            }),
        ];
        on_cleanup(move || {
            for handle in handles {
                handle.remove();
            }
        });
    }

    pub fn each(self, f: impl Fn(Work)) {
        self.works.with_value(|all| all.iter().for_each(|w| f(*w)));
    }

    pub fn unsaved(self) -> bool {
        self.works.with_value(|all| all.iter().any(|w| w.slot.with_value(Slot::unsaved)))
    }

    /// Every keystroke is in this browser's store before anything else happens to it.
    pub fn typed(self, work: Work, text: String) {
        work.slot.update_value(|s| s.typed(text, monotonic()));
        self.keep(work);
        work.status.set(work.slot.with_value(Slot::status));
    }

    fn keep(self, work: Work) {
        let key = self.id.with_value(|id| key(id, work.number));
        match self.tab.with_value(|tab| work.slot.with_value(|s| s.kept(tab))) {
            Some(kept) => {
                if let Ok(json) = serde_json::to_string(&kept) {
                    // A full or forbidden store leaves the server's copy, a second behind.
                    client::remember(&key, &json);
                }
            }
            None => client::forget(&key),
        }
    }

    pub fn pasted(self, work: Work, characters: u32) {
        if characters > SMALL_PASTE {
            self.tell(SittingEvent::Pasted { question: work.number, characters });
        }
    }

    fn question(self) -> u32 {
        let at = self.current.get_untracked();
        self.works.with_value(|all| all.get(at).map_or(0, |w| w.number))
    }

    fn left(self) {
        if self.away_since.get_value().is_none() {
            self.away_since.set_value(Some(monotonic()));
            self.tell(SittingEvent::Left { question: self.question() });
        }
    }

    fn returned(self) {
        if let Some(since) = self.away_since.get_value() {
            self.away_since.set_value(None);
            let away_ms = (monotonic() - since) as u64;
            self.tell(SittingEvent::Returned { question: self.question(), away_ms });
        }
    }

    fn tell(self, event: SittingEvent) {
        self.events.update_value(|all| all.push(event));
    }

    fn tick(self) {
        let now = monotonic();
        let left = self.ends_ms.get_value() - self.offset.with_value(|o| o.server_ms(now));
        let before = self.left_ms.get_untracked();
        if (left + 999) / 1000 != (before + 999) / 1000 {
            self.left_ms.set(left);
            match announced(before, left) {
                Some(1) => self.announcement.set(ti::one_minute(self.lang)),
                Some(5) => self.announcement.set(ti::five_minutes(self.lang)),
                Some(_) => self.announcement.set(ti::ten_minutes(self.lang)),
                None => {}
            }
        }
        if left <= 0 {
            self.locked.set(true);
            self.announcement.set(ti::time_over_now(self.lang));
            if now >= self.ask_again_at.get_value() {
                self.ask_again_at.set_value(now + AFTER_MS);
                self.remote.reload_when(|v| v.state != SittingState::Running);
            }
            return;
        }
        let hurry = left <= LAST_CALL_MS;
        self.each(|work| {
            // In a hurry an attempt that just failed is not repeated at every tick.
            let patient = hurry && work.status.with_untracked(|s| *s != Status::Offline);
            if work.slot.with_value(|s| s.due(now, patient)) {
                spawn_local(async move { self.save(work).await });
            }
        });
        self.send_events();
    }

    fn path(self, work: Work) -> String {
        self.id.with_value(|id| format!("/api/v1/sittings/{id}/drafts/{}", work.number))
    }

    async fn save(self, work: Work) {
        let tab = self.tab.get_value();
        let Some(body) = work.slot.try_update_value(|s| s.begin(&tab)) else { return };
        let Ok(json) = serde_json::to_string(&body) else { return };
        work.status.set(work.slot.with_value(Slot::status));
        let asked = monotonic();
        let answer = remote::read::<Saved>(client::put(&self.path(work), &json).await);
        let came = monotonic();
        // The page may show the end of the session by now.
        let Some(answer) = (!work.status.is_disposed()).then_some(answer) else { return };
        match answer {
            Ok(saved) => {
                work.slot.update_value(|s| s.saved(&saved, came));
                self.offset.with_value(|o| o.correct(asked, came, saved.now_ms));
                self.ends_ms.set_value(saved.ends_ms);
                self.reached(came);
            }
            Err(Failure::Refused { status: 409, body, .. }) => {
                match serde_json::from_str::<Conflict>(&body) {
                    Ok(conflict) => work.slot.update_value(|s| s.conflicted(conflict.current)),
                    Err(_) => work.slot.update_value(|s| s.refused(ti::answer_unread(self.lang).into())),
                }
                self.reached(came);
            }
            Err(Failure::Refused { status: 410, .. }) => {
                work.slot.update_value(|s| s.failed(came));
                self.remote.reload();
            }
            Err(Failure::Refused { status, text, .. }) if status < 500 && status != 429 && status != 408 => {
                work.slot.update_value(|s| s.refused(text));
            }
            Err(_) => {
                work.slot.update_value(|s| s.failed(came));
                if self.offline_since.get_value().is_none() {
                    self.offline_since.set_value(Some(asked));
                }
            }
        }
        self.keep(work);
        work.status.set(work.slot.with_value(Slot::status));
    }

    fn reached(self, now: f64) {
        if let Some(since) = self.offline_since.get_value() {
            self.offline_since.set_value(None);
            self.tell(SittingEvent::Offline { question: self.question(), for_ms: (now - since) as u64 });
            self.each(|w| w.slot.update_value(Slot::retry_now));
        }
    }

    fn send_events(self) {
        if self.telling.get_value() || self.events.with_value(Vec::is_empty) {
            return;
        }
        if self.offline_since.get_value().is_some() {
            return;
        }
        self.telling.set_value(true);
        let batch = self.events.get_value();
        let path = self.events_path();
        spawn_local(async move {
            let answer = remote::post::<()>(&path, &batch).await;
            if !matches!(answer, Err(Failure::Network)) {
                let told = batch.len();
                self.events.try_update_value(|all| all.drain(..told.min(all.len())).for_each(drop));
            }
            // A server that is away is not asked at every tick.
            let wait = if answer.is_ok() { 0 } else { 2_000 };
            set_timeout(
                move || {
                    let _ = self.telling.try_update_value(|t| *t = false);
                },
                Duration::from_millis(wait),
            );
        });
    }

    fn events_path(self) -> String {
        self.id.with_value(|id| format!("/api/v1/sittings/{id}/events"))
    }

    /// The page is going away: what is not saved goes out once more, and stays in this browser's store in any case.
    fn leave_behind(self) {
        self.left();
        let tab = self.tab.get_value();
        self.each(|work| {
            self.keep(work);
            let unsaved = work.slot.with_value(|s| s.unsaved() && s.conflict().is_none());
            if unsaved && let Ok(json) = serde_json::to_string(&work.slot.with_value(|s| s.request(&tab))) {
                client::leave_behind("PUT", &self.path(work), &json);
            }
        });
        let events = self.events.get_value();
        if !events.is_empty()
            && let Ok(json) = serde_json::to_string(&events)
        {
            client::leave_behind("POST", &self.events_path(), &json);
            self.events.set_value(vec![]);
        }
    }

    /// Saves all that is not saved, then submits. The reason when it did not work.
    pub async fn submit(self) -> Result<SittingView, String> {
        for _ in 0..3 {
            for work in self.works.get_value() {
                if work.slot.with_value(|s| s.due(monotonic(), true)) {
                    self.save(work).await;
                }
            }
        }
        if self.unsaved() {
            return Err(ti::submit_unsaved(self.lang).into());
        }
        let path = self.id.with_value(|id| format!("/api/v1/sittings/{id}/submit"));
        remote::post(&path, &()).await.map_err(|e| e.text(self.lang))
    }
}

fn key(sitting: &str, question: u32) -> String {
    format!("ringlab.sitting.{sitting}.{question}")
}
