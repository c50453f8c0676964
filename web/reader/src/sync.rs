//! Sends what [`crate::outbox`] describes, one at a time, and keeps it in this browser until the server has it. Several tabs share what is
//! kept; whatever is sent twice is answered alike.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use serde::Deserialize;
use wasm_bindgen_futures::spawn_local;

use crate::outbox::{Verdict, Write, verdict, wait_ms};
use crate::{api, dom, store};

const KEPT: &str = "ringlab.reading/";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Idle,
    Saving,
    /// Something waits here for the next attempt.
    Offline,
}

pub enum Event {
    State(State),
    /// With the server's answer.
    Stored(Write, String),
    /// With what is on the server, as JSON. The write waits for a decision.
    Conflict(Write, String),
    /// With the reason. A note stays here, anything else is dropped.
    Refused(Write, String),
}

type Listener = Rc<dyn Fn(&Event)>;

thread_local! {
    static BUSY: Cell<bool> = const { Cell::new(false) };
    static FAILURES: Cell<u32> = const { Cell::new(0) };
    static STATE: Cell<State> = const { Cell::new(State::Idle) };
    /// Keys that wait for a decision of the reader.
    static HELD: RefCell<HashSet<String>> = RefCell::new(HashSet::new());
    static LISTENERS: RefCell<Vec<Listener>> = const { RefCell::new(vec![]) };
}

pub fn listen(listener: impl Fn(&Event) + 'static) {
    LISTENERS.with_borrow_mut(|all| all.push(Rc::new(listener)));
}

fn tell(event: &Event) {
    // A listener may write again: nothing is borrowed while it runs.
    let all = LISTENERS.with_borrow(Clone::clone);
    for listener in all {
        listener(event);
    }
}

fn announce(state: State) {
    if STATE.replace(state) != state {
        tell(&Event::State(state));
    }
}

/// Everything that the server does not have yet.
pub fn pending() -> Vec<Write> {
    let read = |key: String| serde_json::from_str(&store::recall(&key)?).ok();
    store::keys(KEPT).into_iter().filter_map(read).collect()
}

/// Keeps a write and sends it.
pub fn put(write: Write) {
    keep(&write);
    flush();
}

/// Keeps a write, to be sent with the next.
pub fn keep(write: &Write) {
    let key = write.key();
    HELD.with_borrow_mut(|held| held.remove(&key));
    if let Ok(text) = serde_json::to_string(write) {
        store::remember(&format!("{KEPT}{key}"), &text);
    }
}

/// Gives a write up.
pub fn drop_key(key: &str) {
    HELD.with_borrow_mut(|held| held.remove(key));
    store::forget(&format!("{KEPT}{key}"));
}

pub fn flush() {
    if BUSY.replace(true) {
        return;
    }
    spawn_local(async {
        run().await;
        BUSY.set(false);
    });
}

/// The network is back: do not wait any longer.
pub fn retry_now() {
    FAILURES.set(0);
    flush();
}

/// The page is going away.
pub fn leave_behind() {
    for write in pending() {
        if !HELD.with_borrow(|held| held.contains(&write.key())) {
            let request = write.request();
            api::leave_behind(request.method, &request.path, request.body.as_deref());
        }
    }
}

async fn run() {
    loop {
        let next = pending().into_iter().find(|w| !HELD.with_borrow(|held| held.contains(&w.key())));
        let Some(write) = next else { break };
        announce(State::Saving);
        let request = write.request();
        let reply = api::send(request.method, &request.path, request.body.as_deref()).await;
        let status = reply.as_ref().map(|r| r.status);
        let body = reply.map(|r| r.body).unwrap_or_default();
        let current = current(&body);
        match verdict(status, current.is_some()) {
            Verdict::Done => {
                FAILURES.set(0);
                settle(&write, version(&body));
                tell(&Event::Stored(write, body));
            }
            Verdict::Later => {
                let failures = FAILURES.get();
                FAILURES.set(failures + 1);
                announce(State::Offline);
                dom::after(wait_ms(failures), flush);
                return;
            }
            Verdict::Conflict => {
                HELD.with_borrow_mut(|held| held.insert(write.key()));
                tell(&Event::Conflict(write, current.unwrap_or_default()));
            }
            Verdict::Unknown => match write {
                // Deleted elsewhere, changed here: what somebody wrote is worth more than that they deleted it.
                Write::Note { base: 1.., .. } => keep(&write.rebased(0)),
                Write::Delete { .. } => {
                    settle(&write, None);
                    tell(&Event::Stored(write, body));
                }
                _ => refuse(write, &body),
            },
            Verdict::Refused => refuse(write, &body),
        }
    }
    announce(State::Idle);
}

fn refuse(write: Write, body: &str) {
    let key = write.key();
    if matches!(write, Write::Note { .. }) {
        HELD.with_borrow_mut(|held| held.insert(key));
    } else {
        drop_key(&key);
    }
    tell(&Event::Refused(write, reason(body)));
}

/// The server has it. What was written meanwhile goes on from there.
fn settle(sent: &Write, version: Option<u64>) {
    let key = format!("{KEPT}{}", sent.key());
    let now = store::recall(&key).and_then(|text| serde_json::from_str::<Write>(&text).ok());
    match now {
        Some(newer) if newer != *sent => {
            if let Some(version) = version {
                keep(&newer.rebased(version));
            }
        }
        _ => store::forget(&key),
    }
}

fn version(body: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    serde_json::from_str::<Versioned>(body).ok().map(|v| v.version)
}

fn current(body: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Conflicted {
        current: serde_json::Value,
    }
    serde_json::from_str::<Conflicted>(body).ok().map(|c| c.current.to_string())
}

/// A problem's detail, in the page's language.
fn reason(body: &str) -> String {
    #[derive(Deserialize)]
    struct Problem {
        title: String,
        #[serde(default)]
        detail: String,
    }
    match serde_json::from_str::<Problem>(body) {
        Ok(problem) if problem.detail.is_empty() => problem.title,
        Ok(problem) => problem.detail,
        Err(_) => String::new(),
    }
}
