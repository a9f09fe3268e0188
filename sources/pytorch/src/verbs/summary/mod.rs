//! `summary`: what is in the trace, and how far it can be believed.
//!
//! The inventory is taken when the trace is opened; this verb only shows it. It is the first question to
//! ask: the capabilities say which others can be answered, the findings say which numbers to doubt.

use std::fmt::Write as _;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use veloq_core::{
    Capabilities, Cell, Column, Example, Failure, Page, Section, Table, TableView, Trust, Unit, Verb,
    VerbSpec,
};

use crate::inventory::{
    CountsByName, DeviceFacts, DistributedFacts, Inventory, RankFacts, StepFacts, Windows,
};
use crate::session::TraceSession;

/// Shows what is in the trace: rows by type, devices, ranks, steps, versions, and what can be asked of it
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Request {}

/// The trace as one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceRow {
    /// `trace|<path>`.
    key: String,
    /// The path as given.
    path: String,
    /// Size on disk.
    size_bytes: u64,
    /// Event rows: all elements but metadata and flow markers.
    event_count: u64,
    /// The rank; null when it cannot be known, or the file holds several.
    rank: Option<i64>,
    /// Ranks in the job; null when it cannot be known.
    world_size: Option<i64>,
    /// The worker in the file's name; null when it has none.
    worker: Option<String>,
    /// The `schemaVersion` of the header; null when it has none.
    schema_version: Option<i64>,
}

/// All else that is known of the trace as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auxiliary {
    /// What can be asked of the trace, and how to record what is missing.
    capabilities: Capabilities,
    /// Event rows by type, in the order of the types.
    event_counts: CountsByName,
    /// Elements by category as written, flow markers included; the empty name counts those without one.
    category_counts: CountsByName,
    /// Elements by phase as written; the empty name counts those without one.
    phase_counts: CountsByName,
    /// Devices with work, by rank and number.
    devices: Vec<DeviceFacts>,
    /// Ranks of the file.
    ranks: Vec<RankFacts>,
    /// Steps.
    steps: StepFacts,
    /// CPU threads with rows.
    threads: u64,
    /// Versions that the header tells.
    versions: serde_json::Map<String, serde_json::Value>,
    /// Recording options that the header tells; absent means off, or an old writer.
    capture_flags: serde_json::Map<String, serde_json::Value>,
    /// What the header tells of the job; null when it tells nothing.
    distributed: Option<DistributedFacts>,
    /// First start and last end on the CPU and on the devices.
    windows: Windows,
    /// Sum of the durations of all device work, in ns.
    device_time_ns: i64,
    /// The part of it that no operator launched, in ns.
    unattributed_device_time_ns: i64,
    /// Where the tables of the trace are kept.
    artifact_dir: String,
    /// All findings.
    trust: Trust,
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Response(Page<TraceRow, Auxiliary>);

/// The verb.
pub(crate) struct Summary;

impl Verb for Summary {
    type Session = TraceSession;
    type Request = Request;
    type Response = Response;
    const SPEC: VerbSpec = VerbSpec {
        name: "summary",
        about: "What is in this trace, and what can be asked of it?",
        examples: &[
            Example {
                asks: "What is in this trace?",
                command: "pytorch summary TRACE",
            },
            Example {
                asks: "The same for a person",
                command: "pytorch summary TRACE --format table",
            },
            Example {
                asks: "The same for a chat or an issue",
                command: "pytorch summary TRACE --format md",
            },
        ],
    };

    fn run(&self, session: &TraceSession, _: Request) -> Result<Response, Failure> {
        let inventory: Inventory = session.inventory().clone();
        let path = session.path().to_owned();
        let row = TraceRow {
            key: format!("trace|{path}"),
            path,
            size_bytes: session.input_bytes(),
            event_count: inventory.event_count,
            rank: inventory.rank,
            world_size: inventory.world_size,
            worker: inventory.worker,
            schema_version: inventory.schema_version,
        };
        let auxiliary = Auxiliary {
            capabilities: inventory.capabilities,
            event_counts: inventory.event_counts,
            category_counts: inventory.category_counts,
            phase_counts: inventory.phase_counts,
            devices: inventory.devices,
            ranks: inventory.ranks,
            steps: inventory.steps,
            threads: inventory.threads,
            versions: inventory.versions,
            capture_flags: inventory.capture_flags,
            distributed: inventory.distributed,
            windows: inventory.windows,
            device_time_ns: inventory.device_time_ns,
            unattributed_device_time_ns: inventory.unattributed_ns,
            artifact_dir: session.artifact_dir(),
            trust: inventory.trust,
        };
        Ok(Response(Page::new(vec![row], 1, auxiliary)))
    }
}

