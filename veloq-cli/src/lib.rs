//! The command line of veloq: `veloq <source> <verb> <TRACE> [flags]`.
//!
//! A call flows one way: the words are parsed by a command tree that is built from the registry of sources
//! ([`app`]), the trace is looked at and its source found, the source answers, and the answer is written in
//! the format that was asked for ([`run`]). Nothing but the answer is written to standard output.
//!
//! What does not live here: file formats and verbs (the sources own those). Renderers know no verb.

mod app;
mod args;
mod contracts;
mod fields;
mod framework;
mod input;
mod link;
mod logging;
mod meta;
mod output;
mod panics;
mod progress;
mod render;
mod route;
mod run;
mod signals;
mod surroundings;
mod usage;

pub use app::app;
pub use args::{Format, GLOBAL_IDS};
pub use contracts::{Contract, contracts};
pub use panics::silence_panics;
pub use run::run;
pub use signals::{stop_when_asked, survive_file_size_limits};
pub use surroundings::Surroundings;
