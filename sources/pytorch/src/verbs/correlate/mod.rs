//! `correlate`: from a row to its causes and its effects.
//!
//! # The walk
//! Up: the step, the annotations, Python frames and operators around the seed, outermost first; of a device
//! row those around its launch, which comes before it. Each kind has its own chain, for rows of two kinds
//! may cross. Down: of a call all device rows that carry its correlation (of a graph launch many), of an
//! operator, an annotation or a frame those launched anywhere inside it on its thread, of a step those
//! launched inside it on any thread of the rank. Their durations add up to what `stats` calls the row's
//! total device time. Across: forward and backward operators, annotations and their projections on a stream.
//!
//! # Launch times
//! ```text
//! stream   |== earlier work ==|                    free at 40
//! call        |--|                                 10..20
//! kernel                          |=====|          starts at 50
//! ```
//! `api_ns` = 10; `launch_to_start_ns` = 50 - 10 = 40; `queue_ns` = 40 - 20 = 20: the time between the end of the
//! call and the start of the device row in which earlier work kept the stream busy. The rest is latency, or
//! waiting for another stream. A device row that starts before its call shows that the two clocks
//! contradict each other: then the last two are null.

mod chain;
mod query;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use veloq_core::{
    Cell, Column, Example, Failure, Page, Section, Table, TableView, Trust, Unit, Verb, VerbSpec,
};

use crate::inventory::findings::code;
use crate::query::event::{EventRow, events_at};
use crate::query::related::Confidence;
use crate::session::TraceSession;
use crate::verbs::inspect::{RowScope, parse_row_ids, reason_not_found};

/// Follows rows up to the code that caused them and down to the device work they launched
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Request {
    /// Row ids, as other answers show them: `kernel:91`
    #[arg(value_name = "ROW_ID", required = true)]
    row_ids: Vec<String>,
    /// Device rows to show of each seed at most; 0 for all
    #[arg(long, value_name = "N", default_value_t = Self::default().limit)]
    limit: u64,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            row_ids: Vec::new(),
            limit: 50,
        }
    }
}

/// One seed, with all that it is correlated with.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CorrelateRow {
    /// The seed's row id.
    key: String,
    /// The seed's row id.
    seed: String,
    /// The seed and the rows it is correlated with: by role, and outermost first within a role.
    events: Vec<ChainEvent>,
    /// How the rows belong together, in the order of `events`.
    links: Vec<LinkRow>,
    /// How the device row was launched; null unless the seed is a device row, or one call launched all of its
    /// device rows.
    launch: Option<LaunchTimes>,
    /// Device rows launched by the seed, or anywhere under it; 1 of a device row.
    device_total: u64,
    /// The sum of their durations in ns.
    device_total_ns: i64,
    /// Why the chain is incomplete, or a time in it unknown; null when neither is.
    reason: Option<String>,
}

/// A row of a chain: an event row with its role.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = close)]
pub(crate) struct ChainEvent {
    /// What the row is in the chain.
    role: Role,
    #[serde(flatten)]
    event: EventRow,
}

/// Closes an object's schema; flattened ones are open, whatever their parts say.
fn close(schema: &mut schemars::Schema) {
    schema.insert("additionalProperties".to_owned(), false.into());
}

/// What a row is in a chain; the order is that of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Role {
    /// The step in which the seed, or its launch, starts.
    Step,
    /// An annotation around it.
    Annotation,
    /// A Python frame or module call around it.
    Python,
    /// An operator around it, or between it and a launch below.
    CpuOp,
    /// A runtime call.
    Runtime,
    /// A driver call.
    Driver,
    /// Device work, or a row of synchronisation.
    Device,
    /// The forward operator of one in the chain.
    Forward,
    /// A backward operator of one in the chain.
    Backward,
    /// A seed of another type.
    Other,
}

/// How two rows belong together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkRow {
    /// The outer row, the cause, the forward operator.
    from_row_id: String,
    /// The inner row, the effect, the backward operator.
    to_row_id: String,
    /// What joins them.
    kind: LinkKind,
    /// What the link rests on.
    confidence: Confidence,
}

/// What joins two rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LinkKind {
    /// The second row lies within the first on its thread; rows between them may be left out.
    Encloses,
    /// The second row starts within the first, a step, on another thread.
    Step,
    /// The first row, a call, launched the second.
    Launches,
    /// The second row is a backward operator of the first.
    ForwardBackward,
    /// The second row shows the first, an annotation, on a device's stream.
    Projects,
}

/// Times of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LaunchTimes {
    /// The call.
    launch_row_id: String,
    /// The device row: the seed, or the first that the call launched.
    device_row_id: String,
    /// Duration of the call in ns.
    api_ns: Option<i64>,
    /// From the start of the call to the start of the device row in ns; null when the clocks contradict.
    launch_to_start_ns: Option<i64>,
    /// The part between the end of the call and the start of the device row in which earlier work kept the
    /// stream busy, in ns; null when the clocks contradict.
    queue_ns: Option<i64>,
}

/// Whether the answer is whole, and how far it can be believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auxiliary {
    /// The rows asked for.
    scope: RowScope,
    /// Whether some seed has more device rows than `--limit` lets through.
    truncated: bool,
    /// Always null: every seed has its row.
    next_offset: Option<u64>,
    /// The findings that touch these rows.
    trust: Trust,
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Response(Page<CorrelateRow, Auxiliary>);

