//! What can be wrong with a file that is opened as a trace.

use std::io;
use std::path::PathBuf;

use veloq_core::{ErrorClass, Explain};

use super::root::LookAlike;
use crate::open::UnpackedTooLarge;

/// An error of reading a trace's text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ReadError {
    #[error("`{}` cannot be read", path.display())]
    Io { path: PathBuf, source: io::Error },

    #[error("`{}` is empty", path.display())]
    Empty { path: PathBuf },

    #[error("`{}` is damaged: nothing of its compressed data can be unpacked", path.display())]
    NothingUnpacked { path: PathBuf },

    #[error("`{}` is not a trace: it is {}", path.display(), what.description())]
    NotATrace { path: PathBuf, what: LookAlike },

    #[error("the input is damaged{}{}: {what}", at_byte(*offset), at_element(*index))]
    Damaged {
        what: String,
        offset: Option<u64>,
        index: Option<u64>,
    },

    #[error("the input ends too early, at byte {offset} of its text{}", at_element(*index))]
    Truncated { offset: u64, index: Option<u64> },

    #[error(
        "two traces are mixed up in the input: another one begins at byte {offset} of its text{}",
        at_element(*index)
    )]
    Interleaved { offset: u64, index: Option<u64> },

    #[error("the input is damaged beyond use: {unreadable} of {elements} elements cannot be made out")]
    BeyondUse { unreadable: u64, elements: u64 },

    #[error("the keys before the events take more than {limit_bytes} bytes")]
    HeadTooLarge { limit_bytes: usize },

    #[error("the compressed data holds more than {limit} events")]
    TooDense { limit: u64 },

    #[error("the trace holds more than {} elements", u32::MAX - 1)]
    TooManyElements,

    #[error("interrupted")]
    Interrupted,
}

const PACKS_TOO_WELL: &str =
    "No trace packs so well; the file is damaged or not a trace. Unpack it yourself to look at it.";

fn at_byte(offset: Option<u64>) -> String {
    offset
        .map(|offset| format!(" at byte {offset}"))
        .unwrap_or_default()
}

fn at_element(index: Option<u64>) -> String {
    index
        .map(|index| format!(", element {index}"))
        .unwrap_or_default()
}

impl Explain for ReadError {
    fn code(&self) -> &'static str {
        match self {
            Self::Io { source, .. } if is_too_large(source) => "limit.unpacked_size",
            Self::Io { .. } => "input.unreadable",
            Self::Empty { .. } => "input.empty",
            Self::NotATrace {
                what: LookAlike::NotJson | LookAlike::Pickle,
                ..
            } => "input.not_json",
            Self::NotATrace {
                what: LookAlike::Utf16,
                ..
            } => "input.utf16",
            Self::NotATrace {
                what: LookAlike::CutHead,
                ..
            } => "input.truncated",
            Self::NotATrace { .. } => "input.not_a_trace",
            Self::NothingUnpacked { .. } | Self::Damaged { .. } | Self::BeyondUse { .. } => "input.damaged",
            Self::Truncated { .. } => "input.truncated",
            Self::Interleaved { .. } => "input.interleaved",
            Self::HeadTooLarge { .. } => "limit.header_size",
            Self::TooDense { .. } => "limit.unpacked_size",
            Self::TooManyElements => "limit.elements",
            Self::Interrupted => "limit.interrupted",
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::Io { source, .. } if is_too_large(source) => ErrorClass::Limit,
            Self::HeadTooLarge { .. } | Self::TooDense { .. } | Self::TooManyElements | Self::Interrupted => {
                ErrorClass::Limit
            }
            _ => ErrorClass::Input,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io { source, .. } if is_too_large(source) => PACKS_TOO_WELL,
            Self::TooDense { .. } => PACKS_TOO_WELL,
            Self::Empty { .. } => "The profiler may have been killed before it wrote; record again.",
            Self::NothingUnpacked { .. } => "It was cut or changed on its way; copy it again.",
            Self::NotATrace {
                what: LookAlike::Utf16,
                ..
            } => "Convert it to UTF-8, for example with `iconv -f UTF-16 -t UTF-8`.",
            Self::NotATrace {
                what: LookAlike::CutHead,
                ..
            } => "The profiler may have been killed while it wrote; record again.",
            Self::NotATrace {
                what: LookAlike::ExecutionTrace,
                ..
            } => {
                "Give the file that export_chrome_trace wrote; execution traces come from ExecutionTraceObserver."
            }
            Self::NotATrace { .. } => {
                "Give a file that torch.profiler wrote: export_chrome_trace or tensorboard_trace_handler."
            }
            Self::Damaged { .. } | Self::Truncated { .. } => {
                "Without --strict, what can be read is answered and the damage is reported."
            }
            Self::BeyondUse { .. } | Self::Interleaved { .. } => {
                "Two processes may have written to one file at once; record each rank into a file of its own."
            }
            Self::Io { .. } | Self::HeadTooLarge { .. } | Self::TooManyElements | Self::Interrupted => {
                return None;
            }
        };
        Some(hint.to_owned())
    }
}

fn is_too_large(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<UnpackedTooLarge>())
}
