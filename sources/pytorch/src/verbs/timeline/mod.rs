//! `timeline`: what is busy when.
//!
//! The window is cut into buckets aligned to its start. In each, times are lengths of unions: of operators
//! over all threads of a rank, of device work per device, of communication per device. Times of several
//! ranks, and of several devices, are added. Rows are cut at the edges of buckets, so that the buckets of a
//! column add up to the union over the window.
//!
//! Communication is *exposed* while no kernel that computes runs on the same device; copies and fills do not
//! hide it.

mod query;

use std::ops::Range;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use veloq_core::{
    Cell, Column, Example, Failure, Page, Section, Table, TableView, Trust, Unit, Verb, VerbSpec, parse_time,
};

use crate::error::Error;
use crate::inventory::findings::code;
use crate::query::filters::{Filters, Scope, window_within};
use crate::row::RowType;
use crate::session::TraceSession;
use crate::verbs::picture::{Picture, PictureArgs, Subject, draw};

use query::{Bucket, Buckets, buckets};

/// The most buckets of one answer.
const MAX_BUCKETS: u64 = 100_000;

/// Cuts the window into intervals and tells what was busy in each
///
/// The window is the trace's span, or what --from and --to leave of it. Rows of all types are taken unless
/// --type says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Request {
    #[command(flatten)]
    #[serde(flatten)]
    filters: Filters,
    /// Length of a bucket: `500us`, `1ms`; a hundredth of the window unless given
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,
    /// Buckets to show at most; 0 for all
    #[arg(long, value_name = "N", default_value_t = Self::default().limit)]
    limit: u64,
    /// Buckets to pass over first
    #[arg(long, value_name = "N", default_value_t = Self::default().offset)]
    offset: u64,
    #[command(flatten)]
    #[serde(flatten)]
    picture: PictureArgs,
}

/// One bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BucketRow {
    /// `bucket|<start>..<end>`.
    key: String,
    /// Start in ns since the trace's origin.
    start_ns: i64,
    /// End in ns since the origin, itself outside; the last bucket ends with the window.
    end_ns: i64,
    /// Time in which some operator ran on some thread.
    cpu_ns: i64,
    /// Busy time of the devices in scope, added; null when the device rows are missing.
    gpu_ns: Option<i64>,
    /// Busy time of communication on the devices; null likewise.
    comm_ns: Option<i64>,
    /// The part of it in which the same device computed nothing; null likewise.
    exposed_comm_ns: Option<i64>,
    /// Rows that start in the bucket.
    event_count: u64,
    /// Busy time of each type that occurs in the window.
    by_type_ns: Map<String, Value>,
}

/// What the answer is of, and whether it is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auxiliary {
    /// The filters as understood.
    scope: Scope,
    /// Start of the window in ns since the origin.
    window_start_ns: i64,
    /// End of the window in ns since the origin, itself outside.
    window_end_ns: i64,
    /// Length of a bucket.
    interval_ns: i64,
    /// Devices in scope: no bucket's device time exceeds its length times this number.
    device_count: u64,
    /// Whether buckets follow behind the last row.
    truncated: bool,
    /// The `--offset` of the next page; null when there is none.
    next_offset: Option<u64>,
    /// The picture that was drawn; left out when none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<Picture>,
    /// The findings that touch these numbers.
    trust: Trust,
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Response(Page<BucketRow, Auxiliary>);

/// The verb.
pub(crate) struct Timeline;

const TRUST: &[&str] = &[
    code::GPU_MISSING,
    code::IMPOSSIBLE_OVERLAP,
    code::GRAPH_PARTIAL,
    code::RANK_MERGED_FILE,
    code::COMM_UNCLASSIFIED,
];

impl Verb for Timeline {
    type Session = TraceSession;
    type Request = Request;
    type Response = Response;
    const SPEC: VerbSpec = VerbSpec {
        name: "timeline",
        about: "What is busy when, and where are the gaps?",
        examples: &[
            Example {
                asks: "Busy time millisecond by millisecond",
                command: "pytorch timeline TRACE --interval 1ms",
            },
            Example {
                asks: "The first two milliseconds, closely",
                command: "pytorch timeline TRACE --to 2ms --interval 100us",
            },
            Example {
                asks: "Communication and how much of it is exposed",
                command: "pytorch timeline TRACE --interval 1ms --type kernel --format table",
            },
            Example {
                asks: "A picture: what ran where, and the gaps",
                command: "pytorch timeline TRACE --svg timeline.svg",
            },
        ],
    };

