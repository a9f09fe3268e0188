//! From the text of a trace to its stored tables.
//!
//! One pass over the text fills the [`columns`] in memory and streams the raw args to their table; then
//! [`derive`] links the rows, and the remaining tables are written.

pub(crate) mod build;
pub(crate) mod collect;
pub(crate) mod columns;
pub(crate) mod derive;
mod idle;
pub(crate) mod names;
#[cfg(test)]
pub(crate) mod testing;
