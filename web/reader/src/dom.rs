//! The few things this module does with a document, in short.

use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{
    Document, Element, Event, EventTarget, HtmlElement, ScrollBehavior, ScrollIntoViewOptions, Window,
};

/// # Panics
/// Outside of a page: this module runs nowhere else.
pub fn window() -> Window {
    web_sys::window().expect("the module runs in a page")
}

/// # Panics
/// Outside of a page.
pub fn document() -> Document {
    window().document().expect("a page has a document")
}

pub fn by_id(id: &str) -> Option<Element> {
    document().get_element_by_id(id)
}

pub fn one(css: &str) -> Option<Element> {
    document().query_selector(css).ok().flatten()
}

pub fn within(root: &Element, css: &str) -> Option<Element> {
    root.query_selector(css).ok().flatten()
}

pub fn all(css: &str) -> Vec<Element> {
    let Ok(list) = document().query_selector_all(css) else { return vec![] };
    (0..list.length()).filter_map(|i| list.item(i)?.dyn_into().ok()).collect()
}

/// A new element with a class.
pub fn make(tag: &str, class: &str) -> Option<Element> {
    let element = document().create_element(tag).ok()?;
    element.set_class_name(class);
    Some(element)
}

/// Listens for as long as the page lives.
pub fn on(target: &EventTarget, event: &str, act: impl FnMut(Event) + 'static) {
    let act = Closure::<dyn FnMut(Event)>::new(act);
    // Fails for no target.
    let _ = target.add_event_listener_with_callback(event, act.as_ref().unchecked_ref());
    act.forget();
}

pub fn after(ms: i32, act: impl FnOnce() + 'static) {
    let act = Closure::once_into_js(act);
    let _ = window().set_timeout_with_callback_and_timeout_and_arguments_0(act.unchecked_ref(), ms);
}

pub fn every(ms: i32, act: impl FnMut() + 'static) {
    let act = Closure::<dyn FnMut()>::new(act);
    let _ = window().set_interval_with_callback_and_timeout_and_arguments_0(act.as_ref().unchecked_ref(), ms);
    act.forget();
}

pub fn focus(element: &Element) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        let _ = element.focus();
    }
}

/// Brings an element to the middle of the window, without a glide where the reader wants no motion.
pub fn show(element: &Element, block: web_sys::ScrollLogicalPosition) {
    let options = ScrollIntoViewOptions::new();
    options.set_behavior(ScrollBehavior::Auto);
    options.set_block(block);
    element.scroll_into_view_with_scroll_into_view_options(&options);
}

pub fn hide(element: &Element, hidden: bool) {
    let _ = element.toggle_attribute_with_force("hidden", hidden);
}

/// The element that says what is to be done, at or around where the event happened.
pub fn action(event: &Event) -> Option<(String, Element)> {
    let target = event.target()?.dyn_into::<Element>().ok()?;
    let element = target.closest("[data-act]").ok().flatten()?;
    Some((element.get_attribute("data-act")?, element))
}

/// Milliseconds of a clock that is never set back.
pub fn now() -> f64 {
    window().performance().map_or(0.0, |p| p.now())
}

/// Tells the rest of the page.
pub fn tell(event: &str, detail: &str) {
    let init = web_sys::CustomEventInit::new();
    init.set_detail(&JsValue::from_str(detail));
    if let Ok(event) = web_sys::CustomEvent::new_with_event_init_dict(event, &init) {
        let _ = window().dispatch_event(&event);
    }
}

/// What somebody told by [`tell`].
pub fn told(event: &Event) -> Option<String> {
    event.dyn_ref::<web_sys::CustomEvent>()?.detail().as_string()
}

/// Text as it stands in HTML, attributes included.
pub fn esc(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
