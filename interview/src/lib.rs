//! Interview sessions over the question bank: rules, reports, statistics and the types of the API. See README.md.

pub mod api;
pub mod bank;
pub mod opinion;
pub mod practice;
pub mod report;
pub mod sets;
pub mod statistics;
pub mod timing;
