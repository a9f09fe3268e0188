//! What is printed, and what happens when it cannot be.

use std::io;

use veloq_core::{Answer, ErrorClass, Explain, Failure, SourceRef, TraceRef, TraceSpan};

/// The head every answer and every error carries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) source: Option<SourceRef>,
    pub(crate) command: String,
    pub(crate) trace: Option<TraceRef>,
    pub(crate) trace_span: Option<TraceSpan>,
}

/// What a command has to say.
pub(crate) enum Output {
    /// An answer, in the format that was asked for.
    Answer(Box<dyn Answer>),
    /// Text that has one form: a JSON Schema, a completion script, help.
    Text(String),
}

/// Why a call ends without its output being written.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Nobody reads on: a quiet success.
    Closed,
    /// An error to report.
    Failed(Failure),
}

impl<E> From<E> for Ended
where
    Failure: From<E>,
{
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Why output could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    #[error("the answer could not be written")]
    Write(#[source] io::Error),
    #[error("the answer could not be put into JSON")]
    Serialize(#[source] serde_json::Error),
}

impl Explain for OutputError {
    fn code(&self) -> &'static str {
        match self {
            Self::Write(_) => "limit.output",
            Self::Serialize(_) => "internal.serialize",
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::Write(_) => ErrorClass::Limit,
            Self::Serialize(_) => ErrorClass::Internal,
        }
    }
}

/// Returns how a call ends whose output met an I/O error.
pub(crate) fn ended_by_io(error: io::Error) -> Ended {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Ended::Closed
    } else {
        Ended::Failed(OutputError::Write(error).into())
    }
}

/// Returns how a call ends whose answer could not be serialized.
pub(crate) fn ended_by_json(error: serde_json::Error) -> Ended {
    if error.is_io() {
        ended_by_io(error.into())
    } else {
        Ended::Failed(OutputError::Serialize(error).into())
    }
}
