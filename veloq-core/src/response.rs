//! The shape of every answer.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Report;
use crate::schema::SCHEMA_VERSION;
use crate::verb::Answer;

/// The source that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceRef {
    /// The source's name.
    pub kind: &'static str,
    /// The version of the source's answers.
    pub version: &'static str,
}

/// The trace an answer is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TraceRef {
    /// The source's name.
    pub kind: &'static str,
    /// The path as the caller gave it; lossy where it is not UTF-8.
    pub path: String,
}

/// The time a trace covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TraceSpan {
    /// The absolute origin in nanoseconds, as a decimal string: it exceeds 2^53.
    pub origin_ns: String,
    /// Nanoseconds from the origin to the latest end.
    pub span_ns: u64,
    /// `unix` when the origin counts from 1970, else `unknown`.
    pub clock: &'static str,
}

/// The one shape of every list an answer holds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Page<Row, Auxiliary> {
    /// The number of `rows`.
    pub count: u64,
    /// The number of matches before limit and offset.
    pub total_matched: u64,
    /// The rows, in the verb's stated order.
    pub rows: Vec<Row>,
    /// Everything else of the answer.
    pub auxiliary: Auxiliary,
}

impl<Row, Auxiliary> Page<Row, Auxiliary> {
    /// Returns a page of rows out of `total_matched`.
    pub fn new(rows: Vec<Row>, total_matched: u64, auxiliary: Auxiliary) -> Self {
        Self {
            count: rows.len() as u64,
            total_matched,
            rows,
            auxiliary,
        }
    }
}

/// A successful answer, ready to be serialized.
#[derive(Serialize)]
pub struct Envelope<'a> {
    schema: &'static str,
    source: Option<SourceRef>,
    command: &'a str,
    trace: Option<&'a TraceRef>,
    trace_span: Option<&'a TraceSpan>,
    data: &'a dyn Answer,
}

impl<'a> Envelope<'a> {
    /// Returns the envelope around an answer; `command` is `<source>.<verb>` or a meta command's name.
    pub fn new(
        source: Option<SourceRef>,
        command: &'a str,
        trace: Option<&'a TraceRef>,
        trace_span: Option<&'a TraceSpan>,
        data: &'a dyn Answer,
    ) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            source,
            command,
            trace,
            trace_span,
            data,
        }
    }
}

/// An error in place of an answer, ready to be serialized.
#[derive(Serialize)]
pub struct ErrorEnvelope<'a> {
    schema: &'static str,
    source: Option<SourceRef>,
    command: &'a str,
    trace: Option<&'a TraceRef>,
    trace_span: Option<&'a TraceSpan>,
    error: &'a Report,
}

impl<'a> ErrorEnvelope<'a> {
    /// Returns the envelope around a report.
    pub fn new(
        source: Option<SourceRef>,
        command: &'a str,
        trace: Option<&'a TraceRef>,
        trace_span: Option<&'a TraceSpan>,
        error: &'a Report,
    ) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            source,
            command,
            trace,
            trace_span,
            error,
        }
    }
}
