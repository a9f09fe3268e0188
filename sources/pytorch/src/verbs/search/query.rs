//! The queries of `search`.

use std::cmp::Ordering;

use datafusion::logical_expr::Expr;
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::query::engine::{BatchColumns, value};
use crate::query::event::{EventRow, events_at, events_where};
use crate::query::page::Sort;
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

/// What rows can be sorted by.
pub(super) const SORT_FIELDS: &[&str] = &[
    column::INDEX,
    column::START_NS,
    column::DURATION_NS,
    column::NAME,
    column::BYTES,
];

/// Pages up to this size are read by index; larger ones by the predicate, with what is not wanted dropped.
const BY_INDEX: usize = 2_000;

/// Returns the indices of the events that a predicate lets through, sorted.
pub(super) fn matching(
    session: &TraceSession,
    predicate: Option<Expr>,
    sort: Option<Sort>,
) -> Result<Vec<u32>, Error> {
    let by = sort
        .map(|sort| sort.field)
        .filter(|field| *field != column::INDEX);
    let columns: Vec<&str> = std::iter::once(column::INDEX).chain(by).collect();
    let batches = session.engine().scan(&EVENTS, &columns, predicate)?;
    let mut indices: Vec<u32> = Vec::new();
    for batch in &batches {
        indices.extend_from_slice(batch.u32s(column::INDEX).values());
    }
    let Some(sort) = sort else { return Ok(indices) };
    match by {
        None if sort.is_descending => indices.reverse(),
        None => {}
        Some(column::NAME) => {
            let strings = session.strings()?;
            let mut keyed: Vec<(Option<&str>, u32)> = Vec::with_capacity(indices.len());
            for batch in &batches {
                let (names, index) = (batch.u32s(column::NAME), batch.u32s(column::INDEX));
                keyed.extend(
                    (0..batch.num_rows())
                        .map(|at| (value(names, at).map(|name| strings.get(name)), index.value(at))),
                );
            }
            indices = sorted(keyed, sort.is_descending);
        }
        Some(field) => {
            let mut keyed: Vec<(Option<i64>, u32)> = Vec::with_capacity(indices.len());
            for batch in &batches {
                let (values, index) = (batch.i64s(field), batch.u32s(column::INDEX));
                keyed.extend((0..batch.num_rows()).map(|at| (value(values, at), index.value(at))));
            }
            indices = sorted(keyed, sort.is_descending);
        }
    }
    Ok(indices)
}

/// Returns the indices sorted by value, then index; those without a value last.
fn sorted<T: Ord>(mut keyed: Vec<(Option<T>, u32)>, is_descending: bool) -> Vec<u32> {
    keyed.sort_by(|(a, a_index), (b, b_index)| {
        let by_value = match (a, b) {
            (Some(a), Some(b)) if is_descending => b.cmp(a),
            (Some(a), Some(b)) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        by_value.then(a_index.cmp(b_index))
    });
    keyed.into_iter().map(|(_, index)| index).collect()
}

/// Returns the rows of a page, in its order.
pub(super) fn rows(
    session: &TraceSession,
    page: &[u32],
    total_matched: u64,
    predicate: Option<Expr>,
) -> Result<Vec<EventRow>, Error> {
    let is_whole = page.len() as u64 == total_matched;
    let events = if page.len() <= BY_INDEX && !is_whole {
        events_at(session, page)?
    } else {
        events_where(session, predicate)?
    };
    let mut by_index: FxHashMap<u32, usize> = FxHashMap::default();
    for (at, event) in events.iter().enumerate() {
        by_index.insert(event.id.index, at);
    }
    page.iter()
        .map(|index| {
            let at = by_index.get(index).ok_or(Error::Internal {
                what: "a matched event is gone",
            })?;
            events[*at].row(session)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_is_total_and_puts_unknown_last() {
        let keyed = vec![(None, 0), (Some(5), 1), (Some(9), 2), (Some(5), 3)];
        assert_eq!(sorted(keyed.clone(), false), [1, 3, 2, 0]);
        assert_eq!(sorted(keyed, true), [2, 1, 3, 0]);
    }
}
