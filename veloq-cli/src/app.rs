//! The command tree, built from the registry of sources.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Arg, Args, Command, value_parser};
use serde_json::Value;
use veloq_core::{ErasedSource, Example, sources};

use crate::args::{Globals, TRACE};
use crate::fields;
use crate::framework::FRAMEWORK;
use crate::meta::META;

/// Help is wrapped at the terminal's width, at most here.
const HELP_WIDTH: usize = 110;

/// Returns the whole command tree of this build.
///
/// Verbs occur twice: under their source, and at the top for traces whose name tells the source. Where
/// two sources share a verb, the one at the top takes the flags of the source with the higher priority.
pub fn app() -> Command {
    build(&sources(), None)
}

/// Returns the tree in which verbs that sources share take the flags of `preferred`, when it has them.
pub(crate) fn build(sources: &[&'static dyn ErasedSource], preferred: Option<&str>) -> Command {
    let mut command = Command::new("veloq")
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(HELP_WIDTH)
        .disable_help_subcommand(true)
        .help_template(format!(
            "{{about}}\n\n{}\nGlobal options:\n{{options}}",
            overview(sources)
        ));
    command = Globals::augment_args(command)
        .about("Answers questions about profiler traces, one question per call")
        .next_help_heading(None::<&str>);
    for source in sources {
        command = command.subcommand(source_command(*source));
    }
    for (verb, source) in short_verbs(sources, preferred) {
        command = command.subcommand(verb_command(source, verb));
    }
    for meta in META {
        let sub = (meta.augment)(Command::new(meta.name).about(meta.about));
        command = command.subcommand(with_examples(sub, meta.examples));
    }
    command
}

/// Returns the tree of [`build`] with all that help tells: the long help of what answers in an envelope
/// names the fields of the answer.
///
/// Parsing needs none of it, and making schemas takes time.
pub(crate) fn build_for_help(sources: &[&'static dyn ErasedSource], preferred: Option<&str>) -> Command {
    let mut tree = build(sources, preferred);
    for source in sources {
        tree = tree.mut_subcommand(source.spec().name, |mut command| {
            for verb in verb_names(*source) {
                command =
                    command.mut_subcommand(verb, |command| tell_fields(command, response_of(*source, verb)));
            }
            command
        });
    }
    for (verb, source) in short_verbs(sources, preferred) {
        tree = tree.mut_subcommand(verb, |command| tell_fields(command, response_of(source, verb)));
    }
    for meta in META {
        let schema = meta.schema.map(|schema| schema());
        tree = tree.mut_subcommand(meta.name, |command| tell_fields(command, schema));
    }
    tree
}

/// Returns the schema of a verb's answers.
fn response_of(source: &dyn ErasedSource, verb: &str) -> Option<Value> {
    let framework = FRAMEWORK.iter().find(|own| own.name == verb);
    let (_, response) = match framework {
        Some(own) => (own.schemas)(source.spec()),
        None => source.verb_schemas(verb)?,
    };
    Some(response)
}

fn tell_fields(command: Command, schema: Option<Value>) -> Command {
    let Some(fields) = schema.as_ref().and_then(fields::of_answer) else {
        return command;
    };
    let examples = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    command.after_long_help(format!("{examples}{fields}"))
}

/// Returns the shape of a command, given as its words from `veloq` on; `None` for an unknown one.
pub(crate) fn usage_of(sources: &[&'static dyn ErasedSource], command: &str) -> Option<String> {
    let mut tree = build(sources, None);
    tree.build();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let (found, 0) = follow(&tree, &words) else {
        return None;
    };
    let usage = found.clone().render_usage().to_string();
    let line = usage.trim().trim_start_matches("Usage:").lines().next()?;
    Some(line.trim().to_owned())
}

/// Follows words down a tree as far as they name commands; returns the last one, and how many words are
/// left.
pub(crate) fn follow<'a>(tree: &'a Command, words: &[&str]) -> (&'a Command, usize) {
    match words.split_first() {
        Some((word, rest)) => match tree.find_subcommand(word) {
            Some(sub) => follow(sub, rest),
            None => (tree, words.len()),
        },
        None => (tree, 0),
    }
}

/// Returns the verbs that can be asked without their source, each with the source whose flags it takes.
fn short_verbs(
    sources: &[&'static dyn ErasedSource],
    preferred: Option<&str>,
) -> Vec<(&'static str, &'static dyn ErasedSource)> {
    let mut ordered = sources.to_vec();
    ordered.sort_by_key(|source| {
        let spec = source.spec();
        (Some(spec.name) != preferred, std::cmp::Reverse(spec.priority))
    });
    let mut verbs: Vec<(&'static str, &'static dyn ErasedSource)> = Vec::new();
    for source in ordered {
        for name in verb_names(source) {
            let is_taken = verbs.iter().any(|(taken, _)| *taken == name)
                || META.iter().any(|meta| meta.name == name)
                || sources.iter().any(|source| source.spec().name == name);
            if !is_taken {
                verbs.push((name, source));
            }
        }
    }
    verbs
}

/// Returns the names of all verbs of a source: its own, then those every source has.
pub(crate) fn verb_names(source: &dyn ErasedSource) -> Vec<&'static str> {
    let own = source.verbs().into_iter().map(|spec| spec.name);
    own.chain(FRAMEWORK.iter().map(|verb| verb.name)).collect()
}

fn source_command(source: &'static dyn ErasedSource) -> Command {
    let spec = source.spec();
    let mut command = Command::new(spec.name)
        .about(spec.about)
        .subcommand_value_name("VERB")
        .after_help(format!(
            "`veloq help {} VERB` tells what a verb takes and answers, with examples.\n\
             `veloq recipes` tells which commands answer larger questions.",
            spec.name
        ))
        .subcommand_help_heading("Verbs");
    for name in verb_names(source) {
        command = command.subcommand(verb_command(source, name));
    }
    command
}

fn verb_command(source: &'static dyn ErasedSource, name: &'static str) -> Command {
    if let Some(verb) = FRAMEWORK.iter().find(|verb| verb.name == name) {
        let mut command = Command::new(name);
        if verb.reads_trace {
            command = command.arg(trace_arg());
        }
        return with_examples((verb.augment)(command).about(verb.about), verb.examples);
    }
    let command = source.augment(name, Command::new(name).arg(trace_arg()));
    match source.verbs().into_iter().find(|spec| spec.name == name) {
        Some(spec) => with_examples(with_question(command, spec.about), spec.examples),
        None => command,
    }
}

/// Puts a verb's question in front of what the doc comment of its request says.
fn with_question(command: Command, question: &'static str) -> Command {
    let doc = command
        .get_long_about()
        .or(command.get_about())
        .map(ToString::to_string);
    match doc {
        Some(doc) if doc != question => command.about(question).long_about(format!("{question}\n\n{doc}")),
        _ => command.about(question),
    }
}

fn with_examples(command: Command, examples: &[Example]) -> Command {
    if examples.is_empty() {
        return command;
    }
    let mut text = "Examples:\n".to_owned();
    for example in examples {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "  {}\n    veloq {}", example.asks, example.command);
    }
    command.after_help(text)
}

fn trace_arg() -> Arg {
    Arg::new(TRACE)
        .value_name("TRACE")
        .help("The trace file")
        .required(true)
        .value_parser(value_parser!(PathBuf))
}

/// Returns the middle of the top help: usage, sources, verbs, commands.
fn overview(sources: &[&'static dyn ErasedSource]) -> String {
    let mut text = String::from(
        "Usage: veloq <VERB> <TRACE> [FLAGS]            the source is detected from the file's name\n\
         \x20      veloq <SOURCE> <VERB> <TRACE> [FLAGS]   the source is named\n\
         \x20      veloq <COMMAND>\n",
    );
    let mut section = |title: &str, lines: Vec<(String, &str)>| {
        let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let _ = write!(text, "\n{title}:\n");
        for (name, about) in lines {
            let _ = writeln!(text, "  {name:width$}  {about}");
        }
    };
    section(
        "Sources",
        sources
            .iter()
            .map(|source| (source.spec().name.to_owned(), source.spec().about))
            .collect(),
    );
    let verbs = short_verbs(sources, None);
    section(
        "Verbs",
        verbs
            .iter()
            .map(|(name, source)| {
                let own = source.verbs().into_iter().find(|spec| spec.name == *name);
                let framework = FRAMEWORK.iter().find(|verb| verb.name == *name);
                let about = own.map(|spec| spec.about).or(framework.map(|verb| verb.about));
                ((*name).to_owned(), about.unwrap_or_default())
            })
            .collect(),
    );
    section(
        "Commands",
        META.iter()
            .map(|meta| {
                (
                    format!("{} {}", meta.name, meta.shape).trim().to_owned(),
                    meta.about,
                )
            })
            .collect(),
    );
    text
}
