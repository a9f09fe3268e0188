//! `collectives`: every communication operation of the file.
//!
//! Collectives are derived when the trace is opened (see `comm`): what the args of a kernel tell goes before
//! what the describing operator tells, and that before names. `wait` and the marks of coalescing are no
//! collectives; a barrier is one that moves nothing.
//!
//! One file shows one side: how long others waited, and for whom, only the traces of all ranks tell.

mod query;

use std::collections::BTreeMap;

use clap::Args;
use datafusion::logical_expr::{Expr, col, lit};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use veloq_core::{
    Cell, Column, Example, Failure, Finding, NsRange, Page, Section, Severity, Table, TableView, Trust, Unit,
    Verb, VerbSpec, nearest,
};

use crate::comm::kind::{COMM_KINDS, CommKind};
use crate::error::Error;
use crate::inventory::findings::code;
use crate::query::event::events_at;
use crate::query::filters::{Filters, Scope, both, name_patterns};
use crate::query::page::PageArgs;
use crate::session::TraceSession;

use query::{StoredCollective, collectives};

/// Lists the collectives of the file with their rows, group, sizes, bandwidths and exposed time
///
/// Collectives come by rank and start. Filters apply to the collective: its name, rank, step and time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Request {
    /// Kinds, separated by commas: all_reduce, all_gather, broadcast …
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    kind: Vec<String>,
    /// Whole name of the collective's most telling row; `*` stands for any text, `?` for any one character
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,
    /// Regular expression found anywhere in that name
    #[arg(long, value_name = "RE")]
    name_regex: Option<String>,
    /// One rank of a file that holds several
    #[arg(long, value_name = "N", conflicts_with = "all_ranks")]
    rank: Option<i64>,
    /// All ranks of a file that holds several
    #[arg(long)]
    all_ranks: bool,
    /// Collectives called in step N
    #[arg(long, value_name = "N")]
    step: Option<i64>,
    /// Start of the window, since the trace's origin: `250`, `1.5us`, `2ms`, `3s`
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End of the window, itself outside
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
}

/// The process group of a collective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// The group's name.
    name: Option<String>,
    /// What its user called it.
    description: Option<String>,
    /// Members.
    size: Option<i64>,
    /// The members' global ranks; null where they are not told, or shortened.
    ranks: Option<Vec<i64>>,
}

/// One collective.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CollectiveRow {
    /// `collective|<kind>|rank:<n-or-none>|step:<n-or-none>|ordinal:<n>`.
    key: String,
    /// What it does.
    collective_kind: &'static str,
    /// The rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<i64>,
    /// The number of the step in which it was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<i64>,
    /// Position by start among those of its kind, rank and step; from 0.
    ordinal: u32,
    /// Name of its most telling row: kernel, annotation, operator.
    name: Option<String>,
    /// Start in ns since the trace's origin: of its device work, else of the CPU range.
    start_ns: Option<i64>,
    /// Duration in ns, likewise.
    duration_ns: Option<i64>,
    /// The operator or annotation that called it; null when it was called before the capture.
    cpu_row_id: Option<String>,
    /// Its device work.
    kernel_row_ids: Vec<String>,
    /// Other rows that belong to it.
    event_row_ids: Vec<String>,
    /// Its process group.
    group: Group,
    /// Type of the elements, as written.
    dtype: Option<String>,
    /// Bytes that this rank puts in.
    in_bytes: Option<i64>,
    /// Bytes that this rank gets out.
    out_bytes: Option<i64>,
    /// Algorithm bandwidth: bytes by duration, in 10^9 bytes a second (nccl-tests).
    algbw_gb_per_s: Option<f64>,
    /// Bus bandwidth: scaled by the kind's factor (nccl-tests).
    busbw_gb_per_s: Option<f64>,
    /// Number of the collective within its group, where the writer tells.
    seq: Option<i64>,
    /// Device time not covered by compute of the same device; null without device work.
    exposed_ns: Option<i64>,
    /// How its rows were joined: `metadata`, `linked`, `name` or `time`.
    confidence: &'static str,
}

/// The collectives of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KindTotals {
    /// What they do.
    collective_kind: &'static str,
    /// How many.
    count: u64,
    /// Sum of their durations, in ns; null when none is known.
    total_ns: Option<i64>,
    /// Sum of what goes in, in bytes; null when one of them is unknown.
    in_bytes: Option<i64>,
    /// Sum of what comes out, in bytes; null when one of them is unknown.
    out_bytes: Option<i64>,
    /// Sum of the exposed times, in ns; null when one of them is unknown.
    exposed_ns: Option<i64>,
}