impl TableView for Response {
    fn table(&self) -> Table {
        let auxiliary = &self.0.auxiliary;
        Table {
            sections: vec![
                traces(&self.0.rows),
                counts(auxiliary),
                devices(&auxiliary.devices),
                capabilities(&auxiliary.capabilities),
            ],
            total_matched: self.0.total_matched,
            notes: auxiliary.trust.details(),
        }
    }
}

fn traces(rows: &[TraceRow]) -> Section {
    let cells = |row: &TraceRow| {
        vec![
            Cell::from(row.key.clone()),
            Cell::from(row.path.clone()),
            Cell::from(row.size_bytes),
            Cell::from(row.event_count),
            Cell::from(row.rank),
            Cell::from(row.world_size),
            Cell::from(row.worker.clone()),
            Cell::from(row.schema_version),
        ]
    };
    Section {
        title: None,
        columns: vec![
            Column::detail("key", Unit::Text),
            Column::new("path", Unit::Text),
            Column::new("size_bytes", Unit::Bytes),
            Column::new("event_count", Unit::Count),
            Column::new("rank", Unit::Count),
            Column::new("world_size", Unit::Count),
            Column::new("worker", Unit::Text),
            Column::detail("schema_version", Unit::Count),
        ],
        rows: rows.iter().map(cells).collect(),
    }
}

fn counts(auxiliary: &Auxiliary) -> Section {
    let count = |(name, count): (&String, &serde_json::Value)| {
        vec![Cell::from(name.clone()), Cell::from(count.as_u64())]
    };
    Section {
        title: Some("rows by type".to_owned()),
        columns: vec![Column::new("type", Unit::Text), Column::new("count", Unit::Count)],
        rows: auxiliary.event_counts.iter().map(count).collect(),
    }
}

fn devices(devices: &[DeviceFacts]) -> Section {
    let cells = |device: &DeviceFacts| {
        vec![
            Cell::from(device.rank),
            Cell::from(device.device_id),
            Cell::from(device.name.clone()),
            Cell::from(device.kernels),
            Cell::from(device.memcpys),
            Cell::from(device.memsets),
            Cell::from(device.busy_ns),
            Cell::from(device.busy_ratio),
            Cell::from(device.streams.iter().fold(String::new(), |mut list, stream| {
                let _ = write!(list, "{}{stream}", if list.is_empty() { "" } else { " " });
                list
            })),
        ]
    };
    Section {
        title: Some("devices".to_owned()),
        columns: vec![
            Column::new("rank", Unit::Count),
            Column::new("device_id", Unit::Count),
            Column::new("name", Unit::Text),
            Column::new("kernels", Unit::Count),
            Column::new("memcpys", Unit::Count),
            Column::new("memsets", Unit::Count),
            Column::new("busy_ns", Unit::Nanoseconds),
            Column::new("busy_ratio", Unit::Ratio),
            Column::new("streams", Unit::Text),
        ],
        rows: devices.iter().map(cells).collect(),
    }
}

fn capabilities(capabilities: &Capabilities) -> Section {
    let cells = |(id, capability): (&str, &veloq_core::Capability)| {
        vec![
            Cell::from(id),
            Cell::from(if capability.available { "yes" } else { "no" }),
            Cell::from(capability.count),
            Cell::from(capability.reason.clone()),
        ]
    };
    Section {
        title: Some("capabilities".to_owned()),
        columns: vec![
            Column::new("capability", Unit::Text),
            Column::new("available", Unit::Text),
            Column::new("count", Unit::Count),
            Column::new("reason", Unit::Text),
        ],
        rows: capabilities.iter().map(cells).collect(),
    }
}
