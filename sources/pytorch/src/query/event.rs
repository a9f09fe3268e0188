//! Event rows: as stored, and as answers show them.

use std::borrow::Cow;

use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::{Expr, col, lit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::Value;
use veloq_core::{Cell, Column, Unit};

use crate::comm::kind::CommKind;
use crate::error::Error;
use crate::row::{RowId, RowType};
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column, flag};

use super::engine::{BatchColumns, value};

/// A process or thread id: an exact integer, or the original text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum IdValue {
    Int(i64),
    Text(String),
}

impl std::fmt::Display for IdValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(value) => value.fmt(formatter),
            Self::Text(text) => text.fmt(formatter),
        }
    }
}

impl Serialize for IdValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl JsonSchema for IdValue {
    fn schema_name() -> Cow<'static, str> {
        "Id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "An exact integer, or the original text.", "type": ["integer", "string"] })
    }
}

impl From<&IdValue> for Cell {
    fn from(id: &IdValue) -> Self {
        match id {
            IdValue::Int(value) => Self::Int(i128::from(*value)),
            IdValue::Text(text) => Self::Text(text.clone()),
        }
    }
}

/// One event of the trace.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventRow {
    /// The row id: what identifies the row within its trace.
    pub(crate) key: String,
    /// `<prefix>:<index>`; the index is the element's position in the file, flow markers apart.
    pub(crate) row_id: String,
    /// The row type.
    pub(crate) r#type: &'static str,
    /// The name; null where the element has none.
    pub(crate) name: Option<String>,
    /// Start in ns since the trace's origin; null where the time is missing or invalid.
    pub(crate) start_ns: Option<i64>,
    /// Duration in ns; 0 on instants; null where it is missing or invalid.
    pub(crate) duration_ns: Option<i64>,
    /// Whether the row is communication; left out when not.
    #[serde(skip_serializing_if = "is_false", default)]
    pub(crate) is_comm: bool,
    /// The rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rank: Option<i64>,
    /// The device's number within its rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) device_id: Option<i64>,
    /// The stream's number within its device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream_id: Option<i64>,
    /// The process id as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<IdValue>,
    /// The thread id as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tid: Option<IdValue>,
    /// The number of the step in which the row, or its launch, starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<i64>,
    /// The profiler's number of an operator, or of the one around.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) external_id: Option<i64>,
    /// The number that a launch shares with its device rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<i64>,
    /// The kind of communication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) comm_kind: Option<&'static str>,
    /// Bytes moved, or allocated (negative: freed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<i64>,
    /// The input shapes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shape: Option<Value>,
    /// Whether the name, not the category, gave the type; left out when not.
    #[serde(skip_serializing_if = "is_false", default)]
    pub(crate) is_reclassified: bool,
    /// Whether the range was still open when the capture ended; left out when not.
    #[serde(skip_serializing_if = "is_false", default)]
    pub(crate) is_unfinished: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl EventRow {
    /// Returns the columns of tables of event rows.
    pub(crate) fn columns() -> Vec<Column> {
        vec![
            Column::new("row_id", Unit::Id),
            Column::detail("type", Unit::Text),
            Column::new("name", Unit::Text),
            Column::new("start_ns", Unit::Nanoseconds),
            Column::new("duration_ns", Unit::Nanoseconds),
            Column::detail("is_comm", Unit::Text),
            Column::detail("rank", Unit::Count),
            Column::new("device_id", Unit::Count),
            Column::new("stream_id", Unit::Count),
            Column::detail("pid", Unit::Text),
            Column::detail("tid", Unit::Text),
            Column::detail("step", Unit::Count),
            Column::detail("external_id", Unit::Count),
            Column::detail("correlation_id", Unit::Count),
            Column::detail("comm_kind", Unit::Text),
            Column::detail("bytes", Unit::Bytes),
            Column::detail("shape", Unit::Text),
        ]
    }

    /// Returns the row's cells, one a column of [`EventRow::columns`].
    pub(crate) fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::from(self.row_id.as_str()),
            Cell::from(self.r#type),
            Cell::from(self.name.clone()),
            Cell::from(self.start_ns),
            Cell::from(self.duration_ns),
            Cell::from(self.is_comm),
            Cell::from(self.rank),
            Cell::from(self.device_id),
            Cell::from(self.stream_id),
            self.pid.as_ref().map_or(Cell::Null, Cell::from),
            self.tid.as_ref().map_or(Cell::Null, Cell::from),
            Cell::from(self.step),
            Cell::from(self.external_id),
            Cell::from(self.correlation_id),
            Cell::from(self.comm_kind),
            Cell::from(self.bytes),
            Cell::from(self.shape.as_ref().map(Value::to_string)),
        ]
    }
}

