//! The queries of `stats`, and the measuring of groups.

use std::ops::Range;

use datafusion::logical_expr::{Expr, col, lit};
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::interval::{length, union};
use crate::query::engine::{BatchColumns, value};
use crate::query::filters::{both, type_among};
use crate::row::RowType;
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

use super::axes::{Axis, AxisValues, NONE};

/// What is measured of a group; `None` where it does not apply or cannot be known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Measures {
    pub(super) count: u64,
    pub(super) total_ns: Option<i64>,
    pub(super) avg_ns: Option<i64>,
    pub(super) min_ns: Option<i64>,
    pub(super) max_ns: Option<i64>,
    pub(super) p50_ns: Option<i64>,
    pub(super) p95_ns: Option<i64>,
    pub(super) busy_ns: Option<i64>,
    pub(super) self_ns: Option<i64>,
    pub(super) gpu_self_ns: Option<i64>,
    pub(super) gpu_total_ns: Option<i64>,
}

/// A group: the numbers of its axes, and its measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) axes: Box<[i64]>,
    pub(super) measures: Measures,
}

/// The selected rows, as far as measuring needs them, and their groups.
#[derive(Default)]
struct Selected {
    group: Vec<u32>,
    rank: Vec<i64>,
    start_ns: Vec<i64>,
    duration_ns: Vec<i64>,
    groups: Vec<Group>,
    /// Rows that launched device work: index, group, device time anywhere inside.
    launching: Vec<(u32, u32, i64)>,
}

const MEASURED: [&str; 8] = [
    column::INDEX,
    column::TYPE,
    column::RANK,
    column::START_NS,
    column::DURATION_NS,
    column::SELF_NS,
    column::GPU_SELF_NS,
    column::GPU_TOTAL_NS,
];

/// Groups the rows that a predicate lets through, and measures the groups. Their order is that of their
/// first rows.
///
/// # Errors
/// What the engine reports.
pub(super) fn groups(
    session: &TraceSession,
    values: &mut AxisValues<'_>,
    axes: &[Axis],
    predicate: Option<Expr>,
) -> Result<Vec<Group>, Error> {
    let mut columns = MEASURED.to_vec();
    for axis in axes {
        if !columns.contains(&axis.column()) {
            columns.push(axis.column());
        }
    }
    let mut selected = Selected::default();
    let mut numbers: FxHashMap<Box<[i64]>, u32> = FxHashMap::default();
    for batch in session.engine().scan(&EVENTS, &columns, predicate)? {
        let mut of_axes = Vec::with_capacity(axes.len());
        for axis in axes {
            let mut of_axis = Vec::with_capacity(batch.num_rows());
            values.numbers(*axis, &batch, &mut of_axis)?;
            of_axes.push(of_axis);
        }
        let (index, ranks) = (batch.u32s(column::INDEX), batch.i64s(column::RANK));
        let (starts, durations) = (batch.i64s(column::START_NS), batch.i64s(column::DURATION_NS));
        let (selves, gpu_selves) = (batch.i64s(column::SELF_NS), batch.i64s(column::GPU_SELF_NS));
        let gpu_totals = batch.i64s(column::GPU_TOTAL_NS);
        let mut key = vec![NONE; axes.len()];
        for at in 0..batch.num_rows() {
            for (part, of_axis) in key.iter_mut().zip(&of_axes) {
                *part = of_axis[at];
            }
            let group = match numbers.get(key.as_slice()) {
                Some(group) => *group,
                None => {
                    let group = u32::try_from(selected.groups.len()).expect("fewer groups than rows");
                    let axes: Box<[i64]> = key.clone().into();
                    numbers.insert(axes.clone(), group);
                    selected.groups.push(Group {
                        axes,
                        measures: Measures::default(),
                    });
                    group
                }
            };
            let measures = &mut selected.groups[group as usize].measures;
            measures.count += 1;
            add(&mut measures.self_ns, value(selves, at));
            add(&mut measures.gpu_self_ns, value(gpu_selves, at));
            if let Some(gpu_total_ns) = value(gpu_totals, at) {
                add(&mut measures.gpu_total_ns, Some(0));
                if gpu_total_ns > 0 {
                    selected.launching.push((index.value(at), group, gpu_total_ns));
                }
            }
            if let (Some(start_ns), Some(duration_ns)) = (value(starts, at), value(durations, at)) {
                selected.group.push(group);
                selected.rank.push(value(ranks, at).unwrap_or(NONE));
                selected.start_ns.push(start_ns);
                selected.duration_ns.push(duration_ns);
            }
        }
    }
    add_gpu_totals(session, &mut selected)?;
    measure_durations(&mut selected);
    Ok(selected.groups)
}

fn add(sum: &mut Option<i64>, value: Option<i64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0) + value);
    }
}

/// Adds the device time launched anywhere inside the rows of each group, every device row once.
///
/// A row inside another of its group (an operator that calls one of its name) adds nothing: what it launched
/// is in the outer row's time.
fn add_gpu_totals(session: &TraceSession, selected: &mut Selected) -> Result<(), Error> {
    if selected.launching.is_empty() {
        return Ok(());
    }
    let around = enclosing_rows(session)?;
    let group_of: FxHashMap<u32, u32> = selected
        .launching
        .iter()
        .map(|(index, group, _)| (*index, *group))
        .collect();
    for (index, group, gpu_total_ns) in std::mem::take(&mut selected.launching) {
        let mut outer = around.get(&index).copied();
        let is_inside_own = loop {
            match outer {
                None => break false,
                Some(row) if group_of.get(&row) == Some(&group) => break true,
                Some(row) => outer = around.get(&row).copied(),
            }
        };
        if !is_inside_own {
            add(
                &mut selected.groups[group as usize].measures.gpu_total_ns,
                Some(gpu_total_ns),
            );
        }
    }
    Ok(())
}

