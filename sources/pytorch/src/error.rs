//! What can go wrong once a trace is open; opening has errors of its own.

use datafusion::error::DataFusionError;
use veloq_core::{ErrorClass, Explain};

/// An error of a question.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    #[error("the query engine reported an error")]
    Query(#[from] DataFusionError),

    #[error("the query engine could not be started")]
    Runtime(#[source] std::io::Error),

    #[error("a stored table of the trace is damaged: {0}")]
    TablesDamaged(String),

    #[error("the tables of the trace were replaced while they were read")]
    TablesReplaced,

    #[error("the tables of the trace contradict each other: {what}")]
    Internal { what: &'static str },

    #[error("the file holds several ranks: {}", list(ranks))]
    RankRequired { ranks: Vec<String> },

    #[error("there is no rank {rank} in the file; it holds {}", list(ranks))]
    UnknownRank { rank: i64, ranks: Vec<String> },

    #[error("`--stream {stream}` names a stream of one device, and several are in scope")]
    DeviceRequired { stream: i64, devices: Vec<String> },

    #[error("{flag}: {problem}")]
    InvalidFlag { flag: &'static str, problem: String },

    #[error("the trace lacks `{id}`")]
    CapabilityMissing {
        id: &'static str,
        reason: Option<String>,
    },

    #[error("the window would be cut into {buckets} buckets; the limit is {limit}")]
    TooManyBuckets {
        buckets: u64,
        limit: u64,
        at_least_ns: u64,
    },
}

fn list(ranks: &[String]) -> String {
    ranks.join(", ")
}

impl Explain for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::Query(_) | Self::Runtime(_) => "internal.query",
            Self::TablesDamaged(_) => "internal.tables_damaged",
            Self::TablesReplaced => "input.changed",
            Self::Internal { .. } => "internal.tables",
            Self::RankRequired { .. } => "scope.rank_required",
            Self::UnknownRank { .. } => "scope.unknown_rank",
            Self::DeviceRequired { .. } => "scope.device_required",
            Self::InvalidFlag { .. } => "usage.invalid_value",
            Self::CapabilityMissing { .. } => "capability.missing",
            Self::TooManyBuckets { .. } => "limit.buckets",
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::TablesReplaced => ErrorClass::Input,
            Self::Query(_) | Self::Runtime(_) | Self::Internal { .. } | Self::TablesDamaged(_) => {
                ErrorClass::Internal
            }
            Self::RankRequired { .. } | Self::CapabilityMissing { .. } => ErrorClass::Unsupported,
            Self::UnknownRank { .. } | Self::DeviceRequired { .. } | Self::InvalidFlag { .. } => {
                ErrorClass::Usage
            }
            Self::TooManyBuckets { .. } => ErrorClass::Limit,
        }
    }

    fn is_passing(&self) -> bool {
        matches!(self, Self::TablesReplaced)
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Query(_) | Self::Internal { .. } | Self::TablesDamaged(_) => {
                Some("Rebuild the trace's tables with `veloq pytorch prep TRACE --force`.".to_owned())
            }
            Self::TablesReplaced => {
                Some("Ask again when no other process cleans or rebuilds them.".to_owned())
            }
            Self::RankRequired { .. } => {
                Some("Choose one with `--rank N`, or take `--all-ranks`.".to_owned())
            }
            Self::DeviceRequired { devices, .. } => {
                Some(format!("Add `--device N`; in scope are {}.", devices.join(", ")))
            }
            Self::CapabilityMissing { reason, .. } => reason.clone(),
            Self::TooManyBuckets { at_least_ns, .. } => Some(format!(
                "Take an interval of at least {at_least_ns}ns, or a shorter window with --from and --to."
            )),
            Self::UnknownRank { .. } | Self::Runtime(_) | Self::InvalidFlag { .. } => None,
        }
    }
}
