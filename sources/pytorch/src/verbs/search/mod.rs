//! `search`: the events that filters let through.
//!
//! Rows come in file order, or sorted; ties keep file order. A first query counts the matches and picks
//! the page, a second one reads the page's rows in full.

mod best;
mod query;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use veloq_core::{Example, Failure, Page, Section, Table, TableView, Trust, Verb, VerbSpec};

use crate::inventory::findings::code;
use crate::query::event::EventRow;
use crate::query::filters::{Filters, Scope};
use crate::query::page::{PageArgs, parse_sort};
use crate::session::TraceSession;

/// Lists the events that the filters let through, in file order unless sorted
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Request {
    #[command(flatten)]
    #[serde(flatten)]
    filters: Filters,
    /// Sort by `index`, `start_ns`, `duration_ns`, `name` or `bytes`, with `:asc` (default) or `:desc`; rows
    /// without a value come last
    #[arg(long, value_name = "FIELD[:ORDER]")]
    sort: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
}

/// What the answer is of, and whether it is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auxiliary {
    /// The filters as understood.
    scope: Scope,
    /// Whether matches follow behind the last row.
    truncated: bool,
    /// The `--offset` of the next page; null when there is none.
    next_offset: Option<u64>,
    /// The findings that touch these rows.
    trust: Trust,
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Response(Page<EventRow, Auxiliary>);

/// The verb.
pub(crate) struct Search;

impl Verb for Search {
    type Session = TraceSession;
    type Request = Request;
    type Response = Response;
    const SPEC: VerbSpec = VerbSpec {
        name: "search",
        about: "Which events are there with this name, type, duration, place or time?",
        examples: &[
            Example {
                asks: "The ten longest kernels",
                command: "pytorch search TRACE --type kernel --sort duration_ns:desc --limit 10",
            },
            Example {
                asks: "Matrix multiplications in the first two milliseconds",
                command: "pytorch search TRACE --name 'aten::*mm' --to 2ms",
            },
            Example {
                asks: "Everything that communicates and takes longer than 10 us",
                command: "pytorch search TRACE --is-comm --duration '>10us'",
            },
        ],
    };

    fn run(&self, session: &TraceSession, request: Request) -> Result<Response, Failure> {
        let sort = request
            .sort
            .as_deref()
            .map(|text| parse_sort(text, query::SORT_FIELDS))
            .transpose()?;
        let resolved = request.filters.resolve(session, &[])?;
        let wanted = request.page.wanted();
        let (first, total_matched) = query::matching(session, resolved.predicate.clone(), sort, wanted)?;
        let (page, cut) = request.page.cut_of(first, total_matched);
        let rows = query::rows(session, &page, total_matched, resolved.predicate)?;
        let mut codes: Vec<&str> = Vec::new();
        codes.extend([
            code::RANK_MERGED_FILE,
            code::IMPOSSIBLE_OVERLAP,
            code::EXTERNAL_ID_UNTRUSTED,
        ]);
        if request.filters.step.is_some() {
            codes.push(code::UNLINKED_ROWS);
        }
        if request.filters.is_comm {
            codes.push(code::COMM_UNCLASSIFIED);
        }
        let auxiliary = Auxiliary {
            scope: resolved.scope,
            truncated: cut.is_truncated,
            next_offset: cut.next_offset,
            trust: session.trust(&codes),
        };
        Ok(Response(Page::new(rows, total_matched, auxiliary)))
    }
}

impl TableView for Response {
    fn table(&self) -> Table {
        let rows = Section {
            title: None,
            columns: EventRow::columns(),
            rows: self.0.rows.iter().map(EventRow::cells).collect(),
        };
        Table {
            sections: vec![rows],
            total_matched: self.0.total_matched,
            notes: self.0.auxiliary.trust.details(),
        }
    }
}
