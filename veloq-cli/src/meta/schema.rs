//! `schema`: the JSON Schemas of all commands.

use clap::{ArgMatches, Args};
use schemars::JsonSchema;
use serde::Serialize;
use veloq_core::{Example, Failure, Page, Table, TableView, answer_schema};

use super::{Asked, Meta, NoAuxiliary};
use crate::contracts::{self, Contract};
use crate::framework::{SchemaRequest, TargetRow, list_targets, select, target_table};
use crate::output::Output;
use crate::usage::read_args;

/// The targets: those of each source, then veloq's own.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct SchemaResponse(Page<TargetRow, NoAuxiliary>);

impl TableView for SchemaResponse {
    fn table(&self) -> Table {
        target_table(&self.0.rows, self.0.total_matched)
    }
}

pub(super) const META: Meta = Meta {
    name: "schema",
    about: "What does an answer look like? Prints the JSON Schema of any command",
    shape: "[TARGET]",
    examples: &[
        Example {
            asks: "List what has a schema",
            command: "schema --format table",
        },
        Example {
            asks: "The shape every answer has",
            command: "schema envelope",
        },
    ],
    augment: SchemaRequest::augment_args,
    answer,
    schema: Some(|| answer_schema::<SchemaResponse>(None, "schema", false)),
};

fn answer(asked: &Asked<'_>, matches: &ArgMatches) -> Result<Output, Failure> {
    let request = read_args::<SchemaRequest>(matches)?;
    let mut all: Vec<Contract> = Vec::new();
    for source in asked.sources {
        let name = source.spec().name;
        all.extend(
            contracts::of_source(*source)
                .into_iter()
                .map(|contract| Contract {
                    target: format!("{name}.{}", contract.target),
                    ..contract
                }),
        );
    }
    all.extend(contracts::of_commands());
    all.extend(contracts::by_hand());
    if let Some(target) = &request.target {
        return Ok(Output::Text(select(
            &all,
            target,
            request.request,
            "veloq schema",
        )?));
    }
    let rows = list_targets(&all);
    let total = rows.len() as u64;
    Ok(Output::Answer(Box::new(SchemaResponse(Page::new(
        rows,
        total,
        NoAuxiliary {},
    )))))
}
