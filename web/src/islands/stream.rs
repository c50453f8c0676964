//! Following a job's event stream: resumes where it stopped, ends with the job.

use std::time::Duration;

use leptos::prelude::*;
use ringlab_labs::api::{JobView, StreamEvent};
use ringlab_labs::job::EventBody;
use ringlab_labs::text::Lang;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{EventSource, MessageEvent};

use super::log::{Line, line_of};

/// Between two attempts to reach the server when the browser itself has given up.
const RETRY: Duration = Duration::from_secs(2);

/// Lines that come within this time are drawn together.
const BATCH: Duration = Duration::from_millis(80);

/// Latest progress of the task at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub task: String,
    pub phase: String,
    pub done: u32,
    pub total: u32,
}

/// What the stream has brought.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    pub lines: RwSignal<Vec<Line>>,
    pub progress: RwSignal<Option<Progress>>,
    /// The connection broke and is being restored.
    pub lost: RwSignal<bool>,
}

impl Live {
    #[allow(clippy::new_without_default)] // signals need an owner: not a value one makes anywhere
    pub fn new() -> Live {
        Live { lines: RwSignal::new(vec![]), progress: RwSignal::new(None), lost: RwSignal::new(false) }
    }
}

/// Lines not yet drawn, and where to resume.
#[derive(Default)]
struct Inbox {
    waiting: Vec<Line>,
    scheduled: bool,
    last: Option<(u32, u64)>,
    ended: bool,
}

/// Opens the stream once the island is in the browser; `job` follows its states.
pub fn follow(lang: Lang, job: RwSignal<JobView>, live: Live) {
    let inbox = StoredValue::new_local(Inbox::default());
    Effect::new(move |opened: Option<()>| {
        if opened.is_none() {
            open(lang, job, live, inbox);
        }
    });
}

type Box_ = StoredValue<Inbox, LocalStorage>;

fn open(lang: Lang, job: RwSignal<JobView>, live: Live, inbox: Box_) {
    let id = job.with_untracked(|j| j.id.clone());
    let after = inbox.with_value(|i| i.last.map(|(attempt, seq)| format!("?after={attempt}.{seq}")));
    let url = format!("/api/v1/jobs/{id}/events{}", after.unwrap_or_default());
    let Ok(source) = EventSource::new(&url) else { return };

    let on_event = Closure::<dyn Fn(MessageEvent)>::new(move |message: MessageEvent| {
        live.lost.set(false);
        let Some(event) = parse::<StreamEvent>(&message) else { return };
        receive(lang, live, inbox, event);
    });
    let on_state = {
        let source = source.clone();
        Closure::<dyn Fn(MessageEvent)>::new(move |message: MessageEvent| {
            live.lost.set(false);
            let Some(now) = parse::<JobView>(&message) else { return };
            let ended = now.state.is_final();
            if job.with_untracked(|old| *old != now) {
                job.set(now);
            }
            if ended {
                inbox.update_value(|i| i.ended = true);
                source.close();
            }
        })
    };
    let on_error = {
        let source = source.clone();
        Closure::<dyn Fn()>::new(move || {
            if inbox.with_value(|i| i.ended) {
                source.close();
                return;
            }
            live.lost.set(true);
            // While it is "connecting" the browser retries by itself and sends `Last-Event-ID`.
            if source.ready_state() == EventSource::CLOSED {
                set_timeout(move || open(lang, job, live, inbox), RETRY);
            }
        })
    };
    let listen = |name: &str, f: &Closure<dyn Fn(MessageEvent)>| {
        source.add_event_listener_with_callback(name, f.as_ref().unchecked_ref())
    };
    // An event target takes any listener; both live as long as the page, like the stream.
    if listen("event", &on_event).and(listen("state", &on_state)).is_ok() {
        source.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        on_event.forget();
        on_state.forget();
        on_error.forget();
    }
}

fn parse<T: serde::de::DeserializeOwned>(message: &MessageEvent) -> Option<T> {
    serde_json::from_str(&message.data().as_string()?).ok()
}

fn receive(lang: Lang, live: Live, inbox: Box_, event: StreamEvent) {
    let key = (event.attempt, event.event.seq);
    // A resumed stream may repeat what has been seen.
    if inbox.with_value(|i| i.last.is_some_and(|last| key <= last)) {
        return;
    }
    inbox.update_value(|i| i.last = Some(key));
    if let EventBody::Progress { task, done, total, phase } = event.event.body {
        live.progress.set(Some(Progress { task, phase, done, total }));
        return;
    }
    let line = line_of(lang, &event);
    let schedule = inbox.try_update_value(|i| {
        i.waiting.push(line);
        !std::mem::replace(&mut i.scheduled, true)
    });
    if schedule == Some(true) {
        set_timeout(
            move || {
                let lines = inbox.try_update_value(|i| {
                    i.scheduled = false;
                    std::mem::take(&mut i.waiting)
                });
                live.lines.update(|all| all.extend(lines.unwrap_or_default()));
            },
            BATCH,
        );
    }
}
