//! Device time by what launched it: of the scope as a whole, and of groups of CPU-side rows.

use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::col;

use crate::error::Error;
use crate::query::by_index::ByIndex;
use crate::query::engine::{BatchColumns, value};
use crate::query::filters::{Scope, type_among};
use crate::row::RowType;
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

/// Device time of a scope, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeviceTime {
    pub(super) total_ns: i64,
    /// The part whose launch an operator encloses.
    pub(super) attributed_ns: i64,
}

/// A device row with a time.
#[derive(Debug, Clone, Copy)]
struct DeviceRow {
    duration_ns: i64,
    /// The innermost operator, annotation and Python frame around the launch, and the launch itself.
    launched_in: [Option<u32>; 4],
    is_in_scope: bool,
}

/// The device rows of a trace that have a time.
#[derive(Debug, Default)]
pub(super) struct DeviceRows(Vec<DeviceRow>);

impl DeviceRows {
    /// The columns that [`DeviceRows::add`] takes rows from.
    pub(super) const COLUMNS: [&str; 10] = [
        column::TYPE,
        column::START_NS,
        column::DURATION_NS,
        column::RANK,
        column::DEVICE_ID,
        column::STREAM_ID,
        column::OP,
        column::ANNOTATION,
        column::PYTHON,
        column::LAUNCH,
    ];

    /// Reads all device rows that have a time; those of the given rank, device and stream are in scope.
    ///
    /// # Errors
    /// What the engine reports.
    pub(super) fn load(session: &TraceSession, scope: &Scope) -> Result<Self, Error> {
        let is_work = type_among(&[RowType::Kernel, RowType::Memcpy, RowType::Memset]);
        let mut rows = Self::default();
        for batch in session.engine().scan(&EVENTS, &Self::COLUMNS, Some(is_work))? {
            rows.add(&batch, scope);
        }
        Ok(rows)
    }

    /// Adds those among the rows of a batch.
    pub(super) fn add(&mut self, batch: &RecordBatch, scope: &Scope) {
        let types = batch.u8s(column::TYPE);
        let (starts, durations) = (batch.i64s(column::START_NS), batch.i64s(column::DURATION_NS));
        let places = [column::RANK, column::DEVICE_ID, column::STREAM_ID].map(|name| batch.i64s(name));
        let innermost =
            [column::OP, column::ANNOTATION, column::PYTHON, column::LAUNCH].map(|name| batch.u32s(name));
        let wanted = [scope.rank, scope.device_id, scope.stream_id];
        for at in 0..batch.num_rows() {
            if !RowType::from_code(types.value(at)).is_some_and(RowType::is_device_work) {
                continue;
            }
            if let (Some(_), Some(duration_ns)) = (value(starts, at), value(durations, at)) {
                self.0.push(DeviceRow {
                    duration_ns,
                    launched_in: innermost.map(|rows| value(rows, at)),
                    is_in_scope: wanted
                        .iter()
                        .zip(places)
                        .all(|(wanted, place)| wanted.is_none() || *wanted == value(place, at)),
                });
            }
        }
    }

    /// Adds the rows of a later part of the table.
    pub(super) fn append(&mut self, next: Self) {
        self.0.extend(next.0);
    }

    /// Adds up the device time in scope.
    pub(super) fn in_scope(&self) -> DeviceTime {
        let mut time = DeviceTime::default();
        for row in self.0.iter().filter(|row| row.is_in_scope) {
            time.total_ns = time.total_ns.saturating_add(row.duration_ns);
            if row.launched_in[0].is_some() {
                time.attributed_ns = time.attributed_ns.saturating_add(row.duration_ns);
            }
        }
        time
    }
}

/// Device time of a group of CPU-side rows, in ns; every device row counts once in each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Launched {
    /// Launched by a row of the group that is the innermost of its kind around the launch.
    pub(super) self_ns: i64,
    /// Launched anywhere inside rows of the group.
    pub(super) total_ns: i64,
}

/// A row that launched device work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launching {
    pub(super) index: u32,
    pub(super) group: u32,
    /// The row of its kind around it; unknown when not every row of the trace was read.
    pub(super) outer: Option<u32>,
}

/// Returns the device time of each of `count` groups; `launching` are their rows that launched device work,
/// and, when `are_all`, all such rows of the trace.
///
/// Walks from every device row up the chains of operators, annotations, Python frames and API calls around
/// its launch, so that recursion, and groups of rows of several kinds, count nothing twice.
///
/// # Errors
/// What the engine reports.
pub(super) fn launched_by_groups(
    session: &TraceSession,
    device_rows: &DeviceRows,
    launching: &[Launching],
    are_all: bool,
    count: usize,
) -> Result<Vec<Launched>, Error> {
    let mut launched = vec![Launched::default(); count];
    let group_of: ByIndex = launching.iter().map(|row| (row.index, row.group)).collect();
    if group_of.is_empty() {
        return Ok(launched);
    }
    let outer = if are_all {
        let outer = |row: &Launching| Some((row.index, row.outer?));
        launching.iter().filter_map(outer).collect()
    } else {
        ByIndex::load(session, column::OUTER, col(column::OUTER).is_not_null())?
    };
    // The last device row that each group has counted, as (self, total).
    let mut counted = vec![(0_u32, 0_u32); count];
    for (number, device_row) in (1_u32..).zip(&device_rows.0) {
        for innermost in device_row.launched_in.into_iter().flatten() {
            for (depth, row) in outer.follow(Some(innermost)).enumerate() {
                let Some(group) = group_of.get(row).map(|group| group as usize) else {
                    continue;
                };
                let (by_self, by_total) = &mut counted[group];
                if depth == 0 && *by_self != number {
                    *by_self = number;
                    launched[group].self_ns = launched[group].self_ns.saturating_add(device_row.duration_ns);
                }
                if *by_total != number {
                    *by_total = number;
                    launched[group].total_ns =
                        launched[group].total_ns.saturating_add(device_row.duration_ns);
                }
            }
        }
    }
    Ok(launched)
}
