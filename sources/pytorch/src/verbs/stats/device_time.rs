//! Device time by what launched it: of the scope as a whole, and of groups of CPU-side rows.

use datafusion::logical_expr::{Expr, col, lit};

use crate::error::Error;
use crate::query::by_index::ByIndex;
use crate::query::engine::{BatchColumns, value};
use crate::query::filters::{both, type_among};
use crate::row::RowType;
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

/// Device time of a scope, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeviceTime {
    pub(super) total_ns: i64,
    pub(super) attributed_ns: i64,
}

fn is_device_work() -> Expr {
    type_among(&[RowType::Kernel, RowType::Memcpy, RowType::Memset])
}

/// Adds up the device time that a predicate lets through.
///
/// # Errors
/// What the engine reports.
pub(super) fn device_time(session: &TraceSession, scope: Option<Expr>) -> Result<DeviceTime, Error> {
    let columns = [column::START_NS, column::DURATION_NS, column::OP];
    let mut time = DeviceTime::default();
    for batch in session
        .engine()
        .scan(&EVENTS, &columns, both(Some(is_device_work()), scope))?
    {
        let (starts, durations) = (batch.i64s(column::START_NS), batch.i64s(column::DURATION_NS));
        let ops = batch.u32s(column::OP);
        for at in 0..batch.num_rows() {
            let (Some(_), Some(duration_ns)) = (value(starts, at), value(durations, at)) else {
                continue;
            };
            time.total_ns += duration_ns;
            if value(ops, at).is_some() {
                time.attributed_ns += duration_ns;
            }
        }
    }
    Ok(time)
}

/// Device time of a group of CPU-side rows, in ns; every device row counts once in each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Launched {
    /// Launched by a row of the group that is the innermost of its kind around the launch.
    pub(super) self_ns: i64,
    /// Launched anywhere inside rows of the group.
    pub(super) total_ns: i64,
}

/// Returns the device time of each of `count` groups; `launching` are the indices and groups of their rows
/// that launched device work.
///
/// Walks from every device row up the chains of operators, annotations, Python frames and API calls around
/// its launch, so that recursion, and groups of rows of several kinds, count nothing twice.
///
/// # Errors
/// What the engine reports.
pub(super) fn launched_by_groups(
    session: &TraceSession,
    launching: Vec<(u32, u32)>,
    count: usize,
) -> Result<Vec<Launched>, Error> {
    let mut launched = vec![Launched::default(); count];
    let group_of: ByIndex = launching.into_iter().collect();
    if group_of.is_empty() {
        return Ok(launched);
    }
    let outer = outer_rows(session)?;
    let columns = [
        column::START_NS,
        column::DURATION_NS,
        column::OP,
        column::ANNOTATION,
        column::PYTHON,
        column::LAUNCH,
    ];
    // The last device row that each group has counted, as (self, total).
    let mut counted = vec![(0_u32, 0_u32); count];
    let mut device_row = 0;
    for batch in session.engine().scan(&EVENTS, &columns, Some(is_device_work()))? {
        let (starts, durations) = (batch.i64s(column::START_NS), batch.i64s(column::DURATION_NS));
        let innermost =
            [column::OP, column::ANNOTATION, column::PYTHON, column::LAUNCH].map(|name| batch.u32s(name));
        for at in 0..batch.num_rows() {
            let (Some(_), Some(duration_ns)) = (value(starts, at), value(durations, at)) else {
                continue;
            };
            device_row += 1;
            for row in innermost.iter().filter_map(|rows| value(rows, at)) {
                for (depth, row) in outer.follow(Some(row)).enumerate() {
                    let Some(group) = group_of.get(row).map(|group| group as usize) else {
                        continue;
                    };
                    let counted = &mut counted[group];
                    if depth == 0 && counted.0 != device_row {
                        counted.0 = device_row;
                        launched[group].self_ns += duration_ns;
                    }
                    if counted.1 != device_row {
                        counted.1 = device_row;
                        launched[group].total_ns += duration_ns;
                    }
                }
            }
        }
    }
    Ok(launched)
}

/// Returns, for every row that launched device work, the row of its kind around it; of API calls only the
/// one directly around. Whatever encloses such a row launched device work too.
fn outer_rows(session: &TraceSession) -> Result<ByIndex, Error> {
    let columns = [
        column::INDEX,
        column::TYPE,
        column::OP,
        column::ANNOTATION,
        column::PYTHON,
        column::PARENT,
    ];
    let launched = col(column::GPU_TOTAL_NS).gt(lit(0_i64));
    let mut outer = ByIndex::default();
    let mut calls: Vec<(u32, Option<u32>)> = Vec::new();
    for batch in session.engine().scan(&EVENTS, &columns, Some(launched))? {
        let (index, types) = (batch.u32s(column::INDEX), batch.u8s(column::TYPE));
        let [ops, annotations, frames, parents] =
            [column::OP, column::ANNOTATION, column::PYTHON, column::PARENT].map(|name| batch.u32s(name));
        for at in 0..batch.num_rows() {
            let around = match RowType::from_code(types.value(at)) {
                Some(RowType::CpuOp) => ops,
                Some(RowType::Annotation | RowType::Step) => annotations,
                Some(RowType::Python) => frames,
                Some(RowType::Runtime | RowType::Driver) => {
                    calls.push((index.value(at), value(parents, at)));
                    continue;
                }
                _ => continue,
            };
            if let Some(around) = value(around, at) {
                outer.put(index.value(at), around);
            }
        }
    }
    let is_call = |row: u32| calls.binary_search_by_key(&row, |(call, _)| *call).is_ok();
    for (call, parent) in &calls {
        if let Some(parent) = parent.filter(|parent| is_call(*parent)) {
            outer.put(*call, parent);
        }
    }
    Ok(outer)
}
