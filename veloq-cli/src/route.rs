//! From the words of a command line to what is asked of whom.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ArgMatches;
use clap::error::ErrorKind;
use veloq_core::{Detection, ErasedSource, SourceRef};

use crate::app;
use crate::args::{Globals, TRACE, plain_words};
use crate::framework::{FRAMEWORK, FrameworkVerb};
use crate::input::{InputError, Look, look_at_trace};
use crate::meta::{META, Meta};
use crate::output::{Ended, Head};
use crate::usage::{UsageError, read_args, with_source};

/// A command line, understood.
pub(crate) enum Route {
    /// Help, or the version: text to print.
    Text(String),
    /// A question to answer.
    Question { globals: Globals, question: Question },
}

/// What is asked of whom.
pub(crate) enum Question {
    /// A verb of a source.
    Verb {
        source: &'static dyn ErasedSource,
        verb: String,
        trace: PathBuf,
        matches: ArgMatches,
    },
    /// A verb that every source has.
    Framework {
        source: &'static dyn ErasedSource,
        verb: &'static FrameworkVerb,
        trace: Option<PathBuf>,
        matches: ArgMatches,
    },
    /// A command about veloq itself or about files.
    Meta {
        meta: &'static Meta,
        matches: ArgMatches,
    },
}

/// Returns as much of a command as can be told from a line that may be wrong elsewhere: the head of its
/// answer, and the words as typed.
pub(crate) fn guess(argv: &[OsString], sources: &[&'static dyn ErasedSource]) -> (Head, String) {
    let words: Vec<_> = plain_words(argv)
        .into_iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let mut head = Head {
        command: "veloq".to_owned(),
        ..Head::default()
    };
    let Some(first) = words.first() else {
        return (head, "veloq".to_owned());
    };
    if let Some(source) = sources.iter().find(|source| source.spec().name == *first) {
        head.source = Some(source_ref(*source));
        head.command = first.to_string();
        let verb = words
            .get(1)
            .filter(|word| app::verb_names(*source).contains(&word.as_ref()));
        if let Some(verb) = verb {
            head.command = format!("{first}.{verb}");
            return (head, format!("veloq {first} {verb}"));
        }
        return (head, format!("veloq {first}"));
    }
    let is_meta = META.iter().any(|meta| meta.name == *first);
    let is_verb = || {
        let mut all = sources.iter().flat_map(|source| app::verb_names(*source));
        all.any(|name| name == *first)
    };
    if is_meta || is_verb() {
        head.command = first.to_string();
        return (head, format!("veloq {first}"));
    }
    (head, "veloq".to_owned())
}

/// Returns how answers name a source.
pub(crate) fn source_ref(source: &dyn ErasedSource) -> SourceRef {
    SourceRef {
        kind: source.spec().name,
        version: source.spec().version,
    }
}

/// Understands a command line.
///
/// A verb without its source is parsed with the flags of each source in the order of their priority, until
/// one both parses and claims the trace.
pub(crate) fn route(
    argv: &[OsString],
    sources: &[&'static dyn ErasedSource],
    has_color: bool,
) -> Result<Route, Ended> {
    if argv.len() < 2 {
        // Whoever asks nothing gets an overview: there is no answer that could be mistaken for it.
        let help = app::build(sources, None).render_help();
        return Ok(Route::Text(styled(&help, has_color)));
    }
    if let [_, word] = argv
        && let Some(source) = sources.iter().find(|source| word == source.spec().name)
    {
        let mut tree = app::build(sources, None);
        tree.build();
        let (of_source, _) = app::follow(&tree, &[source.spec().name]);
        let help = of_source.clone().render_help();
        return Ok(Route::Text(styled(&help, has_color)));
    }
    let mut ordered = sources.to_vec();
    ordered.sort_by_key(|source| std::cmp::Reverse(source.spec().priority));
    let mut errors: Vec<(&'static str, clap::Error)> = Vec::new();
    let mut unclaimed = None;
    for preferred in ordered {
        let parsed = app::build(sources, Some(preferred.spec().name)).try_get_matches_from(argv);
        let matches = match parsed {
            Ok(matches) => matches,
            Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
                // The same words again, for a tree that tells more.
                let tree = app::build_for_help(sources, Some(preferred.spec().name));
                let told = tree.try_get_matches_from(argv).err().unwrap_or(error);
                return Ok(Route::Text(styled(&told.render(), has_color)));
            }
            Err(error) => {
                errors.push((preferred.spec().name, error));
                continue;
            }
        };
        let Some((name, leaf)) = matches.subcommand() else {
            return Err(missing_verb("veloq", &top_words(sources)).into());
        };
        if let Some(source) = sources.iter().find(|source| source.spec().name == name) {
            let words = owned(&app::verb_names(*source));
            let Some((verb, leaf)) = leaf.subcommand() else {
                return Err(missing_verb(&format!("veloq {name}"), &words).into());
            };
            return question_of(*source, verb, leaf, sources);
        }
        if let Some(meta) = META.iter().find(|meta| meta.name == name) {
            return asked(
                leaf,
                Question::Meta {
                    meta,
                    matches: leaf.clone(),
                },
            );
        }
        let look = look_at(leaf, sources)?;
        let is_claimed = look.detect(preferred).is_claimed();
        if is_claimed && app::verb_names(preferred).contains(&name) {
            return question_of(preferred, name, leaf, sources);
        }
        unclaimed = Some((name.to_owned(), look));
    }
    let claiming = unclaimed
        .as_ref()
        .and_then(|(_, look)| sources.iter().find(|source| look.detect(**source).is_claimed()));
    let of_claiming = claiming.and_then(|source| errors.iter().find(|(name, _)| *name == source.spec().name));
    let error = of_claiming.or(errors.first().filter(|_| unclaimed.is_none()));
    Err(match (error, unclaimed) {
        (Some((_, error)), _) => {
            let (_, command) = guess(argv, sources);
            let usage = app::usage_of(sources, &command);
            UsageError::from_clap(error, &command, &words_after(&command, sources), usage)
        }
        (None, Some((verb, look))) => match claiming {
            Some(source) => {
                let command = format!("veloq {}", source.spec().name);
                UsageError::unknown_verb(&verb, &command, &owned(&app::verb_names(*source)))
            }
            None => source_needed(argv, &verb, &look, sources),
        },
        (None, None) => missing_verb("veloq", &top_words(sources)),
    }
    .into())
}

/// Looks at the trace that a leaf of the tree names.
fn look_at(leaf: &ArgMatches, sources: &[&'static dyn ErasedSource]) -> Result<Look, InputError> {
    let path = leaf.get_one::<PathBuf>(TRACE).cloned().unwrap_or_default();
    look_at_trace(&path, sources)
}

fn question_of(
    source: &'static dyn ErasedSource,
    verb: &str,
    leaf: &ArgMatches,
    sources: &[&'static dyn ErasedSource],
) -> Result<Route, Ended> {
    let framework = FRAMEWORK.iter().find(|framework| framework.name == verb);
    let trace = if framework.is_none_or(|framework| framework.reads_trace) {
        let look = look_at(leaf, sources)?;
        if look.detect(source) == Detection::No {
            return Err(InputError::NotAccepted {
                path: look.path,
                source_name: source.spec().name,
                about: source.spec().about,
            }
            .into());
        }
        Some(look.path)
    } else {
        None
    };
    let matches = leaf.clone();
    let question = match (framework, trace) {
        (Some(verb), trace) => Question::Framework {
            source,
            verb,
            trace,
            matches,
        },
        (None, trace) => Question::Verb {
            source,
            verb: verb.to_owned(),
            trace: trace.unwrap_or_default(),
            matches,
        },
    };
    asked(leaf, question)
}

fn asked(leaf: &ArgMatches, question: Question) -> Result<Route, Ended> {
    Ok(Route::Question {
        globals: read_args::<Globals>(leaf)?,
        question,
    })
}

fn source_needed(
    argv: &[OsString],
    verb: &str,
    look: &Look,
    sources: &[&'static dyn ErasedSource],
) -> UsageError {
    let commands = sources
        .iter()
        .filter(|source| app::verb_names(**source).contains(&verb))
        .filter(|source| look.detect(**source) != Detection::No)
        .map(|source| with_source(argv, source.spec().name))
        .collect();
    UsageError::SourceNeeded {
        path: look.path.to_string_lossy().into_owned(),
        commands,
    }
}

fn missing_verb(command: &str, words: &[String]) -> UsageError {
    UsageError::MissingVerb {
        command: command.to_owned(),
        hint: format!(
            "Choose one of {}; `{command} --help` tells what they answer.",
            words.join(", ")
        ),
    }
}

/// Returns the words that may follow what could be understood of a command.
fn words_after(command: &str, sources: &[&'static dyn ErasedSource]) -> Vec<String> {
    let last = command.rsplit(' ').next().unwrap_or_default();
    match sources.iter().find(|source| source.spec().name == last) {
        Some(source) => owned(&app::verb_names(*source)),
        None => top_words(sources),
    }
}

fn top_words(sources: &[&'static dyn ErasedSource]) -> Vec<String> {
    let tree = app::build(sources, None);
    tree.get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns help as it is printed.
pub(crate) fn styled(text: &clap::builder::StyledStr, has_color: bool) -> String {
    if has_color {
        text.ansi().to_string()
    } else {
        text.to_string()
    }
}
