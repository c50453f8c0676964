//! Pages, components and islands. See README.md.

#[cfg(feature = "ssr")]
mod assets;
#[cfg(feature = "ssr")]
mod document;
pub mod format;
pub mod islands;
pub mod page;
#[cfg(feature = "ssr")]
mod pages;
pub mod strings;

#[cfg(feature = "ssr")]
pub use assets::{Asset, assets};
#[cfg(feature = "ssr")]
pub use document::render;
