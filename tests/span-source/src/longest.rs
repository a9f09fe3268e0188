//! `longest`: which spans took the most time?

use std::cmp::Reverse;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use veloq_core::{Column, Example, Failure, Page, Section, Table, TableView, Unit, Verb, VerbSpec};

use crate::{Session, Span};

/// Lists spans by duration, the longest first; equal ones in file order
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LongestRequest {
    /// Spans of this name only
    #[arg(long)]
    name: Option<String>,
    /// Rows to return at most; 0 for all
    #[arg(long, default_value_t = Self::default().limit)]
    limit: usize,
}

impl Default for LongestRequest {
    fn default() -> Self {
        Self {
            name: None,
            limit: 20,
        }
    }
}

/// Spans, the longest first; equal ones in file order.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct LongestResponse(Page<SpanRow, LongestAuxiliary>);

/// A span.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpanRow {
    /// `span|<line index>`.
    key: String,
    /// What was done.
    name: String,
    /// When it began, since the trace's origin.
    start_ns: u64,
    /// How long it took.
    duration_ns: u64,
    /// Where it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
}

/// What the listed spans add up to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LongestAuxiliary {
    /// Whether the limit cut rows off.
    truncated: bool,
}

impl TableView for LongestResponse {
    fn table(&self) -> Table {
        let columns = vec![
            Column::new("key", Unit::Id),
            Column::new("name", Unit::Text),
            Column::new("start_ns", Unit::Nanoseconds),
            Column::new("duration_ns", Unit::Nanoseconds),
            Column::new("thread", Unit::Text),
        ];
        let rows = self.0.rows.iter().map(|row| {
            vec![
                row.key.as_str().into(),
                row.name.as_str().into(),
                row.start_ns.into(),
                row.duration_ns.into(),
                row.thread.as_deref().into(),
            ]
        });
        Table {
            sections: vec![Section {
                title: None,
                columns,
                rows: rows.collect(),
            }],
            total_matched: self.0.total_matched,
            notes: Vec::new(),
        }
    }
}

/// The verb.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Longest;

impl Verb for Longest {
    type Session = Session;
    type Request = LongestRequest;
    type Response = LongestResponse;
    const SPEC: VerbSpec = VerbSpec {
        name: "longest",
        about: "Which spans took the most time?",
        examples: &[Example {
            asks: "The three longest loads",
            command: "spans longest TRACE --name load --limit 3",
        }],
    };

    fn run(&self, session: &Session, request: LongestRequest) -> Result<LongestResponse, Failure> {
        let origin_ns = session.origin_ns().unwrap_or(0);
        let is_asked = |span: &Span| request.name.as_ref().is_none_or(|name| *name == span.name);
        let mut found: Vec<(usize, &Span)> = session
            .spans
            .iter()
            .enumerate()
            .filter(|(_, span)| is_asked(span))
            .collect();
        found.sort_by_key(|(at, span)| (Reverse(span.dur_ns), *at));
        let total = found.len();
        if request.limit > 0 {
            found.truncate(request.limit);
        }
        let rows: Vec<SpanRow> = found
            .iter()
            .map(|(at, span)| SpanRow {
                key: format!("span|{at}"),
                name: span.name.clone(),
                start_ns: span.start_ns - origin_ns,
                duration_ns: span.dur_ns,
                thread: span.thread.clone(),
            })
            .collect();
        let auxiliary = LongestAuxiliary {
            truncated: rows.len() < total,
        };
        Ok(LongestResponse(Page::new(rows, total as u64, auxiliary)))
    }
}
