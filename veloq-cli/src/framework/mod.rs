//! The verbs every source has without writing them.

mod prep;
mod schema;

use clap::{ArgMatches, Command};
use serde_json::Value;
use veloq_core::{ErasedSource, Example, Failure, Input, PrepOptions, SourceSpec, TraceSpan};

use crate::output::Output;

pub(crate) use prep::{SidecarRow, status_word};
pub(crate) use schema::{SchemaRequest, TargetRow, list_targets, select, target_table};

/// What a framework verb works on.
pub(crate) struct Asked<'a> {
    pub(crate) source: &'static dyn ErasedSource,
    /// The trace; an empty path for verbs that read none.
    pub(crate) input: Input,
    pub(crate) options: PrepOptions<'a>,
}

/// What a framework verb says.
pub(crate) struct Reply {
    pub(crate) output: Output,
    /// The time the trace covers, when it was opened.
    pub(crate) trace_span: Option<TraceSpan>,
}

/// A verb that is the same for every source.
pub(crate) struct FrameworkVerb {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Whether a trace is named.
    pub(crate) reads_trace: bool,
    pub(crate) examples: &'static [Example],
    pub(crate) augment: fn(Command) -> Command,
    pub(crate) answer: fn(&Asked<'_>, &ArgMatches) -> Result<Reply, Failure>,
    /// The schemas of request and whole answer.
    pub(crate) schemas: fn(&SourceSpec) -> (Value, Value),
}

/// All of them, in the order of the help.
pub(crate) const FRAMEWORK: &[FrameworkVerb] = &[prep::VERB, schema::VERB];
