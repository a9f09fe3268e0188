//! `stats`: what takes the time.
//!
//! Rows are grouped by any combination of axes and measured: sums, extremes and nearest-rank percentiles of
//! their durations, and the union of their intervals. On CPU-side rows also the time that is their own, and
//! the device time they launched: directly (`gpu_self_ns`), or anywhere inside (`gpu_total_ns`); every device
//! row once a group, so that neither recursion nor a group of operators and the frames around them counts
//! anything twice.
//!
//! What makes it wrong: device rows whose launch is not in the trace belong to no operator; `device_time`
//! tells how much that is.

mod axes;
mod device_time;
mod durations;
mod groups;
mod paths;
mod query;

use std::cell::OnceCell;
use std::cmp::Ordering;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use veloq_core::{
    Cell, Column, Example, Failure, Page, Section, Table, TableView, Trust, Unit, Verb, VerbSpec,
};

use crate::error::Error;
use crate::inventory::findings::code;
use crate::query::filters::{Filters, Scope};
use crate::query::page::{PageArgs, Sort, parse_sort};
use crate::row::RowType;
use crate::session::TraceSession;

use axes::{Axis, AxisValues, key_part};
use device_time::DeviceTime;
use groups::Groups;
use query::{Group, Grouped, grouped};

/// Groups rows by name, type, step, thread, source line and more, and measures each group
///
/// Rows of all types are taken unless --type says otherwise; with `launched-by` those of device work.
/// Groups come by falling total time, unless sorted.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Request {
    #[command(flatten)]
    #[serde(flatten)]
    filters: Filters,
    /// Axes, separated by commas: name, type, category, step, rank, device, stream, thread, shape, comm-kind,
    /// python-context, python-path, module, launched-by
    #[arg(long, value_name = "AXIS,…", value_delimiter = ',', default_values_t = Self::default().group_by)]
    group_by: Vec<String>,
    /// Sort by a measure (`total_ns`, `count`, `avg_ns`, `min_ns`, `max_ns`, `p50_ns`, `p95_ns`, `busy_ns`,
    /// `self_ns`, `gpu_self_ns`, `gpu_total_ns`) or by `key`, with `:asc` (default) or `:desc`
    #[arg(long, value_name = "FIELD[:ORDER]")]
    sort: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            filters: Filters::default(),
            group_by: vec![Axis::Name.name().to_owned()],
            sort: None,
            page: PageArgs::default(),
        }
    }
}

/// One group.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatsRow {
    /// `stats|axis:value|…`, axes in the order asked; `none` for an absent value.
    key: String,
    /// The value of each axis; null where the rows have none.
    axes: Map<String, Value>,
    /// Rows.
    count: u64,
    /// Sum of the durations; null when no row has one.
    total_ns: Option<i64>,
    /// Mean duration, rounded down.
    avg_ns: Option<i64>,
    /// Shortest duration.
    min_ns: Option<i64>,
    /// Longest duration.
    max_ns: Option<i64>,
    /// Median duration, nearest rank.
    p50_ns: Option<i64>,
    /// 95th percentile of the durations, nearest rank.
    p95_ns: Option<i64>,
    /// Length of the union of the rows' intervals, rank by rank.
    busy_ns: Option<i64>,
    /// The rows' own time, nested rows of their kind taken out; null for rows that do not nest, and when
    /// operators, annotations, Python frames or API calls are mixed, whose own times overlap.
    self_ns: Option<i64>,
    /// Device time launched directly by the rows, every device row once; null for rows that launch nothing, or
    /// when the device rows are missing.
    gpu_self_ns: Option<i64>,
    /// Device time launched anywhere inside the rows, every device row once; null likewise.
    gpu_total_ns: Option<i64>,
}

