//! `schema`: the JSON Schema of a verb's answer, as it is in `contracts/`.

use clap::{ArgMatches, Args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use veloq_core::{
    Cell, Column, Failure, Page, Section, SourceSpec, Table, TableSchema, TableView, Unit, answer_schema,
    nearest, request_schema,
};

use super::{Asked, FrameworkVerb, Reply};
use crate::contracts::{self, Contract, Side};
use crate::output::Output;
use crate::render::count_table;
use crate::usage::{UsageError, read_args};

/// Prints a bare JSON Schema, so that it can be piped to a validator; without a target, lists the targets
/// and the tables a trace is stored as.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SchemaRequest {
    /// A verb, or `envelope`, or `error`
    pub(crate) target: Option<String>,
    /// Print the schema of the verb's request instead
    #[arg(long, requires = "target")]
    pub(crate) request: bool,
}

/// The targets, in the order of the help.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct SchemaResponse(Page<TargetRow, SchemaAuxiliary>);

/// Something whose schema can be asked for.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetRow {
    /// `target|<target>`.
    pub(crate) key: String,
    /// What to type after `schema`.
    pub(crate) target: String,
    /// What it describes.
    pub(crate) about: String,
    /// The file that holds it.
    pub(crate) contract: String,
}

/// What else there is to know of a source's data.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SchemaAuxiliary {
    /// The tables a trace is stored as.
    tables: Vec<TableSchema>,
}

impl TableView for SchemaResponse {
    fn table(&self) -> Table {
        let mut table = target_table(&self.0.rows, self.0.total_matched);
        for stored in &self.0.auxiliary.tables {
            let columns = ["column", "type", "nullable", "doc"];
            table.sections.push(Section {
                title: Some(format!("table {}: {}", stored.name, stored.doc)),
                columns: columns.map(|name| Column::new(name, Unit::Text)).to_vec(),
                rows: stored
                    .columns
                    .iter()
                    .map(|column| {
                        vec![
                            column.name.as_str().into(),
                            column.data_type.as_str().into(),
                            column.is_nullable.into(),
                            column.doc.as_str().into(),
                        ]
                    })
                    .collect(),
            });
        }
        table
    }
}

/// Returns the table of a list of targets.
pub(crate) fn target_table(targets: &[TargetRow], total: u64) -> Table {
    let columns = vec![
        Column::detail("key", Unit::Id),
        Column::new("target", Unit::Text),
        Column::new("about", Unit::Text),
        Column::new("contract", Unit::Text),
    ];
    let rows = targets.iter().map(|row| {
        let texts = [&row.key, &row.target, &row.about, &row.contract];
        texts.map(|text| Cell::from(text.as_str())).to_vec()
    });
    count_table(columns, rows.collect(), total)
}

const NAME: &str = "schema";

pub(crate) const VERB: FrameworkVerb = FrameworkVerb {
    name: NAME,
    about: "What does an answer look like? Prints its JSON Schema",
    reads_trace: false,
    examples: &[],
    augment: SchemaRequest::augment_args,
    answer,
    schemas,
};

fn schemas(source: &SourceSpec) -> (Value, Value) {
    (
        request_schema::<SchemaRequest>(source.name, NAME),
        answer_schema::<SchemaResponse>(Some(source), NAME, false),
    )
}

fn answer(asked: &Asked<'_>, matches: &ArgMatches) -> Result<Reply, Failure> {
    let request = read_args::<SchemaRequest>(matches)?;
    let mut all = contracts::of_source(asked.source);
    all.extend(contracts::by_hand());
    if let Some(target) = &request.target {
        let command = format!("veloq {} {NAME}", asked.source.spec().name);
        let text = select(&all, target, request.request, &command)?;
        return Ok(untimed(Output::Text(text)));
    }
    let rows = list_targets(&all);
    let total = rows.len() as u64;
    let auxiliary = SchemaAuxiliary {
        tables: asked.source.schema().tables,
    };
    let response = SchemaResponse(Page::new(rows, total, auxiliary));
    Ok(untimed(Output::Answer(Box::new(response))))
}

fn untimed(output: Output) -> Reply {
    Reply {
        output,
        trace_span: None,
    }
}

/// Returns the text of one contract.
pub(crate) fn select(
    all: &[Contract],
    target: &str,
    is_request: bool,
    command: &str,
) -> Result<String, UsageError> {
    let side = if is_request { Side::Request } else { Side::Response };
    let of_side = || all.iter().filter(|contract| contract.side == side);
    of_side()
        .find(|contract| contract.target == target)
        .map(|contract| contract.text.clone())
        .ok_or_else(|| UsageError::UnknownTarget {
            given: target.to_owned(),
            command: command.to_owned(),
            near: nearest(target, of_side().map(|contract| contract.target.as_str())).map(str::to_owned),
        })
}

/// Returns a row for each target.
pub(crate) fn list_targets(all: &[Contract]) -> Vec<TargetRow> {
    all.iter()
        .filter(|contract| contract.side == Side::Response)
        .map(|contract| TargetRow {
            key: format!("target|{}", contract.target),
            target: contract.target.clone(),
            about: contract.about.clone(),
            contract: format!("contracts/{}", contract.path),
        })
        .collect()
}
