//! `slices`: steps and annotations, with the device work they caused.
//!
//! A *slice* is a step or an annotation on the CPU. Device work is attributed to it by launch or by time (see
//! [`attribute`]); a row can belong to several slices, nested ones above all, and once to each. With a window,
//! slices that overlap it are taken, and of their device work the part that lies in it; their own start and
//! duration stay whole.
//!
//! What makes it wrong: device rows whose launch is not in the trace belong to no slice by launch;
//! `outside_ns` has their time.

mod attribute;
mod picture;
mod query;
mod table;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use veloq_core::{Example, Failure, Page, Trust, Verb, VerbSpec};

use crate::error::Error;
use crate::inventory::findings::code;
use crate::query::filters::{Filters, Scope};
use crate::query::page::{PageArgs, Sort, parse_sort};
use crate::row::RowType;
use crate::session::TraceSession;

use crate::verbs::picture::{Picture, PictureArgs};

use attribute::{Attributed, Attributor, DeviceTime};
use picture::draw_slices;
use query::{Slice, all_slices, all_work, backward_threads, selected};

/// How device work is given to slices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Attribution {
    /// Work whose launch starts inside the slice, on any thread that works for it
    #[default]
    Launch,
    /// The parts of the rank's work that overlap the slice
    Time,
}

/// What slices are put together by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GroupBy {
    /// The slice's name
    #[default]
    Name,
    /// The step it starts in
    Step,
    /// The names of the slices around it and its own
    Path,
}

/// Lists steps and annotations with the device work they caused, or puts them together
///
/// Slices come in the order of their starts, aggregates by falling CPU time, unless sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Request {
    #[command(flatten)]
    #[serde(flatten)]
    filters: SliceFilters,
    /// How device work is given to slices
    #[arg(long, value_enum, default_value_t)]
    attribution: Attribution,
    /// Put slices together instead of listing them
    #[arg(long)]
    aggregate: bool,
    /// What to put slices together by, with --aggregate
    #[arg(long, value_enum, default_value_t, requires = "aggregate")]
    group_by: GroupBy,
    /// Sort by a field of the rows, with `:asc` (default) or `:desc`
    #[arg(long, value_name = "FIELD[:ORDER]")]
    sort: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
    #[command(flatten)]
    #[serde(flatten)]
    picture: PictureArgs,
}

/// Which slices to consider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SliceFilters {
    /// `step`, `annotation`, or both separated by a comma; both unless given
    #[arg(long = "type", value_name = "TYPE,…", value_delimiter = ',')]
    #[serde(rename = "type")]
    types: Vec<String>,
    /// Whole name, case-sensitive; `*` stands for any text, `?` for any one character
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,
    /// Regular expression found anywhere in the name
    #[arg(long, value_name = "RE")]
    name_regex: Option<String>,
    /// Duration: `>1ms`, `<=100us`, `100us-1ms`
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    duration: Option<String>,
    /// One rank of a file that holds several
    #[arg(long, value_name = "N", conflicts_with = "all_ranks")]
    rank: Option<i64>,
    /// All ranks of a file that holds several
    #[arg(long)]
    all_ranks: bool,
    /// Slices that start in step N on its thread
    #[arg(long, value_name = "N")]
    step: Option<i64>,
    /// Start of the window, since the trace's origin: `250`, `1.5us`, `2ms`, `3s`
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End of the window, itself outside
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

/// A slice, or several put together. Fields of the other kind are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Row {
    /// One slice.
    Instance(InstanceRow),
    /// Several slices.
    Aggregate(AggregateRow),
}

