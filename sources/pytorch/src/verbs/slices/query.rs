//! The queries of `slices`: ranges, device work, and who works for whom.

use std::ops::Range;

use datafusion::logical_expr::{Expr, col};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Error;
use crate::query::engine::{BatchColumns, value};
use crate::query::filters::type_among;
use crate::row::{RowId, RowType};
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column, flag};

/// A step or an annotation on the CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) id: RowId,
    pub(super) name: Option<u32>,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) rank: Option<i64>,
    pub(super) step: Option<i64>,
    pub(super) track: u32,
    /// Index of the range around it.
    pub(super) outer: Option<u32>,
}

/// A device row with its launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) index: u32,
    pub(super) interval: Range<i64>,
    pub(super) rank: Option<i64>,
    pub(super) device: Option<i64>,
    pub(super) is_comm: bool,
    /// Start and track of the launch.
    pub(super) launch: Option<(i64, u32)>,
}

/// Returns all ranges with a time, in file order.
///
/// # Errors
/// What the engine reports.
pub(super) fn all_slices(session: &TraceSession) -> Result<Vec<Slice>, Error> {
    let columns = [
        column::INDEX,
        column::TYPE,
        column::NAME,
        column::START_NS,
        column::DURATION_NS,
        column::RANK,
        column::STEP,
        column::TRACK,
        column::ANNOTATION,
        column::FLAGS,
    ];
    let is_range = type_among(&[RowType::Step, RowType::Annotation]);
    let mut slices = Vec::new();
    for batch in session.engine().scan(&EVENTS, &columns, Some(is_range))? {
        let (starts, durations) = (batch.i64s(column::START_NS), batch.i64s(column::DURATION_NS));
        let (types, flags) = (batch.u8s(column::TYPE), batch.u8s(column::FLAGS));
        let (index, names) = (batch.u32s(column::INDEX), batch.u32s(column::NAME));
        let (ranks, steps) = (batch.i64s(column::RANK), batch.i64s(column::STEP));
        let (tracks, annotations) = (batch.u32s(column::TRACK), batch.u32s(column::ANNOTATION));
        for at in 0..batch.num_rows() {
            let (Some(start_ns), Some(duration_ns)) = (value(starts, at), value(durations, at)) else {
                continue;
            };
            let row_type = RowType::from_code(types.value(at));
            let Some(row_type) = row_type.filter(|_| flags.value(at) & flag::DEVICE_SIDE == 0) else {
                continue;
            };
            slices.push(Slice {
                id: RowId {
                    row_type,
                    index: index.value(at),
                },
                name: value(names, at),
                start_ns,
                end_ns: start_ns + duration_ns,
                rank: value(ranks, at),
                step: value(steps, at),
                track: tracks.value(at),
                outer: value(annotations, at),
            });
        }
    }
    Ok(slices)
}

/// Returns the indices that a predicate lets through.
///
/// # Errors
/// What the engine reports.
pub(super) fn selected(session: &TraceSession, predicate: Option<Expr>) -> Result<FxHashSet<u32>, Error> {
    let mut indices = FxHashSet::default();
    for batch in session.engine().scan(&EVENTS, &[column::INDEX], predicate)? {
        indices.extend(batch.u32s(column::INDEX).values().iter().copied());
    }
    Ok(indices)
}

/// Returns all device work with a time, in file order.
///
/// # Errors
/// What the engine reports.
pub(super) fn all_work(session: &TraceSession) -> Result<Vec<Work>, Error> {
    // Index, start and thread of the calls, in file order: that of their index.
    let mut calls: Vec<(u32, i64, u32)> = Vec::new();
    let columns = [column::INDEX, column::START_NS, column::TRACK];
    let is_call = type_among(&[RowType::Runtime, RowType::Driver]);
    for batch in session.engine().scan(&EVENTS, &columns, Some(is_call))? {
        let (index, tracks) = (batch.u32s(column::INDEX), batch.u32s(column::TRACK));
        let starts = batch.i64s(column::START_NS);
        for at in 0..batch.num_rows() {
            if let Some(start_ns) = value(starts, at) {
                calls.push((index.value(at), start_ns, tracks.value(at)));
            }
        }
    }
    let columns = [
        column::INDEX,
        column::START_NS,
        column::DURATION_NS,
        column::RANK,
        column::DEVICE_ID,
        column::COMM_KIND,
        column::LAUNCH,
    ];
    let is_work = type_among(&[RowType::Kernel, RowType::Memcpy, RowType::Memset]);
    let call = |launch: u32| {
        let at = calls.binary_search_by_key(&launch, |(index, ..)| *index).ok()?;
        let (_, start_ns, track) = calls[at];
        Some((start_ns, track))
    };
    let mut work = Vec::new();
    for batch in session.engine().scan(&EVENTS, &columns, Some(is_work))? {
        let (starts, durations) = (batch.i64s(column::START_NS), batch.i64s(column::DURATION_NS));
        let (ranks, devices) = (batch.i64s(column::RANK), batch.i64s(column::DEVICE_ID));
        let index = batch.u32s(column::INDEX);
        let (comm_kinds, launches) = (batch.u8s(column::COMM_KIND), batch.u32s(column::LAUNCH));
        for at in 0..batch.num_rows() {
            let (Some(start_ns), Some(duration_ns)) = (value(starts, at), value(durations, at)) else {
                continue;
            };
            work.push(Work {
                index: index.value(at),
                interval: start_ns..start_ns + duration_ns,
                rank: value(ranks, at),
                device: value(devices, at),
                is_comm: comm_kinds.value(at) != 0,
                launch: value(launches, at).and_then(call),
            });
        }
    }
    Ok(work)
}

/// Returns, for each thread, the threads that run the backward operators of what it ran forward.
///
/// # Errors
/// What the engine reports.
pub(super) fn backward_threads(session: &TraceSession) -> Result<FxHashMap<u32, Vec<u32>>, Error> {
    let columns = [column::TRACK, column::FORWARD];
    let is_backward = col(column::FORWARD).is_not_null();
    let mut pairs = Vec::new();
    for batch in session.engine().scan(&EVENTS, &columns, Some(is_backward))? {
        let (tracks, forwards) = (batch.u32s(column::TRACK), batch.u32s(column::FORWARD));
        for at in 0..batch.num_rows() {
            if let Some(forward) = value(forwards, at) {
                pairs.push((forward, tracks.value(at)));
            }
        }
    }
    let mut threads: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    if pairs.is_empty() {
        return Ok(threads);
    }
    pairs.sort_unstable();
    let columns = [column::INDEX, column::TRACK];
    let is_op = type_among(&[RowType::CpuOp]);
    for batch in session.engine().scan(&EVENTS, &columns, Some(is_op))? {
        let (index, tracks) = (batch.u32s(column::INDEX), batch.u32s(column::TRACK));
        for at in 0..batch.num_rows() {
            let (forward, track) = (index.value(at), tracks.value(at));
            let from = pairs.partition_point(|(op, _)| *op < forward);
            for (_, backward) in pairs[from..].iter().take_while(|(op, _)| *op == forward) {
                let known = threads.entry(track).or_default();
                if *backward != track && !known.contains(backward) {
                    known.push(*backward);
                }
            }
        }
    }
    Ok(threads)
}
