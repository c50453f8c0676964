//! Which tab this is, and whether the same session is open in another one.

use std::time::Duration;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{BroadcastChannel, MessageEvent};

/// How often a tab says that it is there, and after how long a silent one is taken for closed.
const EVERY: Duration = Duration::from_millis(1_000);
const SILENT: Duration = Duration::from_millis(2_500);

/// `tab` survives a reload; `life` does not. A duplicated tab begins with its original's `tab`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hello {
    tab: String,
    life: String,
}

/// This tab's id, kept for the tab's life.
pub fn id(sitting: &str) -> String {
    let key = format!("ringlab.tab.{sitting}");
    let store = web_sys::window().and_then(|w| w.session_storage().ok().flatten());
    if let Some(known) = store.as_ref().and_then(|s| s.get_item(&key).ok().flatten()) {
        return known;
    }
    let made = random();
    if let Some(store) = store {
        // Without a store a reload counts as another tab; its saves are then checked like one's.
        let _ = store.set_item(&key, &made);
    }
    made
}

fn random() -> String {
    let digit = |_| char::from_digit((js_sys::Math::random() * 16.0) as u32, 16).unwrap_or('0');
    (0..16).map(digit).collect()
}

/// Sets `other` while another tab has this session open.
pub fn watch(sitting: &str, tab: StoredValue<String>, other: RwSignal<bool>) {
    let Ok(channel) = BroadcastChannel::new(&format!("ringlab.sitting.{sitting}")) else { return };
    let key = format!("ringlab.tab.{sitting}");
    let life = random();
    let timer = StoredValue::new(None::<TimeoutHandle>);
    let heard = {
        let life = life.clone();
        Closure::<dyn Fn(MessageEvent)>::new(move |message: MessageEvent| {
            let hello = message.data().as_string().and_then(|t| serde_json::from_str::<Hello>(&t).ok());
            let Some(hello) = hello.filter(|h| h.life != life) else { return };
            if tab.try_with_value(|own| *own == hello.tab) == Some(true) && life > hello.life {
                // Two tabs of one name: one of them takes another.
                let fresh = random();
                if let Some(store) = web_sys::window().and_then(|w| w.session_storage().ok().flatten()) {
                    let _ = store.set_item(&key, &fresh);
                }
                tab.set_value(fresh);
            }
            if other.try_set(true).is_some() {
                return;
            }
            if let Some(handle) = timer.try_get_value().flatten() {
                handle.clear();
            }
            let gone = set_timeout_with_handle(
                move || {
                    let _ = other.try_set(false);
                },
                SILENT,
            )
            .ok();
            let _ = timer.try_update_value(|t| *t = gone);
        })
    };
    channel.set_onmessage(Some(heard.as_ref().unchecked_ref()));
    heard.forget();
    let speaker = channel.clone();
    let speak = move || {
        let hello = Hello { tab: tab.get_value(), life: life.clone() };
        if let Ok(text) = serde_json::to_string(&hello) {
            // A closed channel has nobody to tell.
            let _ = speaker.post_message(&text.into());
        }
    };
    speak();
    let channel = StoredValue::new_local(channel);
    if let Ok(handle) = set_interval_with_handle(speak, EVERY) {
        on_cleanup(move || {
            handle.clear();
            channel.try_with_value(BroadcastChannel::close);
        });
    }
}
