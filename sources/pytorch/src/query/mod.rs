//! Asking the stored tables.

pub(crate) mod by_index;
pub(crate) mod chain;
pub(crate) mod engine;
pub(crate) mod event;
pub(crate) mod filters;
pub(crate) mod page;
pub(crate) mod related;
