//! What happens to jobs, told to browsers as it happens: the database holds it, the hub says when to look, SSE carries it.

pub mod feed;
pub mod hub;