/// An event as stored: strings, tracks and other rows by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredEvent {
    pub(crate) id: RowId,
    pub(crate) phase: u8,
    pub(crate) name: Option<u32>,
    pub(crate) category: Option<u32>,
    pub(crate) start_ns: Option<i64>,
    pub(crate) duration_ns: Option<i64>,
    pub(crate) track: u32,
    pub(crate) rank: Option<i64>,
    pub(crate) device_id: Option<i64>,
    pub(crate) stream_id: Option<i64>,
    pub(crate) step: Option<i64>,
    pub(crate) correlation_id: Option<i64>,
    pub(crate) external_id: Option<i64>,
    pub(crate) depth: u16,
    pub(crate) parent: Option<u32>,
    pub(crate) op: Option<u32>,
    pub(crate) annotation: Option<u32>,
    pub(crate) python: Option<u32>,
    pub(crate) module: Option<u32>,
    pub(crate) launch: Option<u32>,
    pub(crate) forward: Option<u32>,
    pub(crate) comm_kind: Option<CommKind>,
    pub(crate) bytes: Option<i64>,
    pub(crate) shape: Option<u32>,
    pub(crate) stream_free_ns: Option<i64>,
    pub(crate) flags: u8,
}

/// The columns of which a [`StoredEvent`] is made.
const STORED: &[&str] = &[
    column::INDEX,
    column::TYPE,
    column::PHASE,
    column::NAME,
    column::CATEGORY,
    column::START_NS,
    column::DURATION_NS,
    column::TRACK,
    column::RANK,
    column::DEVICE_ID,
    column::STREAM_ID,
    column::STEP,
    column::CORRELATION_ID,
    column::EXTERNAL_ID,
    column::DEPTH,
    column::PARENT,
    column::OP,
    column::ANNOTATION,
    column::PYTHON,
    column::MODULE,
    column::LAUNCH,
    column::FORWARD,
    column::COMM_KIND,
    column::BYTES,
    column::SHAPE,
    column::STREAM_FREE_NS,
    column::FLAGS,
];

fn stored_events(batch: &RecordBatch, events: &mut Vec<StoredEvent>) {
    let (index, depths) = (batch.u32s(column::INDEX), batch.u16s(column::DEPTH));
    let [types, phases, comm_kinds, flags] =
        [column::TYPE, column::PHASE, column::COMM_KIND, column::FLAGS].map(|name| batch.u8s(name));
    let tracks = batch.u32s(column::TRACK);
    let i64s = |name| {
        let values = batch.i64s(name);
        move |at| value(values, at)
    };
    let u32s = |name| {
        let values = batch.u32s(name);
        move |at| value(values, at)
    };
    let start_ns = i64s(column::START_NS);
    let duration_ns = i64s(column::DURATION_NS);
    let rank = i64s(column::RANK);
    let device_id = i64s(column::DEVICE_ID);
    let stream_id = i64s(column::STREAM_ID);
    let step = i64s(column::STEP);
    let correlation_id = i64s(column::CORRELATION_ID);
    let external_id = i64s(column::EXTERNAL_ID);
    let bytes = i64s(column::BYTES);
    let stream_free_ns = i64s(column::STREAM_FREE_NS);
    let name = u32s(column::NAME);
    let category = u32s(column::CATEGORY);
    let parent = u32s(column::PARENT);
    let op = u32s(column::OP);
    let annotation = u32s(column::ANNOTATION);
    let python = u32s(column::PYTHON);
    let module = u32s(column::MODULE);
    let launch = u32s(column::LAUNCH);
    let forward = u32s(column::FORWARD);
    let shape = u32s(column::SHAPE);
    for at in 0..batch.num_rows() {
        let row_type = RowType::from_code(types.value(at)).unwrap_or(RowType::Other);
        events.push(StoredEvent {
            id: RowId {
                row_type,
                index: index.value(at),
            },
            phase: phases.value(at),
            name: name(at),
            category: category(at),
            start_ns: start_ns(at),
            duration_ns: duration_ns(at),
            track: tracks.value(at),
            rank: rank(at),
            device_id: device_id(at),
            stream_id: stream_id(at),
            step: step(at),
            correlation_id: correlation_id(at),
            external_id: external_id(at),
            depth: depths.value(at),
            parent: parent(at),
            op: op(at),
            annotation: annotation(at),
            python: python(at),
            module: module(at),
            launch: launch(at),
            forward: forward(at),
            comm_kind: CommKind::from_code(comm_kinds.value(at)),
            bytes: bytes(at),
            shape: shape(at),
            stream_free_ns: stream_free_ns(at),
            flags: flags.value(at),
        });
    }
}

