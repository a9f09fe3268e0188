//! Grouping the rows of `stats`, and putting the measures of groups together.

use std::panic::resume_unwind;
use std::thread;

use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::Expr;

use crate::error::Error;
use crate::link::nesting::kind_of;
use crate::query::engine::{BatchColumns, value};
use crate::query::filters::Scope;
use crate::row::RowType;
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

use super::axes::{Axis, AxisValues, NONE};
use super::device_time::{DeviceRows, Launching, launched_by_groups};
use super::durations::{Durations, TimedRows, measure};
use super::groups::Groups;

/// What is measured of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) number: u32,
    pub(super) count: u64,
    /// `None` when no row has a duration.
    pub(super) durations: Option<Durations>,
    /// `None` when no row nests, or rows of several kinds are among them, whose own times overlap.
    pub(super) self_ns: Option<i64>,
    /// `None` when no row can launch anything.
    pub(super) gpu_self_ns: Option<i64>,
    /// Likewise.
    pub(super) gpu_total_ns: Option<i64>,
}

/// What a group's rows add up to while they are read.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u64,
    self_ns: Option<i64>,
    /// The kinds of its rows that nest, a bit each.
    kinds: u8,
    can_launch: bool,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        if let Some(self_ns) = other.self_ns {
            self.self_ns = Some(self.self_ns.unwrap_or(0).saturating_add(self_ns));
        }
        self.kinds |= other.kinds;
        self.can_launch |= other.can_launch;
    }
}

/// The groups of one part of the table.
struct Part {
    groups: Groups,
    sums: Vec<Sums>,
    /// Group by group.
    timed: Vec<TimedRows>,
    launching: Vec<Launching>,
    device_rows: DeviceRows,
}

impl Part {
    fn new(axes: usize) -> Self {
        Self {
            groups: Groups::new(axes),
            sums: Vec::new(),
            timed: Vec::new(),
            launching: Vec::new(),
            device_rows: DeviceRows::default(),
        }
    }

    fn group(&mut self, values: &[i64]) -> u32 {
        let group = self.groups.number(values);
        if group as usize == self.sums.len() {
            self.sums.push(Sums::default());
            self.timed.push(TimedRows::default());
        }
        group
    }

    fn add(&mut self, batch: &RecordBatch, question: &Question<'_>) {
        let rows = batch.num_rows();
        let axes = question.axes;
        let mut of_axes = Vec::with_capacity(axes.len());
        for axis in axes {
            let mut of_axis = Vec::with_capacity(rows);
            question.values.numbers(*axis, batch, &mut of_axis);
            of_axes.push(of_axis);
        }
        let (index, types) = (batch.u32s(column::INDEX), batch.u8s(column::TYPE));
        let (starts, durations) = (batch.i64s(column::START_NS), batch.i64s(column::DURATION_NS));
        let (selves, gpu_totals) = (batch.i64s(column::SELF_NS), batch.i64s(column::GPU_TOTAL_NS));
        let ranks = question.has_ranks.then(|| batch.i64s(column::RANK));
        let outer = question.is_of_all.then(|| batch.u32s(column::OUTER));
        let mut key = vec![NONE; axes.len()];
        for at in 0..rows {
            for (part, of_axis) in key.iter_mut().zip(&of_axes) {
                *part = of_axis[at];
            }
            let group = self.group(&key);
            let self_ns = value(selves, at);
            let gpu_total_ns = value(gpu_totals, at);
            self.sums[group as usize].add(&Sums {
                count: 1,
                self_ns,
                kinds: if self_ns.is_some() {
                    kind_bit(types.value(at))
                } else {
                    0
                },
                can_launch: gpu_total_ns.is_some(),
            });
            if gpu_total_ns.is_some_and(|gpu_total_ns| gpu_total_ns > 0) {
                self.launching.push(Launching {
                    index: index.value(at),
                    group,
                    outer: outer.and_then(|outer| value(outer, at)),
                });
            }
            if let (Some(start_ns), Some(duration_ns)) = (value(starts, at), value(durations, at)) {
                let rank = ranks.map(|ranks| value(ranks, at).unwrap_or(NONE));
                self.timed[group as usize].push(start_ns, duration_ns, rank);
            }
        }
        if question.is_of_all {
            self.device_rows.add(batch, question.scope);
        }
    }

