//! Environment variables under our name, and under NCCL's where a program expects that library.

use std::sync::atomic::{AtomicBool, Ordering};

static NCCL_NAMES: AtomicBool = AtomicBool::new(false);

/// From now on `NCCL_X` counts where `RINGLAB_X` is not set. The C interface calls this before anything else.
pub fn accept_nccl_names() {
    // Relaxed: a flag that only ever rises and carries no other data.
    NCCL_NAMES.store(true, Ordering::Relaxed);
}

/// `RINGLAB_<name>`, else, where accepted, `NCCL_<name>`, with the full name it was found under. An empty value counts as not set.
pub fn lookup(name: &str) -> Option<(String, String)> {
    let found = |full: String| Some((std::env::var(&full).ok().filter(|v| !v.is_empty())?, full));
    let ours = found(format!("RINGLAB_{name}"));
    let (value, full) = match ours {
        None if NCCL_NAMES.load(Ordering::Relaxed) => found(format!("NCCL_{name}")),
        ours => ours,
    }?;
    Some((full, value))
}

/// Only the value of [`lookup`].
pub fn var(name: &str) -> Option<String> {
    lookup(name).map(|(_, value)| value)
}