/// The filters as understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CollectiveScope {
    /// The kinds; left out for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Vec<&'static str>>,
    /// The glob that the whole name fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The regular expression found in the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_regex: Option<String>,
    /// The rank; left out for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<i64>,
    /// The step.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<i64>,
    /// Start of the window in ns since the origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_ns: Option<i64>,
    /// End of the window in ns since the origin, itself outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    to_ns: Option<i64>,
}

impl CollectiveScope {
    fn new(scope: Scope, kinds: Option<Vec<CommKind>>) -> Self {
        Self {
            kind: kinds.map(|kinds| kinds.into_iter().map(CommKind::name).collect()),
            name: scope.name,
            name_regex: scope.name_regex,
            rank: scope.rank,
            step: scope.step,
            from_ns: scope.from_ns,
            to_ns: scope.to_ns,
        }
    }
}

/// What the answer is of, and whether it is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auxiliary {
    /// The filters as understood.
    scope: CollectiveScope,
    /// Whether collectives follow behind the last row.
    truncated: bool,
    /// The `--offset` of the next page; null when there is none.
    next_offset: Option<u64>,
    /// All matches by kind.
    totals: Vec<KindTotals>,
    /// One file never answers questions across ranks.
    cross_rank_skew: bool,
    /// The findings that touch these numbers.
    trust: Trust,
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Response(Page<CollectiveRow, Auxiliary>);

/// The verb.
pub(crate) struct Collectives;

const TRUST: &[&str] = &[
    code::GPU_MISSING,
    code::UNLINKED_ROWS,
    code::RANK_UNKNOWN,
    code::RANK_MERGED_FILE,
    code::COMM_UNCLASSIFIED,
];

impl Verb for Collectives {
    type Session = TraceSession;
    type Request = Request;
    type Response = Response;
    const SPEC: VerbSpec = VerbSpec {
        name: "collectives",
        about: "What was communicated, how fast, and how much of it was exposed?",
        examples: &[
            Example {
                asks: "Every collective",
                command: "pytorch collectives TRACE",
            },
            Example {
                asks: "The all-reduces of step 2 as a table",
                command: "pytorch collectives TRACE --kind all_reduce --step 2 --format table",
            },
            Example {
                asks: "What was communicated in the first millisecond",
                command: "pytorch collectives TRACE --to 1ms",
            },
        ],
    };

    fn run(&self, session: &TraceSession, request: Request) -> Result<Response, Failure> {
        let filters = Filters {
            name: request.name.clone(),
            name_regex: request.name_regex.clone(),
            rank: request.rank,
            all_ranks: request.all_ranks,
            step: request.step,
            from: request.from.clone(),
            to: request.to.clone(),
            ..Filters::default()
        };
        let scope = filters.resolve(session, &[])?.scope;
        let kinds = parse_kinds(&request.kind)?;
        let patterns = name_patterns(&filters)?;
        let found = collectives(session, predicate(&scope, kinds.as_deref()))?;
        let mut matches = Vec::new();
        for collective in found {
            if is_within(&collective, scope.window()) && fits(session, &collective, &patterns)? {
                matches.push(collective);
            }
        }
        let totals = totals(&matches);
        let trust = trust(session, &matches)?;
        let total_matched = matches.len() as u64;
        let (page, cut) = request.page.cut(matches);
        let rows = rows(session, page)?;
        let auxiliary = Auxiliary {
            scope: CollectiveScope::new(scope, kinds),
            truncated: cut.is_truncated,
            next_offset: cut.next_offset,
            totals,
            cross_rank_skew: false,
            trust,
        };
        Ok(Response(Page::new(rows, total_matched, auxiliary)))
    }
}

