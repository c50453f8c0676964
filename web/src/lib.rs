//! Pages, components and islands. See README.md.

pub mod page;
