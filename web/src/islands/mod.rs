//! What is alive on a page. An island gets plain, serialisable properties and talks to `/api/v1`; its logic that needs no browser is
//! in plain functions beside it, tested without one.

mod answers;
pub mod bandwidth;
pub mod bandwidth_calculator;
mod client;
mod form;
mod hints;
pub mod lab_panel;
pub mod log;
mod plan_editor;
pub mod quiz;
pub mod quiz_state;
mod result_view;
pub mod ring_stepper;
pub mod ring_walk;
pub mod run_panel;
mod simulate;
pub mod stream;
pub mod timeline;
