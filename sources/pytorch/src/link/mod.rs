//! What belongs to what: derived once, from the plain columns, when a trace is opened.
//!
//! The passes run in this order, each on the results of those before:
//! [`rank`] (which rows share ids), [`nesting`] (what encloses what on a thread, self time), [`launch`]
//! (device row ↔ API call ↔ operator), [`step`], [`autograd`] (backward ↔ forward operator), [`device_time`]
//! (device time per operator, frame, annotation and call), [`stream`] (order on a stream).

pub(crate) mod autograd;
pub(crate) mod device_time;
pub(crate) mod launch;
pub(crate) mod nesting;
pub(crate) mod rank;
pub(crate) mod step;
pub(crate) mod stream;

use crate::ingest::columns::{NO_ROW, NONE};

/// Rows that something was noticed on: how many, and the first three.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) rows: Vec<u32>,
}

impl Tally {
    /// Counts a row.
    pub(crate) fn add(&mut self, row: u32) {
        self.count += 1;
        if self.rows.len() < 3 {
            self.rows.push(row);
        }
    }

    /// Counts what a later block counted, its rows numbered from `first_row`.
    pub(crate) fn append(&mut self, later: Self, first_row: u32) {
        self.count += later.count;
        let room = 3 - self.rows.len();
        self.rows
            .extend(later.rows.into_iter().take(room).map(|row| row + first_row));
    }
}

/// Returns `rows` entries of [`NO_ROW`].
fn no_rows(rows: usize) -> Vec<u32> {
    vec![NO_ROW; rows]
}

/// Returns `rows` entries of [`NONE`].
fn nones(rows: usize) -> Vec<i64> {
    vec![NONE; rows]
}