/// Device time in scope, and how much of it operators launched.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeviceTimeShare {
    /// Sum of the durations of all device work of the rank, device and stream in scope.
    total_ns: Option<i64>,
    /// The part that operators launched.
    attributed_ns: Option<i64>,
    /// The part without an operator.
    unattributed_ns: Option<i64>,
    /// `attributed_ns` of `total_ns`; null when there is no device time.
    attributed_ratio: Option<f64>,
}

/// What the answer is of, and whether it is whole.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auxiliary {
    /// The filters as understood.
    scope: Scope,
    /// The axes, in the order asked.
    group_by: Vec<&'static str>,
    /// Whether groups follow behind the last row.
    truncated: bool,
    /// The `--offset` of the next page; null when there is none.
    next_offset: Option<u64>,
    /// Device time of the rank, device and stream in scope, and how much of it could be attributed.
    device_time: DeviceTimeShare,
    /// The findings that touch these numbers.
    trust: Trust,
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Response(Page<StatsRow, Auxiliary>);

/// The verb.
pub(crate) struct Stats;

const SORT_FIELDS: &[&str] = &[
    "key",
    "count",
    "total_ns",
    "avg_ns",
    "min_ns",
    "max_ns",
    "p50_ns",
    "p95_ns",
    "busy_ns",
    "self_ns",
    "gpu_self_ns",
    "gpu_total_ns",
];

const TRUST: &[&str] = &[
    code::GPU_MISSING,
    code::UNLINKED_ROWS,
    code::IMPOSSIBLE_OVERLAP,
    code::STREAM_OVERLAP,
    code::GRAPH_PARTIAL,
    code::LINK_AMBIGUOUS,
    code::CROSSING_ROWS,
    code::RANK_MERGED_FILE,
];

impl Verb for Stats {
    type Session = TraceSession;
    type Request = Request;
    type Response = Response;
    const SPEC: VerbSpec = VerbSpec {
        name: "stats",
        about: "What takes the time?",
        examples: &[
            Example {
                asks: "Kernels by total time",
                command: "pytorch stats TRACE --type kernel --limit 10",
            },
            Example {
                asks: "Operators by the device time they launched themselves",
                command: "pytorch stats TRACE --type cpu-op --sort gpu_self_ns:desc --limit 10",
            },
            Example {
                asks: "Device time by the source line that launched it, step by step",
                command: "pytorch stats TRACE --type kernel,memcpy,memset --group-by python-context,step",
            },
        ],
    };

    fn run(&self, session: &TraceSession, request: Request) -> Result<Response, Failure> {
        let axes = Axis::parse_all(&request.group_by)?;
        require_axes(session, &axes)?;
        let sort = match &request.sort {
            Some(text) => parse_sort(text, SORT_FIELDS)?,
            None => Sort {
                field: "total_ns",
                is_descending: true,
            },
        };
        let device_work = [RowType::Kernel, RowType::Memcpy, RowType::Memset];
        let default_types: &[RowType] = if axes.contains(&Axis::LaunchedBy) {
            &device_work
        } else {
            &[]
        };
        let resolved = request.filters.resolve(session, default_types)?;
        let values = AxisValues::new(session, &axes)?;
        let is_gpu_missing = session.is_gpu_missing();
        let Grouped {
            groups,
            measured,
            device_rows,
        } = grouped(session, &values, &axes, resolved.predicate, &resolved.scope)?;
        let mut found: Vec<Found> = measured
            .into_iter()
            .map(|group| Found::new(group, is_gpu_missing))
            .collect();
        let named = Named {
            values: &values,
            axes: &axes,
            groups: &groups,
        };
        let total_matched = found.len() as u64;
        // Most groups differ in what they are sorted by, and few are shown: keys are made where they matter.
        let order = |a: &Found, b: &Found| {
            a.order_by_field(b, sort).then_with(|| {
                let by_key = a.key(&named).cmp(b.key(&named));
                if sort.field == "key" && sort.is_descending {
                    by_key.reverse()
                } else {
                    by_key
                }
            })
        };
        let wanted = request.page.wanted();
        if wanted < found.len() {
            found.select_nth_unstable_by(wanted, order);
            found.truncate(wanted);
        }
        found.sort_unstable_by(order);
        let (found, cut) = request.page.cut_of(found, total_matched);
        let rows = found.into_iter().map(|found| found.row(&named)).collect();
        let auxiliary = Auxiliary {
            device_time: share(device_rows.in_scope(), is_gpu_missing),
            scope: resolved.scope,
            group_by: axes.iter().map(|axis| axis.name()).collect(),
            truncated: cut.is_truncated,
            next_offset: cut.next_offset,
            trust: session.trust(TRUST),
        };
        Ok(Response(Page::new(rows, total_matched, auxiliary)))
    }
}

