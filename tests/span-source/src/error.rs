//! What can be wrong with a file of spans.

use std::io;
use std::path::PathBuf;

use veloq_core::{ErrorClass, Explain};

/// Why a file of spans cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened, or is not UTF-8.
    #[error("`{}` cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is no span.
    #[error("line {line} is not a span")]
    NotASpan {
        /// The line, counted from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// A span ends beyond 64-bit nanoseconds.
    #[error("the span on line {line} does not end within 64-bit nanoseconds")]
    EndOverflow {
        /// The line, counted from 1.
        line: usize,
    },
}

impl Explain for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "input.unreadable",
            Self::NotASpan { .. } => "input.not_a_span",
            Self::EndOverflow { .. } => "input.time_overflow",
        }
    }

    fn class(&self) -> ErrorClass {
        ErrorClass::Input
    }

    fn hint(&self) -> Option<String> {
        let example = r#"Each line is an object such as {"name": "load", "start_ns": 0, "dur_ns": 5}."#;
        matches!(self, Self::NotASpan { .. }).then(|| example.to_owned())
    }
}
