//! The commands about veloq itself and about files: they belong to no source.

mod clean;
mod completions;
mod help;
mod info;
mod man;
mod recipes;
mod schema;
mod skill;
mod sources;

use clap::{ArgMatches, Command};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use veloq_core::{ErasedSource, Example, Failure};

use crate::output::Output;

/// What a command works on.
pub(crate) struct Asked<'a> {
    pub(crate) sources: &'a [&'static dyn ErasedSource],
    /// Whether standard output understands colours.
    pub(crate) has_color: bool,
}

/// A command of veloq itself.
pub(crate) struct Meta {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What follows the name, as the overview shows it.
    pub(crate) shape: &'static str,
    pub(crate) examples: &'static [Example],
    pub(crate) augment: fn(Command) -> Command,
    pub(crate) answer: fn(&Asked<'_>, &ArgMatches) -> Result<Output, Failure>,
    /// The schema of the whole answer, for those that answer in an envelope.
    pub(crate) schema: Option<fn() -> Value>,
}

/// All of them, in the order of the help.
pub(crate) const META: &[Meta] = &[
    sources::META,
    info::META,
    clean::META,
    schema::META,
    recipes::META,
    skill::META,
    completions::META,
    man::META,
    help::META,
];

/// Nothing to say besides the rows.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoAuxiliary {}
