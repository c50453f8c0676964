//! The browser's side of the API, and its store. Called from event handlers and effects alone, which never run on the server.

use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, RequestInit, Response};

/// Longest one request may take.
const DEADLINE_MS: u32 = 20_000;

/// What the server said.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub body: String,
}

/// No answer came: offline, server down, or longer than the deadline.
#[derive(Debug, Clone, Copy)]
pub struct NoAnswer;

/// `GET` of a path of this site.
pub async fn get(path: &str) -> Result<Reply, NoAnswer> {
    send(path, RequestInit::new()).await
}

/// `POST` of JSON.
pub async fn post(path: &str, json: &str) -> Result<Reply, NoAnswer> {
    send(path, carrying("POST", json).ok_or(NoAnswer)?).await
}

/// `PUT` of JSON.
pub async fn put(path: &str, json: &str) -> Result<Reply, NoAnswer> {
    send(path, carrying("PUT", json).ok_or(NoAnswer)?).await
}

/// Sends JSON while the page is going away: the browser delivers it, nobody hears the reply.
pub fn leave_behind(method: &str, path: &str, json: &str) {
    let Some((window, init)) = web_sys::window().zip(carrying(method, json)) else { return };
    // Browsers that do not know `keepalive` may drop the request; what it says stays in this browser's store.
    let _ = js_sys::Reflect::set(&init, &"keepalive".into(), &JsValue::TRUE);
    let _ = window.fetch_with_str_and_init(path, &init);
}

fn carrying(method: &str, json: &str) -> Option<RequestInit> {
    let init = RequestInit::new();
    init.set_method(method);
    init.set_body(&JsValue::from_str(json));
    let headers = js_sys::Object::new();
    js_sys::Reflect::set(&headers, &"content-type".into(), &"application/json".into()).ok()?;
    init.set_headers(&headers);
    Some(init)
}

async fn send(path: &str, init: RequestInit) -> Result<Reply, NoAnswer> {
    init.set_signal(Some(&AbortSignal::timeout_with_u32(DEADLINE_MS)));
    let window = web_sys::window().ok_or(NoAnswer)?;
    let reply: Response = JsFuture::from(window.fetch_with_str_and_init(path, &init))
        .await
        .map_err(|_| NoAnswer)?
        .dyn_into()
        .map_err(|_| NoAnswer)?;
    let body = JsFuture::from(reply.text().map_err(|_| NoAnswer)?).await.map_err(|_| NoAnswer)?;
    Ok(Reply { status: reply.status(), body: body.as_string().unwrap_or_default() })
}

fn store() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok()?
}

/// A remembered text; `None` also where storage is turned off.
pub fn recall(key: &str) -> Option<String> {
    store()?.get_item(key).ok()?
}

/// Remembers a text in this browser, where that is allowed: what is remembered is a convenience, the server has the truth.
pub fn remember(key: &str, text: &str) -> bool {
    store().is_some_and(|s| s.set_item(key, text).is_ok())
}

pub fn forget(key: &str) {
    if let Some(store) = store() {
        // Nothing is lost when it stays.
        let _ = store.remove_item(key);
    }
}

/// Forgets everything whose key begins so.
pub fn forget_all(prefix: &str) {
    let Some(store) = store() else { return };
    let keys = (0..store.length().unwrap_or(0)).filter_map(|i| store.key(i).ok()?);
    // Collected first: the keys move when one goes.
    let keys: Vec<String> = keys.filter(|key| key.starts_with(prefix)).collect();
    keys.iter().for_each(|key| forget(key));
}

/// Tells other modules of the page.
pub fn tell(event: &str, detail: &str) {
    let init = web_sys::CustomEventInit::new();
    init.set_detail(&JsValue::from_str(detail));
    let event = web_sys::CustomEvent::new_with_event_init_dict(event, &init);
    if let Some((window, event)) = web_sys::window().zip(event.ok()) {
        let _ = window.dispatch_event(&event);
    }
}

/// Hears what another module [`tell`]s, for as long as the island lives.
pub fn hear(event: &'static str, act: impl Fn(&str) + 'static) {
    let handle = leptos::prelude::window_event_listener_untyped(event, move |event| {
        if let Some(text) = event.dyn_ref::<web_sys::CustomEvent>().and_then(|e| e.detail().as_string()) {
            act(&text);
        }
    });
    leptos::prelude::on_cleanup(move || handle.remove());
}

/// Value of a query parameter of the page's address.
pub fn query(name: &str) -> Option<String> {
    let search = web_sys::window()?.location().search().ok()?;
    web_sys::UrlSearchParams::new_with_str(&search).ok()?.get(name)
}

/// Leaves for another page of this site.
pub fn go(path: &str) {
    if let Some(window) = web_sys::window() {
        // Fails only for a malformed address, and ours are not.
        let _ = window.location().set_href(path);
    }
}
