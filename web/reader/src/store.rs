//! This browser's store, and memory where there is none or it is full: then what is kept lasts as long as the page.

use std::cell::RefCell;
use std::collections::BTreeMap;

use web_sys::Storage;

use crate::dom;

thread_local! {
    static MEMORY: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
}

fn storage() -> Option<Storage> {
    dom::window().local_storage().ok()?
}

pub fn recall(key: &str) -> Option<String> {
    let stored = storage().and_then(|s| s.get_item(key).ok()?);
    stored.or_else(|| MEMORY.with_borrow(|m| m.get(key).cloned()))
}

pub fn remember(key: &str, text: &str) {
    if storage().is_some_and(|s| s.set_item(key, text).is_ok()) {
        return;
    }
    MEMORY.with_borrow_mut(|m| m.insert(key.to_owned(), text.to_owned()));
}

pub fn forget(key: &str) {
    if let Some(storage) = storage() {
        let _ = storage.remove_item(key);
    }
    MEMORY.with_borrow_mut(|m| m.remove(key));
}

/// Keys that begin so.
pub fn keys(prefix: &str) -> Vec<String> {
    let mut keys: Vec<String> = MEMORY.with_borrow(|m| m.keys().cloned().collect());
    if let Some(storage) = storage() {
        let n = storage.length().unwrap_or(0);
        keys.extend((0..n).filter_map(|i| storage.key(i).ok()?));
    }
    keys.retain(|key| key.starts_with(prefix));
    keys.sort_unstable();
    keys.dedup();
    keys
}
