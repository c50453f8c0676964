//! See README.md.

#[cfg(target_arch = "wasm32")]
mod entry {
    // Links the islands in: each exports its own function.
    use ringlab_web as _;

    /// Called once by the page's script, before the first island.
    #[wasm_bindgen::prelude::wasm_bindgen]
    pub fn hydrate() {
        leptos::mount::hydrate_islands();
    }
}
