//! Numbers by row index.

use std::collections::BTreeMap;

use datafusion::logical_expr::Expr;

use crate::error::Error;
use crate::ingest::columns::NO_ROW;
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

use super::engine::{BatchColumns, value};

/// Indices below this are looked up by place. No trace of that many elements is known; in a damaged table one
/// index beyond must not cost gigabytes.
const NEAR: u32 = 1 << 26;

/// A number for some of the rows, looked up by the rows' index: 4 bytes a row of the trace.
#[derive(Debug, Default)]
pub(crate) struct ByIndex {
    near: Vec<u32>,
    far: BTreeMap<u32, u32>,
}

impl FromIterator<(u32, u32)> for ByIndex {
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(pairs: I) -> Self {
        let mut numbers = Self::default();
        for (index, number) in pairs {
            numbers.put(index, number);
        }
        numbers
    }
}

impl ByIndex {
    /// Reads a stored column of the rows that a predicate lets through.
    ///
    /// # Errors
    /// What the engine reports.
    pub(crate) fn load(session: &TraceSession, name: &str, predicate: Expr) -> Result<Self, Error> {
        let mut numbers = Self::default();
        let columns = [column::INDEX, name];
        for batch in session.engine().scan(&EVENTS, &columns, Some(predicate))? {
            let (index, values) = (batch.u32s(column::INDEX), batch.u32s(name));
            for at in 0..batch.num_rows() {
                if let Some(number) = value(values, at) {
                    numbers.put(index.value(at), number);
                }
            }
        }
        Ok(numbers)
    }

    /// Gives a row its number, which is not [`NO_ROW`].
    pub(crate) fn put(&mut self, index: u32, number: u32) {
        if index >= NEAR {
            self.far.insert(index, number);
            return;
        }
        let at = index as usize;
        if at >= self.near.len() {
            self.near.resize(at + 1, NO_ROW);
        }
        self.near[at] = number;
    }

    /// Returns the number of a row, if it was given one.
    pub(crate) fn get(&self, index: u32) -> Option<u32> {
        if index >= NEAR {
            return self.far.get(&index).copied();
        }
        self.near
            .get(index as usize)
            .copied()
            .filter(|number| *number != NO_ROW)
    }

    /// Returns whether no row has a number.
    pub(crate) fn is_empty(&self) -> bool {
        self.near.is_empty() && self.far.is_empty()
    }

    /// Returns the rows that have a number, by rising index.
    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> {
        (0_u32..)
            .zip(&self.near)
            .filter(|(_, number)| **number != NO_ROW)
            .map(|(index, _)| index)
            .chain(self.far.keys().copied())
    }

    /// Follows numbers that are themselves indices, from a row to the last one; the row itself comes first.
    pub(crate) fn follow(&self, from: Option<u32>) -> impl Iterator<Item = u32> {
        // A chain is never longer than the table; the bound keeps damaged tables from going round for ever.
        std::iter::successors(from, |row| self.get(*row)).take(self.near.len() + self.far.len() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_never_put_in_have_no_number() {
        assert!(ByIndex::default().is_empty());
        let numbers = ByIndex::from_iter([(3, 7)]);
        assert_eq!(
            [numbers.get(2), numbers.get(3), numbers.get(4)],
            [None, Some(7), None]
        );
        assert_eq!(numbers.indices().collect::<Vec<_>>(), [3]);
        let far = ByIndex::from_iter([(u32::MAX - 1, 7), (3, 8)]);
        assert_eq!(far.get(u32::MAX - 1), Some(7));
        assert_eq!(far.indices().collect::<Vec<_>>(), [3, u32::MAX - 1]);
        assert!(far.near.len() < 10, "one far index costs little");
    }

    #[test]
    fn a_circle_in_damaged_tables_ends() {
        let outer = ByIndex::from_iter([(1, 2), (2, 1)]);
        assert_eq!(outer.follow(Some(1)).count(), 4);
    }
}
