//! From the text of a trace to its stored tables.

pub(crate) mod collect;
pub(crate) mod columns;
pub(crate) mod derive;
pub(crate) mod names;
#[cfg(test)]
pub(crate) mod testing;
