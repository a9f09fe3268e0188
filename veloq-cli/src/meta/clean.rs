//! `clean`: removes what veloq stored of a trace.

use std::path::PathBuf;

use clap::{ArgMatches, Args};
use schemars::JsonSchema;
use serde::Serialize;
use veloq_core::{Cell, Column, Example, Failure, Input, Page, Table, TableView, Unit, answer_schema};

use super::{Asked, Meta};
use crate::output::Output;
use crate::render::count_table;
use crate::usage::read_args;

/// Removes the sidecars of a trace, and only what veloq made; the trace stays, or may be gone already.
#[derive(Debug, Clone, Args)]
struct CleanRequest {
    /// The trace whose sidecars go
    trace: PathBuf,
}

/// What was removed or kept: by source, then in the order of removal.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct CleanResponse(Page<CleanRow, CleanAuxiliary>);

/// A file or folder.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CleanRow {
    /// `removed|<path>` or `kept|<path>`.
    key: String,
    /// The source that stored it.
    source: String,
    /// The file or folder.
    path: String,
    /// Whether it is gone now.
    removed: bool,
    /// What it held on disk; null when it was kept.
    bytes: Option<u64>,
    /// Why it was kept; null when it was removed.
    reason: Option<String>,
}

/// The sum of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CleanAuxiliary {
    /// Disk space that was freed.
    freed_bytes: u64,
}

impl TableView for CleanResponse {
    fn table(&self) -> Table {
        let columns = vec![
            Column::detail("key", Unit::Id),
            Column::new("source", Unit::Text),
            Column::new("path", Unit::Text),
            Column::new("removed", Unit::Text),
            Column::new("bytes", Unit::Bytes),
            Column::new("reason", Unit::Text),
        ];
        let rows = self.0.rows.iter().map(|row| {
            vec![
                row.key.as_str().into(),
                row.source.as_str().into(),
                row.path.as_str().into(),
                row.removed.into(),
                row.bytes.into(),
                row.reason.as_deref().into(),
            ]
        });
        count_table(columns, rows.collect::<Vec<Vec<Cell>>>(), self.0.total_matched)
    }
}

pub(super) const META: Meta = Meta {
    name: "clean",
    about: "Remove what veloq stored of a trace, and nothing else",
    shape: "<TRACE>",
    examples: &[Example {
        asks: "Free the disk space of one trace",
        command: "clean TRACE",
    }],
    augment: CleanRequest::augment_args,
    answer,
    schema: Some(|| answer_schema::<CleanResponse>(None, "clean", false)),
};

fn answer(asked: &Asked<'_>, matches: &ArgMatches) -> Result<Output, Failure> {
    let CleanRequest { trace } = read_args(matches)?;
    let input = Input::new(trace);
    let mut rows = Vec::new();
    let mut first_failure = None;
    for source in asked.sources {
        // One source that cannot clean up keeps none of the others from it.
        match source.clean(&input) {
            Ok(report) => {
                let name = source.spec().name;
                rows.extend(report.removed.into_iter().map(|(path, bytes)| CleanRow {
                    key: format!("removed|{}", path.to_string_lossy()),
                    source: name.to_owned(),
                    path: path.to_string_lossy().into_owned(),
                    removed: true,
                    bytes: Some(bytes),
                    reason: None,
                }));
                rows.extend(report.kept.into_iter().map(|(path, reason)| CleanRow {
                    key: format!("kept|{}", path.to_string_lossy()),
                    source: name.to_owned(),
                    path: path.to_string_lossy().into_owned(),
                    removed: false,
                    bytes: None,
                    reason: Some(reason),
                }));
            }
            Err(failure) => {
                first_failure.get_or_insert(failure);
            }
        }
    }
    if let Some(failure) = first_failure {
        return Err(failure);
    }
    let freed_bytes = rows.iter().filter_map(|row| row.bytes).sum();
    let total = rows.len() as u64;
    Ok(Output::Answer(Box::new(CleanResponse(Page::new(
        rows,
        total,
        CleanAuxiliary { freed_bytes },
    )))))
}
