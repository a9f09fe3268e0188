//! Device time by the CPU-side rows that caused it.
//!
//! The *self* device time of a row is the sum of the durations of the device rows whose launch it encloses
//! innermost among rows of its kind; its *total* adds that of all rows of its kind inside it. These are what
//! the profiler's own table calls self and total device time. Of the operators, the self times and the
//! unattributed time add up to all device time.

use crate::ingest::columns::{NO_ROW, NONE, Rows};
use crate::row::RowType;

use super::launch::Launches;
use super::nesting::Nesting;
use super::nones;

/// Device time in ns; [`NONE`] on rows that cannot launch anything.
#[derive(Debug)]
pub(crate) struct DeviceTime {
    pub(crate) self_ns: Vec<i64>,
    pub(crate) total_ns: Vec<i64>,
    /// Of all device work.
    pub(crate) all_ns: i64,
    /// Of device work that no operator launched.
    pub(crate) unattributed_ns: i64,
}

/// Adds up the device time of operators, annotations, frames and API calls.
pub(crate) fn attribute(rows: &Rows, nesting: &Nesting, launches: &Launches) -> DeviceTime {
    let mut time = DeviceTime {
        self_ns: nones(rows.len()),
        total_ns: nones(rows.len()),
        all_ns: 0,
        unattributed_ns: 0,
    };
    for &row in &nesting.order {
        if nesting.self_ns[row as usize] != NONE {
            time.self_ns[row as usize] = 0;
            time.total_ns[row as usize] = 0;
        }
    }
    for row in rows.numbers() {
        let at = row as usize;
        let dur_ns = rows.dur_ns[at];
        if !rows.row_type[at].is_device_work() || dur_ns == NONE || rows.start_ns[at] == NONE {
            continue;
        }
        time.all_ns += dur_ns;
        if nesting.op[at] == NO_ROW {
            time.unattributed_ns += dur_ns;
        }
        for owner in [
            nesting.op[at],
            nesting.annotation[at],
            nesting.python[at],
            launches.launch[at],
        ] {
            if owner != NO_ROW && time.self_ns[owner as usize] != NONE {
                time.self_ns[owner as usize] += dur_ns;
                time.total_ns[owner as usize] += dur_ns;
            }
        }
    }
    for &row in nesting.order.iter().rev() {
        let at = row as usize;
        if time.total_ns[at] > 0 {
            let outer = outer_row(rows, nesting, row);
            if outer != NO_ROW {
                time.total_ns[outer as usize] += time.total_ns[at];
            }
        }
    }
    time
}

/// Returns the innermost row of a row's kind around it; of API calls only one directly around.
///
/// What a row launches, this row launched too.
pub(crate) fn outer_row(rows: &Rows, nesting: &Nesting, row: u32) -> u32 {
    let at = row as usize;
    match rows.row_type[at] {
        RowType::CpuOp => nesting.op[at],
        RowType::Annotation | RowType::Step => nesting.annotation[at],
        RowType::Python => nesting.python[at],
        RowType::Runtime | RowType::Driver => match nesting.parent[at] {
            parent if parent != NO_ROW && rows.row_type[parent as usize].is_api() => parent,
            _ => NO_ROW,
        },
        _ => NO_ROW,
    }
}