    fn run(&self, session: &TraceSession, request: Request) -> Result<Response, Failure> {
        let resolved = request.filters.resolve(session, &[])?;
        let window = window_within(&resolved.scope, session);
        let interval_ns = interval_ns(request.interval.as_deref(), &window)?;
        let Buckets { buckets, types } = buckets(session, resolved.predicate.clone(), &window, interval_ns)?;
        let is_gpu_missing = session.is_gpu_missing();
        let rows: Vec<BucketRow> = buckets
            .into_iter()
            .zip((window.start..window.end).step_by(usize::try_from(interval_ns).unwrap_or(usize::MAX)))
            .map(|(bucket, start_ns)| {
                row(
                    &bucket,
                    start_ns..window.end.min(start_ns.saturating_add(interval_ns)),
                    &types,
                    is_gpu_missing,
                )
            })
            .collect();
        let total_matched = rows.len() as u64;
        let page = crate::query::page::PageArgs {
            limit: request.limit,
            offset: request.offset,
        };
        let (rows, cut) = page.cut(rows);
        let subject = Subject {
            verb: "timeline",
            predicate: resolved.predicate,
            is_wanted: |_| true,
            window: window.clone(),
        };
        let draw_to = |path: &String| draw(session, subject, path);
        let auxiliary = Auxiliary {
            picture: request.picture.svg.as_ref().map(draw_to).transpose()?,
            device_count: devices_in(session, &resolved.scope),
            scope: resolved.scope,
            window_start_ns: window.start,
            window_end_ns: window.end,
            interval_ns,
            truncated: cut.is_truncated,
            next_offset: cut.next_offset,
            trust: session.trust(TRUST),
        };
        Ok(Response(Page::new(rows, total_matched, auxiliary)))
    }
}

/// Returns the length of a bucket, after checking that the window does not fall into too many.
fn interval_ns(interval: Option<&str>, window: &Range<i64>) -> Result<i64, Error> {
    let length_ns = window.end - window.start;
    let interval_ns = match interval {
        Some(text) => {
            let invalid = |problem| Error::InvalidFlag {
                flag: "--interval",
                problem,
            };
            let interval_ns = parse_time(text).map_err(invalid)?;
            if interval_ns <= 0 {
                return Err(invalid(format!("`{text}` is not a positive time")));
            }
            interval_ns
        }
        None => (length_ns / 100).max(1),
    };
    let buckets = u64::try_from(length_ns.div_euclid(interval_ns)).unwrap_or(0);
    if buckets > MAX_BUCKETS {
        let at_least_ns = u64::try_from(length_ns).unwrap_or(0).div_ceil(MAX_BUCKETS);
        return Err(Error::TooManyBuckets {
            buckets,
            limit: MAX_BUCKETS,
            at_least_ns,
        });
    }
    Ok(interval_ns)
}

fn devices_in(session: &TraceSession, scope: &Scope) -> u64 {
    let ranks = session
        .ranks()
        .iter()
        .filter(|rank| scope.rank.is_none() || rank.rank == scope.rank);
    let devices = ranks.flat_map(|rank| &rank.device_ids);
    devices
        .filter(|device| scope.device_id.is_none_or(|wanted| wanted == **device))
        .count() as u64
}

fn row(bucket: &Bucket, range: Range<i64>, types: &[RowType], is_gpu_missing: bool) -> BucketRow {
    let device = |ns: i64| (!is_gpu_missing).then_some(ns);
    let by_type = |row_type: &RowType| {
        (
            row_type.name().to_owned(),
            bucket.by_type_ns[usize::from(row_type.code())].into(),
        )
    };
    BucketRow {
        key: format!("bucket|{}..{}", range.start, range.end),
        start_ns: range.start,
        end_ns: range.end,
        cpu_ns: bucket.cpu_ns,
        gpu_ns: device(bucket.gpu_ns),
        comm_ns: device(bucket.comm_ns),
        exposed_comm_ns: device(bucket.exposed_comm_ns),
        event_count: bucket.event_count,
        by_type_ns: types.iter().map(by_type).collect(),
    }
}

impl TableView for Response {
    fn table(&self) -> Table {
        let mut columns = vec![
            Column::detail("key", Unit::Text),
            Column::new("start_ns", Unit::Nanoseconds),
            Column::detail("end_ns", Unit::Nanoseconds),
            Column::new("cpu_ns", Unit::Nanoseconds),
            Column::new("gpu_ns", Unit::Nanoseconds),
            Column::new("gpu_busy_ratio", Unit::Ratio),
            Column::new("comm_ns", Unit::Nanoseconds),
            Column::new("exposed_comm_ns", Unit::Nanoseconds),
            Column::new("event_count", Unit::Count),
        ];
        let types: Vec<&String> = self
            .0
            .rows
            .first()
            .map_or_else(Vec::new, |row| row.by_type_ns.keys().collect());
        columns.extend(
            types
                .iter()
                .map(|name| Column::detail(format!("by_type_ns.{name}"), Unit::Nanoseconds)),
        );
        let devices = self.0.auxiliary.device_count.max(1);
        let cells = |row: &BucketRow| {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a share needs no more than the 53 bits of a float"
            )]
            let busy = row
                .gpu_ns
                .map(|gpu| gpu as f64 / (devices as f64 * (row.end_ns - row.start_ns) as f64));
            let mut cells = vec![
                Cell::from(row.key.clone()),
                Cell::from(row.start_ns),
                Cell::from(row.end_ns),
                Cell::from(row.cpu_ns),
                Cell::from(row.gpu_ns),
                Cell::from(busy),
                Cell::from(row.comm_ns),
                Cell::from(row.exposed_comm_ns),
                Cell::from(row.event_count),
            ];
            cells.extend(row.by_type_ns.values().map(|value| Cell::from(value.as_i64())));
            cells
        };
        Table {
            sections: vec![Section {
                title: None,
                columns,
                rows: self.0.rows.iter().map(cells).collect(),
            }],
            total_matched: self.0.total_matched,
            notes: self.0.auxiliary.trust.details(),
        }
    }
}
