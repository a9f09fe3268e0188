//! `prep`: builds the sidecars of a trace, or tells what is there.

use clap::{ArgMatches, Args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use veloq_core::{
    Cell, Column, Example, Failure, Page, PrepOptions, Sidecar, SidecarStatus, SourceSpec, Table, TableView,
    Unit, answer_schema, request_schema,
};

use super::{Asked, FrameworkVerb, Reply};
use crate::output::Output;
use crate::render::count_table;
use crate::usage::read_args;

/// Every other verb does this by itself when needed: run it to pay the cost beforehand, or to see the state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PrepRequest {
    /// Tell the state of the sidecars and build nothing
    #[arg(long, conflicts_with = "force")]
    pub(crate) status: bool,
    /// Build again what is there already
    #[arg(long)]
    pub(crate) force: bool,
}

/// The stored tables of a trace, in the source's order.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct PrepResponse(Page<SidecarRow, PrepAuxiliary>);

/// A stored table.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SidecarRow {
    /// `sidecar|<name>`.
    pub(crate) key: String,
    /// The table's name.
    pub(crate) name: String,
    /// Its file.
    pub(crate) path: String,
    /// Its state.
    pub(crate) status: SidecarStatus,
    /// Its rows; null when it cannot be read.
    pub(crate) rows: Option<u64>,
    /// Its size on disk; null when it is not there.
    pub(crate) bytes: Option<u64>,
}

impl From<Sidecar> for SidecarRow {
    fn from(sidecar: Sidecar) -> Self {
        Self {
            key: format!("sidecar|{}", sidecar.name),
            name: sidecar.name,
            path: sidecar.path.to_string_lossy().into_owned(),
            status: sidecar.status,
            rows: sidecar.rows,
            bytes: sidecar.bytes,
        }
    }
}

/// What opening the trace cost.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrepAuxiliary {
    /// Where the sidecars are, or would be.
    artifact_dir: String,
    /// Whether this call built them.
    built: bool,
    /// Wall time of the opening; null when nothing was opened.
    elapsed_ms: Option<u64>,
    /// The trace's size on disk.
    input_bytes: u64,
    /// 10^6 bytes of input a second; null when nothing was built, or too quickly to tell.
    throughput_mb_per_s: Option<f64>,
}

impl TableView for PrepResponse {
    fn table(&self) -> Table {
        let columns = vec![
            Column::detail("key", Unit::Id),
            Column::new("name", Unit::Text),
            Column::new("status", Unit::Text),
            Column::new("rows", Unit::Count),
            Column::new("bytes", Unit::Bytes),
            Column::detail("path", Unit::Text),
        ];
        let rows = self.0.rows.iter().map(|row| {
            vec![
                row.key.as_str().into(),
                row.name.as_str().into(),
                status_word(row.status).into(),
                row.rows.into(),
                row.bytes.into(),
                row.path.as_str().into(),
            ]
        });
        let auxiliary = &self.0.auxiliary;
        let mut table = count_table(columns, rows.collect::<Vec<Vec<Cell>>>(), self.0.total_matched);
        table
            .notes
            .push(format!("Sidecars are in {}.", auxiliary.artifact_dir));
        if let Some(elapsed_ms) = auxiliary.elapsed_ms.filter(|_| auxiliary.built) {
            table.notes.push(format!("Built in {elapsed_ms} ms."));
        }
        table
    }
}

/// Returns a state as answers spell it.
pub(crate) fn status_word(status: SidecarStatus) -> &'static str {
    match status {
        SidecarStatus::Ready => "ready",
        SidecarStatus::Missing => "missing",
        SidecarStatus::Stale => "stale",
        SidecarStatus::Corrupt => "corrupt",
    }
}

const NAME: &str = "prep";

pub(crate) const VERB: FrameworkVerb = FrameworkVerb {
    name: NAME,
    about: "Which sidecars does this trace have? Builds the missing ones",
    reads_trace: true,
    examples: &[
        Example {
            asks: "Pay the cost of opening a trace beforehand",
            command: "prep TRACE",
        },
        Example {
            asks: "See what is stored, and build nothing",
            command: "prep TRACE --status",
        },
    ],
    augment: PrepRequest::augment_args,
    answer,
    schemas,
};

fn schemas(source: &SourceSpec) -> (Value, Value) {
    (
        request_schema::<PrepRequest>(source.name, NAME),
        answer_schema::<PrepResponse>(Some(source), NAME, true),
    )
}

fn answer(asked: &Asked<'_>, matches: &ArgMatches) -> Result<Reply, Failure> {
    let request = read_args::<PrepRequest>(matches)?;
    let prepared = if request.status {
        None
    } else {
        let options = PrepOptions {
            force: request.force,
            ..asked.options
        };
        Some(asked.source.prep(&asked.input, &options)?)
    };
    let report = asked.source.sidecars(&asked.input)?;
    let (preparation, trace_span) = match prepared {
        Some((preparation, span)) => (Some(preparation), span),
        None => (None, None),
    };
    let artifact_dir = preparation
        .as_ref()
        .map_or(&report.artifact_dir, |p| &p.artifact_dir);
    let auxiliary = PrepAuxiliary {
        artifact_dir: artifact_dir.to_string_lossy().into_owned(),
        built: preparation.as_ref().is_some_and(|p| p.built),
        elapsed_ms: preparation.as_ref().map(|p| p.elapsed_ms),
        input_bytes: report.input_bytes,
        throughput_mb_per_s: preparation
            .as_ref()
            .filter(|p| p.built)
            .and_then(|p| megabytes_per_second(p.input_bytes, p.elapsed_ms)),
    };
    let rows: Vec<SidecarRow> = report.sidecars.into_iter().map(Into::into).collect();
    let total = rows.len() as u64;
    let response = PrepResponse(Page::new(rows, total, auxiliary));
    Ok(Reply {
        output: Output::Answer(Box::new(response)),
        trace_span,
    })
}

/// Returns bytes over time in 10^6 bytes a second, to three decimals; `None` for no measurable time.
fn megabytes_per_second(bytes: u64, elapsed_ms: u64) -> Option<f64> {
    // Bytes a millisecond are thousandths of a megabyte a second.
    let thousandths = bytes.checked_div(elapsed_ms)?;
    u32::try_from(thousandths)
        .ok()
        .map(|rate| f64::from(rate) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_bytes_over_time() {
        assert_eq!(megabytes_per_second(3_000_000, 1000), Some(3.0));
        assert_eq!(megabytes_per_second(1_500, 1), Some(1.5));
        assert_eq!(megabytes_per_second(5, 0), None);
    }
}
