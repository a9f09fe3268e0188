//! `inspect`: all that is known of single rows.
//!
//! One row an id, in the order asked. The args are those of the file, digit by digit; `typed_args` shows
//! the ones that matter with their units, and says what it recomputed.
//!
//! Contexts (operator, annotation, Python frame, module) are those around the row on its thread; a device
//! row has those of its launch. Children are the rows directly inside, a crossing row is nobody's child.

mod query;
mod typed;

#[cfg(test)]
mod tests;

pub(crate) use query::reason_not_found;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use veloq_core::{
    Cell, Column, Example, Failure, Page, Section, Table, TableView, Trust, Unit, Verb, VerbSpec,
};

use crate::error::Error;
use crate::inventory::findings::code;
use crate::kineto::args::Args as EventArgs;
use crate::query::event::{EventRow, RowRef, StoredEvent};
use crate::query::related::{Confidence, Referring, op_confidence};
use crate::row::RowId;
use crate::session::TraceSession;

use query::{SHOWN, Surroundings};
use typed::{Subject, TypedArgs, typed_args};

/// Shows all that is known of rows: args, parent, children, Python stack, links
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Request {
    /// Row ids, as other answers show them: `kernel:91`
    #[arg(value_name = "ROW_ID", required = true)]
    row_ids: Vec<String>,
}

/// Parses row ids.
///
/// # Errors
/// `usage.invalid_value` when one is malformed, or there is none.
pub(crate) fn parse_row_ids(texts: &[String]) -> Result<Vec<RowId>, Error> {
    let invalid = |problem| Error::InvalidFlag {
        flag: "ROW_ID",
        problem,
    };
    if texts.is_empty() {
        return Err(invalid(
            "at least one row id is needed, for example `kernel:91`".to_owned(),
        ));
    }
    texts.iter().map(|text| text.parse().map_err(invalid)).collect()
}

/// One row asked for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InspectRow {
    /// The id asked for.
    key: String,
    /// Whether there is such a row.
    found: bool,
    /// Why there is none; null when there is.
    reason: Option<String>,
    /// The row.
    event: Option<EventRow>,
    /// The category as written; null where the element has none.
    category: Option<String>,
    /// The phase as written (`ph`); null where the element has none.
    phase: Option<String>,
    /// The args as they are in the file, repaired where they were no JSON; null where the element has none.
    #[schemars(with = "Option<Value>")]
    args: Option<Box<RawValue>>,
    /// The args that matter, typed; null where there are none.
    typed_args: Option<TypedArgs>,
    /// Own time in ns, nested rows of the kind taken out; null on rows that do not nest.
    self_ns: Option<i64>,
    /// Device time in ns launched directly by the row; null on rows that cannot launch.
    gpu_self_ns: Option<i64>,
    /// Device time in ns launched anywhere inside the row; null on rows that cannot launch.
    gpu_total_ns: Option<i64>,
    /// The innermost row around it on its thread.
    parent: Option<RowRef>,
    /// The rows directly inside, by start; at most 50.
    children: Vec<RowRef>,
    /// How many there are.
    children_total: u64,
    /// The number of the step in which the row, or its launch, starts.
    step: Option<i64>,
    /// The innermost Python frame around the row, or around its launch.
    python_context: Option<RowRef>,
    /// All Python frames around it, outermost first.
    python_stack: Vec<RowRef>,
    /// The innermost module call around it.
    module: Option<RowRef>,
    /// Rows it is linked to: at most 50 of a kind.
    links: Vec<LinkRow>,
    /// How many device rows the call launched; null on other rows.
    launched_total: Option<u64>,
}

/// A row that the inspected row is linked to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkRow {
    /// What the other row is to this one.
    kind: LinkKind,
    /// The other row's id.
    row_id: String,
    /// Its type.
    r#type: &'static str,
    /// Its name.
    name: Option<String>,
    /// What the link rests on.
    confidence: Confidence,
}

/// What a linked row is to the inspected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LinkKind {
    /// The call that launched it.
    Launch,
    /// A device row that it launched.
    Launched,
    /// The innermost operator around it, or around its launch.
    Op,
    /// The innermost annotation or step around it, or around its launch.
    Annotation,
    /// The step in which it, or its launch, starts.
    Step,
    /// The forward operator of a backward one.
    Forward,
    /// A backward operator of a forward one.
    Backward,
    /// The annotation on the CPU of which it is the projection.
    ProjectedFrom,
}