/// Returns the trace's findings that touch collectives, and why some of their quantities are unknown.
fn trust(session: &TraceSession, matches: &[StoredCollective]) -> Result<Trust, Error> {
    let mut findings = session.trust(TRUST).findings;
    let transfers = || matches.iter().filter(|c| c.kind.is_transfer());
    let unknown: [(&str, Vec<&StoredCollective>, &str, &[&str]); 3] = [
        (
            "comm.sizes_unknown",
            transfers()
                .filter(|c| c.in_bytes.is_none() || c.out_bytes.is_none())
                .collect(),
            "collectives do not tell their number of elements or their type",
            &["in_bytes", "out_bytes", "algbw_gb_per_s", "busbw_gb_per_s"],
        ),
        (
            "comm.no_device_rows",
            matches.iter().filter(|c| c.kernel_rows.is_empty()).collect(),
            "collectives have no device rows; their time is that of the CPU side, and nothing tells what of it \
             was exposed",
            &["duration_ns", "exposed_ns"],
        ),
        (
            "comm.bandwidth_unknown",
            transfers()
                .filter(|c| c.in_bytes.is_some() && c.busbw_gb_per_s.is_none())
                .collect(),
            "collectives have sizes but no bandwidth: their group is of one or unknown, or their time is only \
             that of the call",
            &["algbw_gb_per_s", "busbw_gb_per_s"],
        ),
    ];
    for (code, rows, what, affects) in unknown {
        if rows.is_empty() {
            continue;
        }
        let first = |c: &&StoredCollective| c.cpu_row.or(c.kernel_rows.first().copied());
        let indices: Vec<u32> = rows.iter().filter_map(first).take(3).collect();
        let events = events_at(session, &indices)?;
        findings.push(Finding {
            code: code.to_owned(),
            severity: Severity::Info,
            count: rows.len() as u64,
            detail: format!("{} of {} {what}.", rows.len(), matches.len()),
            row_ids: events.iter().map(|event| event.id.to_string()).collect(),
            affects: affects.iter().map(|field| (*field).to_owned()).collect(),
        });
    }
    Ok(Trust::of(findings))
}

fn parse_kinds(names: &[String]) -> Result<Option<Vec<CommKind>>, Error> {
    let mut kinds = Vec::new();
    for name in names {
        let known = COMM_KINDS.iter().map(|kind| kind.name());
        match COMM_KINDS.iter().find(|kind| kind.name() == name) {
            Some(kind) => kinds.push(*kind),
            None => {
                let problem = match nearest(name, known.clone()) {
                    Some(near) => format!("`{name}` is not a kind; did you mean `{near}`?"),
                    None => format!(
                        "`{name}` is not a kind; the kinds are {}",
                        known.collect::<Vec<_>>().join(", ")
                    ),
                };
                return Err(Error::InvalidFlag {
                    flag: "--kind",
                    problem,
                });
            }
        }
    }
    Ok((!kinds.is_empty()).then_some(kinds))
}

fn predicate(scope: &Scope, kinds: Option<&[CommKind]>) -> Option<Expr> {
    let equal = |name: &str, wanted: Option<i64>| wanted.map(|wanted| col(name).eq(lit(wanted)));
    let among =
        kinds.map(|kinds| col("kind").in_list(kinds.iter().map(|kind| lit(kind.code())).collect(), false));
    both(both(equal("rank", scope.rank), equal("step", scope.step)), among)
}

fn is_within(collective: &StoredCollective, window: NsRange) -> bool {
    match (collective.start_ns, collective.duration_ns) {
        (Some(start), duration) => window.overlaps(&(start..start + duration.unwrap_or(0))),
        (None, _) => window == NsRange::default(),
    }
}

fn fits(session: &TraceSession, collective: &StoredCollective, patterns: &[Regex]) -> Result<bool, Error> {
    if patterns.is_empty() {
        return Ok(true);
    }
    let Some(name) = collective.name else {
        return Ok(false);
    };
    let name = session.strings()?.get(name);
    Ok(patterns.iter().all(|pattern| pattern.is_match(name)))
}

/// Returns the sum of values, or `None` when one of them is unknown.
fn whole_sum(values: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    values.sum()
}

fn totals(matches: &[StoredCollective]) -> Vec<KindTotals> {
    let mut by_kind: BTreeMap<u8, Vec<&StoredCollective>> = BTreeMap::new();
    for collective in matches {
        by_kind
            .entry(collective.kind.code())
            .or_default()
            .push(collective);
    }
    by_kind
        .into_values()
        .map(|of_kind| KindTotals {
            collective_kind: of_kind[0].kind.name(),
            count: of_kind.len() as u64,
            total_ns: of_kind.iter().filter_map(|c| c.duration_ns).reduce(|a, b| a + b),
            in_bytes: whole_sum(of_kind.iter().map(|c| c.in_bytes)),
            out_bytes: whole_sum(of_kind.iter().map(|c| c.out_bytes)),
            exposed_ns: whole_sum(of_kind.iter().map(|c| c.exposed_ns)),
        })
        .collect()
}

