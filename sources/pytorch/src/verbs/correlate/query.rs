//! The queries of `correlate`: seeds, the rows around them, the device work below them.

use std::collections::BTreeMap;

use datafusion::logical_expr::{Expr, col, lit};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Error;
use crate::ingest::columns::NO_ROW;
use crate::query::chain::{ChainKind, Chains};
use crate::query::engine::{BatchColumns, value};
use crate::query::event::{StoredEvent, events_at, index_among};
use crate::query::filters::type_among;
use crate::query::related::{
    Correlation, ReferringRows, ambiguous_among, projected_from, referring, step_rows,
};
use crate::row::{RowId, RowType};
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

/// The types of device work.
pub(super) const WORK: [RowType; 3] = [RowType::Kernel, RowType::Memcpy, RowType::Memset];

/// Backward operators that are shown of one forward operator; healthy ones have two.
pub(super) const BACKWARD_SHOWN: usize = 50;

/// The device rows below a seed.
#[derive(Debug, Clone, Default)]
pub(super) struct Below {
    /// The first ones by start, then index: as many as the limit lets through.
    pub(super) shown: Vec<u32>,
    /// How many there are.
    pub(super) total: u64,
    /// The sum of their durations.
    pub(super) total_ns: i64,
    /// The one call that launched all of them; `None` when there are several, or none.
    pub(super) only_launch: Option<u32>,
}

/// A device row on its way into a [`Below`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Launched {
    start_ns: Option<i64>,
    index: u32,
    duration_ns: i64,
    launch: u32,
}

impl Below {
    fn of(mut rows: Vec<Launched>, limit: usize) -> Self {
        rows.sort_unstable();
        let first = rows.first().map_or(NO_ROW, |row| row.launch);
        let is_one = first != NO_ROW && rows.iter().all(|row| row.launch == first);
        Self {
            total: rows.len() as u64,
            total_ns: rows.iter().map(|row| row.duration_ns).sum(),
            only_launch: is_one.then_some(first),
            shown: rows.iter().take(limit).map(|row| row.index).collect(),
        }
    }
}

/// Everything that the answer is made of, by index.
pub(super) struct Surroundings {
    /// The seeds that are there, and all rows around and below them that are shown.
    pub(super) events: BTreeMap<u32, StoredEvent>,
    pub(super) ops: Chains,
    pub(super) annotations: Chains,
    pub(super) frames: Chains,
    pub(super) below: BTreeMap<u32, Below>,
    /// The backward operators of each operator.
    pub(super) backward: ReferringRows,
    pub(super) steps: FxHashMap<(Option<i64>, i64), StoredEvent>,
    pub(super) projected_from: FxHashMap<u32, StoredEvent>,
    pub(super) ambiguous: FxHashSet<Correlation>,
}

impl Surroundings {
    fn chains(&mut self, kind: ChainKind) -> &mut Chains {
        match kind {
            ChainKind::Op => &mut self.ops,
            ChainKind::Annotation => &mut self.annotations,
            ChainKind::Python => &mut self.frames,
        }
    }

    /// Returns the step row of a rank's step.
    pub(super) fn step_of(&self, event: &StoredEvent) -> Option<&StoredEvent> {
        self.steps.get(&(event.rank, event.step?))
    }
}

/// Returns whether a row, rather than the device rows' step column, decides what lies below a step.
fn is_numbered_step(seed: &StoredEvent, around: &Surroundings) -> bool {
    seed.id.row_type == RowType::Step && around.step_of(seed).is_some_and(|step| step.id == seed.id)
}

/// Reads the seeds and what surrounds them; at most `limit` device rows a seed.
pub(super) fn surroundings(
    session: &TraceSession,
    ids: &[RowId],
    limit: usize,
) -> Result<Surroundings, Error> {
    let mut asked: Vec<u32> = ids.iter().map(|id| id.index).collect();
    asked.sort_unstable();
    asked.dedup();
    let seeds: Vec<StoredEvent> = events_at(session, &asked)?
        .into_iter()
        .filter(|event| ids.contains(&event.id))
        .collect();
    let numbers: Vec<i64> = seeds.iter().filter_map(|seed| seed.step).collect();
    let projections: Vec<&StoredEvent> = seeds
        .iter()
        .filter(|seed| seed.is_device_side() && seed.id.row_type == RowType::Annotation)
        .collect();
    let mut around = Surroundings {
        events: BTreeMap::new(),
        ops: Chains::default(),
        annotations: Chains::default(),
        frames: Chains::default(),
        below: BTreeMap::new(),
        backward: FxHashMap::default(),
        steps: step_rows(session, &numbers)?,
        projected_from: projected_from(session, &projections)?,
        ambiguous: FxHashSet::default(),
    };
    let has = |kind: ChainKind, context: fn(&StoredEvent) -> Option<u32>| {
        seeds
            .iter()
            .any(|seed| context(seed).is_some() || ChainKind::of(seed.id.row_type) == Some(kind))
    };
    // Ops below a seed are shown with the ops around them, so their chain is always needed.
    *around.chains(ChainKind::Op) = Chains::load(session, ChainKind::Op)?;
    if has(ChainKind::Annotation, |seed| seed.annotation) {
        *around.chains(ChainKind::Annotation) = Chains::load(session, ChainKind::Annotation)?;
    }
    if has(ChainKind::Python, |seed| seed.python) {
        *around.chains(ChainKind::Python) = Chains::load(session, ChainKind::Python)?;
    }
    below_calls(session, &seeds, limit, &mut around)?;
    below_steps(session, &seeds, limit, &mut around)?;
    for kind in [ChainKind::Op, ChainKind::Annotation, ChainKind::Python] {
        let of_kind: Vec<&StoredEvent> = seeds
            .iter()
            .filter(|seed| ChainKind::of(seed.id.row_type) == Some(kind) && !seed.is_device_side())
            .filter(|seed| !is_numbered_step(seed, &around))
            .collect();
        below_ranges(session, kind, &of_kind, limit, &mut around)?;
    }
    read_shown(session, &seeds, &mut around)?;
    Ok(around)
}

