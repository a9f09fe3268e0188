//! The queries of `search`.

use datafusion::logical_expr::Expr;
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::query::engine::{BatchColumns, value};
use crate::query::event::{EventRow, events_at, events_where};
use crate::query::page::Sort;
use crate::session::{StringTable, TraceSession};
use crate::tables::events::{EVENTS, column};

use super::best::Best;

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

/// Returns the indices of the first `wanted` events that a predicate lets through, in the order asked for (that
/// of the file when none is), and how many it lets through in all.
///
/// # Errors
/// What the engine reports.
pub(super) fn matching(
    session: &TraceSession,
    predicate: Option<Expr>,
    sort: Option<Sort>,
    wanted: usize,
) -> Result<(Vec<u32>, u64), Error> {
    let Sort { field, is_descending } = sort.unwrap_or(Sort {
        field: column::INDEX,
        is_descending: false,
    });
    let mut columns = vec![column::INDEX];
    columns.extend((field != column::INDEX).then_some(field));
    let name_places = if field == column::NAME {
        alphabetical(session.strings()?)
    } else {
        Vec::new()
    };
    let parts = session.engine().fold(
        &EVENTS,
        &columns,
        predicate,
        || Best::new(wanted, is_descending),
        |best, batch| {
            let index = batch.u32s(column::INDEX);
            match field {
                column::INDEX => index
                    .values()
                    .iter()
                    .for_each(|at| best.add(Some(i64::from(*at)), *at)),
                column::NAME => {
                    let names = batch.u32s(column::NAME);
                    for at in 0..batch.num_rows() {
                        let place = value(names, at).and_then(|name| name_places.get(name as usize).copied());
                        best.add(place, index.value(at));
                    }
                }
                field => {
                    let values = batch.i64s(field);
                    for at in 0..batch.num_rows() {
                        best.add(value(values, at), index.value(at));
                    }
                }
            }
            Ok(())
        },
    )?;
    let mut all = Best::new(wanted, is_descending);
    for part in parts {
        all.append(part);
    }
    Ok(all.finish())
}

/// Returns, by string id, where each text stands among all in the order of their bytes.
fn alphabetical(strings: &StringTable) -> Vec<i64> {
    let mut sorted: Vec<(&str, usize)> = strings.iter().zip(0..).collect();
    sorted.sort_unstable();
    let mut places = vec![0; sorted.len()];
    for (place, (_, id)) in (0_i64..).zip(sorted) {
        places[id] = place;
    }
    places
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