/// Returns the rows of a page, with the ids of the events that belong to them.
fn rows(session: &TraceSession, page: Vec<StoredCollective>) -> Result<Vec<CollectiveRow>, Error> {
    let mut indices: Vec<u32> = page
        .iter()
        .flat_map(|c| c.kernel_rows.iter().chain(&c.event_rows).chain(&c.cpu_row))
        .copied()
        .collect();
    indices.sort_unstable();
    indices.dedup();
    let events = events_at(session, &indices)?;
    let id = |index: &u32| {
        let at = events.binary_search_by_key(index, |event| event.id.index);
        at.map(|at| events[at].id.to_string())
            .map_err(|_| Error::Internal {
                what: "a collective's row is gone",
            })
    };
    let ids = |indices: &[u32]| indices.iter().map(id).collect::<Result<Vec<String>, Error>>();
    let strings = session.strings()?;
    let or_none = |value: Option<i64>| value.map_or("none".to_owned(), |value| value.to_string());
    page.into_iter()
        .map(|c| {
            let kind = c.kind.name();
            let (rank, step) = (or_none(c.rank), or_none(c.step));
            Ok(CollectiveRow {
                key: format!("collective|{kind}|rank:{rank}|step:{step}|ordinal:{}", c.ordinal),
                collective_kind: kind,
                rank: c.rank,
                step: c.step,
                ordinal: c.ordinal,
                name: c.name.map(|name| strings.get(name).to_owned()),
                start_ns: c.start_ns,
                duration_ns: c.duration_ns,
                cpu_row_id: c.cpu_row.as_ref().map(id).transpose()?,
                kernel_row_ids: ids(&c.kernel_rows)?,
                event_row_ids: ids(&c.event_rows)?,
                group: Group {
                    name: c.group_name,
                    description: c.group_description,
                    size: c.group_size,
                    ranks: c.group_ranks,
                },
                dtype: c.dtype,
                in_bytes: c.in_bytes,
                out_bytes: c.out_bytes,
                algbw_gb_per_s: c.algbw_gb_per_s,
                busbw_gb_per_s: c.busbw_gb_per_s,
                seq: c.seq,
                exposed_ns: c.exposed_ns,
                confidence: c.confidence.name(),
            })
        })
        .collect()
}

impl TableView for Response {
    fn table(&self) -> Table {
        let cells = |row: &CollectiveRow| {
            vec![
                Cell::from(row.key.clone()),
                Cell::from(row.collective_kind),
                Cell::from(row.rank),
                Cell::from(row.step),
                Cell::from(row.ordinal),
                Cell::from(row.name.clone()),
                Cell::from(row.start_ns),
                Cell::from(row.duration_ns),
                Cell::from(row.cpu_row_id.clone()),
                Cell::from(row.kernel_row_ids.join(" ")),
                Cell::from(row.event_row_ids.join(" ")),
                Cell::from(row.group.name.clone()),
                Cell::from(row.group.description.clone()),
                Cell::from(row.group.size),
                Cell::from(row.dtype.clone()),
                Cell::from(row.in_bytes),
                Cell::from(row.out_bytes),
                Cell::from(row.algbw_gb_per_s),
                Cell::from(row.busbw_gb_per_s),
                Cell::from(row.seq),
                Cell::from(row.exposed_ns),
                Cell::from(row.confidence),
            ]
        };
        let columns = vec![
            Column::detail("key", Unit::Text),
            Column::new("collective_kind", Unit::Text),
            Column::new("rank", Unit::Count),
            Column::new("step", Unit::Count),
            Column::new("ordinal", Unit::Count),
            Column::detail("name", Unit::Text),
            Column::new("start_ns", Unit::Nanoseconds),
            Column::new("duration_ns", Unit::Nanoseconds),
            Column::detail("cpu_row_id", Unit::Id),
            Column::new("kernel_row_ids", Unit::Id),
            Column::detail("event_row_ids", Unit::Text),
            Column::detail("group_name", Unit::Text),
            Column::detail("group_description", Unit::Text),
            Column::new("group_size", Unit::Count),
            Column::new("dtype", Unit::Text),
            Column::new("in_bytes", Unit::Bytes),
            Column::new("out_bytes", Unit::Bytes),
            Column::new("algbw_gb_per_s", Unit::GigabytesPerSecond),
            Column::new("busbw_gb_per_s", Unit::GigabytesPerSecond),
            Column::detail("seq", Unit::Count),
            Column::new("exposed_ns", Unit::Nanoseconds),
            Column::new("confidence", Unit::Text),
        ];
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