/// Checks that some axis can tell rows apart: with none, all that could be said is one sum.
fn require_axes(session: &TraceSession, axes: &[Axis]) -> Result<(), Error> {
    let mut missing = axes
        .iter()
        .map(|axis| axis.capability().and_then(|id| session.require(id).err()));
    let Some(first) = missing.next().flatten() else {
        return Ok(());
    };
    if missing.all(|error| error.is_some()) {
        Err(first)
    } else {
        Ok(())
    }
}

/// What the numbers of groups stand for.
struct Named<'a> {
    values: &'a AxisValues<'a>,
    axes: &'a [Axis],
    groups: &'a Groups,
}

impl Named<'_> {
    fn values_of(&self, group: u32) -> impl Iterator<Item = (Axis, Value)> {
        let numbers = self.groups.values(group);
        self.axes
            .iter()
            .zip(numbers)
            .map(|(axis, number)| (*axis, self.values.value(*axis, *number)))
    }

    fn key(&self, group: u32) -> String {
        let mut key = "stats".to_owned();
        for (axis, value) in self.values_of(group) {
            key.push('|');
            key.push_str(&key_part(axis, &value));
        }
        key
    }
}

/// A group, with its key once it was asked for.
struct Found {
    group: Group,
    key: OnceCell<String>,
}

impl Found {
    fn new(mut group: Group, is_gpu_missing: bool) -> Self {
        if is_gpu_missing {
            group.gpu_self_ns = None;
            group.gpu_total_ns = None;
        }
        Self {
            group,
            key: OnceCell::new(),
        }
    }

    fn key(&self, named: &Named<'_>) -> &str {
        self.key.get_or_init(|| named.key(self.group.number))
    }

