//! `sources`: the profilers whose traces this build reads.

use clap::ArgMatches;
use schemars::JsonSchema;
use serde::Serialize;
use veloq_core::{Cell, Column, Example, Failure, Page, Table, TableView, Unit, answer_schema};

use super::{Asked, Meta, NoAuxiliary};
use crate::framework::FRAMEWORK;
use crate::output::Output;
use crate::render::count_table;

/// The sources, by name.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct SourcesResponse(Page<SourceRow, NoAuxiliary>);

/// A source.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SourceRow {
    /// `source|<name>`.
    key: String,
    /// What to type as `<source>`.
    name: String,
    /// The version of its answers.
    version: String,
    /// What it reads.
    about: String,
    /// The file names it claims without being named.
    claims: Vec<String>,
    /// What it can be asked, in the order of the help.
    verbs: Vec<VerbRow>,
}

/// A verb.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerbRow {
    /// What to type as `<verb>`.
    name: String,
    /// The question it answers.
    about: String,
}

impl TableView for SourcesResponse {
    fn table(&self) -> Table {
        let names = ["name", "version", "about", "claims", "verbs"];
        let mut columns = vec![Column::detail("key", Unit::Id)];
        columns.extend(names.map(|name| Column::new(name, Unit::Text)));
        let rows = self.0.rows.iter().map(|row| {
            let verbs: Vec<&str> = row.verbs.iter().map(|verb| verb.name.as_str()).collect();
            let texts = [
                row.key.clone(),
                row.name.clone(),
                row.version.clone(),
                row.about.clone(),
                row.claims.join(" "),
                verbs.join(" "),
            ];
            texts.map(Cell::from).to_vec()
        });
        count_table(columns, rows.collect(), self.0.total_matched)
    }
}

pub(super) const META: Meta = Meta {
    name: "sources",
    about: "Which profilers' traces can be read, and what can be asked of them?",
    shape: "",
    examples: &[Example {
        asks: "An overview for people",
        command: "sources --format table",
    }],
    augment: |command| command,
    answer,
    schema: Some(|| answer_schema::<SourcesResponse>(None, "sources", false)),
};

fn answer(asked: &Asked<'_>, _: &ArgMatches) -> Result<Output, Failure> {
    let rows: Vec<SourceRow> = asked
        .sources
        .iter()
        .map(|source| {
            let spec = source.spec();
            let own = source.verbs().into_iter().map(|verb| (verb.name, verb.about));
            let framework = FRAMEWORK.iter().map(|verb| (verb.name, verb.about));
            SourceRow {
                key: format!("source|{}", spec.name),
                name: spec.name.to_owned(),
                version: spec.version.to_owned(),
                about: spec.about.to_owned(),
                claims: spec.claims.iter().map(|&claim| claim.to_owned()).collect(),
                verbs: own
                    .chain(framework)
                    .map(|(name, about)| VerbRow {
                        name: name.to_owned(),
                        about: about.to_owned(),
                    })
                    .collect(),
            }
        })
        .collect();
    let total = rows.len() as u64;
    Ok(Output::Answer(Box::new(SourcesResponse(Page::new(
        rows,
        total,
        NoAuxiliary {},
    )))))
}
