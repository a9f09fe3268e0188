//! The query of `timeline`, and the filling of buckets.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::Expr;

use crate::error::Error;
use crate::interval::{split_at_buckets, subtract, union};
use crate::query::engine::{BatchColumns, value};
use crate::row::{ROW_TYPES, RowType};
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

/// What happens in one bucket, in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) cpu_ns: i64,
    pub(super) gpu_ns: i64,
    pub(super) comm_ns: i64,
    pub(super) exposed_comm_ns: i64,
    pub(super) event_count: u64,
    pub(super) by_type_ns: [i64; ROW_TYPES.len()],
}

/// The buckets, with the types that occur in the window.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Buckets {
    pub(super) buckets: Vec<Bucket>,
    pub(super) types: Vec<RowType>,
}

/// Intervals by device: rank, and number within the rank.
type ByDevice = BTreeMap<(Option<i64>, Option<i64>), Vec<Range<i64>>>;

/// Intervals by what they are a union of; the key keeps ranks, and devices, apart.
#[derive(Default)]
struct Intervals {
    by_type: BTreeMap<(Option<i64>, u8), Vec<Range<i64>>>,
    communication: ByDevice,
    compute: ByDevice,
    work: ByDevice,
}

/// Fills buckets of `interval_ns` over a window with the rows that a predicate lets through.
///
/// # Errors
/// What the engine reports.
pub(super) fn buckets(
    session: &TraceSession,
    predicate: Option<Expr>,
    window: &Range<i64>,
    interval_ns: i64,
) -> Result<Buckets, Error> {
    let count = usize::try_from((window.end - window.start + interval_ns - 1) / interval_ns).unwrap_or(0);
    let mut buckets = vec![Bucket::default(); count];
    let intervals = read(session, predicate, window, interval_ns, &mut buckets)?;
    let mut spread = |covered: &[Range<i64>], field: &mut dyn FnMut(&mut Bucket, i64)| {
        for interval in covered {
            for (bucket, part_ns) in split_at_buckets(interval.clone(), window.start, interval_ns) {
                field(&mut buckets[bucket], part_ns);
            }
        }
    };
    let mut types = Vec::new();
    for ((_, code), ranges) in intervals.by_type {
        let Some(row_type) = RowType::from_code(code) else {
            continue;
        };
        if !types.contains(&row_type) {
            types.push(row_type);
        }
        let covered = union(ranges);
        spread(&covered, &mut |bucket, ns| {
            bucket.by_type_ns[usize::from(code)] += ns
        });
        if row_type == RowType::CpuOp {
            spread(&covered, &mut |bucket, ns| bucket.cpu_ns += ns);
        }
    }
    types.sort_unstable();
    for ranges in intervals.work.into_values() {
        spread(&union(ranges), &mut |bucket, ns| bucket.gpu_ns += ns);
    }
    for (device, ranges) in intervals.communication {
        let communication = union(ranges);
        spread(&communication, &mut |bucket, ns| bucket.comm_ns += ns);
        let compute = union(intervals.compute.get(&device).cloned().unwrap_or_default());
        spread(&subtract(&communication, &compute), &mut |bucket, ns| {
            bucket.exposed_comm_ns += ns
        });
    }
    Ok(Buckets { buckets, types })
}

impl Intervals {
    /// Takes over the intervals of the next part of the table.
    fn append(&mut self, next: Self) {
        for (key, ranges) in next.by_type {
            self.by_type.entry(key).or_default().extend(ranges);
        }
        for (all, of_next) in [
            (&mut self.communication, next.communication),
            (&mut self.compute, next.compute),
            (&mut self.work, next.work),
        ] {
            for (device, ranges) in of_next {
                all.entry(device).or_default().extend(ranges);
            }
        }
    }
}

/// Reads the rows' intervals, cut to the window, and counts the rows that start in each bucket.
fn read(
    session: &TraceSession,
    predicate: Option<Expr>,
    window: &Range<i64>,
    interval_ns: i64,
    buckets: &mut [Bucket],
) -> Result<Intervals, Error> {
    let columns = [
        column::TYPE,
        column::START_NS,
        column::DURATION_NS,
        column::RANK,
        column::DEVICE_ID,
        column::COMM_KIND,
    ];
    let count = buckets.len();
    let start = || (Intervals::default(), vec![0_u64; count]);
    let parts = session
        .engine()
        .fold(&EVENTS, &columns, predicate, start, |part, batch| {
            read_batch(batch, window, interval_ns, part);
            Ok(())
        })?;
    let mut intervals = Intervals::default();
    for (of_part, counts) in parts {
        intervals.append(of_part);
        for (bucket, count) in buckets.iter_mut().zip(counts) {
            bucket.event_count += count;
        }
    }
    Ok(intervals)
}

fn read_batch(
    batch: &RecordBatch,
    window: &Range<i64>,
    interval_ns: i64,
    (intervals, counts): &mut (Intervals, Vec<u64>),
) {
    let (types, comm) = (batch.u8s(column::TYPE), batch.u8s(column::COMM_KIND));
    let (starts, durations) = (batch.i64s(column::START_NS), batch.i64s(column::DURATION_NS));
    let (ranks, devices) = (batch.i64s(column::RANK), batch.i64s(column::DEVICE_ID));
    for at in 0..batch.num_rows() {
        let Some(start_ns) = value(starts, at) else {
            continue;
        };
        if window.contains(&start_ns) {
            let bucket = usize::try_from((start_ns - window.start) / interval_ns).unwrap_or(usize::MAX);
            if let Some(count) = counts.get_mut(bucket) {
                *count += 1;
            }
        }
        let end_ns = start_ns + value(durations, at).unwrap_or(0);
        let interval = start_ns.max(window.start)..end_ns.min(window.end);
        let Some(row_type) = RowType::from_code(types.value(at)).filter(|_| interval.start < interval.end)
        else {
            continue;
        };
        let rank = value(ranks, at);
        if row_type.is_device_work() {
            let device = (rank, value(devices, at));
            intervals.work.entry(device).or_default().push(interval.clone());
            if comm.value(at) != 0 {
                intervals
                    .communication
                    .entry(device)
                    .or_default()
                    .push(interval.clone());
            } else if row_type == RowType::Kernel {
                intervals
                    .compute
                    .entry(device)
                    .or_default()
                    .push(interval.clone());
            }
        }
        intervals
            .by_type
            .entry((rank, row_type.code()))
            .or_default()
            .push(interval);
    }
}