/// One slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstanceRow {
    /// `slice|<name>@<start_ns>`; a number follows where several share both.
    key: String,
    /// The row id.
    row_id: String,
    /// The name.
    name: String,
    /// Start in ns since the trace's origin; whole, whatever the window.
    start_ns: i64,
    /// Duration in ns; whole, whatever the window.
    duration_ns: i64,
    /// The rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<i64>,
    /// The number of the step it starts in.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<i64>,
    /// The thread id as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<crate::query::event::IdValue>,
    /// Slices around it.
    depth: u32,
    /// Slices directly inside it.
    child_count: u64,
    /// Sum of the attributed device time; null when the device rows are missing.
    attributed_gpu_ns: Option<i64>,
    /// Union of the attributed device time, device by device; null likewise.
    attributed_gpu_busy_ns: Option<i64>,
    /// The part of the sum that is communication; null likewise.
    attributed_comm_ns: Option<i64>,
    /// Attributed device rows; null likewise.
    gpu_count: Option<u64>,
}

/// Several slices put together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AggregateRow {
    /// `scope|<scope>`.
    key: String,
    /// The name, step or path that the slices share; `none` for no step.
    scope: String,
    /// Slices.
    instances: u64,
    /// Sum of their durations.
    total_cpu_ns: i64,
    /// Mean duration, rounded down.
    avg_cpu_ns: i64,
    /// Shortest duration.
    min_cpu_ns: i64,
    /// Longest duration.
    max_cpu_ns: i64,
    /// Sum of their attributed device times; null when the device rows are missing.
    total_gpu_ns: Option<i64>,
    /// Union of their attributed device time, device by device; null likewise.
    gpu_busy_ns: Option<i64>,
    /// The part of the sum that is communication; null likewise.
    total_comm_ns: Option<i64>,
}

/// What the answer is of, and whether it is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auxiliary {
    /// The filters as understood.
    scope: SliceScope,
    /// How device work was given to slices.
    attribution: Attribution,
    /// What slices were put together by; null when they are listed.
    group_by: Option<GroupBy>,
    /// Device time of the rank and window in scope; null when the device rows are missing.
    device_time_ns: Option<i64>,
    /// The part of it that belongs to none of the matched slices; null likewise.
    outside_ns: Option<i64>,
    /// Whether rows follow behind the last one.
    truncated: bool,
    /// The `--offset` of the next page; null when there is none.
    next_offset: Option<u64>,
    /// The picture that was drawn; left out when none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<Picture>,
    /// The findings that touch these numbers.
    trust: Trust,
}

/// The filters as understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SliceScope {
    /// Row types.
    r#type: Vec<&'static str>,
    /// The glob that the whole name fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The regular expression found in the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_regex: Option<String>,
    /// Least duration in ns, itself inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_duration_ns: Option<i64>,
    /// Greatest duration in ns, itself inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_duration_ns: Option<i64>,
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

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Response(Page<Row, Auxiliary>);

/// The verb.
pub(crate) struct Slices;

const INSTANCE_FIELDS: &[&str] = &[
    "start_ns",
    "duration_ns",
    "name",
    "attributed_gpu_ns",
    "attributed_gpu_busy_ns",
    "attributed_comm_ns",
    "gpu_count",
];

const AGGREGATE_FIELDS: &[&str] = &[
    "total_cpu_ns",
    "scope",
    "instances",
    "avg_cpu_ns",
    "min_cpu_ns",
    "max_cpu_ns",
    "total_gpu_ns",
    "gpu_busy_ns",
    "total_comm_ns",
];

const TRUST: &[&str] = &[
    code::GPU_MISSING,
    code::UNLINKED_ROWS,
    code::IMPOSSIBLE_OVERLAP,
    code::GRAPH_PARTIAL,
    code::LINK_AMBIGUOUS,
    code::RANK_MERGED_FILE,
];

impl Verb for Slices {
    type Session = TraceSession;
    type Request = Request;
    type Response = Response;
    const SPEC: VerbSpec = VerbSpec {
        name: "slices",
        about: "How long does each step or annotation take, and what does it cause on the device?",
        examples: &[
            Example {
                asks: "Every step with its device work",
                command: "pytorch slices TRACE --type step",
            },
            Example {
                asks: "Annotations by name",
                command: "pytorch slices TRACE --aggregate --group-by name --format table",
            },
            Example {
                asks: "What ran on the device while each step ran on the CPU",
                command: "pytorch slices TRACE --type step --attribution time --to 3ms",
            },
            Example {
                asks: "A picture of the second step with all it launched",
                command: "pytorch slices TRACE --type step --limit 1 --offset 1 --svg step.svg",
            },
        ],
    };