/// Scans the device work that a predicate lets through: each row with the value of one more column.
fn scan_work(
    session: &TraceSession,
    predicate: Expr,
    mut take: impl FnMut(&arrow::record_batch::RecordBatch, usize, Launched),
    extra: &'static [&'static str],
) -> Result<(), Error> {
    let columns: Vec<&str> = [
        column::INDEX,
        column::START_NS,
        column::DURATION_NS,
        column::LAUNCH,
    ]
    .into_iter()
    .chain(extra.iter().copied())
    .collect();
    for batch in session.engine().scan(&EVENTS, &columns, Some(predicate))? {
        let (index, launches) = (batch.u32s(column::INDEX), batch.u32s(column::LAUNCH));
        let (starts, durations) = (batch.i64s(column::START_NS), batch.i64s(column::DURATION_NS));
        for at in 0..batch.num_rows() {
            let start_ns = value(starts, at);
            let row = Launched {
                start_ns,
                index: index.value(at),
                duration_ns: start_ns.and(value(durations, at)).unwrap_or(0),
                launch: value(launches, at).unwrap_or(NO_ROW),
            };
            take(&batch, at, row);
        }
    }
    Ok(())
}

/// Finds the device rows of calls: those that carry the call's correlation.
fn below_calls(
    session: &TraceSession,
    seeds: &[StoredEvent],
    limit: usize,
    around: &mut Surroundings,
) -> Result<(), Error> {
    let calls: Vec<u32> = seeds
        .iter()
        .filter(|seed| seed.id.row_type.is_api())
        .map(|seed| seed.id.index)
        .collect();
    if calls.is_empty() {
        return Ok(());
    }
    let mut found: FxHashMap<u32, Vec<Launched>> = FxHashMap::default();
    let predicate = index_among(column::LAUNCH, &calls);
    scan_work(
        session,
        predicate,
        |_, _, row| found.entry(row.launch).or_default().push(row),
        &[],
    )?;
    for call in calls {
        let rows = found.remove(&call).unwrap_or_default();
        around.below.insert(call, Below::of(rows, limit));
    }
    Ok(())
}

/// Finds the device rows of steps: those whose launch starts inside, on whatever thread of the rank.
fn below_steps(
    session: &TraceSession,
    seeds: &[StoredEvent],
    limit: usize,
    around: &mut Surroundings,
) -> Result<(), Error> {
    let steps: BTreeMap<(Option<i64>, i64), u32> = seeds
        .iter()
        .filter(|seed| is_numbered_step(seed, around))
        .filter_map(|seed| Some(((seed.rank, seed.step?), seed.id.index)))
        .collect();
    if steps.is_empty() {
        return Ok(());
    }
    let numbers = steps.keys().map(|(_, number)| lit(*number)).collect();
    let predicate = type_among(&WORK).and(col(column::STEP).in_list(numbers, false));
    let mut found: FxHashMap<u32, Vec<Launched>> = FxHashMap::default();
    scan_work(
        session,
        predicate,
        |batch, at, row| {
            let key = value(batch.i64s(column::STEP), at)
                .map(|number| (value(batch.i64s(column::RANK), at), number));
            if let Some(seed) = key.and_then(|key| steps.get(&key)) {
                found.entry(*seed).or_default().push(row);
            }
        },
        &[column::STEP, column::RANK],
    )?;
    for seed in steps.into_values() {
        let rows = found.remove(&seed).unwrap_or_default();
        around.below.insert(seed, Below::of(rows, limit));
    }
    Ok(())
}

