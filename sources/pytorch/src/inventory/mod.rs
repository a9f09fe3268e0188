//! What is known of a trace as a whole: counted when it is opened, kept in the manifest, told by `summary`.

pub(crate) mod capabilities;
pub(crate) mod findings;
pub(crate) mod take;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use veloq_core::{Capabilities, Trust};

/// The time a trace covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpanFacts {
    /// Absolute origin in ns, as decimal text.
    pub(crate) origin_ns: String,
    pub(crate) span_ns: u64,
    /// Whether the origin counts from 1970.
    pub(crate) is_unix: bool,
}

/// One rank of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RankFacts {
    /// The rank; null when it cannot be known.
    pub(crate) rank: Option<i64>,
    /// A merge tool's label of the rank.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) label: Option<String>,
    /// Rows of the rank.
    pub(crate) event_count: u64,
    /// Devices with rows, ascending.
    pub(crate) device_ids: Vec<i64>,
}

impl RankFacts {
    /// Returns the rank as messages name it.
    pub(crate) fn display_name(&self) -> String {
        match (self.rank, &self.label) {
            (Some(rank), Some(label)) => format!("rank {rank} ({label})"),
            (Some(rank), None) => format!("rank {rank}"),
            (None, _) => "an unknown rank".to_owned(),
        }
    }
}

/// One device of a rank that has work in the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeviceFacts {
    /// The rank.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) rank: Option<i64>,
    /// The device's number within its rank.
    pub(crate) device_id: Option<i64>,
    /// The device's name; null where the header does not tell.
    pub(crate) name: Option<String>,
    /// Kernel rows.
    pub(crate) kernels: u64,
    /// Copy rows.
    pub(crate) memcpys: u64,
    /// Fill rows.
    pub(crate) memsets: u64,
    /// Sum of the durations of all work, in ns.
    pub(crate) total_ns: i64,
    /// Length of the union of all work, in ns.
    pub(crate) busy_ns: i64,
    /// Start of the first work in ns since the origin.
    pub(crate) first_start_ns: i64,
    /// End of the last work in ns since the origin.
    pub(crate) last_end_ns: i64,
    /// Busy share of the device's own window, first start to last end; null when that is empty.
    pub(crate) busy_ratio: Option<f64>,
    /// Streams with work, ascending.
    pub(crate) streams: Vec<i64>,
}

/// The steps of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepFacts {
    /// Steps, one a rank and number.
    pub(crate) count: u64,
    /// Lowest number.
    pub(crate) first: Option<i64>,
    /// Highest number.
    pub(crate) last: Option<i64>,
    /// Mean duration in ns, rounded down.
    pub(crate) mean_ns: Option<i64>,
    /// Longest duration in ns.
    pub(crate) max_ns: Option<i64>,
}

/// First start and last end of some rows, in ns since the origin; null without rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WindowFacts {
    /// Start of the first row.
    pub(crate) first_start_ns: Option<i64>,
    /// End of the last row.
    pub(crate) last_end_ns: Option<i64>,
}

/// The windows of the CPU side and of the devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Windows {
    /// Operators, annotations, steps, frames and API calls.
    pub(crate) cpu: WindowFacts,
    /// Kernels, copies and fills.
    pub(crate) gpu: WindowFacts,
}

/// A number by name, in a stated order.
pub(crate) type CountsByName = serde_json::Map<String, Value>;

/// What the header tells of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DistributedFacts {
    /// The backend as written, for example `nccl` or `cpu:gloo`.
    pub(crate) backend: Option<String>,
    /// Version of NCCL or RCCL.
    pub(crate) nccl_version: Option<String>,
    /// Process groups of the job; null where not told.
    pub(crate) group_count: Option<i64>,
    /// The groups that the header lists.
    pub(crate) groups: Vec<GroupFacts>,
}

/// A process group of the header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupFacts {
    /// The group's name.
    pub(crate) name: Option<String>,
    /// What its user called it.
    pub(crate) description: Option<String>,
    /// Members.
    pub(crate) size: Option<i64>,
    /// The members' global ranks; null where the header shortened the list.
    pub(crate) ranks: Option<Vec<i64>>,
}

/// What is known of a trace as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Inventory {
    /// Absent when no row has a time.
    pub(crate) span: Option<SpanFacts>,
    pub(crate) event_count: u64,
    pub(crate) rank: Option<i64>,
    pub(crate) world_size: Option<i64>,
    pub(crate) worker: Option<String>,
    pub(crate) schema_version: Option<i64>,
    pub(crate) event_counts: CountsByName,
    pub(crate) category_counts: CountsByName,
    pub(crate) phase_counts: CountsByName,
    pub(crate) devices: Vec<DeviceFacts>,
    pub(crate) ranks: Vec<RankFacts>,
    pub(crate) steps: StepFacts,
    /// CPU threads with rows.
    pub(crate) threads: u64,
    pub(crate) versions: serde_json::Map<String, Value>,
    pub(crate) capture_flags: serde_json::Map<String, Value>,
    pub(crate) distributed: Option<DistributedFacts>,
    pub(crate) windows: Windows,
    pub(crate) capabilities: Capabilities,
    pub(crate) trust: Trust,
    /// Sum of the durations of all device work, in ns.
    pub(crate) device_time_ns: i64,
    /// The part of it that no operator launched, in ns.
    pub(crate) unattributed_ns: i64,
    /// First damage of the input: code, byte offset and element index; what `--strict` reports.
    pub(crate) first_damage: Option<Damage>,
}

/// A damage that reading repaired or passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Damage {
    pub(crate) what: String,
    /// In the unpacked text, where known.
    pub(crate) byte_offset: Option<u64>,
    pub(crate) index: Option<u64>,
    /// Whether the text ends here, too early.
    pub(crate) is_truncation: bool,
}
