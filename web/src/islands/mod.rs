//! What is alive on a page. An island gets plain, serialisable properties and talks to `/api/v1`; its logic that needs no browser is
//! in plain functions beside it, tested without one.

pub mod log;
pub mod run_panel;
pub mod timeline;