/// The rows asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowScope {
    /// The row ids, in the order asked.
    row_ids: Vec<String>,
}

impl RowScope {
    /// Returns the scope of the given ids.
    pub(crate) fn new(row_ids: &[String]) -> Self {
        Self {
            row_ids: row_ids.to_vec(),
        }
    }
}

/// Whether the answer is whole, and how far it can be believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auxiliary {
    /// The rows asked for.
    scope: RowScope,
    /// Always false: every id asked for has its row.
    truncated: bool,
    /// Always null.
    next_offset: Option<u64>,
    /// How many of the ids are of no row.
    missing: u64,
    /// The findings that touch these rows.
    trust: Trust,
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Response(Page<InspectRow, Auxiliary>);

/// The verb.
pub(crate) struct Inspect;

impl Verb for Inspect {
    type Session = TraceSession;
    type Request = Request;
    type Response = Response;
    const SPEC: VerbSpec = VerbSpec {
        name: "inspect",
        about: "What is known of this row: its args, its place, what it is linked to?",
        examples: &[
            Example {
                asks: "One operator, with its inputs, children and Python stack",
                command: "pytorch inspect TRACE cpu_op:3",
            },
            Example {
                asks: "Three rows at once",
                command: "pytorch inspect TRACE step:0 annotation:1 python:2",
            },
            Example {
                asks: "Rows that other answers named, for a person",
                command: "pytorch inspect TRACE cpu_op:3 cpu_op:4 --format table",
            },
        ],
    };

    fn run(&self, session: &TraceSession, request: Request) -> Result<Response, Failure> {
        let ids = parse_row_ids(&request.row_ids)?;
        let around = query::surroundings(session, &ids)?;
        let lost: Vec<u32> = ids
            .iter()
            .filter(|id| around.events.get(&id.index).is_none_or(|event| event.id != **id))
            .map(|id| id.index)
            .collect();
        let others = crate::query::event::events_at(session, &lost)?;
        let rows = request
            .row_ids
            .iter()
            .zip(&ids)
            .map(
                |(key, id)| match around.events.get(&id.index).filter(|event| event.id == *id) {
                    Some(event) => found(session, key, event, &around),
                    None => {
                        let other = others.iter().find(|event| event.id.index == id.index);
                        let reason = query::reason_not_found(session, *id, other.map(|event| event.id))?;
                        Ok(InspectRow::missing(key, reason))
                    }
                },
            )
            .collect::<Result<Vec<_>, Error>>()?;
        let mut codes = code::INPUT.to_vec();
        codes.extend([
            code::CLOCK_INVERSION,
            code::UNLINKED_ROWS,
            code::IMPOSSIBLE_OVERLAP,
            code::GRAPH_PARTIAL,
            code::LINK_AMBIGUOUS,
            code::EXTERNAL_ID_UNTRUSTED,
            code::CROSSING_ROWS,
            code::FLAG_WITHOUT_ROWS,
        ]);
        let auxiliary = Auxiliary {
            scope: RowScope::new(&request.row_ids),
            truncated: false,
            next_offset: None,
            missing: rows.iter().filter(|row| !row.found).count() as u64,
            trust: session.trust(&codes),
        };
        let total = rows.len() as u64;
        Ok(Response(Page::new(rows, total, auxiliary)))
    }
}

impl InspectRow {
    fn missing(key: &str, reason: String) -> Self {
        Self {
            key: key.to_owned(),
            found: false,
            reason: Some(reason),
            event: None,
            category: None,
            phase: None,
            args: None,
            typed_args: None,
            self_ns: None,
            gpu_self_ns: None,
            gpu_total_ns: None,
            parent: None,
            children: Vec::new(),
            children_total: 0,
            step: None,
            python_context: None,
            python_stack: Vec::new(),
            module: None,
            links: Vec::new(),
            launched_total: None,
        }
    }
}

