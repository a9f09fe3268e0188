//! `help`: the help of any command, by its words.

use clap::{ArgMatches, Args};
use veloq_core::{Example, Failure};

use super::{Asked, Meta};
use crate::app;
use crate::output::Output;
use crate::route::styled;
use crate::usage::{UsageError, read_args};

/// Prints the overview, or what a verb or command answers, takes, and looks like at work.
#[derive(Debug, Clone, Args)]
struct HelpRequest {
    /// The command's words: `search`, `pytorch search`
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
}

pub(super) const META: Meta = Meta {
    name: "help",
    about: "Print this overview, or the help of a verb or command",
    shape: "[COMMAND]",
    examples: &[Example {
        asks: "The flags and examples of a command",
        command: "help info",
    }],
    augment: HelpRequest::augment_args,
    answer,
    schema: None,
};

fn answer(asked: &Asked<'_>, matches: &ArgMatches) -> Result<Output, Failure> {
    let HelpRequest { words } = read_args(matches)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut tree = app::build_for_help(asked.sources, None);
    tree.build();
    let (found, left) = app::follow(&tree, &words);
    if let Some(unknown) = words.len().checked_sub(left).and_then(|at| words.get(at)) {
        let known: Vec<String> = found
            .get_subcommands()
            .map(|sub| sub.get_name().to_owned())
            .collect();
        let command = found.get_bin_name().unwrap_or("veloq");
        return Err(UsageError::unknown_verb(unknown, command, &known).into());
    }
    let mut found = found.clone();
    let help = if words.is_empty() {
        found.render_help()
    } else {
        found.render_long_help()
    };
    Ok(Output::Text(styled(&help, asked.has_color)))
}
