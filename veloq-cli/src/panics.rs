//! Panics become error reports.

use std::any::Any;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Mutex, PoisonError};

use veloq_core::{ErrorClass, Explain};

/// Where the first panic of the process happened, and what it said. Later ones follow from it: a worker
/// that panics makes whoever waits for it panic, too.
static FIRST: Mutex<Option<Place>> = Mutex::new(None);

/// A fault of veloq itself.
#[derive(Debug, thiserror::Error)]
#[error("veloq ran into a fault of its own: {message}")]
pub(crate) struct Panicked {
    message: String,
    #[source]
    place: Option<Place>,
}

/// The place of a panic.
#[derive(Debug, thiserror::Error)]
#[error("{message} at {position}")]
struct Place {
    message: String,
    position: String,
}

impl Explain for Panicked {
    fn code(&self) -> &'static str {
        "internal.panic"
    }

    fn class(&self) -> ErrorClass {
        ErrorClass::Internal
    }

    fn hint(&self) -> Option<String> {
        Some("This is a bug of veloq, not of the trace: please report it with the command line.".to_owned())
    }
}

/// Keeps the process from writing a panic's own message to standard error; [`crate::run`] reports it.
pub fn silence_panics() {
    std::panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let position = info.location().map_or_else(String::new, |at| {
            format!("{}:{}:{}", at.file(), at.line(), at.column())
        });
        let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| Place {
            message: message_of(info.payload()),
            position,
        });
    }));
}

/// Runs `work`; a panic in it becomes an error.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    // What `work` borrowed is used for nothing but the report afterwards, whatever state it is in.
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panicked {
        message: message_of(payload.as_ref()),
        place: FIRST.lock().unwrap_or_else(PoisonError::into_inner).take(),
    })
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