fn found(
    session: &TraceSession,
    key: &str,
    event: &StoredEvent,
    around: &Surroundings,
) -> Result<InspectRow, Error> {
    let index = event.id.index;
    let reference = |row: Option<u32>| {
        row.and_then(|row| around.events.get(&row))
            .map(|row| row.reference(session))
            .transpose()
    };
    let list = |rows: Vec<u32>| -> Result<Vec<RowRef>, Error> {
        rows.into_iter()
            .filter_map(|row| reference(Some(row)).transpose())
            .collect()
    };
    let children = around.children.get(&index).map_or(&[][..], Vec::as_slice);
    let strings = session.strings()?;
    let args = around.args.get(&index);
    let launch = event.launch.and_then(|row| around.events.get(&row));
    let name = |event: &StoredEvent| event.name.map_or("", |name| strings.get(name));
    let subject = Subject {
        row_type: event.id.row_type,
        name: name(event),
        duration_ns: event.duration_ns,
        bytes: event.bytes,
        launch: launch.map(|launch| (name(launch), launch.bytes)),
    };
    let times = around.times.get(&index).copied().unwrap_or_default();
    let launched = around.launched.get(&index);
    Ok(InspectRow {
        key: key.to_owned(),
        found: true,
        reason: None,
        event: Some(event.row(session)?),
        category: event.category.map(|category| strings.get(category).to_owned()),
        phase: (event.phase != 0).then(|| char::from(event.phase).to_string()),
        args: args.and_then(|text| query::raw(text)),
        typed_args: args
            .and_then(|text| EventArgs::parse(text))
            .and_then(|args| typed_args(&subject, &args)),
        self_ns: times.self_ns,
        gpu_self_ns: times.gpu_self_ns,
        gpu_total_ns: times.gpu_total_ns,
        parent: reference(event.parent)?,
        children: list(children.iter().take(SHOWN).map(|child| child.index).collect())?,
        children_total: children.len() as u64,
        step: event.step,
        python_context: reference(event.python)?,
        python_stack: list(around.frames.outer_first(event.python))?,
        module: reference(event.module)?,
        links: links(session, event, around)?,
        launched_total: event
            .id
            .row_type
            .is_api()
            .then(|| launched.map_or(0, Vec::len) as u64),
    })
}

/// Returns the links of a row, in the order of [`LinkKind`].
fn links(session: &TraceSession, event: &StoredEvent, around: &Surroundings) -> Result<Vec<LinkRow>, Error> {
    let index = event.id.index;
    let mut links = Vec::new();
    let mut link = |kind, other: Option<&StoredEvent>, confidence| -> Result<(), Error> {
        if let Some(other) = other {
            let RowRef {
                row_id, r#type, name, ..
            } = other.reference(session)?;
            links.push(LinkRow {
                kind,
                row_id,
                r#type,
                name,
                confidence,
            });
        }
        Ok(())
    };
    let row = |index: Option<u32>| index.and_then(|index| around.events.get(&index));
    let firsts = |rows: Option<&Vec<Referring>>| -> Vec<u32> {
        let rows = rows.map_or(&[][..], Vec::as_slice);
        rows.iter().take(SHOWN).map(|row| row.index).collect()
    };
    let is_ambiguous = event
        .correlation_id
        .is_some_and(|number| around.ambiguous.contains(&(event.rank, number)));
    let launch = row(event.launch);
    let by_correlation = if is_ambiguous {
        Confidence::Ambiguous
    } else {
        Confidence::Correlation
    };
    link(LinkKind::Launch, launch, by_correlation)?;
    for launched in firsts(around.launched.get(&index)) {
        link(LinkKind::Launched, row(Some(launched)), Confidence::Correlation)?;
    }
    if let Some(op) = row(event.op) {
        link(LinkKind::Op, Some(op), op_confidence(op, launch.unwrap_or(event)))?;
    }
    link(LinkKind::Annotation, row(event.annotation), Confidence::Time)?;
    let step = event.step.and_then(|step| around.steps.get(&(event.rank, step)));
    link(
        LinkKind::Step,
        step.filter(|step| step.id != event.id),
        Confidence::Time,
    )?;
    link(LinkKind::Forward, row(event.forward), Confidence::Autograd)?;
    for backward in firsts(around.backward.get(&index)) {
        link(LinkKind::Backward, row(Some(backward)), Confidence::Autograd)?;
    }
    link(
        LinkKind::ProjectedFrom,
        around.projected_from.get(&index),
        Confidence::ExternalId,
    )?;
    Ok(links)
}

