//! `completions`: a script that completes command lines.

use clap::{ArgMatches, Args};
use clap_complete::Shell;
use veloq_core::{Example, Failure};

use super::{Asked, Meta};
use crate::app;
use crate::output::Output;
use crate::usage::read_args;

/// Prints a script for the shell to source.
#[derive(Debug, Clone, Args)]
struct CompletionsRequest {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) const META: Meta = Meta {
    name: "completions",
    about: "Print a completion script for a shell",
    shape: "<SHELL>",
    examples: &[Example {
        asks: "For bash, to be sourced",
        command: "completions bash",
    }],
    augment: CompletionsRequest::augment_args,
    answer,
    schema: None,
};

fn answer(asked: &Asked<'_>, matches: &ArgMatches) -> Result<Output, Failure> {
    let CompletionsRequest { shell } = read_args(matches)?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut app::build(asked.sources, None), "veloq", &mut script);
    Ok(Output::Text(String::from_utf8_lossy(&script).into_owned()))
}