/// Returns, for every row that launched device work, the row of its kind around it. Whatever encloses such a
/// row launched device work too.
fn enclosing_rows(session: &TraceSession) -> Result<FxHashMap<u32, u32>, Error> {
    let columns = [
        column::INDEX,
        column::TYPE,
        column::OP,
        column::ANNOTATION,
        column::PYTHON,
        column::PARENT,
    ];
    let launched = col(column::GPU_TOTAL_NS).gt(lit(0_i64));
    let mut around = FxHashMap::default();
    let mut calls: Vec<(u32, Option<u32>)> = Vec::new();
    for batch in session.engine().scan(&EVENTS, &columns, Some(launched))? {
        let (index, types) = (batch.u32s(column::INDEX), batch.u8s(column::TYPE));
        for at in 0..batch.num_rows() {
            let name = match RowType::from_code(types.value(at)) {
                Some(RowType::CpuOp) => column::OP,
                Some(RowType::Annotation | RowType::Step) => column::ANNOTATION,
                Some(RowType::Python) => column::PYTHON,
                Some(RowType::Runtime | RowType::Driver) => {
                    calls.push((index.value(at), value(batch.u32s(column::PARENT), at)));
                    continue;
                }
                _ => continue,
            };
            if let Some(outer) = value(batch.u32s(name), at) {
                around.insert(index.value(at), outer);
            }
        }
    }
    // Of API calls only the one directly around counts, as when device time is added up at ingest.
    let is_call = |row: u32| calls.binary_search_by_key(&row, |(call, _)| *call).is_ok();
    for (call, parent) in &calls {
        if let Some(parent) = parent.filter(|parent| is_call(*parent)) {
            around.insert(*call, parent);
        }
    }
    Ok(around)
}

/// Measures the durations of each group's rows.
fn measure_durations(selected: &mut Selected) {
    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); selected.groups.len()];
    for (row, group) in (0_u32..).zip(&selected.group) {
        rows_of[*group as usize].push(row);
    }
    for (group, rows) in selected.groups.iter_mut().zip(rows_of) {
        if rows.is_empty() {
            continue;
        }
        let mut durations: Vec<i64> = rows
            .iter()
            .map(|row| selected.duration_ns[*row as usize])
            .collect();
        durations.sort_unstable();
        let total_ns: i64 = durations.iter().sum();
        let count = i64::try_from(durations.len()).unwrap_or(i64::MAX);
        let measures = &mut group.measures;
        measures.total_ns = Some(total_ns);
        measures.avg_ns = Some(total_ns / count);
        measures.min_ns = durations.first().copied();
        measures.max_ns = durations.last().copied();
        measures.p50_ns = Some(percentile(&durations, 50));
        measures.p95_ns = Some(percentile(&durations, 95));
        let interval = |row: u32| {
            let (start, duration) = (
                selected.start_ns[row as usize],
                selected.duration_ns[row as usize],
            );
            start..start + duration
        };
        measures.busy_ns = Some(busy_ns(
            rows.iter()
                .map(|row| (selected.rank[*row as usize], interval(*row))),
        ));
    }
}

/// Returns the length of the union of intervals, rank by rank.
fn busy_ns(intervals: impl Iterator<Item = (i64, Range<i64>)>) -> i64 {
    let mut by_rank: FxHashMap<i64, Vec<Range<i64>>> = FxHashMap::default();
    for (rank, interval) in intervals {
        by_rank.entry(rank).or_default().push(interval);
    }
    by_rank
        .into_values()
        .map(|intervals| length(&union(intervals)))
        .sum()
}

/// Returns the nearest-rank percentile of sorted values: the least that is not below `percent` of them.
fn percentile(sorted: &[i64], percent: usize) -> i64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

/// Device time of a scope, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeviceTime {
    pub(super) total_ns: i64,
    pub(super) attributed_ns: i64,
}

/// Adds up the device time that a predicate lets through.
///
/// # Errors
/// What the engine reports.
pub(super) fn device_time(session: &TraceSession, scope: Option<Expr>) -> Result<DeviceTime, Error> {
    let is_work = type_among(&[RowType::Kernel, RowType::Memcpy, RowType::Memset]);
    let columns = [column::START_NS, column::DURATION_NS, column::OP];
    let mut time = DeviceTime::default();
    for batch in session
        .engine()
        .scan(&EVENTS, &columns, both(Some(is_work), scope))?
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let values: Vec<i64> = (1..=20).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 95)), (10, 19));
        assert_eq!((percentile(&[7], 50), percentile(&[7], 95)), (7, 7));
        assert_eq!(percentile(&[1, 2, 3], 50), 2);
    }

    #[test]
    fn busy_time_is_a_union_within_a_rank() {
        let intervals = [(0, 0..10), (0, 5..15), (1, 0..10)];
        assert_eq!(busy_ns(intervals.into_iter()), 25);
    }
}
