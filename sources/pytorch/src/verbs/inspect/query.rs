//! The queries of `inspect`: the rows asked for, then everything they refer to and all that refers to them.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::value::RawValue;

use crate::error::Error;
use crate::inventory::findings::code;
use crate::query::chain::{ChainKind, Chains};
use crate::query::engine::{BatchColumns, value};
use crate::query::event::{StoredEvent, events_at, index_among};
use crate::query::related::{
    Correlation, Referring, ReferringRows, ambiguous_among, projected_from, referring, step_rows,
};
use crate::row::{RowId, RowType};
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};
use crate::tables::texts::ARGS;

/// Rows that are shown of a list: children, launched rows.
pub(super) const SHOWN: usize = 50;

/// The times of a row that are not part of an event row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OwnTimes {
    pub(super) self_ns: Option<i64>,
    pub(super) gpu_self_ns: Option<i64>,
    pub(super) gpu_total_ns: Option<i64>,
}

/// Everything that the answer is made of, by index.
pub(super) struct Surroundings {
    /// The rows asked for that are there, and all related rows that are shown.
    pub(super) events: FxHashMap<u32, StoredEvent>,
    pub(super) args: FxHashMap<u32, String>,
    pub(super) times: FxHashMap<u32, OwnTimes>,
    pub(super) children: ReferringRows,
    pub(super) launched: ReferringRows,
    pub(super) backward: ReferringRows,
    pub(super) frames: Chains,
    pub(super) steps: FxHashMap<(Option<i64>, i64), StoredEvent>,
    pub(super) projected_from: FxHashMap<u32, StoredEvent>,
    pub(super) ambiguous: FxHashSet<Correlation>,
}

/// Reads the rows asked for and what surrounds them.
pub(super) fn surroundings(session: &TraceSession, ids: &[RowId]) -> Result<Surroundings, Error> {
    let mut asked: Vec<u32> = ids.iter().map(|id| id.index).collect();
    asked.sort_unstable();
    asked.dedup();
    let found: Vec<StoredEvent> = events_at(session, &asked)?
        .into_iter()
        .filter(|event| ids.contains(&event.id))
        .collect();
    let among = |test: fn(&StoredEvent) -> bool| -> Vec<u32> {
        let fitting = found.iter().filter(|event| test(event));
        fitting.map(|event| event.id.index).collect()
    };
    let all = among(|_| true);
    let [children, launched, backward] = referring(
        session,
        [
            (
                column::PARENT,
                &among(|event| ChainKind::of(event.id.row_type).is_some() || event.id.row_type.is_api()),
            ),
            (column::LAUNCH, &among(|event| event.id.row_type.is_api())),
            (
                column::FORWARD,
                &among(|event| event.id.row_type == RowType::CpuOp),
            ),
        ],
    )?;
    let frames = if found.iter().any(|event| event.python.is_some()) {
        Chains::load(session, ChainKind::Python)?
    } else {
        Chains::default()
    };
    let numbers: Vec<i64> = found.iter().filter_map(|event| event.step).collect();
    let projections: Vec<&StoredEvent> = found
        .iter()
        .filter(|event| event.is_device_side() && event.id.row_type == RowType::Annotation)
        .collect();
    let correlations: Vec<Correlation> = found
        .iter()
        .filter(|event| event.launch.is_some())
        .filter_map(|event| Some((event.rank, event.correlation_id?)))
        .collect();
    let mut surroundings = Surroundings {
        events: FxHashMap::default(),
        args: args(session, &all)?,
        times: own_times(session, &all)?,
        children,
        launched,
        backward,
        frames,
        steps: step_rows(session, &numbers)?,
        projected_from: projected_from(session, &projections)?,
        ambiguous: ambiguous_among(session, &correlations)?,
    };
    let related = events_at(session, &surroundings.related(&found))?;
    for event in related.into_iter().chain(found) {
        surroundings.events.insert(event.id.index, event);
    }
    Ok(surroundings)
}

