//! What is alive on a page. An island gets plain, serialisable properties and talks to `/api/v1`; its logic that needs no browser is
//! in plain functions beside it, tested without one.

pub mod account;
mod answers;
pub mod assessments;
pub mod bandwidth;
pub mod bandwidth_calculator;
mod client;
mod editor;
mod form;
mod hints;
mod indent;
pub mod invitation;
pub mod lab_panel;
pub mod log;
mod plan_editor;
pub mod practice;
pub mod quiz;
mod remote;
pub mod report;
mod result_view;
pub mod review;
pub mod ring_stepper;
pub mod ring_walk;
pub mod run_panel;
mod simulate;
pub mod sitting;
pub mod stream;
pub mod timeline;
