//! The server's API.

use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, RequestInit, Response};

use crate::dom;

/// Longest one request may take.
const DEADLINE_MS: u32 = 20_000;

pub struct Reply {
    pub status: u16,
    pub body: String,
}

/// `None`: no answer came.
pub async fn get(path: &str) -> Option<Reply> {
    send("GET", path, None).await
}

pub async fn send(method: &str, path: &str, body: Option<&str>) -> Option<Reply> {
    let init = request(method, body)?;
    init.set_signal(Some(&AbortSignal::timeout_with_u32(DEADLINE_MS)));
    let answer = JsFuture::from(dom::window().fetch_with_str_and_init(path, &init)).await.ok()?;
    let answer: Response = answer.dyn_into().ok()?;
    let body = JsFuture::from(answer.text().ok()?).await.ok()?;
    Some(Reply { status: answer.status(), body: body.as_string().unwrap_or_default() })
}

/// Sent while the page is going away: the browser delivers it, nobody hears the answer.
pub fn leave_behind(method: &str, path: &str, body: Option<&str>) {
    let Some(init) = request(method, body) else { return };
    let _ = js_sys::Reflect::set(&init, &"keepalive".into(), &JsValue::TRUE);
    let _ = dom::window().fetch_with_str_and_init(path, &init);
}

fn request(method: &str, body: Option<&str>) -> Option<RequestInit> {
    let init = RequestInit::new();
    init.set_method(method);
    if let Some(body) = body {
        init.set_body(&JsValue::from_str(body));
        let headers = js_sys::Object::new();
        js_sys::Reflect::set(&headers, &"content-type".into(), &"application/json".into()).ok()?;
        init.set_headers(&headers);
    }
    Some(init)
}