impl Surroundings {
    /// Returns the indices of all rows that the answer shows beside those asked for.
    fn related(&self, found: &[StoredEvent]) -> Vec<u32> {
        let shown = |rows: &ReferringRows| -> Vec<u32> {
            let firsts = rows.values().flat_map(|rows| rows.iter().take(SHOWN));
            firsts.map(|row: &Referring| row.index).collect()
        };
        let mut related = shown(&self.children);
        related.extend(shown(&self.launched));
        related.extend(shown(&self.backward));
        for event in found {
            related.extend(
                [
                    event.parent,
                    event.op,
                    event.annotation,
                    event.module,
                    event.launch,
                    event.forward,
                ]
                .into_iter()
                .flatten(),
            );
            related.extend(self.frames.inner_first(event.python));
        }
        related.sort_unstable();
        related.dedup();
        related
    }
}

/// Returns the args of rows as they are stored.
fn args(session: &TraceSession, indices: &[u32]) -> Result<FxHashMap<u32, String>, Error> {
    let mut args = FxHashMap::default();
    if indices.is_empty() {
        return Ok(args);
    }
    let columns = ["index", "args"];
    for batch in session
        .engine()
        .scan(&ARGS, &columns, Some(index_among("index", indices)))?
    {
        let (index, texts) = (batch.u32s("index"), batch.binaries("args"));
        for at in 0..batch.num_rows() {
            let text = String::from_utf8_lossy(texts.value(at)).into_owned();
            args.insert(index.value(at), text);
        }
    }
    Ok(args)
}

fn own_times(session: &TraceSession, indices: &[u32]) -> Result<FxHashMap<u32, OwnTimes>, Error> {
    let mut times = FxHashMap::default();
    if indices.is_empty() {
        return Ok(times);
    }
    let columns = [
        column::INDEX,
        column::SELF_NS,
        column::GPU_SELF_NS,
        column::GPU_TOTAL_NS,
    ];
    for batch in session
        .engine()
        .scan(&EVENTS, &columns, Some(index_among(column::INDEX, indices)))?
    {
        let time = |name, at| value(batch.i64s(name), at);
        for at in 0..batch.num_rows() {
            let own = OwnTimes {
                self_ns: time(column::SELF_NS, at),
                gpu_self_ns: time(column::GPU_SELF_NS, at),
                gpu_total_ns: time(column::GPU_TOTAL_NS, at),
            };
            times.insert(batch.u32s(column::INDEX).value(at), own);
        }
    }
    Ok(times)
}

/// Returns args as JSON that is passed on untouched; text that is no JSON is passed on in quotes.
pub(super) fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned())
        .or_else(|_| serde_json::value::to_raw_value(text))
        .ok()
}

/// Returns why an id is of no row.
pub(crate) fn reason_not_found(
    session: &TraceSession,
    id: RowId,
    other: Option<RowId>,
) -> Result<String, Error> {
    if let Some(other) = other {
        return Ok(format!(
            "element {} is of type `{}`: its row id is `{other}`",
            id.index,
            other.row_type.name()
        ));
    }
    let counts = &session.inventory().phase_counts;
    let count = |phases: &[&str]| -> u64 {
        phases
            .iter()
            .filter_map(|phase| counts.get(*phase)?.as_u64())
            .sum()
    };
    let all: u64 = counts.values().filter_map(serde_json::Value::as_u64).sum();
    let skipped: u64 = session
        .trust(&[code::SKIPPED_EVENTS])
        .findings
        .iter()
        .map(|finding| finding.count)
        .sum();
    let elements = all - count(&["s", "t", "f"]) + skipped;
    Ok(if u64::from(id.index) >= elements {
        format!(
            "element {} is beyond the end: the file has {elements}, flow markers apart",
            id.index
        )
    } else if skipped > 0 {
        format!(
            "element {} is metadata, or damaged and was passed over: it is no row",
            id.index
        )
    } else {
        format!("element {} is metadata: it is no row", id.index)
    })
}
