//! Grouping the rows of `stats`, and putting the measures of groups together.

use std::panic::resume_unwind;
use std::thread;

use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::Expr;

use crate::error::Error;
use crate::link::nesting::kind_of;
use crate::query::engine::{BatchColumns, value};
use crate::row::RowType;
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

use super::axes::{Axis, AxisValues, NONE};
use super::device_time::{DeviceRows, launched_by_groups};
use super::durations::{Chunk, Durations, measure};
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
    chunks: Vec<Chunk>,
    /// Rows that launched device work: index, group.
    launching: Vec<(u32, u32)>,
}

impl Part {
    fn new(axes: usize) -> Self {
        Self {
            groups: Groups::new(axes),
            sums: Vec::new(),
            chunks: Vec::new(),
            launching: Vec::new(),
        }
    }

    fn group(&mut self, values: &[i64]) -> u32 {
        let group = self.groups.number(values);
        if group as usize == self.sums.len() {
            self.sums.push(Sums::default());
        }
        group
    }

    fn add(&mut self, batch: &RecordBatch, values: &AxisValues<'_>, axes: &[Axis], has_ranks: bool) {
        let rows = batch.num_rows();
        let mut of_axes = Vec::with_capacity(axes.len());
        for axis in axes {
            let mut of_axis = Vec::with_capacity(rows);
            values.numbers(*axis, batch, &mut of_axis);
            of_axes.push(of_axis);
        }
        let (index, types) = (batch.u32s(column::INDEX), batch.u8s(column::TYPE));
        let (selves, gpu_totals) = (batch.i64s(column::SELF_NS), batch.i64s(column::GPU_TOTAL_NS));
        let mut groups = Vec::with_capacity(rows);
        let mut key = vec![NONE; axes.len()];
        for at in 0..rows {
            for (part, of_axis) in key.iter_mut().zip(&of_axes) {
                *part = of_axis[at];
            }
            let group = self.group(&key);
            groups.push(group);
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
                self.launching.push((index.value(at), group));
            }
        }
        let ranks = if has_ranks {
            let ranks = batch.i64s(column::RANK);
            (0..rows).map(|at| value(ranks, at).unwrap_or(NONE)).collect()
        } else {
            Vec::new()
        };
        self.chunks.push(Chunk {
            groups,
            ranks,
            start_ns: batch.i64s(column::START_NS).clone(),
            duration_ns: batch.i64s(column::DURATION_NS).clone(),
        });
    }

    /// Takes over the rows of the next part.
    fn append(&mut self, next: Self) {
        let numbers: Vec<u32> = next.groups.iter().map(|values| self.group(values)).collect();
        for (number, sums) in numbers.iter().zip(&next.sums) {
            self.sums[*number as usize].add(sums);
        }
        for mut chunk in next.chunks {
            for group in &mut chunk.groups {
                *group = numbers[*group as usize];
            }
            self.chunks.push(chunk);
        }
        let renumbered = next
            .launching
            .into_iter()
            .map(|(index, group)| (index, numbers[group as usize]));
        self.launching.extend(renumbered);
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

/// Groups the rows that a predicate lets through, and measures the groups. They are numbered in the order of
/// their first rows.
///
/// # Errors
/// What the engine reports.
pub(super) fn groups(
    session: &TraceSession,
    values: &AxisValues<'_>,
    axes: &[Axis],
    predicate: Option<Expr>,
    device_rows: &DeviceRows,
) -> Result<(Groups, impl Iterator<Item = Group>), Error> {
    let has_ranks = session.ranks().len() > 1;
    let mut columns = MEASURED.to_vec();
    columns.extend(has_ranks.then_some(column::RANK));
    for axis in axes {
        if !columns.contains(&axis.column()) {
            columns.push(axis.column());
        }
    }
    let parts = session.engine().fold(
        &EVENTS,
        &columns,
        predicate,
        || Part::new(axes.len()),
        |part, batch| {
            part.add(batch, values, axes, has_ranks);
            Ok(())
        },
    )?;
    let mut all = Part::new(axes.len());
    for part in parts {
        all.append(part);
    }
    let count = all.sums.len();
    let (launching, chunks, threads) = (all.launching, all.chunks, session.engine().threads());
    let launched = || launched_by_groups(session, device_rows, launching, count);
    let (launched, durations) = if threads > 1 {
        thread::scope(|scope| {
            let launched = scope.spawn(launched);
            let durations = measure(chunks, count, threads);
            let launched = launched.join().unwrap_or_else(|panic| resume_unwind(panic));
            (launched, durations)
        })
    } else {
        (launched(), measure(chunks, count, threads))
    };
    let measured = all.sums.into_iter().zip(launched?).zip(durations);
    let measured = (0_u32..)
        .zip(measured)
        .map(|(number, ((sums, launched), durations))| Group {
            number,
            count: sums.count,
            durations,
            self_ns: sums.self_ns.filter(|_| sums.kinds.count_ones() == 1),
            gpu_self_ns: sums.can_launch.then_some(launched.self_ns),
            gpu_total_ns: sums.can_launch.then_some(launched.total_ns),
        });
    Ok((all.groups, measured))
}