    fn run(&self, session: &TraceSession, request: Request) -> Result<Response, Failure> {
        let fields = if request.aggregate {
            AGGREGATE_FIELDS
        } else {
            INSTANCE_FIELDS
        };
        let sort = request
            .sort
            .as_deref()
            .map(|text| parse_sort(text, fields))
            .transpose()?;
        let resolved = request
            .filters
            .as_shared()?
            .resolve(session, &[RowType::Annotation, RowType::Step])?;
        let indices = selected(session, resolved.predicate)?;
        let all = all_slices(session)?;
        let matches: Vec<&Slice> = all
            .iter()
            .filter(|slice| indices.contains(&slice.id.index))
            .collect();
        let work = all_work(session)?;
        let attribution = match request.attribution {
            Attribution::Launch => attribute::Attribution::Launch,
            Attribution::Time => attribute::Attribution::Time,
        };
        let threads = backward_threads(session)?;
        let attributor = Attributor::new(&work, threads, resolved.scope.window(), attribution);
        let is_gpu_missing = session.is_gpu_missing();
        let known = |ns: i64| (!is_gpu_missing).then_some(ns);
        let (device_time_ns, outside_ns) = attributor.outside(&matches, resolved.scope.rank);
        let family = Family::new(&all);
        let mut rows = if request.aggregate {
            aggregates(
                session,
                &matches,
                &family,
                &attributor,
                request.group_by,
                is_gpu_missing,
            )?
        } else {
            instances(session, &matches, &family, &attributor, is_gpu_missing)?
        };
        if let Some(sort) = sort {
            rows.sort_by(|a, b| order(a, b, sort));
        }
        let total_matched = rows.len() as u64;
        let (rows, cut) = request.page.cut(rows);
        let window = resolved.scope.window();
        let draw = |path: &String| draw_slices(session, &matches, &work, &attributor, window, path);
        let auxiliary = Auxiliary {
            picture: request.picture.svg.as_ref().map(draw).transpose()?,
            scope: SliceScope::new(resolved.scope),
            attribution: request.attribution,
            group_by: request.aggregate.then_some(request.group_by),
            device_time_ns: known(device_time_ns),
            outside_ns: known(outside_ns),
            truncated: cut.is_truncated,
            next_offset: cut.next_offset,
            trust: session.trust(TRUST),
        };
        Ok(Response(Page::new(rows, total_matched, auxiliary)))
    }
}

impl SliceFilters {
    /// Returns the filters as all verbs share them.
    fn as_shared(&self) -> Result<Filters, Error> {
        if let Some(other) = self
            .types
            .iter()
            .find(|name| !matches!(name.as_str(), "step" | "annotation" | "all"))
        {
            let problem = format!("`{other}` rows are no slices; take step or annotation");
            return Err(Error::InvalidFlag {
                flag: "--type",
                problem,
            });
        }
        let names_all = self.types.iter().any(|name| name == "all");
        Ok(Filters {
            types: if names_all { Vec::new() } else { self.types.clone() },
            name: self.name.clone(),
            name_regex: self.name_regex.clone(),
            duration: self.duration.clone(),
            rank: self.rank,
            all_ranks: self.all_ranks,
            step: self.step,
            from: self.from.clone(),
            to: self.to.clone(),
            ..Filters::default()
        })
    }
}

impl SliceScope {
    fn new(scope: Scope) -> Self {
        Self {
            r#type: scope.r#type.unwrap_or_default(),
            name: scope.name,
            name_regex: scope.name_regex,
            min_duration_ns: scope.min_duration_ns,
            max_duration_ns: scope.max_duration_ns,
            rank: scope.rank,
            step: scope.step,
            from_ns: scope.from_ns,
            to_ns: scope.to_ns,
        }
    }
}

/// How slices nest.
struct Family<'s> {
    by_index: FxHashMap<u32, &'s Slice>,
    child_counts: FxHashMap<u32, u64>,
}

