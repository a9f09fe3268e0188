//! Which communication operator a row belongs to.

use crate::ingest::columns::NO_ROW;
use crate::link::nesting::Nesting;

/// Returns the operators around a row, innermost first; of a device row, those around its launch.
pub(super) fn ops_around(nesting: &Nesting, row: u32) -> impl Iterator<Item = u32> {
    let mut next = nesting.op[row as usize];
    std::iter::from_fn(move || {
        let op = next;
        if op == NO_ROW {
            return None;
        }
        next = nesting.op[op as usize];
        Some(op)
    })
}