    /// Orders by a measure, groups without a value last; all are equal by `key`.
    fn order_by_field(&self, other: &Self, sort: Sort) -> Ordering {
        let field = |Self { group, .. }: &Self| {
            let durations = group.durations.as_ref();
            match sort.field {
                "count" => i64::try_from(group.count).ok(),
                "total_ns" => durations.map(|d| d.total_ns),
                "avg_ns" => durations.map(|d| d.avg_ns),
                "min_ns" => durations.map(|d| d.min_ns),
                "max_ns" => durations.map(|d| d.max_ns),
                "p50_ns" => durations.map(|d| d.p50_ns),
                "p95_ns" => durations.map(|d| d.p95_ns),
                "busy_ns" => durations.map(|d| d.busy_ns),
                "self_ns" => group.self_ns,
                "gpu_self_ns" => group.gpu_self_ns,
                "gpu_total_ns" => group.gpu_total_ns,
                _ => None,
            }
        };
        match (field(self), field(other)) {
            (Some(a), Some(b)) if sort.is_descending => b.cmp(&a),
            (Some(a), Some(b)) => a.cmp(&b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
    }

    fn row(self, named: &Named<'_>) -> StatsRow {
        let key = self.key(named).to_owned();
        let durations = self.group.durations;
        StatsRow {
            key,
            axes: named
                .values_of(self.group.number)
                .map(|(axis, value)| (axis.name().to_owned(), value))
                .collect(),
            count: self.group.count,
            total_ns: durations.map(|d| d.total_ns),
            avg_ns: durations.map(|d| d.avg_ns),
            min_ns: durations.map(|d| d.min_ns),
            max_ns: durations.map(|d| d.max_ns),
            p50_ns: durations.map(|d| d.p50_ns),
            p95_ns: durations.map(|d| d.p95_ns),
            busy_ns: durations.map(|d| d.busy_ns),
            self_ns: self.group.self_ns,
            gpu_self_ns: self.group.gpu_self_ns,
            gpu_total_ns: self.group.gpu_total_ns,
        }
    }
}

/// Returns device time with the share that operators launched.
fn share(time: DeviceTime, is_gpu_missing: bool) -> DeviceTimeShare {
    if is_gpu_missing {
        return DeviceTimeShare {
            total_ns: None,
            attributed_ns: None,
            unattributed_ns: None,
            attributed_ratio: None,
        };
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share needs no more than the 53 bits of a float"
    )]
    let attributed_ratio = (time.total_ns > 0).then(|| time.attributed_ns as f64 / time.total_ns as f64);
    DeviceTimeShare {
        total_ns: Some(time.total_ns),
        attributed_ns: Some(time.attributed_ns),
        unattributed_ns: Some(time.total_ns - time.attributed_ns),
        attributed_ratio,
    }
}

impl TableView for Response {
    fn table(&self) -> Table {
        let auxiliary = &self.0.auxiliary;
        let mut columns = vec![Column::detail("key", Unit::Text)];
        columns.extend(
            auxiliary
                .group_by
                .iter()
                .map(|axis| Column::new(*axis, Unit::Text)),
        );
        let whole: i64 = self.0.rows.iter().filter_map(|row| row.total_ns).sum();
        columns.extend([
            Column::new("count", Unit::Count),
            Column::new("total_ns", Unit::Nanoseconds),
            Column::new("share_of_shown", Unit::Ratio),
            Column::new("avg_ns", Unit::Nanoseconds),
            Column::detail("min_ns", Unit::Nanoseconds),
            Column::new("max_ns", Unit::Nanoseconds),
            Column::detail("p50_ns", Unit::Nanoseconds),
            Column::detail("p95_ns", Unit::Nanoseconds),
            Column::new("busy_ns", Unit::Nanoseconds),
            Column::new("self_ns", Unit::Nanoseconds),
            Column::new("gpu_self_ns", Unit::Nanoseconds),
            Column::new("gpu_total_ns", Unit::Nanoseconds),
        ]);
        Table {
            sections: vec![Section {
                title: None,
                columns,
                rows: self.0.rows.iter().map(|row| cells(row, whole)).collect(),
            }],
            total_matched: self.0.total_matched,
            notes: auxiliary.trust.details(),
        }
    }
}

fn cells(row: &StatsRow, whole: i64) -> Vec<Cell> {
    let mut cells = vec![Cell::from(row.key.clone())];
    cells.extend(row.axes.values().map(|value| match value {
        Value::String(text) => Cell::from(text.clone()),
        Value::Null => Cell::Null,
        other => Cell::from(other.to_string()),
    }));
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share needs no more than the 53 bits of a float"
    )]
    let share = row
        .total_ns
        .filter(|_| whole > 0)
        .map(|total| total as f64 / whole as f64);
    cells.extend([
        Cell::from(row.count),
        Cell::from(row.total_ns),
        Cell::from(share),
        Cell::from(row.avg_ns),
        Cell::from(row.min_ns),
        Cell::from(row.max_ns),
        Cell::from(row.p50_ns),
        Cell::from(row.p95_ns),
        Cell::from(row.busy_ns),
        Cell::from(row.self_ns),
        Cell::from(row.gpu_self_ns),
        Cell::from(row.gpu_total_ns),
    ]);
    cells
}