impl<'s> Family<'s> {
    fn new(all: &'s [Slice]) -> Self {
        let mut child_counts = FxHashMap::default();
        for outer in all.iter().filter_map(|slice| slice.outer) {
            *child_counts.entry(outer).or_default() += 1;
        }
        Self {
            by_index: all.iter().map(|slice| (slice.id.index, slice)).collect(),
            child_counts,
        }
    }

    /// Returns the slices around one, innermost first.
    fn around(&self, slice: &Slice) -> impl Iterator<Item = &'s Slice> {
        let outer = |slice: &Slice| self.by_index.get(&slice.outer?).copied();
        // The bound keeps damaged tables from going round for ever.
        std::iter::successors(outer(slice), move |around| outer(around)).take(self.by_index.len())
    }
}

fn name_of(session: &TraceSession, slice: &Slice) -> Result<String, Error> {
    Ok(slice
        .name
        .map_or(Ok(""), |name| session.strings().map(|strings| strings.get(name)))?
        .to_owned())
}

fn instances(
    session: &TraceSession,
    matches: &[&Slice],
    family: &Family<'_>,
    attributor: &Attributor<'_>,
    is_gpu_missing: bool,
) -> Result<Vec<Row>, Error> {
    let mut sorted = matches.to_vec();
    sorted.sort_by_key(|slice| {
        (
            slice.start_ns,
            std::cmp::Reverse(slice.end_ns),
            slice.rank,
            slice.id.index,
        )
    });
    let mut twins: FxHashMap<String, u64> = FxHashMap::default();
    sorted
        .into_iter()
        .map(|slice| {
            let name = name_of(session, slice)?;
            let mut key = format!("slice|{name}@{}", slice.start_ns);
            let twin = twins.entry(key.clone()).or_default();
            if *twin > 0 {
                key.push_str(&format!("#{twin}"));
            }
            *twin += 1;
            let time = attributor.measure(&mut attributor.of(slice));
            let known = |ns: i64| (!is_gpu_missing).then_some(ns);
            Ok(Row::Instance(InstanceRow {
                key,
                row_id: slice.id.to_string(),
                name,
                start_ns: slice.start_ns,
                duration_ns: slice.end_ns - slice.start_ns,
                rank: slice.rank,
                step: slice.step,
                tid: session.track(slice.track)?.tid.clone(),
                depth: u32::try_from(family.around(slice).count()).unwrap_or(u32::MAX),
                child_count: family.child_counts.get(&slice.id.index).copied().unwrap_or(0),
                attributed_gpu_ns: known(time.total_ns),
                attributed_gpu_busy_ns: known(time.busy_ns),
                attributed_comm_ns: known(time.comm_ns),
                gpu_count: (!is_gpu_missing).then_some(time.count),
            }))
        })
        .collect()
}

/// What slices add up to.
#[derive(Default)]
struct Sums {
    durations: Vec<i64>,
    total_gpu_ns: i64,
    total_comm_ns: i64,
    attributed: Attributed,
}

