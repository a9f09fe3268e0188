//! From the text of a trace to its stored tables.

pub(crate) mod columns;
