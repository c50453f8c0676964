//! Pages, components and islands. See README.md.

#[cfg(feature = "ssr")]
mod assets;
#[cfg(feature = "ssr")]
mod document;
pub mod format;
pub mod html;
pub mod islands;
pub mod page;
#[cfg(feature = "ssr")]
mod pages;
pub mod report_html;
pub mod strings;
pub mod strings_interview;
pub mod strings_reading;
#[cfg(feature = "ssr")]
mod strings_reference;
pub mod strings_report;

#[cfg(feature = "ssr")]
pub use assets::{Asset, assets};
#[cfg(feature = "ssr")]
pub use document::render;
#[cfg(feature = "ssr")]
pub use pages::notes_markdown;