fn aggregates(
    session: &TraceSession,
    matches: &[&Slice],
    family: &Family<'_>,
    attributor: &Attributor<'_>,
    group_by: GroupBy,
    is_gpu_missing: bool,
) -> Result<Vec<Row>, Error> {
    let mut groups: BTreeMap<String, Sums> = BTreeMap::new();
    for slice in matches {
        let scope = match group_by {
            GroupBy::Name => name_of(session, slice)?,
            GroupBy::Step => slice.step.map_or("none".to_owned(), |step| step.to_string()),
            GroupBy::Path => {
                let mut names = vec![name_of(session, slice)?];
                for outer in family.around(slice) {
                    names.push(name_of(session, outer)?);
                }
                names.reverse();
                names.join(" > ")
            }
        };
        let mut attributed = attributor.of(slice);
        let DeviceTime {
            total_ns, comm_ns, ..
        } = attributor.measure(&mut attributed);
        let sums = groups.entry(scope).or_default();
        sums.durations.push(slice.end_ns - slice.start_ns);
        sums.total_gpu_ns += total_ns;
        sums.total_comm_ns += comm_ns;
        sums.attributed.rows.append(&mut attributed.rows);
    }
    let known = |ns: i64| (!is_gpu_missing).then_some(ns);
    let mut rows: Vec<AggregateRow> = groups
        .into_iter()
        .map(|(scope, mut sums)| {
            let total_cpu_ns: i64 = sums.durations.iter().sum();
            let count = i64::try_from(sums.durations.len()).unwrap_or(i64::MAX);
            AggregateRow {
                key: format!("scope|{scope}"),
                scope,
                instances: sums.durations.len() as u64,
                total_cpu_ns,
                avg_cpu_ns: total_cpu_ns / count.max(1),
                min_cpu_ns: sums.durations.iter().copied().min().unwrap_or(0),
                max_cpu_ns: sums.durations.iter().copied().max().unwrap_or(0),
                total_gpu_ns: known(sums.total_gpu_ns),
                gpu_busy_ns: known(attributor.measure(&mut sums.attributed).busy_ns),
                total_comm_ns: known(sums.total_comm_ns),
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        b.total_cpu_ns
            .cmp(&a.total_cpu_ns)
            .then_with(|| a.key.cmp(&b.key))
    });
    Ok(rows.into_iter().map(Row::Aggregate).collect())
}

/// Orders rows by a field, unknown last; ties keep their order.
fn order(a: &Row, b: &Row, sort: Sort) -> Ordering {
    let text = |row: &Row| match (row, sort.field) {
        (Row::Instance(row), "name") => Some(row.name.clone()),
        (Row::Aggregate(row), "scope") => Some(row.scope.clone()),
        _ => None,
    };
    let number = |row: &Row| match row {
        Row::Instance(row) => match sort.field {
            "start_ns" => Some(row.start_ns),
            "duration_ns" => Some(row.duration_ns),
            "attributed_gpu_ns" => row.attributed_gpu_ns,
            "attributed_gpu_busy_ns" => row.attributed_gpu_busy_ns,
            "attributed_comm_ns" => row.attributed_comm_ns,
            "gpu_count" => row.gpu_count.and_then(|count| i64::try_from(count).ok()),
            _ => None,
        },
        Row::Aggregate(row) => match sort.field {
            "instances" => i64::try_from(row.instances).ok(),
            "total_cpu_ns" => Some(row.total_cpu_ns),
            "avg_cpu_ns" => Some(row.avg_cpu_ns),
            "min_cpu_ns" => Some(row.min_cpu_ns),
            "max_cpu_ns" => Some(row.max_cpu_ns),
            "total_gpu_ns" => row.total_gpu_ns,
            "gpu_busy_ns" => row.gpu_busy_ns,
            "total_comm_ns" => row.total_comm_ns,
            _ => None,
        },
    };
    let turned = |order: Ordering| {
        if sort.is_descending {
            order.reverse()
        } else {
            order
        }
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => turned(a.cmp(&b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => turned(text(a).cmp(&text(b))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{RowId, RowType};

    fn slice(index: u32, outer: Option<u32>) -> Slice {
        Slice {
            id: RowId {
                row_type: RowType::Annotation,
                index,
            },
            name: None,
            start_ns: 0,
            end_ns: 1,
            rank: None,
            step: None,
            track: 0,
            outer,
        }
    }

    #[test]
    fn slices_around_one_are_told_innermost_first() {
        let all = [slice(1, None), slice(2, Some(1)), slice(3, Some(2))];
        let family = Family::new(&all);
        let around: Vec<u32> = family.around(&all[2]).map(|slice| slice.id.index).collect();
        assert_eq!(around, [2, 1]);
    }

    #[test]
    fn a_circle_in_damaged_tables_ends() {
        let all = [slice(1, Some(2)), slice(2, Some(1)), slice(3, Some(1))];
        assert_eq!(Family::new(&all).around(&all[2]).count(), 3);
    }
}
