//! Ringlab's server. See README.md.

pub mod accounts;
pub mod app;
pub mod blobs;
pub mod clock;
pub mod compute;
pub mod config;
pub mod dispatch;
pub mod extract;
pub mod lang;
pub mod limits;
pub mod listen;
pub mod observe;
pub mod problem;
pub mod questions;
pub mod remark;
pub mod routes;
pub mod secret;
pub mod security;
pub mod serve;
pub mod site;
pub mod store;
pub mod stream;
pub mod view;
pub mod visibility;