/// Finds the device rows of operators, annotations or frames: those whose launch has the seed on its chain.
fn below_ranges(
    session: &TraceSession,
    kind: ChainKind,
    seeds: &[&StoredEvent],
    limit: usize,
    around: &mut Surroundings,
) -> Result<(), Error> {
    if seeds.is_empty() {
        return Ok(());
    }
    let wanted: FxHashSet<u32> = seeds.iter().map(|seed| seed.id.index).collect();
    let mut nearest = NearestSeed::new(around.chains(kind), &wanted);
    let context = kind.column();
    let mut found: FxHashMap<u32, Vec<Launched>> = FxHashMap::default();
    let extra: &'static [&'static str] = match kind {
        ChainKind::Op => &[column::OP],
        ChainKind::Annotation => &[column::ANNOTATION],
        ChainKind::Python => &[column::PYTHON],
    };
    let predicate = type_among(&WORK).and(col(context).is_not_null());
    scan_work(
        session,
        predicate,
        |batch, at, row| {
            let mut seed = nearest.of(value(batch.u32s(context), at));
            // No chain meets a seed twice; the bound keeps damaged tables from going round for ever.
            for _ in 0..wanted.len() {
                let Some(above) = seed else { break };
                found.entry(above).or_default().push(row);
                seed = nearest.of(nearest.chains.outer(above));
            }
        },
        extra,
    )?;
    for seed in seeds {
        let rows = found.remove(&seed.id.index).unwrap_or_default();
        around.below.insert(seed.id.index, Below::of(rows, limit));
    }
    Ok(())
}

/// Of each row, the innermost seed that is the row or around it; found once a row.
struct NearestSeed<'a> {
    chains: &'a Chains,
    seeds: &'a FxHashSet<u32>,
    known: FxHashMap<u32, Option<u32>>,
    path: Vec<u32>,
}

impl<'a> NearestSeed<'a> {
    fn new(chains: &'a Chains, seeds: &'a FxHashSet<u32>) -> Self {
        Self {
            chains,
            seeds,
            known: FxHashMap::default(),
            path: Vec::new(),
        }
    }

    fn of(&mut self, row: Option<u32>) -> Option<u32> {
        self.path.clear();
        let mut seed = None;
        for row in self.chains.inner_first(row) {
            if self.seeds.contains(&row) {
                seed = Some(row);
                break;
            }
            if let Some(known) = self.known.get(&row) {
                seed = *known;
                break;
            }
            self.path.push(row);
        }
        for row in &self.path {
            self.known.insert(*row, seed);
        }
        seed
    }
}

/// Reads all rows that are shown, in as few queries as their order allows.
fn read_shown(session: &TraceSession, seeds: &[StoredEvent], around: &mut Surroundings) -> Result<(), Error> {
    let mut indices: Vec<u32> = Vec::new();
    for below in around.below.values() {
        indices.extend(&below.shown);
    }
    let mut take = |event: StoredEvent| {
        around.events.insert(event.id.index, event);
    };
    for seed in seeds {
        take(seed.clone());
    }
    let device_rows = events_at(session, &indices)?;
    let launches: Vec<u32> = seeds
        .iter()
        .chain(&device_rows)
        .filter_map(|event| event.launch)
        .collect();
    for event in device_rows {
        take(event);
    }
    for event in events_at(session, &launches)? {
        take(event);
    }
    let mut contexts: Vec<u32> = Vec::new();
    for event in around.events.values() {
        contexts.extend(around.ops.inner_first(event.op));
    }
    for seed in seeds {
        contexts.extend(around.annotations.inner_first(seed.annotation));
        contexts.extend(around.frames.inner_first(seed.python));
        if seed.id.row_type == RowType::CpuOp {
            contexts.push(seed.id.index);
        }
    }
    contexts.sort_unstable();
    contexts.dedup();
    let context_rows = events_at(session, &contexts)?;
    let ops: Vec<u32> = seeds
        .iter()
        .flat_map(|seed| seed_ops(seed, &around.ops))
        .collect();
    for event in context_rows {
        around.events.insert(event.id.index, event);
    }
    let [backward] = referring(session, [(column::FORWARD, &ops)])?;
    let shown = |op: &u32| backward.get(op).into_iter().flatten().take(BACKWARD_SHOWN);
    let mut others: Vec<u32> = ops.iter().flat_map(shown).map(|row| row.index).collect();
    others.extend(
        ops.iter()
            .filter_map(|op| around.events.get(op))
            .filter_map(|op| op.forward),
    );
    around.backward = backward;
    for event in events_at(session, &others)? {
        around.events.entry(event.id.index).or_insert(event);
    }
    let correlations: Vec<Correlation> = around
        .events
        .values()
        .filter(|event| event.launch.is_some())
        .filter_map(|event| Some((event.rank, event.correlation_id?)))
        .collect();
    around.ambiguous = ambiguous_among(session, &correlations)?;
    Ok(())
}

/// Returns the operators around a seed, itself among them, outermost first.
pub(super) fn seed_ops(seed: &StoredEvent, ops: &Chains) -> Vec<u32> {
    let mut chain = ops.outer_first(seed.op);
    if seed.id.row_type == RowType::CpuOp {
        chain.push(seed.id.index);
    }
    chain
}