    /// Takes over the rows of the next part.
    fn append(&mut self, next: Self) {
        let numbers: Vec<u32> = next.groups.iter().map(|values| self.group(values)).collect();
        for ((number, sums), timed) in numbers.iter().zip(&next.sums).zip(next.timed) {
            self.sums[*number as usize].add(sums);
            self.timed[*number as usize].append(timed);
        }
        let renumbered = next.launching.into_iter().map(|row| Launching {
            group: numbers[row.group as usize],
            ..row
        });
        self.launching.extend(renumbered);
        self.device_rows.append(next.device_rows);
    }
}

/// Returns the bit of the kind of rows that a type's number belongs to; 0 when its rows do not nest.
fn kind_bit(code: u8) -> u8 {
    RowType::from_code(code)
        .and_then(kind_of)
        .map_or(0, |kind| 1 << kind as u8)
}

const MEASURED: [&str; 6] = [
    column::INDEX,
    column::TYPE,
    column::START_NS,
    column::DURATION_NS,
    column::SELF_NS,
    column::GPU_TOTAL_NS,
];

/// What is asked of each row.
struct Question<'a> {
    values: &'a AxisValues<'a>,
    axes: &'a [Axis],
    scope: &'a Scope,
    has_ranks: bool,
    /// Whether every row of the trace is read: then one pass over the table finds the device rows, too.
    is_of_all: bool,
}

/// What was found out about the rows of a trace.
pub(super) struct Grouped {
    pub(super) groups: Groups,
    /// By number.
    pub(super) measured: Vec<Group>,
    /// The device rows of the whole trace, whatever rows are grouped.
    pub(super) device_rows: DeviceRows,
}

/// Groups the rows that a predicate lets through, and measures the groups. They are numbered in the order of
/// their first rows.
///
/// # Errors
/// What the engine reports.
pub(super) fn grouped(
    session: &TraceSession,
    values: &AxisValues<'_>,
    axes: &[Axis],
    predicate: Option<Expr>,
    scope: &Scope,
) -> Result<Grouped, Error> {
    let question = Question {
        values,
        axes,
        scope,
        has_ranks: session.ranks().len() > 1,
        is_of_all: predicate.is_none(),
    };
    let mut columns = MEASURED.to_vec();
    columns.extend(question.has_ranks.then_some(column::RANK));
    columns.extend(axes.iter().map(|axis| axis.column()));
    if question.is_of_all {
        columns.push(column::OUTER);
        columns.extend(DeviceRows::COLUMNS);
    }
    columns.sort_unstable();
    columns.dedup();
    let parts = session.engine().fold(
        &EVENTS,
        &columns,
        predicate,
        || Part::new(axes.len()),
        |part, batch| {
            part.add(batch, &question);
            Ok(())
        },
    )?;
    let mut all = Part::new(axes.len());
    for part in parts {
        all.append(part);
    }
    let Part {
        groups,
        sums,
        timed,
        launching,
        device_rows,
    } = all;
    let device_rows = if question.is_of_all {
        device_rows
    } else {
        DeviceRows::load(session, scope)?
    };
    let threads = session.engine().threads();
    let launched = || launched_by_groups(session, &device_rows, &launching, question.is_of_all, sums.len());
    let (launched, durations) = if threads > 1 {
        thread::scope(|scope| {
            let launched = scope.spawn(launched);
            let durations = measure(timed, threads);
            let launched = launched.join().unwrap_or_else(|panic| resume_unwind(panic));
            (launched, durations)
        })
    } else {
        (launched(), measure(timed, threads))
    };
    let measured = sums.into_iter().zip(launched?).zip(durations);
    let measured = (0_u32..)
        .zip(measured)
        .map(|(number, ((sums, launched), durations))| Group {
            number,
            count: sums.count,
            durations,
            self_ns: sums.self_ns.filter(|_| sums.kinds.count_ones() == 1),
            gpu_self_ns: sums.can_launch.then_some(launched.self_ns),
            gpu_total_ns: sums.can_launch.then_some(launched.total_ns),
        })
        .collect();
    Ok(Grouped {
        groups,
        measured,
        device_rows,
    })
}
