//! Rows that a row is related to otherwise than by nesting, and what each relation rests on.

use datafusion::logical_expr::{Expr, col, lit};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::inventory::findings::code;
use crate::row::RowType;
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

use super::engine::{BatchColumns, value};
use super::event::{StoredEvent, events_where, index_among};
use super::filters::type_among;

/// What a link rests on, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Confidence {
    /// A correlation that one call and its device rows share.
    Correlation,
    /// The profiler's own link of forward and backward operators: a flow, or a sequence number.
    Autograd,
    /// One row lies within the other on one thread, or starts within it.
    Time,
    /// The number of an operator or annotation, repeated on the row.
    ExternalId,
    /// A correlation that several different calls carry; the longest of them was taken.
    Ambiguous,
}

/// Returns what the link from an operator to a call, or to a device row without one, rests on.
pub(crate) fn op_confidence(op: &StoredEvent, anchor: &StoredEvent) -> Confidence {
    let is_inside = op.track == anchor.track
        && op.start_ns <= anchor.start_ns
        && anchor.end_ns().is_some()
        && anchor.end_ns() <= op.end_ns();
    if is_inside {
        Confidence::Time
    } else {
        Confidence::ExternalId
    }
}

/// The rank and correlation of a launch.
pub(crate) type Correlation = (Option<i64>, i64);

/// Returns those of the given correlations that several different calls carry.
///
/// # Errors
/// What the engine reports.
pub(crate) fn ambiguous_among(
    session: &TraceSession,
    correlations: &[Correlation],
) -> Result<FxHashSet<Correlation>, Error> {
    let is_possible = !session.trust(&[code::LINK_AMBIGUOUS]).findings.is_empty();
    if !is_possible || correlations.is_empty() {
        return Ok(FxHashSet::default());
    }
    let numbers = correlations.iter().map(|(_, number)| lit(*number)).collect();
    let predicate = type_among(&[RowType::Runtime, RowType::Driver])
        .and(col(column::CORRELATION_ID).in_list(numbers, false));
    let columns = [column::RANK, column::CORRELATION_ID, column::NAME, column::TRACK];
    let mut calls: FxHashMap<Correlation, (Option<u32>, u32)> = FxHashMap::default();
    let mut ambiguous = FxHashSet::default();
    for batch in session.engine().scan(&EVENTS, &columns, Some(predicate))? {
        for at in 0..batch.num_rows() {
            let Some(number) = value(batch.i64s(column::CORRELATION_ID), at) else {
                continue;
            };
            let key = (value(batch.i64s(column::RANK), at), number);
            let call = (
                value(batch.u32s(column::NAME), at),
                batch.u32s(column::TRACK).value(at),
            );
            if *calls.entry(key).or_insert(call) != call {
                ambiguous.insert(key);
            }
        }
    }
    Ok(ambiguous)
}

/// Returns the row of each step, by rank and number: of several, the longest, and of equals the first.
///
/// # Errors
/// What the engine reports.
pub(crate) fn step_rows(
    session: &TraceSession,
    numbers: &[i64],
) -> Result<FxHashMap<(Option<i64>, i64), StoredEvent>, Error> {
    let mut steps: FxHashMap<(Option<i64>, i64), StoredEvent> = FxHashMap::default();
    if numbers.is_empty() {
        return Ok(steps);
    }
    let wanted = numbers.iter().map(|number| lit(*number)).collect();
    let predicate = type_among(&[RowType::Step]).and(col(column::STEP).in_list(wanted, false));
    for event in events_where(session, Some(predicate))? {
        let Some(number) = event.step else { continue };
        let key = (event.rank, number);
        if steps
            .get(&key)
            .is_none_or(|known| event.duration_ns > known.duration_ns)
        {
            steps.insert(key, event);
        }
    }
    Ok(steps)
}

/// Returns the annotation on the CPU that each annotation on a device projects, by the index of the latter.
///
/// They share name and external id; a row that has no counterpart, or several, is left out.
///
/// # Errors
/// What the engine reports.
pub(crate) fn projected_from(
    session: &TraceSession,
    projections: &[&StoredEvent],
) -> Result<FxHashMap<u32, StoredEvent>, Error> {
    let external: Vec<i64> = projections.iter().filter_map(|event| event.external_id).collect();
    if external.is_empty() {
        return Ok(FxHashMap::default());
    }
    let wanted = external.iter().map(|id| lit(*id)).collect();
    let predicate = type_among(&[RowType::Annotation, RowType::Step])
        .and(col(column::EXTERNAL_ID).in_list(wanted, false));
    let candidates: Vec<StoredEvent> = events_where(session, Some(predicate))?
        .into_iter()
        .filter(|event| !event.is_device_side())
        .collect();
    let mut sources = FxHashMap::default();
    for projection in projections {
        let mut fitting = candidates.iter().filter(|event| {
            event.external_id == projection.external_id
                && event.name == projection.name
                && event.rank == projection.rank
        });
        if let (Some(source), None) = (fitting.next(), fitting.next()) {
            sources.insert(projection.id.index, source.clone());
        }
    }
    Ok(sources)
}

/// A row that refers to one of some others, with its start for the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Referring {
    pub(crate) start_ns: Option<i64>,
    pub(crate) index: u32,
}

/// The rows that refer to each of some rows by one column, sorted by start, then index.
pub(crate) type ReferringRows = FxHashMap<u32, Vec<Referring>>;

/// Returns the rows that refer to any of the wanted rows, one map a column.
///
/// # Errors
/// What the engine reports.
pub(crate) fn referring<const N: usize>(
    session: &TraceSession,
    wanted: [(&'static str, &[u32]); N],
) -> Result<[ReferringRows; N], Error> {
    let mut found: [ReferringRows; N] = std::array::from_fn(|_| FxHashMap::default());
    let asked = || wanted.iter().filter(|(_, rows)| !rows.is_empty());
    let predicate: Option<Expr> = asked()
        .map(|(column, rows)| index_among(column, rows))
        .reduce(Expr::or);
    let Some(predicate) = predicate else {
        return Ok(found);
    };
    let columns: Vec<&str> = [column::INDEX, column::START_NS]
        .into_iter()
        .chain(asked().map(|(column, _)| *column))
        .collect();
    let sets: Vec<FxHashSet<u32>> = wanted
        .iter()
        .map(|(_, rows)| rows.iter().copied().collect())
        .collect();
    for batch in session.engine().scan(&EVENTS, &columns, Some(predicate))? {
        let (index, starts) = (batch.u32s(column::INDEX), batch.i64s(column::START_NS));
        for ((rows, set), (name, _)) in found.iter_mut().zip(&sets).zip(&wanted) {
            if set.is_empty() {
                continue;
            }
            let references = batch.u32s(name);
            for at in 0..batch.num_rows() {
                if let Some(target) = value(references, at).filter(|target| set.contains(target)) {
                    rows.entry(target).or_default().push(Referring {
                        start_ns: value(starts, at),
                        index: index.value(at),
                    });
                }
            }
        }
    }
    for rows in &mut found {
        rows.values_mut().for_each(|rows| rows.sort_unstable());
    }
    Ok(found)
}