impl TableView for Response {
    fn table(&self) -> Table {
        let columns = || {
            let mut columns = vec![Column::new("key", Unit::Id), Column::new("found", Unit::Text)];
            columns.extend(
                EventRow::columns()
                    .into_iter()
                    .filter(|column| column.name != "row_id"),
            );
            columns.extend([
                Column::detail("category", Unit::Text),
                Column::detail("phase", Unit::Text),
                Column::detail("args", Unit::Text),
                Column::detail("self_ns", Unit::Nanoseconds),
                Column::new("gpu_total_ns", Unit::Nanoseconds),
                Column::detail("parent", Unit::Id),
                Column::new("children_total", Unit::Count),
                Column::detail("python_context", Unit::Text),
                Column::detail("module", Unit::Text),
                Column::new("reason", Unit::Text),
            ]);
            columns
        };
        let mut sections = vec![Section {
            title: None,
            columns: columns(),
            rows: self.0.rows.iter().map(InspectRow::cells).collect(),
        }];
        for row in &self.0.rows {
            sections.extend(row.sections());
        }
        Table {
            sections,
            total_matched: self.0.total_matched,
            notes: self.0.auxiliary.trust.details(),
        }
    }
}

impl InspectRow {
    fn cells(&self) -> Vec<Cell> {
        let mut cells = vec![Cell::from(self.key.as_str()), Cell::from(self.found)];
        match &self.event {
            Some(event) => cells.extend(event.cells().into_iter().skip(1)),
            None => cells.extend(EventRow::columns().iter().skip(1).map(|_| Cell::Null)),
        }
        let name = |row: &Option<RowRef>| row.as_ref().and_then(|row| row.name.clone());
        cells.extend([
            Cell::from(self.category.clone()),
            Cell::from(self.phase.clone()),
            Cell::from(self.args.as_ref().map(|args| args.get().to_owned())),
            Cell::from(self.self_ns),
            Cell::from(self.gpu_total_ns),
            Cell::from(self.parent.as_ref().map(|row| row.row_id.clone())),
            Cell::from(self.children_total),
            Cell::from(name(&self.python_context)),
            Cell::from(name(&self.module)),
            Cell::from(self.reason.clone()),
        ]);
        cells
    }

    /// Returns what a person wants to see of one row: args, stack, children, links.
    fn sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        let rows_section = |what: &str, rows: &[RowRef]| Section {
            title: Some(format!("{what} of {}", self.key)),
            columns: vec![
                Column::new("row_id", Unit::Id),
                Column::new("name", Unit::Text),
                Column::new("start_ns", Unit::Nanoseconds),
                Column::new("duration_ns", Unit::Nanoseconds),
            ],
            rows: rows
                .iter()
                .map(|row| {
                    vec![
                        Cell::from(row.row_id.as_str()),
                        Cell::from(row.name.clone()),
                        Cell::from(row.start_ns),
                        Cell::from(row.duration_ns),
                    ]
                })
                .collect(),
        };
        let args = self
            .args
            .as_ref()
            .and_then(|args| serde_json::from_str::<serde_json::Map<String, Value>>(args.get()).ok());
        if let Some(args) = args.filter(|args| !args.is_empty()) {
            let text = |value: &Value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            sections.push(Section {
                title: Some(format!("args of {}", self.key)),
                columns: vec![Column::new("arg", Unit::Text), Column::new("value", Unit::Text)],
                rows: args
                    .iter()
                    .map(|(key, value)| vec![Cell::from(key.as_str()), Cell::from(text(value))])
                    .collect(),
            });
        }
        if !self.python_stack.is_empty() {
            sections.push(rows_section("Python stack", &self.python_stack));
        }
        if !self.children.is_empty() {
            sections.push(rows_section("children", &self.children));
        }
        if !self.links.is_empty() {
            let kind = |kind: LinkKind| serde_json::to_value(kind).ok()?.as_str().map(str::to_owned);
            sections.push(Section {
                title: Some(format!("links of {}", self.key)),
                columns: vec![
                    Column::new("kind", Unit::Text),
                    Column::new("row_id", Unit::Id),
                    Column::new("name", Unit::Text),
                ],
                rows: self
                    .links
                    .iter()
                    .map(|link| {
                        vec![
                            Cell::from(kind(link.kind)),
                            Cell::from(link.row_id.as_str()),
                            Cell::from(link.name.clone()),
                        ]
                    })
                    .collect(),
            });
        }
        sections
    }
}
