//! `recipes`: questions that take several commands.

use clap::{ArgMatches, Args, Command};
use schemars::JsonSchema;
use serde::Serialize;
use veloq_core::{
    Cell, Column, Example, Failure, Page, Recipe, Section, Table, TableView, Unit, answer_schema,
};

use super::{Asked, Meta, NoAuxiliary};
use crate::output::Output;
use crate::render::count_table;
use crate::usage::{UsageError, read_args};

/// Lists the recipes, or shows one with how to read each answer
#[derive(Debug, Clone, Default, Args)]
struct RecipesRequest {
    /// The recipe
    id: Option<String>,
}

/// Recipes, source by source; or the one asked for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct RecipesResponse(Page<RecipeRow, NoAuxiliary>);

/// A recipe.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecipeRow {
    /// `recipe|<id>`.
    key: String,
    /// What to type after `veloq recipes`.
    id: String,
    /// The source whose traces it is for.
    source: String,
    /// The question it answers.
    question: String,
    /// Its commands; only of a recipe that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepRow>>,
}

/// A step of a recipe.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepRow {
    /// What to type; `TRACE` stands for a trace, `ROW_ID` for a row id of the answer before.
    command: String,
    /// How to read the answer.
    read: String,
}

impl RecipeRow {
    fn new(source: &str, recipe: &Recipe, has_steps: bool) -> Self {
        let steps = recipe.steps.iter().map(|step| StepRow {
            command: format!("veloq {}", step.command),
            read: step.read.to_owned(),
        });
        Self {
            key: format!("recipe|{}", recipe.id),
            id: recipe.id.to_owned(),
            source: source.to_owned(),
            question: recipe.question.to_owned(),
            steps: has_steps.then(|| steps.collect()),
        }
    }
}

impl TableView for RecipesResponse {
    fn table(&self) -> Table {
        if let [
            RecipeRow {
                steps: Some(steps), ..
            },
        ] = self.0.rows.as_slice()
        {
            return steps_table(steps);
        }
        let mut columns = vec![Column::detail("key", Unit::Id)];
        columns.extend(["id", "source", "question"].map(|name| Column::new(name, Unit::Text)));
        let rows = self.0.rows.iter().map(|row| {
            [&row.key, &row.id, &row.source, &row.question]
                .map(|text| Cell::from(text.clone()))
                .to_vec()
        });
        count_table(columns, rows.collect(), self.0.total_matched)
    }
}

/// Returns the commands, and behind them how each answer is read.
fn steps_table(steps: &[StepRow]) -> Table {
    let numbered = || steps.iter().zip(1_u64..);
    let commands = Section {
        title: None,
        columns: vec![
            Column::new("step", Unit::Count),
            Column::new("command", Unit::Text),
        ],
        rows: numbered()
            .map(|(step, number)| vec![number.into(), step.command.as_str().into()])
            .collect(),
    };
    let readings = numbered().map(|(step, number)| Section {
        title: None,
        columns: vec![Column::new(format!("reading {number}"), Unit::Text)],
        rows: wrapped(&step.read)
            .into_iter()
            .map(|line| vec![line.into()])
            .collect(),
    });
    Table {
        sections: std::iter::once(commands).chain(readings).collect(),
        total_matched: steps.len() as u64,
        notes: Vec::new(),
    }
}

/// Breaks a text into lines that fit every terminal.
fn wrapped(text: &str) -> Vec<String> {
    const WIDTH: usize = 76;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a last line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

pub(super) const META: Meta = Meta {
    name: "recipes",
    about: "Which commands answer a larger question, and how are they read?",
    shape: "[ID]",
    examples: &[
        Example {
            asks: "The questions there is a recipe for",
            command: "recipes --format table",
        },
        Example {
            asks: "One recipe, step by step",
            command: "recipes step-time",
        },
    ],
    augment: |command: Command| RecipesRequest::augment_args(command),
    answer,
    schema: Some(|| answer_schema::<RecipesResponse>(None, "recipes", false)),
};

fn answer(asked: &Asked<'_>, matches: &ArgMatches) -> Result<Output, Failure> {
    let request = read_args::<RecipesRequest>(matches)?;
    let all = asked
        .sources
        .iter()
        .flat_map(|source| source.recipes().iter().map(|recipe| (source.spec().name, recipe)));
    let rows: Vec<RecipeRow> = match &request.id {
        None => all
            .map(|(source, recipe)| RecipeRow::new(source, recipe, false))
            .collect(),
        Some(id) => {
            let known: Vec<&str> = all.clone().map(|(_, recipe)| recipe.id).collect();
            let found = all.clone().find(|(_, recipe)| recipe.id == id);
            let (source, recipe) = found.ok_or_else(|| UsageError::invalid_choice("ID", id, &known))?;
            vec![RecipeRow::new(source, recipe, true)]
        }
    };
    let total = rows.len() as u64;
    let page = Page::new(rows, total, NoAuxiliary {});
    Ok(Output::Answer(Box::new(RecipesResponse(page))))
}