/// Returns the events that a predicate lets through, in file order.
///
/// # Errors
/// What the engine reports.
pub(crate) fn events_where(
    session: &TraceSession,
    predicate: Option<Expr>,
) -> Result<Vec<StoredEvent>, Error> {
    let mut events = Vec::new();
    for batch in session.engine().scan(&EVENTS, STORED, predicate)? {
        stored_events(&batch, &mut events);
    }
    Ok(events)
}

/// Returns the predicate that lets through the events of the given indices; prunes by the column's
/// statistics.
pub(crate) fn index_among(column_name: &str, indices: &[u32]) -> Expr {
    let column = || col(column_name);
    let (Some(low), Some(high)) = (indices.iter().min(), indices.iter().max()) else {
        return lit(false);
    };
    let list = indices.iter().map(|index| lit(*index)).collect();
    column()
        .gt_eq(lit(*low))
        .and(column().lt_eq(lit(*high)))
        .and(column().in_list(list, false))
}

/// Returns the events of the given indices, in file order; indices without an event are passed over.
///
/// # Errors
/// What the engine reports.
pub(crate) fn events_at(session: &TraceSession, indices: &[u32]) -> Result<Vec<StoredEvent>, Error> {
    if indices.is_empty() {
        return Ok(Vec::new());
    }
    events_where(session, Some(index_among(column::INDEX, indices)))
}

/// A row that another one refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowRef {
    /// The row's id.
    pub(crate) row_id: String,
    /// Its type.
    pub(crate) r#type: &'static str,
    /// Its name; null where it has none.
    pub(crate) name: Option<String>,
    /// Its start in ns since the trace's origin; null where the time is missing or invalid.
    pub(crate) start_ns: Option<i64>,
    /// Its duration in ns; null where it is missing or invalid.
    pub(crate) duration_ns: Option<i64>,
}

impl StoredEvent {
    /// Returns the event as other rows refer to it.
    ///
    /// # Errors
    /// What the engine reports when the strings are read.
    pub(crate) fn reference(&self, session: &TraceSession) -> Result<RowRef, Error> {
        let strings = session.strings()?;
        Ok(RowRef {
            row_id: self.id.to_string(),
            r#type: self.id.row_type.name(),
            name: self.name.map(|number| strings.get(number).to_owned()),
            start_ns: self.start_ns,
            duration_ns: self.duration_ns,
        })
    }

    /// Returns the end in ns since the origin, where start and duration are known.
    pub(crate) fn end_ns(&self) -> Option<i64> {
        Some(self.start_ns? + self.duration_ns?)
    }

    /// Returns whether the row is on a device: work, synchronisation, or a projected annotation.
    pub(crate) fn is_device_side(&self) -> bool {
        self.flags & flag::DEVICE_SIDE != 0
    }

    /// Returns the event as answers show it.
    ///
    /// # Errors
    /// What the engine reports when the strings or tracks are read.
    pub(crate) fn row(&self, session: &TraceSession) -> Result<EventRow, Error> {
        let strings = session.strings()?;
        let track = session.track(self.track)?;
        let text = |number: Option<u32>| number.map(|number| strings.get(number).to_owned());
        let row_id = self.id.to_string();
        Ok(EventRow {
            key: row_id.clone(),
            row_id,
            r#type: self.id.row_type.name(),
            name: text(self.name),
            start_ns: self.start_ns,
            duration_ns: self.duration_ns,
            is_comm: self.comm_kind.is_some(),
            rank: self.rank,
            device_id: self.device_id,
            stream_id: self.stream_id,
            pid: track.pid.clone(),
            tid: track.tid.clone(),
            step: self.step,
            external_id: self.external_id,
            correlation_id: self.correlation_id,
            comm_kind: self.comm_kind.map(CommKind::name),
            bytes: self.bytes,
            shape: self
                .shape
                .and_then(|number| serde_json::from_str(strings.get(number)).ok()),
            is_reclassified: self.flags & flag::RECLASSIFIED != 0,
            is_unfinished: self.flags & flag::UNFINISHED != 0,
        })
    }
}