/// The verb.
pub(crate) struct Correlate;

impl Verb for Correlate {
    type Session = TraceSession;
    type Request = Request;
    type Response = Response;
    const SPEC: VerbSpec = VerbSpec {
        name: "correlate",
        about: "What caused this row, and what did it cause?",
        examples: &[
            Example {
                asks: "Which code launched a kernel, and how long it waited",
                command: "pytorch correlate TRACE kernel:25",
            },
            Example {
                asks: "Which device work an operator launched, and its backward operator",
                command: "pytorch correlate TRACE cpu_op:22",
            },
            Example {
                asks: "The first five device rows of a step",
                command: "pytorch correlate TRACE step:0 --limit 5",
            },
        ],
    };

    fn run(&self, session: &TraceSession, request: Request) -> Result<Response, Failure> {
        let ids = parse_row_ids(&request.row_ids)?;
        let limit = match request.limit {
            0 => usize::MAX,
            limit => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        let around = query::surroundings(session, &ids, limit)?;
        let lost: Vec<u32> = ids.iter().map(|id| id.index).collect();
        let others = events_at(session, &lost)?;
        let mut is_truncated = false;
        let mut rows = Vec::with_capacity(ids.len());
        for (key, id) in request.row_ids.iter().zip(&ids) {
            match around.events.get(&id.index).filter(|event| event.id == *id) {
                Some(seed) => {
                    let walked = chain::walk(session, seed, &around)?;
                    is_truncated |= walked.is_truncated;
                    rows.push(walked.row);
                }
                None => {
                    let other = others.iter().find(|event| event.id.index == id.index);
                    let reason = reason_not_found(session, *id, other.map(|event| event.id))?;
                    rows.push(CorrelateRow {
                        key: key.clone(),
                        seed: key.clone(),
                        events: Vec::new(),
                        links: Vec::new(),
                        launch: None,
                        device_total: 0,
                        device_total_ns: 0,
                        reason: Some(reason),
                    });
                }
            }
        }
        let mut codes: Vec<&str> = Vec::new();
        codes.extend([
            code::CLOCK_INVERSION,
            code::GPU_MISSING,
            code::UNLINKED_ROWS,
            code::IMPOSSIBLE_OVERLAP,
            code::GRAPH_PARTIAL,
            code::LINK_AMBIGUOUS,
            code::EXTERNAL_ID_UNTRUSTED,
            code::CROSSING_ROWS,
        ]);
        let auxiliary = Auxiliary {
            scope: RowScope::new(&request.row_ids),
            truncated: is_truncated,
            next_offset: None,
            trust: session.trust(&codes),
        };
        let total = rows.len() as u64;
        Ok(Response(Page::new(rows, total, auxiliary)))
    }
}

impl TableView for Response {
    fn table(&self) -> Table {
        let columns = || {
            let mut columns = vec![Column::new("seed", Unit::Id), Column::new("role", Unit::Text)];
            columns.extend(EventRow::columns());
            columns
        };
        let cells = |row: &CorrelateRow, event: &ChainEvent| {
            let mut cells = vec![Cell::from(row.seed.as_str()), Cell::from(event.role.name())];
            cells.extend(event.event.cells());
            cells
        };
        let seeds = Section {
            title: None,
            columns: vec![
                Column::detail("key", Unit::Id),
                Column::new("seed", Unit::Id),
                Column::new("device_total", Unit::Count),
                Column::new("device_total_ns", Unit::Nanoseconds),
                Column::detail("launch_row_id", Unit::Id),
                Column::detail("device_row_id", Unit::Id),
                Column::new("api_ns", Unit::Nanoseconds),
                Column::new("launch_to_start_ns", Unit::Nanoseconds),
                Column::new("queue_ns", Unit::Nanoseconds),
                Column::new("reason", Unit::Text),
            ],
            rows: self.0.rows.iter().map(CorrelateRow::cells).collect(),
        };
        let chains = self.0.rows.iter().map(|row| Section {
            title: Some(format!("chain of {}", row.seed)),
            columns: columns(),
            rows: row.events.iter().map(|event| cells(row, event)).collect(),
        });
        Table {
            sections: std::iter::once(seeds).chain(chains).collect(),
            total_matched: self.0.total_matched,
            notes: self.0.auxiliary.trust.details(),
        }
    }
}

impl CorrelateRow {
    fn cells(&self) -> Vec<Cell> {
        let launch = self.launch.as_ref();
        vec![
            Cell::from(self.key.as_str()),
            Cell::from(self.seed.as_str()),
            Cell::from(self.device_total),
            Cell::from(self.device_total_ns),
            Cell::from(launch.map(|launch| launch.launch_row_id.clone())),
            Cell::from(launch.map(|launch| launch.device_row_id.clone())),
            Cell::from(launch.and_then(|launch| launch.api_ns)),
            Cell::from(launch.and_then(|launch| launch.launch_to_start_ns)),
            Cell::from(launch.and_then(|launch| launch.queue_ns)),
            Cell::from(self.reason.clone()),
        ]
    }
}

impl Role {
    /// Returns the role as answers spell it.
    fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Annotation => "annotation",
            Self::Python => "python",
            Self::CpuOp => "cpu_op",
            Self::Runtime => "runtime",
            Self::Driver => "driver",
            Self::Device => "device",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Other => "other",
        }
    }
}
