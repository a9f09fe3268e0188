//! What can go wrong when a trace is opened.

use parquet::errors::ParquetError;
use veloq_core::{ErrorClass, Explain};

use crate::error::Error;
use crate::kineto::error::ReadError;
use crate::sidecar;

/// An error of opening a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum OpenError {
    #[error(transparent)]
    Store(#[from] sidecar::Error),

    #[error(transparent)]
    Read(#[from] ReadError),

    #[error("the table `{table}` cannot be written")]
    Table {
        table: &'static str,
        source: ParquetError,
    },

    #[error("the inventory of the trace cannot be stored or read back")]
    Inventory(#[source] serde_json::Error),

    #[error(transparent)]
    Query(#[from] Error),
}

impl Explain for OpenError {
    fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::Read(error) => error.code(),
            Self::Query(error) => error.code(),
            Self::Table { .. } => "limit.table_not_written",
            Self::Inventory(_) => "internal.inventory",
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::Store(error) => error.class(),
            Self::Read(error) => error.class(),
            Self::Query(error) => error.class(),
            Self::Table { .. } => ErrorClass::Limit,
            Self::Inventory(_) => ErrorClass::Internal,
        }
    }

    fn is_passing(&self) -> bool {
        matches!(self, Self::Query(error) if error.is_passing())
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Read(error) => error.hint(),
            Self::Query(error) => error.hint(),
            Self::Table { .. } => Some("Set VELOQ_CACHE_DIR to a folder with room for it.".to_owned()),
            Self::Inventory(_) => Some("Rebuild with `veloq pytorch prep TRACE --force`.".to_owned()),
        }
    }
}
